import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.exact_duplicates import exact_removals, first_copies, keep_first
from refinery.transforms.dedup.records.record_batch import (
    COPIES,
    COPY,
    CORPUS,
    EXACT,
    IDENTITIES,
    IDENTITY,
    OF_FIRST_COPY,
    REFERENCE,
    REFERENCE_IDS,
    REMOVAL,
    REMOVALS,
    cut,
    form_batches,
    gather,
    part_of,
)
from refinery.transforms.dedup.reference_corpora import REFERENCE_ID, Parts
from refinery.transforms.dedup.verdicts import settle_scopes
from tests.sampling import examples

# Few different ids, of which some share their first 8 bytes; few different ranks.
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 5, st.integers(0, 3)), max_size=40)


def identities(rows: list[tuple[int, ...]]) -> np.ndarray:
    table = np.zeros(len(rows), IDENTITY)
    for i, (high, low, priority, preference, tie, source) in enumerate(rows):
        table[i] = (high, low, priority, preference, tie, (i % 3) << 32 | i, source, 0)
    return table


def run(table: np.ndarray, pieces: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """What parts and ranges of ids decide together."""
    batches, out = [], []
    for part in np.unique(part_of(table["locator"])).tolist():
        firsts, later = first_copies(table[part_of(table["locator"]) == part])
        batches += [batch for piece in np.array_split(firsts, pieces) for _, batch in cut(0, IDENTITIES, piece)]
        out += form_batches(exact_removals(later, CORPUS))
    out += form_batches(keep_first(0, batches, Parts(3)))
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


def test_a_part_sends_one_row_for_each_id_and_source():
    firsts, later = first_copies(identities([(7, 7, 1, 1, i, i % 2) for i in range(0, 3000, 3)]))
    assert firsts[["source", "documents", "tie"]].tolist() == [(0, 500, 0), (1, 500, 3)]
    assert len(later) == 998


def test_one_id_many_times():
    removals, copies = run(identities([(7, 7, 1, 1, i, i % 4) for i in range(50_000)]))
    assert len(removals) == 49_999
    assert copies["documents"].sum() == 49_999
    assert (copies["locator"] == 0).all()


@pytest.mark.parametrize(("listed", "scope"), [(True, REFERENCE), (False, CORPUS)])
def test_later_copies_of_a_part_share_the_scope_of_its_first(listed, scope):
    """Three copies in one part; a published corpus has the text in its shards, or only in its signatures."""
    parts = Parts(1, (1,))
    table = np.zeros(4, IDENTITY)
    table["id_high"], table["id_low"], table["locator"] = 256, 512, [0, 1, 2, 1 << 32]
    table["priority"], table["tie"] = [9, 9, 9, 3], [3, 1, 2, 4]
    own, later = first_copies(table[:3])
    reference, _ = first_copies(table[3:])
    ids = np.array([(256, 512, REFERENCE)] * listed, REFERENCE_ID)
    batches = [batch for tag, rows in ((IDENTITIES, own), (IDENTITIES, reference)) for _, batch in cut(0, tag, rows)]
    batches += [batch for _, batch in cut(0, REFERENCE_IDS, ids)]
    found = list(form_batches([*exact_removals(later, OF_FIRST_COPY), *keep_first(0, batches, parts)]))
    removals = settle_scopes(gather([batch for part, batch in found if part == 0], REMOVALS, REMOVAL))
    assert dict(removals[["locator", "scope"]].tolist()) == {n: scope for n in (0, 1, 2) if listed or n != 1}
