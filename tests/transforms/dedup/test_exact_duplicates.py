import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.exact_duplicates import keep_first
from refinery.transforms.dedup.record_batch import (
    COPIES,
    COPY,
    CORPUS,
    EXACT,
    IDENTITIES,
    IDENTITY,
    REMOVAL,
    REMOVALS,
    cut,
    gather,
    part_of,
)
from refinery.transforms.dedup.reference_corpora import Parts
from tests.sampling import examples

# Few different ids, of which some share their first 8 bytes; few different ranks.
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 5, st.integers(0, 3)), max_size=40)


def identities(rows: list[tuple[int, ...]]) -> np.ndarray:
    table = np.zeros(len(rows), IDENTITY)
    for i, (high, low, priority, preference, tie, source) in enumerate(rows):
        table[i] = (high, low, priority, preference, tie, (i % 3) << 32 | i, source)
    return table


def run(table: np.ndarray, pieces: int = 2) -> tuple[np.ndarray, np.ndarray]:
    batches = [batch for piece in np.array_split(table, pieces) for _, batch in cut(0, IDENTITIES, piece)]
    out = list(keep_first(0, batches, Parts(3)))
    for key, batch in out:
        dtype, tag = (REMOVAL, REMOVALS) if batch[0] == REMOVALS else (COPY, COPIES)
        assert (part_of(gather([batch], tag, dtype)["locator"]) == key).all()
    found = [batch for _, batch in out]
    return gather(found, REMOVALS, REMOVAL), gather(found, COPIES, COPY)


@settings(max_examples=examples(200), deadline=None)
@given(ROWS)
def test_equals_brute_force(rows):
    table = identities(rows)
    groups = defaultdict(list)
    for row in table.tolist():
        groups[row[:2]].append(row)
    expected_copies: Counter = Counter()
    gone = set()
    for (high, low), members in groups.items():
        first, *rest = sorted(members, key=lambda row: row[2:6])
        gone |= {(row[5], high, low) for row in rest}
        expected_copies.update((first[5], row[6]) for row in rest)

    removals, copies = run(table)
    assert {tuple(r) for r in removals[["locator", "id_high", "id_low"]].tolist()} == gone
    assert len(removals) == len(gone)
    assert (removals["similarity"] == 1).all()
    assert (removals["reason"] == EXACT).all()
    assert (removals["scope"] == CORPUS).all()
    assert {(r, s): n for r, s, n in copies.tolist()} == dict(expected_copies)


def test_order_and_batches_do_not_matter():
    rng = random.Random(1)
    rows = [(rng.randrange(40), rng.randrange(2), 1, rng.randrange(3), i, i % 4) for i in range(500)]
    table = identities(rows)
    removals, copies = run(table, 1)
    for pieces in (3, 500):
        shuffled = table[np.random.default_rng(pieces).permutation(len(table))]
        again = run(shuffled, pieces)
        assert np.array_equal(np.sort(removals, order="locator"), np.sort(again[0], order="locator"))
        assert np.array_equal(np.sort(copies, order="locator"), np.sort(again[1], order="locator"))


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_remove(count):
    assert [len(found) for found in run(identities([(1, 1, 1, 1, 1, 1)] * count))] == [0, 0]


def test_one_id_many_times():
    removals, copies = run(identities([(7, 7, 1, 1, i, i % 4) for i in range(50_000)]))
    assert len(removals) == 49_999
    assert copies["documents"].sum() == 49_999
    assert (copies["locator"] == 0).all()
