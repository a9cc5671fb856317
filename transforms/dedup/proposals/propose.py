"""Members of components -> chunks of documents whose texts are compared, and removals in favour of reference corpora.

A component within the limits of a chunk is one. A larger one is divided by greedy clustering on signatures, with a
minimum three standard errors below the threshold. A component that does not fit in memory is clustered piece by piece,
its documents are sorted anew by representative and id, and chunks are cut as they come: the same chunks.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.dedup.near_duplicates import NearParams, Scope
from refinery.transforms.dedup.proposals.chunks import (
    ID_ORDER,
    Chunks,
    Proposer,
    chunk_ends,
    chunk_groups,
    fits,
    room_beside,
)
from refinery.transforms.dedup.record_batch import COPY, KeyedBatch, Rows, group_bounds
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.verify_similarity import (
    FACTS,
    Clusters,
    assign_representatives,
    removal_batches,
    sort_members,
)
from refinery.transforms.spill.sorted_rows import Block, Piece, RowSorter, group_pieces

FOLLOWER_BYTES = 64 << 20  # of these rows sorted at once: chunks and proposals are made of them beside
# A member with the locator of its representative; follows: 0 for that document itself, 1 for others.
FOLLOWER = np.dtype([("leader", "<u8"), ("follows", "u1"), *FACTS])


def propose_batches(
    partition: int, batches: Iterable[bytes], params: NearParams, scope: Scope, parts: Parts, permutations: int
) -> Iterator[KeyedBatch]:
    """Members of a range of components -> by part, REMOVAL rows in favour of reference documents, and PROPOSAL rows.

    Memory: see GROUP_MEMORY, however large a component is. Time: that of verify_batches, twice for components with
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
        for first, end in zip([0, *ends], ends, strict=False):
            chunk = np.concatenate([self.leader, others[first:end]])
            yield from proposer.propose(chunk, np.zeros(len(chunk), np.int64))
        self.waiting = None if led.last else others[ends[-1] if ends else 0 :]


def new_sorter() -> RowSorter:
    """Of followers: by representative, this one first, the others by id."""
    return RowSorter(FOLLOWER, ("leader", "follows", *ID_ORDER), limit=FOLLOWER_BYTES)
