"""Positions of an earlier version: the arithmetic of runs, against lists of tokens with names."""

from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.format.indexed import Index
from refinery.loader.read.versions.past import GONE, Change, Runs, compose

# A shard as a list of (name of the document, tokens).
NAMES = count(1000)
Shard = list[tuple[int, int]]


def step(before: Shard, drop: list[bool], come: dict[int, int]) -> tuple[Shard, Change]:
    """The next version: without the documents of `drop`, with new ones before rows of `come` (row -> tokens)."""
    after: Shard = []
    removed, added, old = [], [], 0
    for row, ((name, tokens), goes) in enumerate(zip(before, drop, strict=False)):
        if row in come:
            added.append((len(after), sum(n for _, n in after), come[row]))
            after.append((next(NAMES), come[row]))
        if goes:
            removed.append((row, old, tokens))
        else:
            after.append((name, tokens))
        old += tokens
    arrays = [np.array(rows, np.int64).reshape(-1, 3).T for rows in (removed, added)]
    return after, Change(tuple(arrays[0]), tuple(arrays[1]))  # type: ignore[arg-type]


def tokens_of(shard: Shard) -> list[tuple[int, int]]:
    return [(name, i) for name, tokens in shard for i in range(tokens)]


def check(runs: Runs, before: Shard, after: Shard) -> None:
    """Every token of `before` is where the runs say, or in none."""
    old, new = tokens_of(before), tokens_of(after)
    assert runs.tokens == len(old)
    found: dict[tuple[int, int], int] = {}
    for start, now, tokens in runs.pieces(0, len(old)):
        for i in range(tokens):
            found[old[start + i]] = now + i if now != GONE else GONE
    assert len(found) == len(old)
    for token, now in found.items():
        assert (new[now] == token) if now != GONE else (token not in new)


shards = st.lists(st.tuples(st.just(0), st.integers(1, 5)), min_size=1, max_size=8).map(
    lambda docs: [(name, tokens) for name, (_, tokens) in enumerate(docs)]
)
drops = st.lists(st.booleans(), min_size=12, max_size=12)
comes = st.dictionaries(st.integers(0, 9), st.integers(1, 4), max_size=3)


@given(shards, drops, comes, drops, comes, st.data())
def test_runs_and_their_composition(
    first: Shard, drop: list[bool], come: dict[int, int], drop2: list[bool], come2: dict[int, int], data: Any
) -> None:
    second, change = step(first, drop, come)
    third, change2 = step(second, drop2, come2)
    one, two = change.runs(len(tokens_of(second))), change2.runs(len(tokens_of(third)))
    check(one, first, second)
    check(two, second, third)
    both = compose(one, two)
    check(both, first, third)
    start = data.draw(st.integers(0, one.tokens))
    stop = data.draw(st.integers(start, one.tokens))
    assert sum(tokens for _, _, tokens in both.pieces(start, stop)) == stop - start
    begins, ends = both.gone()
    assert sum(ends - begins) == sum(1 for token in tokens_of(first) if token not in tokens_of(third))


@given(shards, drops, comes)
def test_the_index_before(first: Shard, drop: list[bool], come: dict[int, int]) -> None:
    second, change = step(first, drop, come)
    assert change.fits(len(second), len(tokens_of(second)))
    lengths = np.array([tokens for _, tokens in second], np.int32)
    ends = np.cumsum(lengths, dtype=np.int64) * 2
    before = change.index(Index(np.dtype("<u2"), lengths, ends - lengths * 2))
    assert before.lengths.tolist() == [tokens for _, tokens in first]
    assert before.offsets.tolist() == [sum(n for _, n in first[:row]) for row in range(len(first))]


def test_nothing_is_left_of_a_shard() -> None:
    after, change = step([(0, 3), (1, 2)], [True, True], {})
    assert after == []
    runs = change.runs(0)
    assert list(runs.pieces(1, 5)) == [(1, GONE, 2), (3, GONE, 2)]


@pytest.mark.parametrize(
    ("removed", "added"),
    [
        ([(3, 4, 1)], []),  # a row that three documents cannot have had: two stayed
        ([(0, 5, 2)], []),  # tokens behind the last one
        ([(0, 2, 2), (1, 1, 1)], []),  # the second before the first
        ([(0, 0, 2), (1, 1, 2)], []),  # one inside of the other
        ([(0, 0, 1), (0, 1, 1)], []),  # one row twice
        ([], [(0, 0, 5)]),  # more than there is
        ([], [(2, 0, 1)]),
        ([], [(0, 0, 1), (1, 1, 1), (2, 2, 1)]),
    ],
)
def test_lists_that_cannot_be_true(removed: list[Any], added: list[Any]) -> None:
    """Of a shard of two documents with four tokens."""
    arrays = [np.array(rows, np.int64).reshape(-1, 3).T for rows in (removed, added)]
    assert not Change(tuple(arrays[0]), tuple(arrays[1])).fits(2, 4)  # type: ignore[arg-type]


def test_compose_with_nothing_kept() -> None:
    _, change = step([(0, 3)], [True], {})
    nothing = change.runs(0)
    empty = np.empty(0, np.int64)
    assert compose(nothing, Runs(empty, empty, empty)).tokens == 3
