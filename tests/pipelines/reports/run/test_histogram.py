"""Distributions as charts show them: nothing is lost, and the axis is what it says."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refinery.pipelines.published.statistics.published import Distribution
from refinery.pipelines.reports.run.distributions import distribution_of
from refinery.pipelines.reports.run.histogram import MOST_BINS, histogram
from refinery.transforms.core.histogram import bin_of, lower_edge


def made(*bins: tuple[float, float, int]) -> Distribution:
    return Distribution(
        documents=sum(each[2] for each in bins), least=bins[0][0], most=bins[-1][0], quantiles=(), bins=tuple(bins)
    )


@given(
    st.lists(st.floats(0, 1e12) | st.floats(0, 1) | st.integers(0, 9), min_size=1, max_size=50),
    st.sampled_from(["", "bytes", "tokens"]),
)
@example([2.0, 5e-324], "")
@example([2.0, 1.7e308], "")
def test_every_document_is_in_a_bin(values: list[float], unit: str) -> None:
    if unit:
        values = [float(int(value)) for value in values]
    counts: dict[float, int] = {}
    for value in values:
        edge = lower_edge(bin_of(value)) if value > 0 else 0.0
        edge = min(edge, value)
        counts[edge] = counts.get(edge, 0) + 1
    bins = histogram({"a": distribution_of(counts)}, unit)
    assert sum(bins.documents["a"]) == len(values)
    assert len(bins.labels) == len(bins.documents["a"]) == len(bins.heights["a"]) <= MOST_BINS + 2
    assert all(0 <= height <= 8 for height in bins.heights["a"])


def test_small_whole_numbers_are_places_of_their_own() -> None:
    bins = histogram({"a": made((1.0, 1.25, 300), (2.0, 2.5, 56), (5.0, 6.0, 4))}, "documents")
    assert list(bins.labels) == ["1", "2", "3", "4", "5"]
    assert bins.documents["a"] == [300, 56, 0, 0, 4]
    assert sum(bins.heights["a"]) == pytest.approx(1)


def test_scores_have_equal_bins() -> None:
    bins = histogram({"a": made((0.5, 0.53125, 1), (0.9375, 0.96875, 2), (0.96875, 1.0, 5))}, "")
    assert bins.labels[0] == "0.5" and bins.labels[-1] == "0.969" and len(bins.labels) == 16
    assert bins.heights["a"][-1] == 5 / 8


def test_zero_stands_before_everything() -> None:
    bins = histogram({"a": made((0.0, 2.0**-16, 90), (2.0, 2.125, 10))}, "")
    assert bins.labels[0] == "0"
    assert bins.documents["a"][0] == 90


def test_wider_bins_are_not_higher_for_it() -> None:
    """[64, 80) is a wider part of a doubling than [112, 128): the same density gives the same height."""
    bins = histogram(
        {"a": made((64.0, 80.0, 322), (80.0, 96.0, 263), (96.0, 112.0, 222), (112.0, 128.0, 193))}, "bytes"
    )
    assert max(bins.heights["a"]) - min(bins.heights["a"]) < 0.001


def test_before_and_after_share_their_bins() -> None:
    bins = histogram({"before": made((64.0, 80.0, 1)), "after": made((256.0, 320.0, 1))}, "bytes")
    assert [sum(column) for column in bins.documents.values()] == [1, 1]
    assert len(bins.labels) == 9
    assert (bins.documents["before"][0], bins.documents["after"][-1]) == (1, 1)


def test_a_long_axis_has_few_bins() -> None:
    assert len(histogram({"a": made((0.001, 0.002, 1), (1e12, 2e12, 1))}, "").labels) <= MOST_BINS + 1
