"""Members of components -> chunks of documents whose texts are compared, and removals in favour of reference corpora.

A chunk holds up to CHUNK_MEMBERS documents and CHUNK_BYTES of text; in it every pair is compared. A component within
these limits is a chunk. A larger one is divided by greedy clustering on signatures, with a minimum three standard
errors below the threshold: a representative and the documents assigned to it make a chunk, or several with the
representative in each, to which the others are assigned by their ids, which is as good as random and independent of
where the documents are. A component that does not fit in memory is clustered piece by piece, its documents are sorted
again by representative and id, and chunks are cut as they come: the same chunks.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.spill.sorted_rows import Block, Piece, RowSorter, group_pieces
from refinery.transforms.dedup.near_duplicates import NearParams, Scope
from refinery.transforms.dedup.records.record_batch import (
    COPY,
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
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.verify_similarity import (
    FACTS,
    Clusters,
    assign_representatives,
    removal_batches,
    sort_members,
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

FOLLOWER_BYTES = 64 << 20  # of these rows sorted at once: chunks and proposals are made of them beside
# A member with the locator of its representative; follows: 0 for that document itself, 1 for others.
FOLLOWER = np.dtype([("leader", "<u8"), ("follows", "u1"), *FACTS])

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


def propose_batches(
    partition: int, batches: Iterable[bytes], params: NearParams, scope: Scope, parts: Parts, permutations: int
) -> Iterator[KeyedBatch]:
    """Members of a range of components -> by part, REMOVAL rows in favour of reference documents, and PROPOSAL rows.

    Memory: see GROUP_BYTES, however large a component is. Time: that of verify_batches, twice for components with
    reference members.
    """
    minimum, full = params.candidate_minimum(permutations), params.minimum(permutations)
    limits = minimum, min(permutations, max(minimum, 2 * full - minimum))
    published, large = Clusters(full, full), LargeComponent(*limits)
    proposer = Proposer(partition)
    sorter, _ = sort_members(batches, permutations)
    for piece in group_pieces(sorter.blocks(), "component"):
        reference = parts.in_reference(piece.block.facts["locator"])
        alive = ~reference
        if reference.any() or published.known is not None:
            mixed = members_of_mixed(piece, reference)
            found = published.assign(Piece(piece.block[mixed], piece.split, piece.last), reference[mixed])
            facts = found.block.facts
            lost = found.removed()
            lost = lost[parts.in_reference(facts["locator"][found.representative[lost]])]
            alive[mixed[lost - found.known]] = False
            kept, similarity = found.representative[lost], found.matches[lost] / permutations
            yield from removal_batches(facts, lost, kept, similarity, np.empty(0, COPY), scope, parts)
        left = piece.block if alive.all() else piece.block[alive]
        if piece.split:
            yield from large.add(Piece(left, True, piece.last), proposer)
        else:
            rows, numbers = divide(left, *limits)
            yield from proposer.propose(left.facts[rows], numbers)


def members_of_mixed(piece: Piece, reference: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rows of the components with reference members; of one in several pieces, all."""
    if piece.split:
        return np.arange(len(reference))
    bounds = group_bounds(piece.block.facts["component"])
    return np.flatnonzero(np.repeat(np.logical_or.reduceat(reference, bounds[:-1]), np.diff(bounds)))


def divide(members: Block, minimum: int, certain: int) -> Chunks:
    """Chunks of two or more members of whole components. members: by component and rank, with signatures."""
    facts, signatures = members.facts, members.payload
    bounds = group_bounds(facts["component"])
    group = np.repeat(bounds[:-1], np.diff(bounds))  # each member's group, by its first member
    for component in np.flatnonzero(~fits(facts, bounds)).tolist():
        begin, end = bounds[component : component + 2].tolist()
        inside, free = np.array([0, end - begin], np.int64), np.zeros(end - begin, np.bool_)
        representative, _ = assign_representatives(signatures[begin:end], inside, free, minimum, certain)
        group[begin:end] = begin + representative.astype(np.int64)
    order = np.argsort(group, kind="stable")
    return chunk_groups(facts, order, group_bounds(group[order]))


class LargeComponent:
    """Chunks of a component that comes in pieces. Its documents wait on disk, without their signatures, until the last
    piece is there: which documents share a chunk depends on the ids of all that one represents."""

    def __init__(self, minimum: int, certain: int) -> None:
        self.clusters = Clusters(minimum, certain)
        self.sorter = new_sorter()
        self.leader: Rows = np.empty(0, FOLLOWER)  # of a group in several pieces
        self.waiting: Rows | None = None  # its documents that no chunk has yet

    def add(self, piece: Piece, proposer: Proposer) -> Iterator[KeyedBatch]:
        """Take in a piece; the last one yields the PROPOSAL rows of all."""
        found = self.clusters.assign(piece, np.zeros(len(piece.block), np.bool_))
        members, locators = found.block.facts[found.known :], found.block.facts["locator"]
        followers = np.empty(len(members), FOLLOWER)
        for name in members.dtype.names or ():
            followers[name] = members[name]
        followers["leader"] = locators[found.representative[found.known :]]
        followers["follows"] = followers["leader"] != followers["locator"]
        self.sorter.add(followers)
        if piece.last:
            for led in group_pieces(self.sorter.blocks(), "leader"):
                yield from self._propose(led, proposer)
            self.sorter = new_sorter()

    def _propose(self, led: Piece, proposer: Proposer) -> Iterator[KeyedBatch]:
        rows = led.block.facts
        if not led.split:
            chosen, numbers = chunk_groups(rows, np.arange(len(rows)), group_bounds(rows["leader"]))
            yield from proposer.propose(rows[chosen], numbers)
            return
        if self.waiting is None:
            self.waiting = rows[:0]
            self.leader, rows = rows[:1], rows[1:]
        others = np.concatenate([self.waiting, rows])
        ends = chunk_ends(others["bytes"].astype(np.int64), room_beside(self.leader[0]), led.last)
        chunks = [np.concatenate([self.leader, some]) for some in np.split(others, ends)[:-1]]
        numbers = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])
        yield from proposer.propose(np.concatenate([rows[:0], *chunks]), numbers)
        self.waiting = None if led.last else others[ends[-1] if ends else 0 :]


def new_sorter() -> RowSorter:
    """Of followers: by representative, this one first, the others by id."""
    return RowSorter(FOLLOWER, ("leader", "follows", *ID_ORDER), limit=FOLLOWER_BYTES)
