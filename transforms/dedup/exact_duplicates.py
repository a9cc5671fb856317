"""Exact deduplication: documents of one id, the first in rank survives. Only ids, ranks and places are moved."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.dedup.rank import RANK_BYTES
from refinery.transforms.dedup.record_batch import (
    COPIES,
    COPY,
    CORPUS,
    EXACT,
    IDENTITIES,
    IDENTITY,
    PUBLISHED,
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
    sort_by,
    starts_of,
)
from refinery.transforms.dedup.reference_corpora import PUBLICATION, Parts
from refinery.transforms.dedup.signatures import fixed_width, name_codes, read_signature_part


def identity_blocks(
    part: int, blocks: list[bytes], sources: tuple[str, ...], parts: Parts, partitions: int
) -> Iterator[Block]:
    """A part's header -> its IDENTITY rows, by range of id (ids are uniform, so no key is hot unless an id is).

    52 bytes per document cross the shuffle. Memory: the rows of the part.
    """
    url, rows = read_header(blocks)
    identities = np.zeros(rows, IDENTITY)
    for first, table in read_signature_part(url, rows, ("id", "rank", "source")):
        window = identities[first : first + table.num_rows]
        set_id(window, fixed_width(table["id"], ID_BYTES))
        parts.set_rank(part, window, fixed_width(table["rank"], RANK_BYTES))
        if not parts.is_foreign(part):  # the sources of another corpus mean nothing here
            window["source"] = name_codes(table["source"], sources)
    identities["reference"] = np.uint64(part << 32) | np.arange(rows, dtype=np.uint64)
    yield from scatter(ranges(identities["id_high"], partitions), IDENTITIES, identities)


def keep_first(partition: int, blocks: list[bytes], parts: Parts) -> Iterator[Block]:
    """IDENTITY rows of a range of ids -> by part, the REMOVAL rows of later copies and the COPY rows of survivors.

    Foreign rows that are not PUBLISHED are removed first: they stand for nothing. Time: one sort of 64-bit numbers; the
    full order only among rows that share their first 8 bytes.
    """
    identities = gather(blocks, IDENTITIES, IDENTITY)
    if parts.foreign_parts:
        published = gather(blocks, PUBLISHED, PUBLICATION)
        stand = ~parts.foreign(identities["reference"]) | is_published(identities, published, parts)
        yield from removal_blocks(identities[~stand], identities[~stand], parts)
        identities = identities[stand]
    rows = repeated(identities)
    rows = sort_by(rows, "id_high", "id_low", "priority", "preference", "tie", "reference")
    first = starts_of(rows["id_high"], rows["id_low"])
    survivor = np.flatnonzero(first)[np.cumsum(first) - 1] if len(rows) else np.empty(0, np.int64)
    losers = np.flatnonzero(~first)
    yield from removal_blocks(rows[losers], rows[survivor[losers]], parts)

    ours = losers[~parts.foreign(rows["reference"][survivor[losers]])]
    copies = np.empty(len(ours), COPY)
    copies["reference"] = rows["reference"][survivor[ours]]
    copies["source"] = rows["source"][ours]
    copies["documents"] = 1
    copies = add_up(copies)
    yield from scatter(part_of(copies["reference"]), COPIES, copies)


def removal_blocks(losers: Rows, survivors: Rows, parts: Parts) -> Iterator[Block]:
    """REMOVAL rows of exact copies, by part."""
    removals = np.empty(len(losers), REMOVAL)
    for name in ("reference", "id_high", "id_low"):
        removals[name] = losers[name]
    removals["similarity"] = 1.0
    removals["reason"] = EXACT
    removals["scope"] = parts.scope_of(survivors["reference"], CORPUS)
    yield from scatter(part_of(removals["reference"]), REMOVALS, removals)


def is_published(identities: Rows, published: Rows, parts: Parts) -> NDArray[np.bool_]:
    """True where a foreign row is in the shards of its own corpus. Cost: a sort of both."""
    scope = np.concatenate([published["scope"], parts.scope_of(identities["reference"], CORPUS)])
    high, low = (np.concatenate([published[name], identities[name]]) for name in ("id_high", "id_low"))
    order = np.lexsort([scope, low, high])
    code = np.empty(len(order), np.int64)
    code[order] = np.cumsum(starts_of(high[order], low[order], scope[order]))
    known = np.zeros(len(order) + 1, np.bool_)
    known[code[: len(published)]] = True
    return known[code[len(published) :]]


def repeated(rows: Rows) -> Rows:
    """The rows whose `id_high` some other row has too: a cheap sieve before the full sort."""
    order = np.argsort(rows["id_high"])
    high = rows["id_high"][order]
    same = np.zeros(len(rows) + 1, np.bool_)
    same[1:-1] = high[1:] == high[:-1]
    return rows[order[same[1:] | same[:-1]]]
