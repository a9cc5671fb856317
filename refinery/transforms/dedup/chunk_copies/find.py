"""Copies of self-contained constructs among kept documents: by hash, reported by place. Texts are not read.

    part -> its distinct hashes, each with the number of its places -> sums by hash -> those of two places or more, back
    to every part that has them -> the best document of the part that has each -> the best of all, back to the parts
    -> places of the others

The document of best rank keeps a construct, however often it has it; it is cut out of all others. A part sends a hash
once, however many of its documents have it.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.dedup.chunk_copies.cut import CHUNK_COPIES, ChunkCopyParams
from refinery.transforms.dedup.chunk_copies.hashes import PLACE, TOKENS, VALUES, compared_hashes
from refinery.transforms.dedup.cut_lines import list_values
from refinery.transforms.dedup.cutting_pass import Compared, CuttingPass
from refinery.transforms.dedup.line_duplicates import kept_rows, sum_by_hash, sum_in_lots
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches
from refinery.transforms.dedup.records.rank import RANK_BYTES
from refinery.transforms.dedup.records.record_batch import (
    ANCHORS,
    HOLDERS,
    ID,
    RANK,
    REPEATS,
    SPAN,
    SPANS,
    KeyedBatch,
    Rows,
    cut,
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
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import Key, fixed_width, no_key, read_signature_part
from refinery.transforms.dedup.substring_duplicates import FLAG, REPEAT, repeated_batches

STAGE = CHUNK_COPIES.name
SPREAD = 4  # shuffle keys per partition: a file has some ten constructs
# The best document of a part that has the construct with this hash.
HOLDER = np.dtype([("hash", "<u8"), *RANK, *ID, ("locator", "<u8")])
ORDER = ("hash", "priority", "preference", "tie", "id_high", "id_low", "locator")


@dataclass(frozen=True)
class Constructs:
    """Of the kept documents of a row group: hash, place (begin << 32 | stop) and row of the part of each construct."""

    hashes: NDArray[np.uint64]
    places: NDArray[np.uint64]
    rows: NDArray[np.int64]


def read_constructs(
    url: str, rows: int, alive: NDArray[np.bool_], min_tokens: int, key: bytes, columns: tuple[str, ...] = ()
) -> Iterator[tuple[int, Any, Constructs]]:
    """(first row, table with `columns`, constructs of at least `min_tokens` tokens) of each row group of a part."""
    for first, table in read_signature_part(url, rows, (*columns, "constructs")):
        offsets, values = list_values(table["constructs"])
        found = values.reshape(-1, VALUES)
        owners = first + np.repeat(np.arange(table.num_rows), np.diff(offsets) // VALUES)
        chosen = (found[:, TOKENS] >= min_tokens) & alive[owners]
        yield first, table, Constructs(compared_hashes(found[chosen], key), found[chosen, PLACE], owners[chosen])


def count_batches(
    part: int, batches: list[bytes], params: ChunkCopyParams, parts: Parts, partitions: int, key: Key = no_key
) -> Iterator[KeyedBatch]:
    """A part's header and REMOVAL rows -> LINE rows of its kept documents' constructs, by range of hash.

    16 bytes per distinct construct of the part cross the shuffle. Reference corpora send nothing.
    """
    if parts.is_reference(part):
        return
    url, rows = read_header(batches)
    found = read_constructs(url, rows, kept_rows(rows, batches), params.min_tokens, key())
    sums = (sum_by_hash(each.hashes, np.ones(len(each.hashes), np.int64)) for _, _, each in found)
    yield from sum_in_lots(part, sums, partitions)


def holder_batches(
    part: int, batches: list[bytes], params: ChunkCopyParams, partitions: int, key: Key = no_key
) -> Iterator[KeyedBatch]:
    """A part's header, REMOVAL rows and repeated hashes -> HOLDER rows, one for each of these, by range of hash.

    Memory: 72 bytes per place of a repeated construct in the part.
    """
    repeated = np.unique(gather(batches, ANCHORS, "<u8") & ~FLAG)
    if not len(repeated):
        return
    url, rows = read_header(batches)
    held = [np.empty(0, HOLDER)]
    alive = kept_rows(rows, batches)
    for first, table, found in read_constructs(url, rows, alive, params.min_tokens, key(), ("id", "rank")):
        chosen = np.flatnonzero(np.isin(found.hashes, repeated))
        local = found.rows[chosen] - first
        holders = np.empty(len(chosen), HOLDER)
        holders["hash"] = found.hashes[chosen]
        set_rank(holders, fixed_width(table["rank"], RANK_BYTES)[local])
        set_id(holders, fixed_width(table["id"], ID_BYTES)[local])
        holders["locator"] = np.uint64(part << 32) | found.rows[chosen].astype(np.uint64)
        held.append(best_holders(holders))
    best = best_holders(np.concatenate(held))
    yield from scatter(ranges(best["hash"], partitions), HOLDERS, best)


def best_holders(holders: Rows) -> Rows:
    """The first of each hash in the order of rank."""
    ordered = sort_by(holders, *ORDER)
    return ordered[starts_of(ordered["hash"])]


def winner_batches(key: int, batches: list[bytes]) -> Iterator[KeyedBatch]:
    """HOLDER rows of a range of hashes -> REPEAT rows of the best of all, to each part that has the construct."""
    rows = sort_by(gather(batches, HOLDERS, HOLDER), *ORDER)
    if not len(rows):
        return
    starts = starts_of(rows["hash"])
    out = np.empty(len(rows), REPEAT)
    out["hash"], out["locator"] = rows["hash"], rows["locator"][starts][np.cumsum(starts) - 1]
    yield from scatter(part_of(rows["locator"]), REPEATS, out)


def span_batches(part: int, batches: list[bytes], params: ChunkCopyParams, key: Key = no_key) -> Iterator[KeyedBatch]:
    """A part's header, REMOVAL rows and REPEAT rows -> SPAN rows of its kept documents, ascending."""
    repeats = sort_by(gather(batches, REPEATS, REPEAT), "hash")
    if not len(repeats):
        return
    url, rows = read_header(batches)
    known, winners = np.ascontiguousarray(repeats["hash"]), repeats["locator"]
    for _, _, found in read_constructs(url, rows, kept_rows(rows, batches), params.min_tokens, key()):
        locators = np.uint64(part << 32) | found.rows.astype(np.uint64)
        index = np.minimum(np.searchsorted(known, found.hashes), len(known) - 1)
        gone = (known[index] == found.hashes) & (winners[index] != locators)
        out = np.empty(np.count_nonzero(gone), SPAN)
        out["locator"], out["begin"] = locators[gone], found.places[gone] >> np.uint64(32)
        out["end"] = found.places[gone] & np.uint64(0xFFFFFFFF)
        yield from cut(part, SPANS, out)


