"""Verified removal: inside each component, whole signatures decide which documents are removed and which represent
them.

Documents of reference corpora rank first and are always kept, however similar they are to each other; no verdicts are
written for them. With `verify: exact`, exact_jaccard.py takes over after `member_batches`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.spill.sorted_rows import SPLIT_ROWS, Block, Piece, RowSorter, group_pieces, join
from refinery.transforms.dedup.near_duplicates import NearParams, Scope
from refinery.transforms.dedup.records.rank import RANK_BYTES
from refinery.transforms.dedup.records.record_batch import (
    COPIES,
    COPY,
    ID,
    LABEL,
    LABELS,
    MEMBERS,
    RANK,
    REMOVAL,
    REMOVALS,
    KeyedBatch,
    Rows,
    add_up,
    gather,
    group_bounds,
    part_of,
    ranges,
    read_header,
    row_of,
    scatter,
    set_id,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import fixed_width, name_codes, read_signature_part, signature_values
from refinery.transforms.native import clusters

# In a component each member is compared with this many representatives; with later ones only where a sub-band agrees,
# see clusters.c.
COMPONENT_REPRESENTATIVES = 1024
SALT = np.uint64(0x9E3779B97F4A7C15)


FACTS = [("component", "<u8"), ("locator", "<u8"), *RANK, *ID, ("source", "<u4"), ("bytes", "<u4")]
# A document of a component. bytes: of its text, UTF-8, at most 2^32 - 1.
MEMBER = np.dtype(FACTS)
RANK_ORDER = ("component", "priority", "preference", "tie", "id_high", "id_low", "locator")


def member_dtype(permutations: int) -> np.dtype[Any]:
    """A document of a component with its whole signature: 64 bytes and 4 per permutation."""
    return np.dtype([*FACTS, ("signature", "<u4", (permutations,))])


def member_batches(
    part: int, batches: list[bytes], sources: tuple[str, ...], parts: Parts, permutations: int, partitions: int
) -> Iterator[KeyedBatch]:
    """A part's header, LABEL rows and COPY rows -> its members and their COPY rows, by range of component label.

    Only row groups with members are read. Memory: one row group and its members.
    """
    labels = np.sort(gather(batches, LABELS, LABEL), order="locator")
    if not len(labels):
        return
    url, rows = read_header(batches)
    wanted = row_of(labels["locator"])
    partition = ranges(labels["component"] * SALT, partitions)
    columns = ("id", "rank", "source", "bytes", "signature")
    for first, table in read_signature_part(url, rows, columns, wanted):
        chosen = slice(*np.searchsorted(wanted, [first, first + table.num_rows]))
        local = wanted[chosen] - first
        members = np.zeros(len(local), member_dtype(permutations))
        members["component"] = labels["component"][chosen]
        members["locator"] = labels["locator"][chosen]
        parts.set_rank(part, members, fixed_width(table["rank"], RANK_BYTES)[local])
        set_id(members, fixed_width(table["id"], ID_BYTES)[local])
        if not parts.is_reference(part):  # another corpus has sources of its own
            members["source"] = name_codes(table["source"], sources)[local]
        members["bytes"] = np.minimum(table["bytes"].to_numpy()[local], 2**32 - 1)
        members["signature"] = signature_values(table["signature"], permutations)[local]
        yield from scatter(partition[chosen], MEMBERS, members)

    copies = gather(batches, COPIES, COPY)
    place = np.searchsorted(labels["locator"], copies["locator"])
    place[place == len(labels)] = 0
    known = labels["locator"][place] == copies["locator"]
    yield from scatter(partition[place[known]], COPIES, copies[known])


def verify_batches(
    partition: int, batches: Iterable[bytes], params: NearParams, scope: Scope, parts: Parts, permutations: int
) -> Iterator[KeyedBatch]:
    """Members of a range of components -> by part, REMOVAL rows and the COPY rows of their representatives.

    Greedy clustering in rank order: a document becomes a representative unless an earlier representative of its
    component has an estimated Jaccard similarity of at least the threshold with it; then it is removed in favour of the
    first such representative, which inherits its copies. So no document is removed in favour of one that is itself
    removed, and a chain of similar documents is thinned out, never removed as a whole. Memory: see GROUP_BYTES,
    however large a component is, and its COPY rows. Time: see clusters.c.
    """
    sorter, copies = sort_members(batches, permutations)
    minimum = params.minimum(permutations)
    clustering = Clusters(minimum, minimum)
    for piece in group_pieces(sorter.blocks(), "component"):
        found = clustering.assign(piece, parts.in_reference(piece.block.facts["locator"]))
        removed = found.removed()
        similarity = found.matches[removed] / permutations
        representative = found.representative[removed]
        yield from removal_batches(found.block.facts, removed, representative, similarity, copies, scope, parts)


def sort_members(batches: Iterable[bytes], permutations: int) -> tuple[RowSorter, Rows]:
    """(a sorter of the MEMBER rows by component and rank, with their signatures as payload; COPY rows). Batches are
    read once."""
    dtype = member_dtype(permutations)
    sorter = RowSorter(dtype, RANK_ORDER, "signature")
    copies = []
    for batch in batches:
        if batch[0] == MEMBERS:
            sorter.add(np.frombuffer(batch, dtype, offset=1))
        elif batch[0] == COPIES:
            copies.append(batch)
    return sorter, gather(copies, COPIES, COPY)


@dataclass(frozen=True)
class Clustered:
    """Rows of a piece, behind the representatives known before: for each the row of its representative, and how many
    equal values they have. known: number of the latter rows."""

    block: Block
    representative: NDArray[np.uint32]
    matches: NDArray[np.uint32]
    known: int

    def removed(self) -> NDArray[np.int64]:
        """Rows that are represented by another."""
        return np.flatnonzero(self.representative != np.arange(len(self.block), dtype=np.uint32))


class Clusters:
    """Greedy clustering of components, piece by piece: see `assign_representatives`. Of a component in several pieces
    the representatives that later members may be compared with are kept: up to some 600,000 rows, mostly few."""

    def __init__(self, minimum: int, certain: int) -> None:
        self.minimum = minimum
        self.certain = certain
        self.known: Block | None = None

    def assign(self, piece: Piece, protected: NDArray[np.bool_]) -> Clustered:
        """Cluster the rows of a piece. protected: as of `assign_representatives`."""
        known = 0 if self.known is None else len(self.known)
        block = piece.block if self.known is None else join(self.known, piece.block)
        guard = np.concatenate([np.ones(known, np.bool_), protected])
        bounds = np.array([0, len(block)], np.int64) if piece.split else group_bounds(block.facts["component"])
        held = np.zeros(len(block), np.uint8) if piece.split else None
        found = assign_representatives(block.payload, bounds, guard, self.minimum, self.certain, held)
        self.known = None if held is None or piece.last else block[held.astype(np.bool_)]
        return Clustered(block, *found, known)


def assign_representatives(
    signatures: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    protected: NDArray[np.bool_],
    minimum: int,
    certain: int,
    held: NDArray[np.uint8] | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Greedy clustering of each group: (row of its representative, equal values with it) for every row.

    A row is assigned to the first representative with which it shares at least `certain` values, else to the one with
    which it shares the most, if these are at least `minimum`; otherwise it becomes a representative, its own. Protected
    rows come first in their group and are always representatives.

    held: of a piece of a group of SPLIT_ROWS rows or more, is set to 1 for the representatives that rows of the pieces
    to come may be compared with; the next piece begins with these, protected.
    """
    representative, matches = np.empty(len(signatures), np.uint32), np.empty(len(signatures), np.uint32)
    guard = protected.astype(np.uint8)
    permutations, whole = signatures.shape[1], 0 if held is None else SPLIT_ROWS
    limits = permutations, minimum, certain, COMPONENT_REPRESENTATIVES
    clusters.assign(signatures, bounds, *limits, guard, representative, matches, whole, held)
    return representative, matches


