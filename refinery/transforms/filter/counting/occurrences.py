"""What rules count as the code of DCLM and dolma counts it: `heuristics.counting: dclm` and `dolma`.

dclm: Li et al. 2024, section 4.1, after baselines/mappers/filters/content_filters.py of mlfoundations/dclm at c7ed275.
Dolma 3's program has the same rules in Rust. dolma: Soldaini et al. 2024, section 3.2, after the taggers `gopher_v1`
and `c4_v2` of dolma 1.2.1. In both, all occurrences of what repeats count, not all but the first. A kernel counts
(transforms/native/counting.c); docs/conformance.md measures what is left, and the cost.
"""

from fractions import Fraction

from refinery.transforms.native import counting as kernel
from refinery.transforms.native.counting import Quality, RepeatedPieces

UNITS = {"dclm": kernel.DCLM, "dolma": kernel.DOLMA}  # by HeuristicsParams.counting


def word_length(found: Quality, units: int, bounds: tuple[float | None, ...]) -> float | Fraction:
    """The length of words that rules compare with `bounds`: dolma's is the median, DCLM's the mean of all.

    A mean that rounding makes equal to a bound is returned without rounding.
    """
    if units == kernel.DOLMA:
        return found.double_median_chars / 2
    mean = found.word_chars / (found.words or 1)
    return Fraction(found.word_chars, found.words or 1) if mean in bounds else mean


class Shares:
    """Figures of the repetition rules of one text. Lines are counted when the first figure of theirs is asked for, and
    n-grams, which cost more, too."""

    def __init__(self, text: str, units: int, max_ngram: int) -> None:
        self._text, self._units, self._max_ngram = text, units, max_ngram
        self._pieces: RepeatedPieces | None = None
        self._ngrams: tuple[float, ...] = ()

    def of(self, name: str, ngram: int) -> float:
        """The share of a Figure of heuristics_rules, by its name and n-gram, which is at most max_ngram."""
        if ngram:
            self._ngrams = self._ngrams or kernel.repeated_ngrams(self._text, self._max_ngram, self._units)
            return self._ngrams[ngram - 2]
        self._pieces = self._pieces or kernel.repeated_pieces(self._text, self._units)
        share: float = getattr(self._pieces, name)
        return share
