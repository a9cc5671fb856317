"""Which parts of a dropped text show why it was dropped: repeated lines, short lines, words that a rule names."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

Span = tuple[int, int]

LINE = re.compile(r"[^\n]+")
WORD = re.compile(r"\w+")
BULLET = re.compile(r"(?m)^[ \t]*[-*•‣◦●]\s")
ELLIPSIS = re.compile(r"(?m)(\.\.\.|…)[ \t]*$")
END_MARKS = (".", "!", "?", '"', "'", "”", "…", "。", "！", "？")
MOST = 200  # spans of a text


def repeated_lines(text: str) -> Iterator[Span]:
    """Lines that stand in it more than once."""
    lines = [found for found in LINE.finditer(text) if found[0].strip()]
    often = Counter(found[0].strip() for found in lines)
    return (found.span() for found in lines if often[found[0].strip()] > 1)


def repeated_words(text: str, length: int) -> Iterator[Span]:
    """Runs of `length` words that came before, joined where they overlap."""
    words = list(WORD.finditer(text.lower()))
    seen: set[tuple[str, ...]] = set()
    begin = end = -1
    for place in range(len(words) - length + 1):
        run = tuple(word[0] for word in words[place : place + length])
        if run in seen:
            start, stop = words[place].start(), words[place + length - 1].end()
            if start > end:
                if end > begin:
                    yield begin, end
                begin = start
            end = stop
        seen.add(run)
    if end > begin:
        yield begin, end


def unended_lines(text: str) -> Iterator[Span]:
    """Lines that do not end as a sentence does."""
    return (found.span() for found in LINE.finditer(text) if not found[0].rstrip().endswith(END_MARKS))


def pattern(expression: str) -> Callable[[str], Iterator[Span]]:
    """Whatever a regular expression finds."""
    compiled = re.compile(expression, re.I)
    return lambda text: (found.span() for found in compiled.finditer(text) if found[0])


# The beginning of a reason's name -> what it means in a text. The first that fits is taken.
MARKS: tuple[tuple[re.Pattern[str], Callable[[str], Iterator[Span]]], ...] = (
    (re.compile(r"repetition-.*?(\d+)-gram"), lambda text: repeated_words(text, 2)),
    (re.compile(r"repetition-|.*duplicate-line"), repeated_lines),
    (re.compile(r"c4-curly-bracket"), pattern(r"[{}]")),
    (re.compile(r"c4-lorem-ipsum"), pattern(r"lorem ipsum")),
    (re.compile(r"c4-javascript"), pattern(r"javascript")),
    (re.compile(r"c4-policy"), pattern(r"terms of use|privacy policy|cookie policy|uses cookies|use of cookies")),
    (re.compile(r"gopher-.*bullet"), lambda text: (found.span() for found in BULLET.finditer(text))),
    (re.compile(r"gopher-.*ellips"), lambda text: (found.span() for found in ELLIPSIS.finditer(text))),
    (re.compile(r"gopher-.*symbol|gopher-.*hash"), pattern(r"#|\.\.\.|…")),
    (re.compile(r"fineweb-.*terminal"), unended_lines),
    (re.compile(r".*code"), pattern(r"[{};]|=>|\b(?:function|var|const|return|import|def|class)\b")),
)


def marked(text: str, reason: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it shows what the reason is about. The pieces are the text.

    >>> marked("Buy now\\nBuy now\\nThe end.", "repetition-duplicate-lines")
    [('Buy now', True), ('\\n', False), ('Buy now', True), ('\\nThe end.', False)]
    """
    spans: Iterator[Span] = iter(())
    for name, find in MARKS:
        if name.match(reason):
            spans = find(text)
            if (length := name.match(reason)) and length.groups():
                spans = repeated_words(text, int(length[1]))
            break
    pieces: list[tuple[str, bool]] = []
    at = 0
    for number, (begin, end) in enumerate(spans):
        if number == MOST:
            break
        if begin > at:
            pieces.append((text[at:begin], False))
        pieces.append((text[begin:end], True))
        at = end
    return [*pieces, (text[at:], False)] if at < len(text) else pieces