def removal_batches(
    members: Rows,
    removed: NDArray[np.int64],
    representative: NDArray[Any],
    similarity: NDArray[np.float64],
    copies: Rows,
    scope: Scope,
    parts: Parts,
) -> Iterator[KeyedBatch]:
    """By part, REMOVAL rows of the members at `removed`, and the COPY rows that go to their representatives.

    representative: the member kept instead of each. copies: COPY rows of (some of) the members. Documents of reference
    corpora take over no copies. members: rows with locator, id and source.
    """
    removals = np.empty(len(removed), REMOVAL)
    removals["locator"] = members["locator"][removed]
    for name in ("id_high", "id_low"):
        removals[name] = members[name][representative]
    removals["similarity"] = similarity
    removals["reason"] = scope.reason
    removals["scope"] = parts.scope_of(members["locator"][representative], scope.code)
    yield from scatter(part_of(removals["locator"]), REMOVALS, removals)

    ours = ~parts.in_reference(members["locator"][representative])
    gone, representatives = members["locator"][removed[ours]], members["locator"][representative[ours]]
    own = np.empty(len(gone), COPY)
    own["locator"], own["source"], own["documents"] = representatives, members["source"][removed[ours]], 1
    handed = add_up(np.concatenate([own, transfer_copies(gone, representatives, copies)]))
    yield from scatter(part_of(handed["locator"]), COPIES, handed)


def transfer_copies(gone: NDArray[np.uint64], representatives: NDArray[np.uint64], copies: Rows) -> Rows:
    """COPY rows of the removed documents, moved to their representatives."""
    if not len(gone):
        return copies[:0]
    order = np.argsort(gone)
    place = np.minimum(np.searchsorted(gone, copies["locator"], sorter=order), len(gone) - 1)
    moved = gone[order[place]] == copies["locator"]
    handed: Rows = copies[moved]
    handed["locator"] = representatives[order[place[moved]]]
    return handed