@dataclass
class FindChunkCopies(beam.PTransform):
    """(headers of parts, removals and copies by part, ...) -> by part, the SPAN rows of constructs that stay elsewhere.

    parts: numbering of the parts; the run's own need their column `constructs`. partitions: as in `Deduplicate`.
    key: of what is compared.
    """

    params: ChunkCopyParams
    parts: Parts
    partitions: int
    key: Key = no_key

    def __post_init__(self) -> None:
        super().__init__(STAGE)

    def expand(self, decided: Any) -> beam.PCollection:
        partitions = SPREAD * self.partitions
        common: dict[str, Any] = {"params": self.params, "key": self.key}
        read = partial(count_batches, parts=self.parts, partitions=partitions, **common)
        hold = partial(holder_batches, partitions=partitions, **common)
        find = partial(span_batches, **common)

        placed = decided | Exchange("kept")  # (part, header, removals)
        counted = placed | MapRecordBatches(
            STAGE, "constructs", read, by_part=True
        )  # (range of hashes, distinct constructs)
        grouped = counted | Exchange("by hash")
        repeated = grouped | MapRecordBatches(STAGE, "repeated", repeated_batches)  # (part, repeated hashes)
        wanted = (*decided, repeated) | Exchange("by part")
        holders = wanted | MapRecordBatches(
            STAGE, "holders", hold, by_part=True
        )  # (range of hashes, best of each part)
        met = holders | Exchange("by construct")
        winners = met | MapRecordBatches(STAGE, "winners", winner_batches)  # (part, where each stays)
        found = (*decided, winners) | Exchange("of part")
        return found | MapRecordBatches(STAGE, "spans", find, by_part=True)  # (part, spans)


def find_chunk_copies(stage: CuttingPass[Any], params: ChunkCopyParams, compared: Compared) -> FindChunkCopies:
    """What `CHUNK_COPIES` declares to find them."""
    return FindChunkCopies(params, compared.parts, compared.partitions, compared.key)
