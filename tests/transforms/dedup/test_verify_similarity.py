import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.near_duplicates import NearParams, Scope
from refinery.transforms.dedup.records.record_batch import (
    COPIES,
    COPY,
    CORPUS,
    MEMBERS,
    NEAR,
    REFERENCE,
    REMOVAL,
    REMOVALS,
    cut,
    form_batches,
    gather,
    part_of,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.verify_similarity import member_dtype, verify_batches
from refinery.transforms.native import clusters
from tests.sampling import examples

PERMUTATIONS = 20
SCOPE = Scope(NEAR, CORPUS, (0, 1, 2), apart=False)
OURS = Parts(3)
MANY = Parts(1, (1, 1))


def members(count: int, seed: int, groups: int = 3, alphabet: int = 2) -> np.ndarray:
    """Random members whose signatures have many values in common; ranks and ids tie often, locators never."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, member_dtype(PERMUTATIONS))
    rows["component"] = rng.integers(0, groups, count)
    rows["locator"] = rng.permutation(count).astype(np.uint64) + (rng.integers(0, 3, count).astype(np.uint64) << 32)
    rows["preference"] = rng.integers(0, 4, count)
    rows["id_low"] = rng.permutation(count)
    rows["source"] = rng.integers(0, 3, count)
    skewed = rng.random((count, PERMUTATIONS)) < rng.uniform(0, 0.35, count)[:, None]
    rows["signature"] = np.where(skewed, rng.integers(1, alphabet + 1, (count, PERMUTATIONS)), 0)
    return rows


def brute_force(rows: np.ndarray, minimum: int, own: int = 3) -> dict[int, tuple[int, int]]:
    """locator -> (representative's locator, equal values) of every removed member; parts from `own` on are
    reference.
    """
    removed = {}
    for component in np.unique(rows["component"]):
        representatives: list = []
        order = ["priority", "preference", "id_low"]
        for row in sorted(rows[rows["component"] == component], key=lambda r: r[order].tolist()):
            if int(row["locator"]) >> 32 >= own:
                representatives.append(row)
                continue
            for representative in representatives:
                equal = int((row["signature"] == representative["signature"]).sum())
                if equal >= minimum:
                    removed[int(row["locator"])] = (int(representative["locator"]), equal)
                    break
            else:
                representatives.append(row)
    return removed


def verify(
    rows: np.ndarray, copies: np.ndarray, threshold: float = 0.75, parts: Parts = OURS
) -> tuple[np.ndarray, np.ndarray]:
    batches = [b for piece in np.array_split(rows, 3) for _, b in cut(0, MEMBERS, piece)]
    batches += [b for _, b in cut(0, COPIES, copies)]
    out = list(form_batches(verify_batches(0, batches, NearParams(threshold=threshold), SCOPE, parts, PERMUTATIONS)))
    for key, batch in out:
        dtype = REMOVAL if batch[0] == REMOVALS else COPY
        assert (part_of(gather([batch], batch[0], dtype)["locator"]) == key).all()
    found = [batch for _, batch in out]
    return gather(found, REMOVALS, REMOVAL), gather(found, COPIES, COPY)


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 60), st.integers(0, 10**6), st.sampled_from([OURS, Parts(2, (1,)), MANY]))
def test_verification_equals_brute_force(count, seed, parts):
    """Documents of parts 1 and 2 may be reference: these always survive, come first, and nothing is written of them."""
    rows = members(count, seed)
    rows["priority"] = ~parts.in_reference(rows["locator"])
    copies = np.zeros(count // 2, COPY)
    copies["locator"] = rows["locator"][: len(copies)]
    copies["source"] = 2
    copies["documents"] = np.arange(len(copies)) + 1
    expected = brute_force(rows, 15, parts.own)

    removals, handed = verify(rows, copies, parts=parts)
    by_locator = {int(r["locator"]): r for r in rows}
    got = {}
    for locator, high, low, similarity, reason, scope in removals.tolist():
        representative = by_locator[expected[locator][0]]
        part = int(representative["locator"]) >> 32
        assert (high, low, reason) == (representative["id_high"], representative["id_low"], NEAR)
        assert scope == (CORPUS if part < parts.own else REFERENCE + part - parts.own)
        got[locator] = (int(representative["locator"]), round(similarity * PERMUTATIONS))
    assert got == expected

    totals: dict[tuple[int, int], int] = {}
    ours = {r: s for r, (s, _) in expected.items() if s >> 32 < parts.own}
    for locator, representative in ours.items():
        key = (representative, int(by_locator[locator]["source"]))
        totals[key] = totals.get(key, 0) + 1
    for locator, source, documents in copies.tolist():
        if locator in ours:
            key = (ours[locator], source)
            totals[key] = totals.get(key, 0) + documents
    assert {(r, s): n for r, s, n in handed.tolist()} == totals


def test_chain_keeps_documents_along_itself():
    """Each of 1,000 documents shares 0.8 of its values with the next and little with the rest."""
    rng = np.random.default_rng(1)
    rows = np.zeros(1000, member_dtype(PERMUTATIONS))
    current = rng.integers(0, 2**32, PERMUTATIONS, dtype=np.uint32)
    for i in range(1000):
        rows["signature"][i] = current
        changed = (np.arange(4) + 4 * i) % PERMUTATIONS
        current = current.copy()
        current[changed] = rng.integers(0, 2**32, 4, dtype=np.uint32)
    rows["locator"] = rows["id_low"] = np.arange(1000)
    removals, copies = verify(rows, np.empty(0, COPY))
    assert removals["locator"].tolist() == list(range(1, 1000, 2))
    assert np.allclose(removals["similarity"], 0.8)
    assert copies["documents"].sum() == 500


@pytest.mark.parametrize("always", [1, 4, 64])
def test_large_components_remove_nothing_wrongly_and_find_nearly_all(always):
    """1,200 pairs in one component: far more representatives than are compared one by one."""
    rng = np.random.default_rng(9)
    originals = rng.integers(0, 2**32, (1200, 112), dtype=np.uint32)
    originals[:, :30] = originals[0, :30]  # what made them one component
    copies = originals.copy()
    copies[:, rng.choice(112, 14, replace=False)] += np.uint32(1)
    signatures = np.concatenate([originals, copies])
    representative, matches = assign(signatures, [0, 2400], 84, always=always)
    assert (representative[:1200] == np.arange(1200)).all()
    assert (representative[1200:] == np.arange(1200)).mean() > 0.99
    assert (matches == (signatures == signatures[representative]).sum(axis=1)).all()
    assert (matches >= 84).all()
    assert (representative[representative] == representative).all()


def assign(
    signatures: np.ndarray,
    bounds: list[int],
    minimum: int,
    certain: int | None = None,
    always: int = 1024,
    protected: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The kernel's representative and matches of each row."""
    count, permutations = signatures.shape
    guard = np.zeros(count, np.uint8) if protected is None else protected.astype(np.uint8)
    representative, matches = np.empty(count, np.uint32), np.empty(count, np.uint32)
    starts = np.array(bounds, np.int64)
    clusters.assign(
        signatures, starts, permutations, minimum, certain or minimum, always, guard, representative, matches
    )
    return representative, matches


def test_identical_members_cost_one_comparison_each():
    signatures = np.tile(np.arange(112, dtype=np.uint32), (50_000, 1))
    representative, matches = assign(signatures, [0, 50_000], 84)
    assert not representative.any()
    assert (matches == 112).all()


@pytest.mark.parametrize("always", [1, 64, 4096])
def test_protected_rows_lead_and_are_found_however_many_resemble_each_other(always):
    """3,000 reference documents of which each resembles the others; each of ours is a copy of one of them."""
    rng = np.random.default_rng(5)
    reference = np.tile(rng.integers(0, 2**32, 112, dtype=np.uint32), (3000, 1))
    for row in reference:
        row[rng.choice(112, 60, replace=False)] = rng.integers(0, 2**32, 60, dtype=np.uint32)
    ours = reference[::3].copy()
    ours[:, rng.choice(112, 8, replace=False)] += np.uint32(1)
    signatures = np.concatenate([reference, ours])
    protected = np.arange(4000) < 3000
    representative, matches = assign(signatures, [0, 4000], 84, always=always, protected=protected)
    assert (representative[:3000] == np.arange(3000)).all()
    assert (representative[3000:] == np.arange(0, 3000, 3)).mean() > 0.99
    assert (matches[representative != np.arange(4000)] >= 84).all()

    identical, _ = assign(np.tile(reference[:1], (200, 1)), [0, 200], 84, always=always, protected=np.arange(200) < 150)
    assert identical.tolist() == [*range(150), *[0] * 50]


def test_a_row_follows_the_first_certain_representative_or_else_the_most_similar():
    """The last row has 12 values in common with row 0, 15 with row 1, 18 with row 2 and 18 with row 3."""
    signatures = np.zeros((5, PERMUTATIONS), np.uint32)
    for row, common in enumerate((12, 15, 18, 18)):
        signatures[row, common:] = row + 1
    expected = {(12, 12): 0, (12, 15): 1, (13, 13): 1, (12, 16): 2, (12, 18): 2, (12, 19): 2, (19, 20): 4}
    for always in (1, 2, 64):
        for (minimum, certain), representative in expected.items():
            found, matches = assign(
                signatures, [0, 5], minimum, certain, always=always, protected=np.array([1, 1, 1, 1, 0])
            )
            assert found.tolist() == [0, 1, 2, 3, representative]
            assert matches[4] == (signatures[4] == signatures[representative]).sum()


@pytest.mark.parametrize("count", [100, 400])
def test_links_of_protected_rows(count):
    """Reference rows chained to each other, one of ours at each: every one of ours is linked, no two reference ones
    are.
    """
    rng = np.random.default_rng(3)
    reference = np.tile(rng.integers(0, 256, 56, dtype=np.uint8), (count, 1))
    reference[:, 20:] = rng.integers(0, 256, (count, 36), dtype=np.uint8)
    reference[1::2, 20:28] = reference[::2, 20:28]
    ours = reference.copy()
    ours[:, rng.choice(56, 4, replace=False)] ^= np.uint8(0x11)
    sketch = np.concatenate([reference, ours])
    protected = (np.arange(2 * count) < count).astype(np.uint8)
    found = clusters.link(sketch, np.array([0, 2 * count]), 112, 90, 64, protected)
    links = {tuple(pair) for pair in np.frombuffer(found, np.uint32).reshape(-1, 2).tolist()}
    assert {(count + i, i) for i in range(count)} <= links
    assert all(member >= count for member, _ in links)


def test_kernel_refuses_what_does_not_fit():
    rows, ok = np.zeros((4, 2), np.uint32), np.zeros(4, np.uint8)
    out = (np.zeros(4, np.uint32), np.zeros(4, np.uint32))
    bounds = np.array([0, 4])
    for minimum, certain in ((0, 1), (2, 1), (1, 3)):
        with pytest.raises(ValueError, match="is allowed"):
            clusters.assign(rows, bounds, 2, minimum, certain, 64, ok, *out)
    with pytest.raises(ValueError, match="protected"):
        clusters.assign(rows, bounds, 2, 1, 1, 64, ok[:3], *out)
    with pytest.raises(ValueError, match="protected"):
        clusters.link(np.zeros((4, 8), np.uint8), bounds, 16, 4, 64, ok[:3])


def test_a_group_in_pieces_needs_a_byte_per_row_and_a_size():
    rows, out = np.zeros((4, 2), np.uint32), [np.empty(4, np.uint32) for _ in range(2)]
    given = (rows, np.array([0, 4]), 2, 1, 1, 64, np.zeros(4, np.uint8), *out)
    held = np.zeros(4, np.uint8)
    clusters.assign(*given, 1 << 16, held)
    assert held.tolist() == [1, 0, 0, 0]
    for whole, wrong in ((1 << 16, held[:3]), (-1, held), (1 << 33, held), (1 << 16, np.zeros(4, np.uint32))):
        with pytest.raises(ValueError, match=r"held|whole"):
            clusters.assign(*given, whole, wrong)
