import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.native import leaders
from transforms.near_duplicates import NearParams, Scope
from transforms.packed import (
    AGAINST,
    COPIES,
    COPY,
    CORPUS,
    MEMBERS,
    NEAR,
    REMOVAL,
    REMOVALS,
    cut,
    gather,
    part_of,
)
from transforms.published import Parts
from transforms.verify_removals import member_dtype, verify_blocks

PERMUTATIONS = 20
SCOPE = Scope(NEAR, CORPUS, (0, 1, 2), apart=False)
OURS = Parts(3)
MANY = Parts(1, (1, 1))


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


def brute_force(rows: np.ndarray, minimum: int, own: int = 3) -> dict[int, tuple[int, int]]:
    """reference -> (survivor's reference, equal values) of every removed member; parts from `own` on are foreign."""
    removed = {}
    for component in np.unique(rows["component"]):
        survivors: list = []
        order = ["priority", "preference", "id_low"]
        for row in sorted(rows[rows["component"] == component], key=lambda r: r[order].tolist()):
            if int(row["reference"]) >> 32 >= own:
                survivors.append(row)
                continue
            for survivor in survivors:
                equal = int((row["signature"] == survivor["signature"]).sum())
                if equal >= minimum:
                    removed[int(row["reference"])] = (int(survivor["reference"]), equal)
                    break
            else:
                survivors.append(row)
    return removed


def verify(
    rows: np.ndarray, copies: np.ndarray, threshold: float = 0.75, parts: Parts = OURS
) -> tuple[np.ndarray, np.ndarray]:
    blocks = [b for piece in np.array_split(rows, 3) for _, b in cut(0, MEMBERS, piece)]
    blocks += [b for _, b in cut(0, COPIES, copies)]
    out = list(verify_blocks(0, blocks, NearParams(threshold), SCOPE, parts, PERMUTATIONS))
    for key, block in out:
        dtype = REMOVAL if block[0] == REMOVALS else COPY
        assert (part_of(gather([block], block[0], dtype)["reference"]) == key).all()
    found = [block for _, block in out]
    return gather(found, REMOVALS, REMOVAL), gather(found, COPIES, COPY)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 60), st.integers(0, 10**6), st.sampled_from([OURS, Parts(2, (1,)), MANY]))
