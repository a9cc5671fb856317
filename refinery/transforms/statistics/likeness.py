"""Are shards alike? Pearson's chi-squared test of independence between shards and a category of their documents.

Shards of one split and domain are cut from one order by a hash, and splits by another, so each should hold every value
in the same share up to chance. Tests between the shards of a split, and between the sums of the splits, are added up:
sums of independent chi-squared variables are one again.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

LEAST_EXPECTED = 5  # documents in a cell, below which the approximation is poor (Cochran 1954)
TERMS = 10_000  # of a series or continued fraction: far more than any degrees of freedom here need
PRECISION = 1e-15


class Likeness(NamedTuple):
    """statistic: chi-squared. freedom: its degrees. p_value: the chance of one at least as large if the shards are
    alike; 1 where there is nothing to compare (freedom 0)."""

    statistic: float
    freedom: int
    p_value: float


Table = Sequence[Mapping[str, int]]  # a row a shard: value -> documents


def compare(tables: Iterable[Table]) -> Likeness:
    """The test over several tables, whose rows should be alike. Rows without documents are left out."""
    statistic, freedom = 0.0, 0
    for table in tables:
        found = chi_squared(pool([row for row in table if sum(row.values())]))
        statistic, freedom = statistic + found[0], freedom + found[1]
    return Likeness(statistic, freedom, upper_tail(statistic, freedom))


def pool(rows: Table) -> list[list[int]]:
    """The rows as lists by value, in which rare values are taken together, so at least LEAST_EXPECTED documents
    are expected in each cell; without columns where that cannot be."""
    totals: dict[str, int] = {}
    for row in rows:
        for value, documents in row.items():
            totals[value] = totals.get(value, 0) + documents
    every = sum(totals.values())
    least = min((sum(row.values()) for row in rows), default=0)
    columns: list[list[str]] = []
    rare: list[str] = []
    for value in sorted(totals, key=lambda value: (-totals[value], value)):
        if totals[value] * least >= LEAST_EXPECTED * every:
            columns.append([value])
        else:
            rare.append(value)
    if sum(totals[value] for value in rare) * least >= LEAST_EXPECTED * every:
        columns.append(rare)
    elif columns:
        columns[-1] += rare
    return [[sum(row.get(value, 0) for value in column) for column in columns] for row in rows]


def chi_squared(rows: Sequence[Sequence[int]]) -> tuple[float, int]:
    """Pearson's statistic of a table, and its degrees of freedom. Every row and column holds documents."""
    sums, columns = [sum(row) for row in rows], [sum(column) for column in zip(*rows, strict=True)]
    every = sum(sums)
    if len(sums) < 2 or len(columns) < 2:
        return 0.0, 0
    terms = (
        (count - total * column / every) ** 2 / (total * column / every)
        for row, total in zip(rows, sums, strict=True)
        for count, column in zip(row, columns, strict=True)
    )
    return math.fsum(terms), (len(sums) - 1) * (len(columns) - 1)


def upper_tail(statistic: float, freedom: int) -> float:
    """The chance that chi-squared with that many degrees of freedom exceeds `statistic`: the regularised upper
    incomplete gamma function Q(freedom / 2, statistic / 2), by its series or its continued fraction (Press et al.,
    Numerical Recipes, section 6.2). Exact to about 1e-10; 1 for no degree of freedom.

    >>> round(upper_tail(3.841458820694124, 1), 12)
    0.05
    """
    a, x = freedom / 2, statistic / 2
    if freedom == 0 or x <= 0:
        return 1.0
    factor = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, TERMS + freedom):
            term *= x / (a + n)
            total += term
            if term < total * PRECISION:
                break
        return max(0.0, 1 - total * factor)
    return min(1.0, factor * _fraction(a, x))


def _fraction(a: float, x: float) -> float:
    """Lentz's evaluation of the continued fraction of the upper incomplete gamma function."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    result = d
    for n in range(1, TERMS + int(a)):
        numerator = -n * (n - a)
        b += 2
        d = numerator * d + b
        d = 1 / (d if abs(d) > tiny else tiny)
        c = b + numerator / c
        c = c if abs(c) > tiny else tiny
        result *= d * c
        if abs(d * c - 1) < PRECISION:
            break
    return result
