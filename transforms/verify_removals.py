"""Verified removal: inside each component, whole signatures decide which documents go and which stand in for them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transforms.document import ID_BYTES
from transforms.native import leaders
from transforms.near_duplicates import NearParams
from transforms.packed import (
    COPIES,
    COPY,
    ID,
    LABEL,
    LABELS,
    MEMBERS,
    NEAR,
    RANK,
    REMOVAL,
    REMOVALS,
    Block,
    Rows,
    add_up,
    gather,
    part_of,
    ranges,
    read_header,
    row_of,
    scatter,
    set_id,
    set_rank,
    starts_of,
)
from transforms.rank import RANK_BYTES
from transforms.signatures import fixed_width, name_codes, read_signature_part

# In a component a member meets this many survivors one by one, later ones where a sub-band agrees, see leaders.c.
COMPONENT_LEADERS = 1024
SALT = np.uint64(0x9E3779B97F4A7C15)


def member_dtype(permutations: int) -> np.dtype[Any]:
    """A document of a component with its whole signature: 60 bytes and 4 per permutation."""
    place = [("component", "<u8"), ("reference", "<u8")]
    return np.dtype([*place, *RANK, *ID, ("source", "<u4"), ("signature", "<u4", (permutations,))])


def member_blocks(
    part: int, blocks: list[bytes], sources: tuple[str, ...], permutations: int, partitions: int
) -> Iterator[Block]:
    """A part's header, LABEL rows and COPY rows -> its members and their COPY rows, by range of component.

    Only row groups with members are read. Memory: one row group and its members.
    """
    labels = np.sort(gather(blocks, LABELS, LABEL), order="reference")
    if not len(labels):
        return
    url, rows = read_header(blocks)
    wanted = row_of(labels["reference"])
    partition = ranges(labels["component"] * SALT, partitions)
    columns = ("id", "rank", "source", "signature")
    for first, table in read_signature_part(url, rows, columns, wanted):
        chosen = slice(*np.searchsorted(wanted, [first, first + table.num_rows]))
        local = wanted[chosen] - first
        members = np.empty(len(local), member_dtype(permutations))
        members["component"] = labels["component"][chosen]
        members["reference"] = labels["reference"][chosen]
        set_rank(members, fixed_width(table["rank"], RANK_BYTES)[local])
        set_id(members, fixed_width(table["id"], ID_BYTES)[local])
        members["source"] = name_codes(table["source"], sources)[local]
        members["signature"] = fixed_width(table["signature"], 4 * permutations).view("<u4")[local]
        yield from scatter(partition[chosen], MEMBERS, members)

    copies = gather(blocks, COPIES, COPY)
    place = np.searchsorted(labels["reference"], copies["reference"])
    place[place == len(labels)] = 0
    known = labels["reference"][place] == copies["reference"]
    yield from scatter(partition[place[known]], COPIES, copies[known])


def verify_blocks(partition: int, blocks: list[bytes], params: NearParams, permutations: int) -> Iterator[Block]:
    """Members of a range of components -> by part, REMOVAL rows and the COPY rows of those that survive instead.

    Leader clustering in rank order: a document survives unless an earlier survivor of its component has an estimated
    Jaccard similarity of at least the threshold with it; it then stands in for the first such survivor's copies. So
    nothing is removed for the sake of a document that is itself removed, and chains keep every link that they need.
    Memory: about three times the members of the key. Time: see leaders.c.
    """
    members = gather(blocks, MEMBERS, member_dtype(permutations))
    order = ("component", "priority", "preference", "tie", "id_high", "id_low", "reference")
    members = members[np.lexsort([members[name] for name in reversed(order)])]
    bounds = np.append(np.flatnonzero(starts_of(members["component"])), len(members)).astype(np.int64)
    survivor, matches = np.empty(len(members), np.uint32), np.empty(len(members), np.uint32)
    signatures = np.ascontiguousarray(members["signature"])
    minimum = params.minimum(permutations)
    leaders.assign(signatures, bounds, permutations, minimum, COMPONENT_LEADERS, survivor, matches)

    removed = np.flatnonzero(survivor != np.arange(len(members), dtype=np.uint32))
    removals = np.empty(len(removed), REMOVAL)
    removals["reference"] = members["reference"][removed]
    for name in ("id_high", "id_low"):
        removals[name] = members[name][survivor[removed]]
    removals["similarity"] = matches[removed] / permutations
    removals["reason"] = NEAR
    yield from scatter(part_of(removals["reference"]), REMOVALS, removals)

    own = np.empty(len(removed), COPY)
    own["reference"] = members["reference"][survivor[removed]]
    own["source"] = members["source"][removed]
    own["documents"] = 1
    copies = add_up(np.concatenate([own, inherited(members["reference"], survivor, removed, blocks)]))
    yield from scatter(part_of(copies["reference"]), COPIES, copies)


def inherited(
    references: NDArray[np.uint64], survivor: NDArray[np.uint32], removed: NDArray[np.int64], blocks: list[bytes]
) -> Rows:
    """The exact copies of removed documents, as COPY rows of the documents that survive instead."""
    copies = gather(blocks, COPIES, COPY).copy()
    gone = removed[np.argsort(references[removed])]
    place = np.searchsorted(references[gone], copies["reference"])
    place[place == len(gone)] = 0
    moved = references[gone][place] == copies["reference"] if len(gone) else np.zeros(len(copies), np.bool_)
    copies = copies[moved]
    copies["reference"] = references[survivor[gone[place[moved]]]]
    return add_up(copies)
