"""Distributions as charts can show them: bins side by side on one axis, before and after."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refinery.pipelines.published.statistics.published import Distribution
from refinery.pipelines.recipe.quantities.quantity import show, three_digits

STEPS, FINE = 4, 16  # bins of an octave; of numbers that stay within a few octaves
OCTAVES = 3
LEAST, MOST = 2.0**-1000, 2.0**1000  # beyond these a bin has no edges of its own that floats can say
LINEAR = 32  # bins from 0 to 1, of scores
MOST_BINS = 48
SMALL = 64  # up to which whole numbers are places of their own
COUNTED = {"bytes", "characters", "lines", "tokens", "documents"}  # units of whole numbers
ZERO = -(1 << 20)  # place of zero and less


@dataclass(frozen=True)
class Histogram:
    """labels: of the bins. documents: name -> how many are in each. heights: name -> what a chart shows of them: the
    share of its documents; where bins differ in width on a doubling axis, as if they were equally wide."""

    labels: Sequence[str]
    documents: Mapping[str, Sequence[int]]
    heights: Mapping[str, Sequence[float]]


def histogram(both: Mapping[str, Distribution], unit: str) -> Histogram:
    """Some distributions on one axis, from the first bin that holds anything to the last, the empty ones between them
    included. Scores of 0 to 1: thirty-seconds. Whole numbers: themselves as long as they are small. Others: quarters or
    sixteenths of a doubling, joined where there are too many. Cost: linear in the bins.
    """
    lowest = [lower for part in both.values() for lower, _, _ in part.bins]
    most = max((part.most or 0.0 for part in both.values()), default=0.0)
    whole = unit in COUNTED or (not unit and all(lower >= 1 and lower.is_integer() for lower in lowest))
    linear = not whole and not unit and most <= 1
    positive = [lower for lower in lowest if lower > 0]
    few = not whole and bool(positive) and max(positive) < min(positive) * 2**OCTAVES
    steps = LINEAR if linear else FINE if few else STEPS
    counts: dict[str, dict[int, int]] = {name: {} for name in both}
    for name, part in both.items():
        for lower, _, documents in part.bins:
            place = _place(lower, linear, steps)
            counts[name][place] = counts[name].get(place, 0) + documents
    places = sorted({place for bins in counts.values() for place in bins} - {ZERO})
    bins: list[tuple[int, int]] = []  # from a place up to, and without, another
    if places:
        width = math.ceil((places[-1] - places[0] + 1) / MOST_BINS)
        first = places[0] - places[0] % width  # joined bins begin at multiples of their width
        bins = [(start, start + width) for start in range(first, places[-1] + 1, width)]
    if whole:
        bins = [
            each for each in bins if math.ceil(_edge(each[0], linear, steps)) < math.ceil(_edge(each[1], linear, steps))
        ]
    labels = [_label(*each, linear, whole, unit, steps) for each in bins]
    if any(ZERO in each for each in counts.values()):
        bins, labels = [(ZERO, ZERO + 1), *bins], ["0", *labels]
    columns = {
        name: [sum(each.get(place, 0) for place in range(*span)) for span in bins] for name, each in counts.items()
    }
    even = linear or (whole and most <= SMALL)
    weights = [1.0 if even or span[0] == ZERO else _weight(span, whole, steps) for span in bins]
    heights = {
        name: [number * weight / (sum(column) or 1) for number, weight in zip(column, weights, strict=True)]
        for name, column in columns.items()
    }
    return Histogram(labels, columns, heights)


def _place(lower: float, linear: bool, steps: int) -> int:
    if linear:
        return max(0, min(LINEAR - 1, int(lower * LINEAR)))
    if lower <= 0:
        return ZERO
    fraction, exponent = math.frexp(min(max(lower, LEAST), MOST))
    return (exponent - 1) * steps + int((fraction * 2 - 1) * steps)


def _edge(place: int, linear: bool, steps: int) -> float:
    if linear:
        return place / LINEAR
    octave, step = divmod(place, steps)
    return math.ldexp(1 + step / steps, octave)


def _weight(span: tuple[int, int], whole: bool, steps: int) -> float:
    """What makes a bin as wide as its equal share of a doubling, times the bins that were joined."""
    lower, upper = (_edge(place, False, steps) for place in span)
    if whole:
        lower, upper = math.ceil(lower), math.ceil(upper)
    return (span[1] - span[0]) / steps / math.log2(upper / lower)


def _label(start: int, end: int, linear: bool, whole: bool, unit: str, steps: int) -> str:
    lower, upper = _edge(start, linear, steps), _edge(end, linear, steps)
    if whole and upper <= SMALL:  # name the numbers that are in the bin
        least, most = math.ceil(lower), math.ceil(upper) - 1
        return str(least) if least == most else f"{least}–{most}"
    if unit == "bytes":
        return show(lower, "bytes")
    return show(lower, "tokens").removesuffix("tokens").strip() if whole else three_digits(lower)
