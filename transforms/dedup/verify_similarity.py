"""Verified removal: inside each component, whole signatures decide which documents are removed and which represent
them.

Documents of reference corpora rank first and are always kept, however similar they are to each other; no verdicts are
written for them. With `verify: exact`, exact_jaccard.py takes over after `member_batches`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.dedup.near_duplicates import NearParams, Scope
from refinery.transforms.dedup.rank import RANK_BYTES
from refinery.transforms.dedup.record_batch import (
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
    part_of,
    ranges,
    read_header,
    row_of,
    scatter,
    set_id,
    starts_of,
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
    partition: int, batches: list[bytes], params: NearParams, scope: Scope, parts: Parts, permutations: int
) -> Iterator[KeyedBatch]:
    """Members of a range of components -> by part, REMOVAL rows and the COPY rows of their representatives.

    Greedy clustering in rank order: a document becomes a representative unless an earlier representative of its
    component has an estimated Jaccard similarity of at least the threshold with it; then it is removed in favour of the
    first such representative, which takes over its copies. So no document is removed in favour of one that is itself
    removed, and a chain of similar documents is thinned out, never removed as a whole. Memory: about twice the members
    of the key. Time: see clusters.c.
    """
    members, signatures = sort_members(batches, permutations)
    reference = parts.in_reference(members["locator"])
    minimum = params.minimum(permutations)
    representative, matches = assign_representatives(
        signatures, group_bounds(members["component"]), reference, minimum, minimum
    )
    removed = np.flatnonzero(representative != np.arange(len(members), dtype=np.uint32))
    copies = gather(batches, COPIES, COPY)
    similarity = matches[removed] / permutations
    yield from removal_batches(members, removed, representative[removed], similarity, copies, scope, parts)


def sort_members(batches: list[bytes], permutations: int) -> tuple[Rows, NDArray[np.uint32]]:
    """MEMBER rows by component and rank, and their signatures, uint32 of shape (members, permutations)."""
    dtype = member_dtype(permutations)
    pieces = [np.frombuffer(batch, dtype, offset=1) for batch in batches if batch[0] == MEMBERS]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64).tolist()
    members = np.empty(ends[-1] if ends else 0, MEMBER)
    for name in MEMBER.names or ():
        members[name] = np.concatenate([np.empty(0, MEMBER[name]), *(piece[name] for piece in pieces)])
    order = np.lexsort([members[name] for name in reversed(RANK_ORDER)])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    signatures = np.empty((len(members), permutations), np.uint32)
    for piece, end in zip(pieces, ends, strict=True):
        signatures[place[end - len(piece) : end]] = piece["signature"]
    return members[order], signatures


def group_bounds(groups: NDArray[Any]) -> NDArray[np.int64]:
    """Where each group of a sorted column starts, and its end."""
    return np.append(np.flatnonzero(starts_of(groups)), len(groups)).astype(np.int64)


def assign_representatives(
    signatures: NDArray[np.uint32], bounds: NDArray[np.int64], protected: NDArray[np.bool_], minimum: int, certain: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Greedy clustering of each group: (row of its representative, equal values with it) for every row.

    A row is assigned to the first representative with which it shares at least `certain` values, else to the one with
    which it shares the most, if these are at least `minimum`; otherwise it becomes a representative, its own. Protected
    rows come first in their group and are always representatives.
    """
    representative, matches = np.empty(len(signatures), np.uint32), np.empty(len(signatures), np.uint32)
    guard = protected.astype(np.uint8)
    permutations = signatures.shape[1]
    clusters.assign(
        signatures, bounds, permutations, minimum, certain, COMPONENT_REPRESENTATIVES, guard, representative, matches
    )
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
