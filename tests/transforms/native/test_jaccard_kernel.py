"""Greedy clustering of sets by their exact similarity, and the batches that sets travel in."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.exact_jaccard import PIECE, pack_pieces, pieces_of, unpack_sets
from refinery.transforms.dedup.propose_chunks import PROPOSAL
from refinery.transforms.dedup.records.record_batch import BATCH_BYTES
from refinery.transforms.native import jaccard
from tests.sampling import examples


def index_of_jaccard(x: set, y: set) -> float:
    return len(x & y) / len(x | y) if x | y else 1.0


def cluster(sets: list[set], starts: list[int], threshold: float) -> tuple[list[int], list[int]]:
    values = np.array([value for one in sets for value in sorted(one)], np.uint32)
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    representative, shared = np.empty(len(sets), np.uint32), np.empty(len(sets), np.uint32)
    jaccard.cluster(values, offsets, np.array(starts, np.int64), threshold, representative, shared)
    return representative.tolist(), shared.tolist()


@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 30),
    st.sampled_from([0, 1, 3, 40, 400]),
    st.sampled_from([0.05, 1 / 3, 0.5, 0.7, 0.75, 0.8, 0.9, 1.0]),
)
def test_kernel_equals_python_sets(seed, count, size, threshold):
    rng = random.Random(seed)
    pool = [rng.randrange(2**32) for _ in range(size + size // 4)]
    sets = [set(rng.sample(pool, rng.randint(size // 2, size))) for _ in range(count)]
    starts = sorted({0, count, *(rng.randrange(count + 1) for _ in range(2))})
    representative, shared = cluster(sets, starts if count else [0, 0], threshold)
    for first, last in pairwise(starts):
        representatives: list[int] = []
        for i in range(first, last):
            similar = [s for s in representatives if index_of_jaccard(sets[i], sets[s]) >= threshold]
            assert representative[i] == (similar[0] if similar else i)
            assert shared[i] == len(sets[i] & sets[representative[i]])
            if not similar:
                representatives.append(i)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.6, 0.7, 0.8, 0.9, 0.95])
def test_kernel_is_exact_at_the_threshold(threshold):
    """Sets that share exactly the threshold's fraction, and one value less, at many sizes."""
    for union in (20, 100, 2000, 300_000):
        common = round(threshold * union)
        whole = set(range(0, 7 * union, 7))
        inside = set(sorted(whole)[:common])
        assert cluster([whole, inside], [0, 2], threshold) == ([0, 0], [union, common])
        assert cluster([whole, inside - {0}], [0, 2], threshold)[0] == [0, 1]


def test_kernel_refuses_what_does_not_fit():
    values, offsets, starts = np.zeros(3, np.uint32), np.array([0, 1, 3]), np.array([0, 2])
    out = (np.zeros(2, np.uint32), np.zeros(2, np.uint32))
    jaccard.cluster(values, offsets, starts, 0.5, *out)
    for bad in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="threshold"):
            jaccard.cluster(values, offsets, starts, bad, *out)
    for bad_offsets in ([0, 1, 2], [1, 1, 3], [0, 4, 3], [0, -(2**63), 3], [2**63 - 1, -(2**63), 3]):
        with pytest.raises(ValueError, match="ascending"):
            jaccard.cluster(values, np.array(bad_offsets), starts, 0.5, *out)
    for bad_starts in ([0, 1], [1, 2], [0, 3, 2]):
        with pytest.raises(ValueError, match="ascending"):
            jaccard.cluster(values, offsets, np.array(bad_starts), 0.5, *out)
    with pytest.raises(ValueError, match="one uint32 per set"):
        jaccard.cluster(values, offsets, starts, 0.5, out[0][:1], out[1])
    with pytest.raises(ValueError, match="int64 bounds"):
        jaccard.cluster(values, offsets[:0], starts, 0.5, *out)


def proposal(locator: int, chunk: int = 0) -> np.ndarray:
    row = np.zeros(1, PROPOSAL)
    row["locator"], row["chunk"] = locator, chunk
    return row


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, 5, 999, 140_000, 300_000]), max_size=6), st.integers(0, 99))
def test_sets_survive_their_batches(sizes, seed):
    rng = random.Random(seed)
    sets = [np.arange(size, dtype=np.uint32) * np.uint32(i + 1) for i, size in enumerate(sizes)]
    pieces = [piece for i, values in enumerate(sets) for piece in pieces_of(proposal(i, i // 2), values)]
    rng.shuffle(pieces)
    batches = []
    while pieces:
        some, pieces = pieces[:2], pieces[2:]
        batches.append(pack_pieces(some))
        assert len(batches[-1]) <= BATCH_BYTES + PIECE.itemsize * 2 + 5
    rows, values, offsets = unpack_sets(batches)
    assert rows["locator"].tolist() == list(range(len(sets)))
    assert rows["chunk"].tolist() == [i // 2 for i in range(len(sets))]
    for i, expected in enumerate(sets):
        assert np.array_equal(values[offsets[i] : offsets[i + 1]], expected)


@pytest.mark.parametrize("damage", ["missing", "repeated", "headless"])
def test_an_incomplete_set_is_refused(damage):
    pieces = list(pieces_of(proposal(7), np.arange(400_000, dtype=np.uint32)))
    assert len(pieces) == 4
    wrong = {"missing": [0, 2, 3], "repeated": [0, 1, 1, 2, 3], "headless": [1, 2, 3]}[damage]
    with pytest.raises(ValueError, match="missing or repeated"):
        unpack_sets([pack_pieces([pieces[i]]) for i in wrong])
