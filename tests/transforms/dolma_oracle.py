"""What `transforms.native.counting` counts with dolma's units, a second time, in plain Python."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from statistics import median
from typing import Any

SYMBOLS = ("#", "…")
BULLETS = ("*", "-")
ENDS = (".", "?", "!", '"')


def gopher_counts(text: str, stop_lists: Sequence[Sequence[str]]) -> dict[str, float]:
    """For Gopher's quality rules. The length of words is their median; words with `#` or `…` count once and share one
    limit, that of `#`; a stop word counts as often as it occurs, as it is written."""
    words, lines = text.split(), text.split("\n")
    counts = Counter(words)
    return {
        "words": len(words),
        "word_chars": sum(map(len, words)),
        "double_median_chars": 2 * median(map(len, words)) if words else 0,
        "alnum_words": len(words),
        "letters": 0,
        "spaceless_letters": 0,
        "hashes": sum(any(symbol in word for symbol in SYMBOLS) for word in words),
        "ellipses": 0,
        "lines": len(lines),
        "bullet_lines": sum(line.startswith(BULLETS) for line in lines),
        "ellipsis_lines": sum(line.endswith("…") for line in lines),
        "alphabetic_words": sum(any(map(str.isalpha, word)) for word in words),
        "stop_words": max((sum(counts[word] for word in words) for words in stop_lists), default=0),
    }


def repetition_shares(text: str) -> Mapping[str, Callable[[], float]]:
    """For the repetition rules: name of a figure -> its share. Paragraphs are not counted there: 0."""
    words, lines = text.split(), text.split("\n")
    chars = sum(map(len, words)) or 1
    repeated = cache(lambda: [(line, n) for line, n in Counter(lines).items() if n > 1])
    return {
        "duplicate_lines": lambda: sum(n for _, n in repeated()) / len(lines),
        "duplicate_line_chars": lambda: sum(len(line) * n for line, n in repeated()) / chars,
        "duplicate_paragraphs": lambda: 0.0,
        "duplicate_paragraph_chars": lambda: 0.0,
        **{f"top_{n}_gram": partial(_top, words, n) for n in range(2, 5)},
        **{f"duplicate_{n}_grams": partial(_repeated, words, n) for n in range(5, 11)},
    }


def c4_lines(text: str, ends_alone: bool, min_words: int) -> str:
    """The lines that C4's rules for ends and for words leave."""
    lines = text.split("\n")
    if ends_alone:
        lines = [line for line in lines if line.strip().endswith(ENDS)]
    return "\n".join(line for line in lines if len(line.split()) >= min_words)


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


def _size(gram: tuple[Any, ...]) -> int:
    return sum(map(len, gram))


def _top(words: Sequence[str], n: int) -> float:
    """The share of the most frequent n-gram, the first of these, by its occurrences; it may occur once."""
    gram, count = max(_grams(words, n).items(), key=lambda each: each[1], default=((), 0))
    return _size(gram) * count / (sum(map(len, words)) or 1)


def _repeated(words: Sequence[str], n: int) -> float:
    """The share of n-grams that occur more than once, by their characters: words count n times on both sides."""
    sizes = [(_size(gram) * count, count) for gram, count in _grams(words, n).items()]
    return sum(size for size, count in sizes if count > 1) / (sum(size for size, _ in sizes) or 1)
