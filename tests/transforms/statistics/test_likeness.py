"""Shards that are alike pass, shards that are not fail, and the p-values are those of the tables."""

import math
import random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.statistics.likeness import LEAST_EXPECTED, Likeness, chi_squared, compare, pool, upper_tail
from tests.sampling import one_commit_in_four

NOTHING = Likeness(0.0, 0, 1.0)  # to compare

# Degrees of freedom, critical value, chance: NIST/SEMATECH e-Handbook, table 1.3.6.7.4.
CRITICAL = [
    (1, 2.706, 0.1),
    (1, 10.828, 0.001),
    (5, 11.070, 0.05),
    (10, 23.209, 0.01),
    (30, 40.256, 0.1),
    (100, 124.342, 0.05),
    (100, 149.449, 0.001),
]


@pytest.mark.parametrize(("freedom", "critical", "chance"), CRITICAL)
def test_the_tail_is_that_of_the_tables(freedom: int, critical: float, chance: float) -> None:
    assert upper_tail(critical, freedom) == pytest.approx(chance, rel=2e-3)


@given(st.floats(0.001, 400), st.integers(0, 7))
def test_the_tail_of_even_freedom_is_a_sum_of_poissons(statistic: float, half: int) -> None:
    x = statistic / 2
    exact = math.fsum(math.exp(-x) * x**k / math.factorial(k) for k in range(half + 1))
    assert upper_tail(statistic, 2 * half + 2) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(st.integers(1, 100_000), st.floats(-6, 6))
def test_the_tail_of_much_freedom_is_nearly_normal(freedom: int, deviations: float) -> None:
    """Wilson and Hilferty 1931."""
    share = 2 / (9 * freedom)
    statistic = freedom * (1 - share + deviations * math.sqrt(share)) ** 3
    found = upper_tail(statistic, freedom)
    assert found == pytest.approx(0.5 * math.erfc(deviations / math.sqrt(2)), abs=0.06 if freedom < 10 else 0.01)


def test_nothing_to_compare_is_no_suspicion() -> None:
    assert compare([]) == compare([[{}, {}]]) == NOTHING
    assert compare([[{"a": 9}]]) == compare([[{"a": 4}, {"a": 5}]]) == NOTHING


def test_a_table_by_hand() -> None:
    """Expected are 30, 20, 30, 20."""
    assert chi_squared([[35, 15], [25, 25]]) == (pytest.approx(25 / 30 * 2 + 25 / 20 * 2), 1)


def test_rare_values_are_taken_together() -> None:
    rows = [{"a": 500, "b": 40, "c": 3, "d": 2}, {"a": 480, "b": 60, "d": 3, "e": 2}]
    assert pool(rows) == [[500, 40, 5], [480, 60, 5]]  # five are expected of c, d and e together
    assert pool([{"a": 500, "b": 2}, {"a": 480, "c": 1}]) == [[502], [481]]
    for row in pool(rows):
        assert all(count >= LEAST_EXPECTED for count in row)


def shards(draw: random.Random, weights: list[float]) -> list[dict[str, int]]:
    """20 shards of 500 documents; the weights are those of "a" in each."""
    rows = []
    for number in range(20):
        values = draw.choices("abc", [weights[number % len(weights)], 0.3, 0.2], k=500)
        rows.append({value: values.count(value) for value in "abc"})
    return rows


@one_commit_in_four
def test_shards_that_are_alike_pass_and_others_do_not() -> None:
    draw = random.Random(3)
    alike = [compare([shards(draw, [0.5]), shards(draw, [0.8])]) for _ in range(200)]
    assert all(found.freedom == 2 * 19 * 2 for found in alike)
    assert 0.4 < mean(found.p_value for found in alike) < 0.6  # uniform, if the test is right
    assert 1 <= sum(found.p_value < 0.05 for found in alike) <= 25
    assert compare([shards(draw, [0.5, 0.7])]).p_value < 1e-6
