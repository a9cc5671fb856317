"""From a sample to the whole: what must hold for every sample, and whether the intervals hold the truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planning import coverage, draws, mirrored, placed
from refinery.pipelines.reports.plan.extrapolate import (
    Interval,
    copies_in,
    distinct_share,
    forecast,
    poisson_limit,
    student,
    why_none,
)
from refinery.pipelines.reports.plan.sample import Sample


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    files = draw(st.integers(9, 30))
    own = draw(st.lists(st.integers(0, 500), min_size=files, max_size=files).filter(lambda own: min(own[:2]) > 0))
    groups = st.lists(st.integers(0, files - 1), min_size=2, max_size=files, unique=True)
    families = draw(st.lists(st.tuples(st.integers(1, 50).map(float), groups), max_size=12))
    weights = np.array(own, float)
    for tokens, homes in families:
        weights[homes] += tokens
    sizes = np.array(draw(st.lists(st.integers(9 * 10**5, 10**6), min_size=files, max_size=files)), float)
    return Sample(sizes, weights, float(sum(own) + sum(len(homes) for _, homes in families)), families)


@given(samples(), st.floats(1, 1e6))
def test_an_interval_is_ordered_and_never_below_the_sample(sample: Sample, times: float) -> None:
    found = forecast(sample, times)
    for each in (found.tokens, found.rest, found.distinct):
        assert 0 <= each.low <= each.middle * (1 + 1e-9) <= each.high * (1 + 1e-6)
    assert found.tokens.low >= sample.tokens * (1 - 1e-12)
    assert found.distinct.high <= 1


@given(samples())
def test_the_sample_itself_is_forecast_exactly(sample: Sample) -> None:
    found = forecast(sample, 1)
    assert (found.tokens.low, found.tokens.high) == pytest.approx((sample.tokens, sample.tokens))
    assert found.rest.high == pytest.approx(0, abs=1e-6 * sample.tokens)


@given(samples(), st.floats(1, 1e5), st.floats(1.01, 10))
def test_a_larger_whole_has_more_copies(sample: Sample, times: float, more: float) -> None:
    copies = copies_in(sample)
    small, large = (distinct_share(copies, sample.files, each) for each in (times, times * more))
    assert large.low <= small.low * (1 + 1e-9)
    assert large.middle <= small.middle * (1 + 1e-6)


@given(samples())
def test_a_subset_of_all_files_is_the_sample(sample: Sample) -> None:
    same = sample.subset(np.arange(sample.files))
    assert same.tokens == pytest.approx(sample.tokens)
    assert forecast(same, 10).tokens.middle == pytest.approx(forecast(sample, 10).tokens.middle)
    half = sample.subset(np.arange(0, sample.files, 2))
    assert half.tokens <= sample.tokens + 1e-9


def test_copies_that_were_never_seen_are_not_taken_for_absent() -> None:
    """From few documents little follows, from many much."""
    lows = [
        distinct_share(copies_in(placed([1] * documents, 100, 1)), 100, 100).low for documents in (100, 10_000, 200_000)
    ]
    assert lows[0] < 0.2 < 0.7 < lows[1] < lows[2]
    assert lows[2] > 0.99


def test_without_deduplication_nothing_is_a_copy() -> None:
    sample = Sample(np.full(10, 5.0), np.full(10, 3.0), math.inf, [])
    assert forecast(sample, 1000).distinct == Interval(1, 1, 1)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([1] * 2000 + [2] * 1000, id="pairs"),
        pytest.param([1] * 3600 + [10] * 40, id="families of ten"),
        pytest.param([max(1, 400 // rank) for rank in range(1, 2000)], id="Zipf"),
    ],
)
def test_the_share_of_copies_is_inside(sizes: list[int]) -> None:
    whole = placed(sizes, 400, 3)
    truth = whole.tokens / float(whole.weights.sum())
    found = [distinct_share(copies_in(part), part.files, times) for part, times in draws(whole, 0.1, 40)]
    assert coverage(found, truth).inside >= 0.95


def test_files_that_differ_are_covered_where_independent_documents_would_not_be() -> None:
    """Files hold documents of a kind: what a file gives varies by a factor of five."""
    generator = np.random.default_rng(5)
    tokens = np.round(generator.lognormal(6, 0.8, 600))
    whole = Sample(np.full(600, 1e6), tokens, 600 * 50.0, [])
    found = [forecast(part, times).tokens for part, times in draws(whole, 0.05, 200)]
    assert coverage(found, whole.tokens).inside >= 0.93
    assert coverage(found, whole.tokens).width < 1.5


def test_mirrored_files_are_noticed_once_both_of_a_pair_are_read() -> None:
    whole = mirrored(400, 20, 7)
    found = [distinct_share(copies_in(part), part.files, times) for part, times in draws(whole, 0.2, 40)]
    assert coverage(found, 0.5).inside >= 0.9


def test_too_little_for_an_interval() -> None:
    seven = Sample(np.full(7, 1.0), np.full(7, 1.0), 7.0, [])
    assert why_none(seven).startswith("7 input files, of which 7 gave tokens; it takes 8")
    barren = Sample(np.full(9, 1.0), np.array([5.0] + [0.0] * 8), 5.0, [])
    with pytest.raises(ValueError, match="9 input files, of which 1 gave tokens"):
        forecast(barren, 10)
    uneven = Sample(np.array([1e9, 1e9] + [1.0] * 98), np.full(100, 1.0), 100.0, [])
    assert why_none(uneven).startswith("100 input files of so different sizes that they say as much as 2.0 of one size")
    with pytest.raises(ValueError, match=r"the whole is 0\.5 times the sample"):
        forecast(seven, 0.5)


def test_quantiles_are_those_of_scipy() -> None:
    from scipy import stats  # a second to import, which every test process would pay that only collects this file

    for freedom in (7, 9, 20, 100, 10_000):
        for risk in (0.025, 0.0125):
            assert student(risk, freedom) == pytest.approx(stats.t.ppf(1 - risk, freedom), rel=1e-4)
    for seen in (0, 1, 10, 1000):
        assert poisson_limit(seen, 0.0125) == pytest.approx(stats.chi2.ppf(1 - 0.0125, 2 * seen + 2) / 2, rel=0.01)
