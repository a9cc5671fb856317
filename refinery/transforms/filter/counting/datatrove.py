"""What rules count as datatrove 0.10 counts it, in place of the kernel's counts: `heuristics.counting: datatrove`.

The thresholds of FineWeb (Penedo et al. 2024) and FineWeb2 (2025) were chosen with these units. docs/conformance.md
lists the differences and measures what is left. Words are the kernel's: datatrove takes any tokenizer.

Texts that both sides count alike keep the kernel's counts; of the others lines and paragraphs are counted again, in
plain Python. Cost: linear, about four times that of the kernel's own counts.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from refinery.transforms.filter.counting.counts import Counts
from refinery.transforms.native import heuristics as kernel
from refinery.transforms.native.heuristics import Features, measure

_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_OTHER_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # str.splitlines ends lines there, datatrove's lines go on
_SPACES_ALONE = re.compile(r"\n[^\S\n]+\n")
# A word of these alone is not a word of Gopher's rules there; the kernel's are words without a letter or digit.
_SYMBOLS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«´»–—’“”„…∶━►、。〈〉《》「」【】！％（），．１：；？～"
_NO_ALNUM = re.compile(r"(?<!\S)(?:[^\w\s]|_)+(?!\S)")
_BULLETS = ("•", "-")


def gopher_counts(text: str, found: Features, bullet_share: float | None, ellipsis_share: float | None) -> Counts:
    """For Gopher's quality rules: blank lines are lines, two bullets, words of rare symbols, every script judged."""
    signs = _NO_ALNUM.findall(text) if found.alnum_words < found.words else []
    solid = [word for word in signs if not all(map(_is_symbol, word))]
    bullets, lines, ellipses = found.bullet_lines, found.lines, found.ellipsis_lines
    # Blank lines and fewer bullets only lower the shares: they are counted where the kernel's would drop the text.
    if _above(bullets, lines, bullet_share) or _above(ellipses, lines, ellipsis_share):
        whole = text.splitlines()
        lines, bullets = len(whole), sum(line.lstrip().startswith(_BULLETS) for line in whole)
    return Counts(
        found,
        lines=lines,
        bullet_lines=bullets,
        alnum_words=found.alnum_words + len(solid),
        alnum_word_chars=found.alnum_word_chars + sum(map(len, solid)),
        spaceless_letters=0,
    )


def repetition_counts(text: str, found: Features) -> Counts:
    """For the repetition rules: the pieces between line breaks are lines, the empty ones before the first and after the
    last, too; paragraphs are cut at empty lines alone. (The most frequent n-gram may occur once: the kernel's flag.)"""
    counts: dict[str, int] = {}
    if _is_uneven(text):
        lines = re.split("\n+", text)
        paragraphs = re.split("\n{2,}", text.strip())
        counts = {"lines": len(lines), "paragraphs": len(paragraphs)}
        counts["duplicate_lines"], counts["duplicate_line_chars"] = _met_before(lines)
        counts["duplicate_paragraphs"], counts["duplicate_paragraph_chars"] = _met_before(paragraphs)
    return Counts(found, **counts)


def c4_text(text: str, limits: tuple[int, int, int, int, int], remove_citations: bool) -> tuple[str, Features]:
    """For C4's rules: the text with its citations cut out, and its counts for the rules behind that.

    Lines lose the white space around them, blank ones go; words are cut at spaces in every script; a line's words are
    counted before citations are cut out.
    """
    text = "\n".join(line for each in text.splitlines() if (line := each.strip()))
    _, short, words, chars, flags = limits
    found = measure(text, (), 0, 0, words, chars, kernel.UNSPLIT)
    text = text if found.text is None else found.text
    if remove_citations and "[" in text:
        text = _CITATION.sub("", text)
    return text, measure(text, (), 0, short, 0, 0, flags & ~(kernel.WORDS | kernel.PARAGRAPHS) | kernel.C4_ENDS)


def fineweb_counts(text: str, found: Features, short: int) -> Counts:
    """For FineWeb's rules: lines end only at "\\n", and white space after the last mark of a line hides it."""
    if not _breaks_otherwise(text) and not any(line[-1:].isspace() for line in text.split("\n")):
        return Counts(found)
    lines = [line for line in text.split("\n") if line.strip()]
    breaks = text.count("\n")
    ends = [line for line in lines if not line[-1].isspace()]
    return Counts(
        found,
        kept_lines=len(lines),
        kept_terminal_lines=measure("\n".join(_one_line(line) for line in ends), (), 0, 0, 0, 0, 0).kept_terminal_lines,
        kept_short_lines=sum(len(line) <= short for line in lines),
        kept_duplicate_line_chars=_met_before(lines)[1],
        kept_line_breaks=breaks,
        kept_line_chars=len(text) - breaks,
    )


@lru_cache(maxsize=4096)
def _is_symbol(character: str) -> bool:
    """Punctuation there: these and every mark that ends a sentence."""
    return character in _SYMBOLS or measure(character, (), 0, 0, 0, 0, 0).kept_terminal_lines == 1


def _breaks_otherwise(text: str) -> bool:
    return any(each in text for each in _OTHER_BREAKS)


def _is_uneven(text: str) -> bool:
    """Whether the pieces between line breaks may be other than the lines that are not blank."""
    return (
        text[:1].isspace() or text[-1:].isspace() or _breaks_otherwise(text) or _SPACES_ALONE.search(text) is not None
    )


def _one_line(line: str) -> str:
    return " ".join(line.splitlines())


def _above(part: int, whole: int, limit: float | None) -> bool:
    return limit is not None and part > limit * whole


def _met_before(pieces: Sequence[str]) -> tuple[int, int]:
    """How many pieces are equal to one before them, and their characters."""
    seen: set[str] = set()
    again = chars = 0
    for piece in pieces:
        if piece in seen:
            again += 1
            chars += len(piece)
        seen.add(piece)
    return again, chars
