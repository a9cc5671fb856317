"""What rules count as the code of DCLM and dolma counts it: `heuristics.counting: dclm` and `dolma`.

dclm: Li et al. 2024, section 4.1, after baselines/mappers/filters/content_filters.py of mlfoundations/dclm at c7ed275.
Dolma 3's program has the same rules in Rust. dolma: Soldaini et al. 2024, section 3.2, after the taggers `gopher_v1`
and `c4_v2` of dolma 1.2.1. In both, all occurrences of what repeats count, not all but the first. A kernel counts
(transforms/native/counting.c); docs/conformance.md measures what is left, and the cost.
"""

from fractions import Fraction

from refinery.transforms.native import counting as kernel
from refinery.transforms.native.counting import Quality

UNITS = {"dclm": kernel.DCLM, "dolma": kernel.DOLMA}  # by HeuristicsParams.counting


def word_length(found: Quality, units: int, bounds: tuple[float | None, ...]) -> float | Fraction:
    """The length of words that rules compare with `bounds`: dolma's is the median, DCLM's the mean of all.

    A mean that rounding makes equal to a bound is returned without rounding.
    """
    if units == kernel.DOLMA:
        return found.double_median_chars / 2
    mean = found.word_chars / (found.words or 1)
    return Fraction(found.word_chars, found.words or 1) if mean in bounds else mean


def repetition_reason(
    text: str, units: int, lines: tuple[tuple[str, float, str], ...], ngrams: tuple[tuple[int, float, str], ...]
) -> str | None:
    """The reason of the first repetition rule that fails: its share is above the threshold.

    lines: (figure, threshold, reason) of the rules for lines and paragraphs, ngrams: (n, threshold, reason), n ascends.
    n-grams, which cost most, are counted if no rule for lines fails.
    """
    if lines:
        pieces = kernel.repeated_pieces(text, units)
        for name, most, reason in lines:
            if getattr(pieces, name) > most:
                return reason
    if ngrams:
        shares = kernel.repeated_ngrams(text, ngrams[-1][0], units)
        for n, most, reason in ngrams:
            if shares[n - 2] > most:
                return reason
    return None
