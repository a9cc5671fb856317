"""Distributions as charts can show them: bins side by side on one axis, before and after."""

import math
from bisect import bisect_right
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
MOST_TICKS = 7  # labels of an axis
ZERO = -(1 << 20)  # place of zero and less


@dataclass(frozen=True)
class Histogram:
    """labels: of the bins. documents: name -> how many are in each. heights: name -> what a chart shows of them: the
    share of its documents; where bins differ in width on a logarithmic axis, as if they were equally wide. edges: the
    lower edge of each bin; upper: of the last one."""

    labels: Sequence[str]
    documents: Mapping[str, Sequence[int]]
    heights: Mapping[str, Sequence[float]]
    edges: Sequence[float] = ()
    upper: float = 0.0


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
    edges = [_edge(start, linear, steps) for start, _ in bins]
    upper = _edge(bins[-1][1], linear, steps) if bins else 0.0
    if any(ZERO in each for each in counts.values()):
        bins, labels, edges = [(ZERO, ZERO + 1), *bins], ["0", *labels], [0.0, *edges]
    columns = {
        name: [sum(each.get(place, 0) for place in range(*span)) for span in bins] for name, each in counts.items()
    }
    even = linear or (whole and most <= SMALL)
    weights = [1.0 if even or span[0] == ZERO else _weight(span, whole, steps) for span in bins]
    heights = {
        name: [number * weight / (sum(column) or 1) for number, weight in zip(column, weights, strict=True)]
        for name, column in columns.items()
    }
    return Histogram(labels, columns, heights, edges, upper)


def place_in(edges: Sequence[float], value: float) -> float:
    """The place of a number among bins: the bin's number, and how far it is into it. edges: ascending lower edges.

    >>> place_in([0.0, 0.5, 1.0], 0.75), place_in([1.0, 2.0], 0.2)
    (1.5, -0.5)
    """
    place = bisect_right(edges, value) - 1
    if place < 0:
        return -0.5
    width = (edges[place + 1] if place + 1 < len(edges) else 2 * edges[place]) - edges[place]
    return place + min(1.0, (value - edges[place]) / width if width > 0 else 0.0)


def round_numbers(least: float, most: float, is_even: bool = False, wanted: int = MOST_TICKS) -> list[float]:
    """Round numbers between two, ascending, at most `wanted`: on a logarithmic axis those that begin with 1, 2 or 5,
    where they span more than a few octaves; otherwise, and on an axis of even steps, multiples of 1, 2 or 5 times a
    power of ten.

    >>> round_numbers(0.0, 1.0), round_numbers(64, 9000)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0])
    """
    if not least < most:
        return []
    if not is_even and least > 0 and most > least * 2**OCTAVES:
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        for leading in ((1, 2, 5), (1, 3), (1,)):
            found = [float(f"{digit}e{power}") for power in powers for digit in leading]
            found = [value for value in found if least <= value <= most]
            if len(found) <= wanted:
                return found
        return found[:: -(-len(found) // wanted)]
    power = math.floor(math.log10((most - least) / wanted))
    steps = (float(f"{digit}e{power + more}") for more in (0, 1) for digit in (1, 2, 5))
    step = next(step for step in steps if math.floor(most / step) - math.ceil(least / step) + 1 <= wanted)
    first = math.ceil(least / step)
    return [round(number * step, 12) for number in range(first, math.floor(most / step + 1e-9) + 1)]


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
