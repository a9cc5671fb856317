"""Distributions of numbers that stages give to documents, as counts of bins: summed over bundles, jobs and runs.

A bin is a sixteenth of an octave, as in HdrHistogram: [2^e * (1 + j/16), 2^e * (1 + (j+1)/16)) for j from 0 to 15. All
edges are floats without rounding, so a number is in the same bin on every machine; a quantile is wrong by 1/16 at most.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

STEPS = 16
LEAST, MOST = -16, 47  # octaves; smaller and larger numbers are counted in the first and the last bin
BINS = (MOST - LEAST + 1) * STEPS
FEW = 16  # values; from there on arrays are faster


def bin_of(value: float) -> int:
    """0 to BINS - 1. Zero, negative numbers and NaN are in the first."""
    if not value > 0:
        return 0
    if value == math.inf:
        return BINS - 1
    fraction, exponent = math.frexp(value)  # fraction from 0.5 up to 1
    octave = exponent - 1
    if octave < LEAST:
        return 0
    return BINS - 1 if octave > MOST else (octave - LEAST) * STEPS + int((fraction * 2 - 1) * STEPS)


def count_bins(values: Sequence[float]) -> dict[int, int]:
    """Bin -> how many of the values `bin_of` puts in it. {} for no values."""
    if len(values) < FEW:
        return Counter(map(bin_of, values))
    import numpy as np  # here, since commands that only show bins have no need for it

    numbers = np.array(values, np.float64)
    inside = (numbers > 0) & (numbers < math.inf)
    fractions, exponents = np.frexp(np.where(inside, numbers, 1))
    places = (exponents - (1 + LEAST)) * STEPS + ((fractions * 2 - 1) * STEPS).astype(np.int64)
    places = np.where(inside, places.clip(0, BINS - 1), np.where(numbers > 0, BINS - 1, 0))
    return Counter(places.tolist())


def lower_edge(number: int) -> float:
    """The least number of a bin.

    >>> lower_edge(bin_of(100.0))
    100.0
    """
    octave, step = divmod(number, STEPS)
    return math.ldexp(1 + step / STEPS, octave + LEAST)


def quantile(counts: Mapping[float, int], share: float) -> float:
    """The lower edge of the bin in which that share of the numbers is reached. counts: lower edge -> numbers, of which
    there is at least one."""
    wanted, seen = share * sum(counts.values()), 0
    for edge in sorted(counts):
        seen += counts[edge]
        if seen >= wanted:
            return edge
    return max(counts)
