"""What rules count as datatrove 0.10 counts it, in place of the kernel's counts: `heuristics.counting: datatrove`.

The thresholds of FineWeb (Penedo et al. 2024) and FineWeb2 (2025) were chosen with these units. docs/conformance.md
lists the differences and measures what is left. Words are the kernel's: datatrove takes any tokenizer. What it counts
otherwise, a kernel of its own counts (transforms/native/datatrove.c).
"""

import re

from refinery.transforms.filter.counting.counts import Counts
from refinery.transforms.native import datatrove
from refinery.transforms.native import heuristics as kernel
from refinery.transforms.native.heuristics import Features, measure

_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")


def gopher_counts(text: str, found: Features) -> Counts:
    """For Gopher's quality rules: blank lines are lines, two bullets, words of rare symbols, every script judged."""
    more = datatrove.quality(text)
    return Counts(
        found,
        more,
        alnum_words=found.alnum_words + more.symbol_words,
        alnum_word_chars=found.alnum_word_chars + more.symbol_word_chars,
        spaceless_letters=0,
    )


def repetition_counts(text: str, found: Features) -> Counts:
    """For the repetition rules: the pieces between line breaks are lines, the empty ones before the first and after the
    last, too; paragraphs are cut at empty lines alone. (The most frequent n-gram may occur once: the kernel's flag.)"""
    return Counts(found, datatrove.repeated_pieces(text))


def c4_text(text: str, limits: tuple[int, int, int, int, int], remove_citations: bool) -> tuple[str, Features]:
    """For C4's rules: the text with its citations cut out, and its counts for the rules behind that.

    Lines lose the white space around them, blank ones go; words are cut at spaces in every script; a line's words are
    counted before citations are cut out.
    """
    text = datatrove.stripped_lines(text)
    _, short, words, chars, flags = limits
    found = measure(text, (), 0, 0, words, chars, kernel.UNSPLIT)
    text = text if found.text is None else found.text
    if remove_citations and "[" in text:
        text = _CITATION.sub("", text)
    return text, measure(text, (), 0, short, 0, 0, flags & ~(kernel.WORDS | kernel.PARAGRAPHS) | kernel.C4_ENDS)


def fineweb_counts(text: str, found: Features, short: int) -> Counts:
    """For FineWeb's rules: lines end only at "\\n", and white space after the last mark of a line hides it."""
    return Counts(found, datatrove.kept_lines(text, short))
