"""Exact deduplication: documents of one id, the first in rank survives. Only ids, ranks and places are moved."""

from collections.abc import Iterator

import numpy as np

from transforms.document import ID_BYTES
from transforms.packed import (
    COPIES,
    COPY,
    EXACT,
    IDENTITIES,
    IDENTITY,
    REMOVAL,
    REMOVALS,
    Block,
    Rows,
    add_up,
    gather,
    part_of,
    ranges,
    read_header,
    scatter,
    set_id,
    set_rank,
    sort_by,
    starts_of,
)
from transforms.rank import RANK_BYTES
from transforms.signatures import fixed_width, name_codes, read_signature_part


def identity_blocks(part: int, blocks: list[bytes], sources: tuple[str, ...], partitions: int) -> Iterator[Block]:
    """A part's header -> its IDENTITY rows, by range of id (ids are uniform, so no key is hot unless an id is).

    52 bytes per document cross the shuffle. Memory: the rows of the part.
    """
    url, rows = read_header(blocks)
    identities = np.empty(rows, IDENTITY)
    for first, table in read_signature_part(url, rows, ("id", "rank", "source")):
        window = identities[first : first + table.num_rows]
        set_id(window, fixed_width(table["id"], ID_BYTES))
        set_rank(window, fixed_width(table["rank"], RANK_BYTES))
        window["source"] = name_codes(table["source"], sources)
    identities["reference"] = np.uint64(part << 32) | np.arange(rows, dtype=np.uint64)
    yield from scatter(ranges(identities["id_high"], partitions), IDENTITIES, identities)


def keep_first(partition: int, blocks: list[bytes]) -> Iterator[Block]:
    """IDENTITY rows of a range of ids -> by part, the REMOVAL rows of later copies and the COPY rows of survivors.

    Time: one sort of 64-bit numbers; the full order only among rows that share their first 8 bytes.
    """
    rows = repeated(gather(blocks, IDENTITIES, IDENTITY))
    rows = sort_by(rows, "id_high", "id_low", "priority", "preference", "tie", "reference")
    first = starts_of(rows["id_high"], rows["id_low"])
    survivor = np.flatnonzero(first)[np.cumsum(first) - 1] if len(rows) else np.empty(0, np.int64)
    losers = np.flatnonzero(~first)

    removals = np.empty(len(losers), REMOVAL)
    for name in ("reference", "id_high", "id_low"):
        removals[name] = rows[name][losers]
    removals["similarity"] = 1.0
    removals["reason"] = EXACT
    yield from scatter(part_of(removals["reference"]), REMOVALS, removals)

    copies = np.empty(len(losers), COPY)
    copies["reference"] = rows["reference"][survivor[losers]]
    copies["source"] = rows["source"][losers]
    copies["documents"] = 1
    copies = add_up(copies)
    yield from scatter(part_of(copies["reference"]), COPIES, copies)


def repeated(rows: Rows) -> Rows:
    """The rows whose `id_high` some other row has too: a cheap sieve before the full sort."""
    order = np.argsort(rows["id_high"])
    high = rows["id_high"][order]
    same = np.zeros(len(rows) + 1, np.bool_)
    same[1:-1] = high[1:] == high[:-1]
    return rows[order[same[1:] | same[:-1]]]
