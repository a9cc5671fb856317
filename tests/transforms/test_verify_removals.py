import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.native import leaders
from transforms.near_duplicates import NearParams
from transforms.packed import COPIES, COPY, MEMBERS, NEAR, REMOVAL, REMOVALS, cut, gather, part_of
from transforms.verify_removals import member_dtype, verify_blocks

PERMUTATIONS = 20


def members(count: int, seed: int, groups: int = 3, alphabet: int = 2) -> np.ndarray:
    """Random members whose signatures have many values in common; ranks and ids tie often, references never."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, member_dtype(PERMUTATIONS))
    rows["component"] = rng.integers(0, groups, count)
    rows["reference"] = rng.permutation(count).astype(np.uint64) + (rng.integers(0, 3, count).astype(np.uint64) << 32)
    rows["preference"] = rng.integers(0, 4, count)
    rows["id_low"] = rng.permutation(count)
    rows["source"] = rng.integers(0, 3, count)
    skewed = rng.random((count, PERMUTATIONS)) < rng.uniform(0, 0.35, count)[:, None]
    rows["signature"] = np.where(skewed, rng.integers(1, alphabet + 1, (count, PERMUTATIONS)), 0)
    return rows


def brute_force(rows: np.ndarray, minimum: int) -> dict[int, tuple[int, int]]:
    """reference -> (survivor's reference, equal values) of every removed member."""
    removed = {}
    for component in np.unique(rows["component"]):
        survivors: list = []
        for row in sorted(rows[rows["component"] == component], key=lambda r: r[["preference", "id_low"]].tolist()):
            for survivor in survivors:
                equal = int((row["signature"] == survivor["signature"]).sum())
                if equal >= minimum:
                    removed[int(row["reference"])] = (int(survivor["reference"]), equal)
                    break
            else:
                survivors.append(row)
    return removed


def verify(rows: np.ndarray, copies: np.ndarray, threshold: float = 0.75) -> tuple[np.ndarray, np.ndarray]:
    blocks = [b for piece in np.array_split(rows, 3) for _, b in cut(0, MEMBERS, piece)]
    blocks += [b for _, b in cut(0, COPIES, copies)]
    out = list(verify_blocks(0, blocks, NearParams(threshold), PERMUTATIONS))
    for key, block in out:
        dtype = REMOVAL if block[0] == REMOVALS else COPY
        assert (part_of(gather([block], block[0], dtype)["reference"]) == key).all()
    found = [block for _, block in out]
    return gather(found, REMOVALS, REMOVAL), gather(found, COPIES, COPY)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60), st.integers(0, 10**6))
def test_verification_equals_brute_force(count, seed):
    rows = members(count, seed)
    copies = np.zeros(count // 2, COPY)
    copies["reference"] = rows["reference"][: len(copies)]
    copies["source"] = 2
    copies["documents"] = np.arange(len(copies)) + 1
    expected = brute_force(rows, minimum=15)

    removals, handed = verify(rows, copies)
    by_reference = {int(r["reference"]): r for r in rows}
    got = {}
    for reference, high, low, similarity, reason in removals.tolist():
        survivor = by_reference[expected[reference][0]]
        assert (high, low, reason) == (survivor["id_high"], survivor["id_low"], NEAR)
        got[reference] = (int(survivor["reference"]), round(similarity * PERMUTATIONS))
    assert got == expected

    totals: dict[tuple[int, int], int] = {}
    for reference, (survivor, _) in expected.items():
        key = (survivor, int(by_reference[reference]["source"]))
        totals[key] = totals.get(key, 0) + 1
    for reference, source, documents in copies.tolist():
        if reference in expected:
            key = (expected[reference][0], source)
            totals[key] = totals.get(key, 0) + documents
    assert {(r, s): n for r, s, n in handed.tolist()} == totals


def test_chain_keeps_survivors_along_itself():
    """Each of 1,000 documents shares 0.8 of its values with the next and little with the rest."""
    rng = np.random.default_rng(1)
    rows = np.zeros(1000, member_dtype(PERMUTATIONS))
    current = rng.integers(0, 2**32, PERMUTATIONS, dtype=np.uint32)
    for i in range(1000):
        rows["signature"][i] = current
        changed = (np.arange(4) + 4 * i) % PERMUTATIONS
        current = current.copy()
        current[changed] = rng.integers(0, 2**32, 4, dtype=np.uint32)
    rows["reference"] = rows["id_low"] = np.arange(1000)
    removals, copies = verify(rows, np.empty(0, COPY))
    assert removals["reference"].tolist() == list(range(1, 1000, 2))
    assert np.allclose(removals["similarity"], 0.8)
    assert copies["documents"].sum() == 500


@pytest.mark.parametrize("always", [1, 4, 64])
def test_large_components_remove_nothing_wrongly_and_find_nearly_all(always):
    """1,200 pairs in one component: far more survivors than are compared one by one."""
    rng = np.random.default_rng(9)
    originals = rng.integers(0, 2**32, (1200, 112), dtype=np.uint32)
    originals[:, :30] = originals[0, :30]  # what made them one component
    copies = originals.copy()
    copies[:, rng.choice(112, 14, replace=False)] += np.uint32(1)
    signatures = np.concatenate([originals, copies])
    leader, matches = np.empty(2400, np.uint32), np.empty(2400, np.uint32)
    leaders.assign(signatures, np.array([0, 2400]), 112, 84, always, leader, matches)
    assert (leader[:1200] == np.arange(1200)).all()
    assert (leader[1200:] == np.arange(1200)).mean() > 0.99
    assert (matches == (signatures == signatures[leader]).sum(axis=1)).all()
    assert (matches >= 84).all()
    assert (leader[leader] == leader).all()


def test_identical_members_cost_one_comparison_each():
    signatures = np.tile(np.arange(112, dtype=np.uint32), (50_000, 1))
    leader, matches = np.empty(50_000, np.uint32), np.empty(50_000, np.uint32)
    leaders.assign(signatures, np.array([0, 50_000]), 112, 84, 1024, leader, matches)
    assert not leader.any()
    assert (matches == 112).all()
