"""A bucket and a component that do not fit in memory end as where they fit: the same links, removals and chunks."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pytest

from refinery.transforms.core.spill import sorted_rows
from refinery.transforms.core.spill.sorted_rows import SPLIT_ROWS
from refinery.transforms.dedup import propose_chunks
from refinery.transforms.dedup.near_duplicates import NearParams, Scope, band_dtype, link_batches, sketches
from refinery.transforms.dedup.records.record_batch import (
    BANDS,
    COPIES,
    COPY,
    CORPUS,
    LINK,
    LINKS,
    MEMBERS,
    NEAR,
    PROPOSALS,
    REMOVAL,
    REMOVALS,
    cut,
    form_batches,
    gather,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.verify_similarity import member_dtype, verify_batches
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, scaled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

PERMUTATIONS = 32  # narrower rows than a run's; whatever depends on the number of members is as large
MEMBERS_MADE = scaled(100_000, SPLIT_ROWS + 8_000)
ESTIMATE, EXACT = NearParams(verify="signature"), NearParams(verify="exact")
SCOPE = Scope(NEAR, CORPUS, (0, 1), apart=False)
PARTS = Parts(6, (1,))  # part 6 is of a published corpus
DTYPES = {REMOVALS: REMOVAL, COPIES: COPY, LINKS: LINK, PROPOSALS: propose_chunks.PROPOSAL}
Step = Callable[[int, Iterable[bytes]], Iterator[tuple[int, bytes]]]


@pytest.fixture(scope="module")
def members() -> np.ndarray:
    """One component of near copies of 20 documents and of thousands that resemble nothing, and three small ones."""
    rng = np.random.default_rng(5)
    rows = np.zeros(MEMBERS_MADE, member_dtype(PERMUTATIONS))
    originals = rng.integers(0, 2**32, (20, PERMUTATIONS), np.uint32)
    original = np.minimum(rng.geometric(0.5, MEMBERS_MADE) - 1, 19)
    original[-40:] = rng.integers(1, 20, 40)  # the published ones: none of the first, so its many copies stay together
    rows["signature"] = originals[original]
    fresh = rng.random((MEMBERS_MADE, PERMUTATIONS), np.float32) < rng.choice([0.05, 0.2, 1.0], (MEMBERS_MADE, 1))
    rows["signature"][fresh] = rng.integers(0, 2**32, np.count_nonzero(fresh), np.uint32)
    rows["component"] = 2
    rows["component"][:3000] = rng.integers(0, 4, 3000)
    rows["locator"] = (rng.integers(0, 6, MEMBERS_MADE) << 32 | rng.permutation(MEMBERS_MADE)).astype(np.uint64)
    rows["locator"][-40:] |= np.uint64(6 << 32)
    rows["priority"] = np.where(PARTS.in_reference(rows["locator"]), 3, 300)
    rows["preference"] = rng.integers(0, 1000, MEMBERS_MADE)
    rows["id_high"], rows["id_low"] = rng.integers(0, 2**63, (2, MEMBERS_MADE))
    rows["source"], rows["bytes"] = rng.integers(0, 2, MEMBERS_MADE), rng.integers(100, 30_000, MEMBERS_MADE)
    return rows


def run(step: Step, tag: int, rows: np.ndarray, limit: int, monkeypatch: pytest.MonkeyPatch) -> dict[int, np.ndarray]:
    """What a step yields, rows of each kind in order; of chunks, the set of their members."""
    monkeypatch.setattr(sorted_rows, "SORT_BYTES", limit)
    monkeypatch.setattr(propose_chunks, "FOLLOWER_BYTES", limit)
    copies = np.zeros(len(rows) // 7, COPY)
    copies["locator"], copies["documents"] = rows["locator"][::7][: len(copies)], 3
    given = [batch for _, batch in cut(0, tag, rows)] + [batch for _, batch in cut(0, COPIES, copies) if tag == MEMBERS]
    found = [batch for _, batch in form_batches(step(0, iter(given)))]
    return {kind: np.sort(gather(found, kind, dtype)) for kind, dtype in DTYPES.items()}


def test_removals_of_a_component(members: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    step = partial(verify_batches, params=ESTIMATE, scope=SCOPE, parts=PARTS, permutations=PERMUTATIONS)
    whole = run(step, MEMBERS, members, 1 << 40, monkeypatch)
    spilled = run(step, MEMBERS, members, 1 << 20, monkeypatch)
    assert np.array_equal(whole[REMOVALS], spilled[REMOVALS])
    by_locator = members[np.argsort(members["locator"])]
    gone = by_locator[np.searchsorted(by_locator["locator"], spilled[REMOVALS]["locator"])]
    by_id = members[np.argsort(members["id_high"])]
    kept = by_id[np.searchsorted(by_id["id_high"], spilled[REMOVALS]["id_high"])]
    equal = (gone["signature"] == kept["signature"]).mean(axis=1)
    assert np.allclose(equal, spilled[REMOVALS]["similarity"]) and equal.min() >= 0.75
    assert not np.isin(kept["locator"], spilled[REMOVALS]["locator"]).any()
    assert 0.3 < len(gone) / len(members) < 0.7

    total: list[dict[tuple[int, int], int]] = []
    for found in (whole, spilled):
        sums: dict[tuple[int, int], int] = {}
        for locator, source, documents in found[COPIES].tolist():
            sums[locator, source] = sums.get((locator, source), 0) + documents
        total.append(sums)
    assert total[0] == total[1]


def test_chunks_of_a_component(members: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propose_chunks, "CHUNK_BYTES", 4 << 20)
    step = partial(propose_chunks.propose_batches, params=EXACT, scope=SCOPE, parts=PARTS, permutations=PERMUTATIONS)
    whole = run(step, MEMBERS, members, 1 << 40, monkeypatch)
    monkeypatch.setattr(sorted_rows, "SPLIT_ROWS", 2_000)  # so that one representative's documents come in pieces, too
    pieces = []
    propose = propose_chunks.LargeComponent._propose
    monkeypatch.setattr(
        propose_chunks.LargeComponent, "_propose", lambda *given: pieces.append(given[1].split) or propose(*given)
    )
    spilled = run(step, MEMBERS, members, 1 << 18, monkeypatch)
    assert sum(pieces) > 2
    assert np.array_equal(whole[REMOVALS], spilled[REMOVALS]) and len(whole[REMOVALS]) > 20
    assert chunk_sets(whole[PROPOSALS]) == chunk_sets(spilled[PROPOSALS])


def chunk_sets(proposals: np.ndarray) -> set[frozenset[int]]:
    """The documents of each chunk; every number of a chunk is one chunk's, under one key."""
    ordered = np.sort(proposals, order=["key", "chunk"])
    first = np.flatnonzero(np.diff(ordered["chunk"], prepend=-1) != 0)
    assert len(np.unique(ordered["chunk"])) == len(first) > 100
    return {frozenset(chunk.tolist()) for chunk in np.split(ordered["locator"], first[1:])}


def test_links_of_a_bucket(members: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.zeros(len(members), band_dtype(PERMUTATIONS))
    rows["hash"], rows["sketch"] = members["component"], sketches(members["signature"])
    for name in ("locator", "priority", "preference"):
        rows[name] = members[name]
    rows["tie"] = members["id_high"]
    step = partial(link_batches, params=ESTIMATE, parts=PARTS, permutations=PERMUTATIONS)
    whole = run(step, BANDS, rows, 1 << 40, monkeypatch)[LINKS]
    spilled = run(step, BANDS, rows, 1 << 20, monkeypatch)[LINKS]
    assert len(spilled) > 10_000
    assert components(whole) == components(spilled)


def components(links: np.ndarray) -> set[frozenset[int]]:
    """Brute force: sets of linked documents."""
    sets: dict[int, set[int]] = {}
    for member, other in links.tolist():
        mine, theirs = sets.setdefault(member, {member}), sets.setdefault(other, {other})
        if mine is not theirs:
            small, large = sorted((mine, theirs), key=len)
            large |= small
            sets.update(dict.fromkeys(small, large))
    return {frozenset(each) for each in {id(each): each for each in sets.values()}.values()}
