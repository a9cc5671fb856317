"""The bound, against the definition by the binomial distribution, and published values."""

from math import comb

import pytest

from refinery.pipelines.corpus.audit.bound import at_most, upper_bound


@pytest.mark.parametrize(
    ("units", "differing", "bound"),
    [
        (1, 0, 0.95),
        (10, 0, 0.2589),
        (59, 0, 0.0495),
        (299, 0, 0.0100),
        (10, 1, 0.3942),  # one-sided 95 % limits of Clopper and Pearson
        (10, 5, 0.7776),
        (100, 3, 0.0757),
        (5, 5, 1.0),
        (0, 0, 1.0),
    ],
)
def test_bounds(units: int, differing: int, bound: float) -> None:
    assert upper_bound(units, differing) == pytest.approx(bound, abs=1e-4)


@pytest.mark.parametrize(("units", "differing"), [(10, 1), (40, 3), (1_000, 0), (1_000, 12), (200_000, 2)])
def test_at_the_bound_so_few_have_five_percent(units: int, differing: int) -> None:
    bound = upper_bound(units, differing)
    exact = sum(comb(units, k) * bound**k * (1 - bound) ** (units - k) for k in range(differing + 1))
    assert exact == pytest.approx(0.05, rel=1e-6)
    assert at_most(units, differing, bound) == pytest.approx(exact, rel=1e-6)


def test_more_units_say_more() -> None:
    bounds = [upper_bound(units, 0) for units in (1, 10, 100, 1_000, 10**7)]
    assert bounds == sorted(bounds, reverse=True) and bounds[-1] == pytest.approx(3e-7, rel=0.01)
    with pytest.raises(ValueError, match="differing"):
        upper_bound(3, 4)
