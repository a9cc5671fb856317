"""Bins of numbers: the same on every machine, ordered, few."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.histogram import BINS, FEW, LEAST, MOST, STEPS, bin_of, count_bins, lower_edge, quantile

WITHIN = st.floats(2.0**LEAST, 2.0**MOST)


@given(WITHIN)
def test_a_number_is_in_its_bin(value: float) -> None:
    number = bin_of(value)
    assert lower_edge(number) <= value < lower_edge(number + 1)
    assert (lower_edge(number + 1) - lower_edge(number)) * STEPS <= lower_edge(number + 1)


def test_edges_ascend_and_are_their_own_bins() -> None:
    edges = [lower_edge(number) for number in range(BINS)]
    assert edges == sorted(set(edges))
    assert [bin_of(edge) for edge in edges] == list(range(BINS))
    assert [bin_of(math.nextafter(edge, 0)) for edge in edges[1:]] == list(range(BINS - 1))


def test_what_is_beyond_is_at_an_end() -> None:
    assert {bin_of(value) for value in (0.0, -0.0, -5.0, math.nan, -math.inf, 5e-324)} == {0}
    assert {bin_of(value) for value in (math.inf, 1e300, 2.0 ** (MOST + 1))} == {BINS - 1}


@given(st.lists(WITHIN, min_size=1), st.floats(0, 1))
def test_quantiles_are_a_sixteenth_off_at_most(values: list[float], share: float) -> None:
    counts = Counter(lower_edge(bin_of(value)) for value in values)
    exact = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    found = quantile(counts, share)
    assert found <= exact < found * (1 + 1 / STEPS) * (1 + 1e-12)


@given(st.lists(WITHIN, min_size=1), st.integers(0, 100))
def test_halves_add_up(values: list[float], place: int) -> None:
    both = Counter(map(bin_of, values[:place])) + Counter(map(bin_of, values[place:]))
    assert both == Counter(map(bin_of, values))


EDGES = st.integers(0, BINS - 1).map(lower_edge)
BEFORE_EDGES = EDGES.map(lambda edge: math.nextafter(edge, 0))


@given(st.lists(st.floats() | st.integers(-(2**60), 10**250) | EDGES | BEFORE_EDGES, max_size=3 * FEW))
def test_many_values_are_counted_as_single_ones_are(values: list[float]) -> None:
    assert count_bins(values) == Counter(map(bin_of, values))
