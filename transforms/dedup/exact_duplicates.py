"""Exact deduplication: documents of one id, the first in rank is kept. Only ids, ranks and locators are shuffled."""

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
    REFERENCE_IDS,
    REMOVAL,
    REMOVALS,
    KeyedBatch,
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
from refinery.transforms.dedup.reference_corpora import REFERENCE_ID, Parts
from refinery.transforms.dedup.signatures import fixed_width, name_codes, read_signature_part


def identity_batches(
    part: int, batches: list[bytes], sources: tuple[str, ...], parts: Parts, partitions: int
) -> Iterator[KeyedBatch]:
    """A part's header -> its IDENTITY rows, by range of id (ids are uniform, so no key is hot unless an id is).

    52 bytes per document cross the shuffle. Memory: the rows of the part.
    """
    url, rows = read_header(batches)
    identities = np.zeros(rows, IDENTITY)
    for first, table in read_signature_part(url, rows, ("id", "rank", "source")):
        window = identities[first : first + table.num_rows]
        set_id(window, fixed_width(table["id"], ID_BYTES))
        parts.set_rank(part, window, fixed_width(table["rank"], RANK_BYTES))
        if not parts.is_reference(part):  # another corpus has sources of its own
            window["source"] = name_codes(table["source"], sources)
    identities["locator"] = np.uint64(part << 32) | np.arange(rows, dtype=np.uint64)
    yield from scatter(ranges(identities["id_high"], partitions), IDENTITIES, identities)


def keep_first(partition: int, batches: list[bytes], parts: Parts) -> Iterator[KeyedBatch]:
    """IDENTITY rows of a range of ids -> by part, the REMOVAL rows of later copies and the COPY rows of kept documents.

    Rows of reference corpora whose ids are not among REFERENCE_IDS are removed first: their documents are not in that
    corpus. Time: one sort of 64-bit numbers; the
    full order only among rows that share their first 8 bytes.
    """
    identities = gather(batches, IDENTITIES, IDENTITY)
    if parts.reference_parts:
        listed = gather(batches, REFERENCE_IDS, REFERENCE_ID)
        take_part = ~parts.in_reference(identities["locator"]) | is_in_shards(identities, listed, parts)
        yield from exact_removals(identities[~take_part], identities[~take_part], parts)
        identities = identities[take_part]
    rows = repeated(identities)
    rows = sort_by(rows, "id_high", "id_low", "priority", "preference", "tie", "locator")
    first = starts_of(rows["id_high"], rows["id_low"])
    kept = np.flatnonzero(first)[np.cumsum(first) - 1] if len(rows) else np.empty(0, np.int64)
    later = np.flatnonzero(~first)
    yield from exact_removals(rows[later], rows[kept[later]], parts)

    ours = later[~parts.in_reference(rows["locator"][kept[later]])]
    copies = np.empty(len(ours), COPY)
    copies["locator"] = rows["locator"][kept[ours]]
    copies["source"] = rows["source"][ours]
    copies["documents"] = 1
    copies = add_up(copies)
    yield from scatter(part_of(copies["locator"]), COPIES, copies)


def exact_removals(removed: Rows, kept: Rows, parts: Parts) -> Iterator[KeyedBatch]:
    """REMOVAL rows of exact copies, by part."""
    removals = np.empty(len(removed), REMOVAL)
    for name in ("locator", "id_high", "id_low"):
        removals[name] = removed[name]
    removals["similarity"] = 1.0
    removals["reason"] = EXACT
    removals["scope"] = parts.scope_of(kept["locator"], CORPUS)
    yield from scatter(part_of(removals["locator"]), REMOVALS, removals)


def is_in_shards(identities: Rows, listed: Rows, parts: Parts) -> NDArray[np.bool_]:
    """True where a row of a reference corpus is in the shards of that corpus. Cost: a sort of both."""
    scope = np.concatenate([listed["scope"], parts.scope_of(identities["locator"], CORPUS)])
    high, low = (np.concatenate([listed[name], identities[name]]) for name in ("id_high", "id_low"))
    order = np.lexsort([scope, low, high])
    code = np.empty(len(order), np.int64)
    code[order] = np.cumsum(starts_of(high[order], low[order], scope[order]))
    known = np.zeros(len(order) + 1, np.bool_)
    known[code[: len(listed)]] = True
    return known[code[len(listed) :]]


def repeated(rows: Rows) -> Rows:
    """The rows whose `id_high` some other row has too: a cheap filter before the full sort."""
    order = np.argsort(rows["id_high"])
    high = rows["id_high"][order]
    same = np.zeros(len(rows) + 1, np.bool_)
    same[1:-1] = high[1:] == high[:-1]
    return rows[order[same[1:] | same[:-1]]]
