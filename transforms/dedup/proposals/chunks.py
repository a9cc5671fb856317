"""Chunks: the documents that exact verification compares with each other, every pair of them.

A chunk holds up to CHUNK_MEMBERS documents and CHUNK_BYTES of text. A larger group is dealt out to several chunks by
its documents' ids, which is as good as random and independent of where the documents are; its representative is in each
of them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.dedup.record_batch import (
    ID,
    PROPOSALS,
    RANK,
    KeyedBatch,
    Rows,
    group_bounds,
    part_of,
    scatter,
    starts_of,
)

CHUNK_MEMBERS = 4096  # documents of a chunk, at most: half its square of comparisons
CHUNK_BYTES = 32 << 20  # of text in a chunk; a set takes 4 bytes per unit of its text, mostly less than the text does
KEY_BYTES = 16 << 20  # of text in the chunks of one key of the shuffle, and one chunk more
ROW_BYTES = 128  # of a member, beside its set

PLACE = [("chunk", "<u4"), *RANK, *ID, ("locator", "<u8"), ("source", "<u4")]
# The document at `locator` belongs to that chunk of a key.
PROPOSAL = np.dtype([("key", "<i8"), *PLACE])
CHUNK_ORDER = ("chunk", "priority", "preference", "tie", "id_high", "id_low", "locator")
ID_ORDER = ("id_high", "id_low", "priority", "preference", "tie", "locator")

Chunks = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows of some members, by chunk; the number of the chunk of each


def chunk_groups(members: Rows, order: NDArray[np.int64], bounds: NDArray[np.int64]) -> Chunks:
    """Chunks of the groups members[order[bounds[i] : bounds[i + 1]]], each with its representative first; a group of
    one has none."""
    sizes = np.diff(bounds)
    fit = fits(members[order], bounds)
    whole = np.repeat(fit & (sizes > 1), sizes)
    pieces = []
    for group in np.flatnonzero(~fit & (sizes > 1)).tolist():
        first, *_ = representative = order[bounds[group] : bounds[group] + 1]
        others = order[bounds[group] + 1 : bounds[group + 1]]
        others = others[np.lexsort([members[name][others] for name in reversed(ID_ORDER)])]
        room = room_beside(members[first])
        ends = chunk_ends(members["bytes"][others].astype(np.int64), room, is_all=True)
        pieces += [np.concatenate([representative, some]) for some in np.split(others, ends[:-1])]
    later = len(sizes) + np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    numbers = np.concatenate([np.repeat(np.arange(len(sizes)), sizes)[whole], later])
    return np.concatenate([order[whole], *pieces]), numbers


def fits(members: Rows, bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each group of members is within the limits of a chunk."""
    total = np.append(0, np.cumsum(members["bytes"], dtype=np.int64))
    return (np.diff(bounds) <= CHUNK_MEMBERS) & (np.diff(total[bounds]) <= CHUNK_BYTES)


def room_beside(representative: Rows) -> int:
    """Bytes of text that a chunk has for others."""
    return max(0, CHUNK_BYTES - int(representative["bytes"]))


def chunk_ends(sizes: NDArray[np.int64], room: int, is_all: bool) -> list[int]:
    """Where the chunks end of documents of these sizes, one chunk at least one document.

    is_all: there are no more; otherwise those at the end, which later ones may join, are left.
    """
    begin, ends = 0, []
    while begin < len(sizes) and (is_all or len(sizes) - begin >= CHUNK_MEMBERS - 1):
        total = np.cumsum(sizes[begin : begin + CHUNK_MEMBERS - 1])
        begin += max(1, int(np.searchsorted(total, room, side="right")))
        ends.append(begin)
    return ends


class Proposer:
    """Numbers the chunks of a key of members, and deals them out to keys of the next shuffle: KEY_BYTES each."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.chunks = 0
        self.weight = 0

    def propose(self, members: Rows, numbers: NDArray[np.int64]) -> Iterator[KeyedBatch]:
        """Members by chunk, and their chunks' numbers -> PROPOSAL rows, by part."""
        if not len(members):
            return
        weights = members["bytes"].astype(np.int64) + ROW_BYTES
        before = self.weight + np.cumsum(weights) - weights
        self.weight += int(weights.sum())
        bounds = group_bounds(numbers)
        proposals = np.empty(len(members), PROPOSAL)
        for name in (*CHUNK_ORDER[1:], "source"):
            proposals[name] = members[name]
        proposals["chunk"] = self.chunks + np.cumsum(starts_of(numbers)) - 1
        self.chunks += len(bounds) - 1
        proposals["key"] = (self.partition << 32) + np.repeat(before[bounds[:-1]] // KEY_BYTES, np.diff(bounds))
        yield from scatter(part_of(proposals["locator"]), PROPOSALS, proposals)