def test_verification_equals_brute_force(count, seed, parts):
    """Documents of parts 1 and 2 may be foreign: these always survive, come first, and nothing is written of them."""
    rows = members(count, seed)
    rows["priority"] = ~parts.foreign(rows["reference"])
    copies = np.zeros(count // 2, COPY)
    copies["reference"] = rows["reference"][: len(copies)]
    copies["source"] = 2
    copies["documents"] = np.arange(len(copies)) + 1
    expected = brute_force(rows, 15, parts.own)

    removals, handed = verify(rows, copies, parts=parts)
    by_reference = {int(r["reference"]): r for r in rows}
    got = {}
    for reference, high, low, similarity, reason, scope in removals.tolist():
        survivor = by_reference[expected[reference][0]]
        part = int(survivor["reference"]) >> 32
        assert (high, low, reason) == (survivor["id_high"], survivor["id_low"], NEAR)
        assert scope == (CORPUS if part < parts.own else AGAINST + part - parts.own)
        got[reference] = (int(survivor["reference"]), round(similarity * PERMUTATIONS))
    assert got == expected

    totals: dict[tuple[int, int], int] = {}
    ours = {r: s for r, (s, _) in expected.items() if s >> 32 < parts.own}
    for reference, survivor in ours.items():
        key = (survivor, int(by_reference[reference]["source"]))
        totals[key] = totals.get(key, 0) + 1
    for reference, source, documents in copies.tolist():
        if reference in ours:
            key = (ours[reference], source)
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
    leader, matches = assign(signatures, [0, 2400], 84, always=always)
    assert (leader[:1200] == np.arange(1200)).all()
    assert (leader[1200:] == np.arange(1200)).mean() > 0.99
    assert (matches == (signatures == signatures[leader]).sum(axis=1)).all()
    assert (matches >= 84).all()
    assert (leader[leader] == leader).all()


def assign(
    signatures: np.ndarray,
    bounds: list[int],
    minimum: int,
    certain: int | None = None,
    always: int = 1024,
    protected: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The kernel's leader and matches of each row."""
    count, permutations = signatures.shape
    guard = np.zeros(count, np.uint8) if protected is None else protected.astype(np.uint8)
    leader, matches = np.empty(count, np.uint32), np.empty(count, np.uint32)
    starts = np.array(bounds, np.int64)
    leaders.assign(signatures, starts, permutations, minimum, certain or minimum, always, guard, leader, matches)
    return leader, matches


def test_identical_members_cost_one_comparison_each():
    signatures = np.tile(np.arange(112, dtype=np.uint32), (50_000, 1))
    leader, matches = assign(signatures, [0, 50_000], 84)
    assert not leader.any()
    assert (matches == 112).all()


@pytest.mark.parametrize("always", [1, 64, 4096])
def test_protected_rows_lead_and_are_found_however_many_resemble_each_other(always):
    """3,000 foreign documents of which each resembles the others; each of ours is a copy of one of them."""
    rng = np.random.default_rng(5)
    foreign = np.tile(rng.integers(0, 2**32, 112, dtype=np.uint32), (3000, 1))
    for row in foreign:
        row[rng.choice(112, 60, replace=False)] = rng.integers(0, 2**32, 60, dtype=np.uint32)
    ours = foreign[::3].copy()
    ours[:, rng.choice(112, 8, replace=False)] += np.uint32(1)
    signatures = np.concatenate([foreign, ours])
    protected = np.arange(4000) < 3000
    leader, matches = assign(signatures, [0, 4000], 84, always=always, protected=protected)
    assert (leader[:3000] == np.arange(3000)).all()
    assert (leader[3000:] == np.arange(0, 3000, 3)).mean() > 0.99
    assert (matches[leader != np.arange(4000)] >= 84).all()

    identical, _ = assign(np.tile(foreign[:1], (200, 1)), [0, 200], 84, always=always, protected=np.arange(200) < 150)
    assert identical.tolist() == [*range(150), *[0] * 50]


def test_a_row_follows_the_first_certain_leader_or_else_the_most_similar():
    """The last row has 12 values in common with row 0, 15 with row 1, 18 with row 2 and 18 with row 3."""
    signatures = np.zeros((5, PERMUTATIONS), np.uint32)
    for row, common in enumerate((12, 15, 18, 18)):
        signatures[row, common:] = row + 1
    expected = {(12, 12): 0, (12, 15): 1, (13, 13): 1, (12, 16): 2, (12, 18): 2, (12, 19): 2, (19, 20): 4}
    for always in (1, 2, 64):
        for (minimum, certain), leader in expected.items():
            found, matches = assign(
                signatures, [0, 5], minimum, certain, always=always, protected=np.array([1, 1, 1, 1, 0])
            )
            assert found.tolist() == [0, 1, 2, 3, leader]
            assert matches[4] == (signatures[4] == signatures[leader]).sum()


@pytest.mark.parametrize("count", [100, 400])
def test_links_of_protected_rows(count):
    """Foreign rows chained to each other, one of ours at each: every one of ours is linked, no two foreign ones are."""
    rng = np.random.default_rng(3)
    foreign = np.tile(rng.integers(0, 256, 56, dtype=np.uint8), (count, 1))
    foreign[:, 20:] = rng.integers(0, 256, (count, 36), dtype=np.uint8)
    foreign[1::2, 20:28] = foreign[::2, 20:28]
    ours = foreign.copy()
    ours[:, rng.choice(56, 4, replace=False)] ^= np.uint8(0x11)
    sketch = np.concatenate([foreign, ours])
    protected = (np.arange(2 * count) < count).astype(np.uint8)
    found = leaders.link(sketch, np.array([0, 2 * count]), 112, 90, 64, protected)
    links = {tuple(pair) for pair in np.frombuffer(found, np.uint32).reshape(-1, 2).tolist()}
    assert {(count + i, i) for i in range(count)} <= links
    assert all(member >= count for member, _ in links)


def test_kernel_refuses_what_does_not_fit():
    rows, ok = np.zeros((4, 2), np.uint32), np.zeros(4, np.uint8)
    out = (np.zeros(4, np.uint32), np.zeros(4, np.uint32))
    bounds = np.array([0, 4])
    for minimum, certain in ((0, 1), (2, 1), (1, 3)):
        with pytest.raises(ValueError, match="is allowed"):
            leaders.assign(rows, bounds, 2, minimum, certain, 64, ok, *out)
    with pytest.raises(ValueError, match="protected"):
        leaders.assign(rows, bounds, 2, 1, 1, 64, ok[:3], *out)
    with pytest.raises(ValueError, match="protected"):
        leaders.link(np.zeros((4, 8), np.uint8), bounds, 16, 4, 64, ok[:3])
