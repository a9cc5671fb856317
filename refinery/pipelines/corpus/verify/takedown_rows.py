"""Rows by which a takedown is checked: what its listings say went and came back, and every document that is there."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.removals import REASONS, column_ids
from refinery.loader.format.takedown import ADDED_SCHEMA, KEPT, REMOVED_SCHEMA, REPLACED
from refinery.loader.read.versions.listings import dropped_later, took_copies
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.verify.joins import BY_ID, HEAD
from refinery.pipelines.corpus.verify.keyed_rows import RunWriter, table_rows
from refinery.transforms.core.document import hash64

# Flags of a row of "gone". BY_ID: it speaks of all documents of its id, see `took_copies`. HEAD: it was the document of
# its id that others could be removed in favour of, and no other one of its id took its place and was dropped later.
HEADS = (KEPT, *REASONS[2:])
COLUMNS = ("id", "source", "origin", "split", "token_count")
WHY = ("was", "why")  # of documents that went


def listings(manifest: Manifest) -> dict[str, list[int]]:
    """Path of a listing -> its steps: of takedown number t, from 0, 2 t is what went and 2 t + 1 what came back."""
    found: dict[str, list[int]] = {}
    for number, takedown in enumerate(manifest.takedowns):
        for step, path in enumerate((takedown.removed, takedown.added)):
            if path:
                found.setdefault(path, []).append(2 * number + step)
    return found


def check_listing_file(
    store: Store, manifest: Manifest, path: str, steps: Sequence[int], facts: dict[str, Any], writer: RunWriter
) -> Iterator[str]:
    """Failures of a listing, whose checksum is right. facts: gets its documents of shards and their tokens. writer:
    gets a row of "gone" for each. Memory: a batch."""
    unique = bool(manifest.recipe.get("exact_dup", True))  # else several documents may have one id
    later = dropped_later(store, manifest)
    by_id = [bool(step % 2) or took_copies(store, manifest.takedowns[step // 2]) for step in steps]
    schema = ADDED_SCHEMA if steps[0] % 2 else REMOVED_SCHEMA
    columns = [name for name in (*COLUMNS, *WHY) if name in schema.names]
    documents = tokens = 0
    with store.open(path) as stream, bounded_parquet(stream, path, columns, exactly=schema) as (_, batches):
        for batch in batches:
            in_shards = np.array([bool(split) for split in batch.column("split").to_pylist()], np.bool_)
            documents += int(in_shards.sum())
            tokens += sum(batch.column("token_count").to_pylist())
            heads = np.zeros(len(batch), np.bool_)
            if "was" in schema.names:
                rest = np.array([why != REPLACED for why in batch.column("why").to_pylist()], np.bool_)
                heads = np.array([was in HEADS for was in batch.column("was").to_pylist()], np.bool_) & unique
                heads &= np.array([id_ not in later for id_ in batch.column("id").to_pylist()], np.bool_)
                batch, in_shards, heads = batch.filter(pa.array(rest)), in_shards[rest], heads[rest]
            for step, whole in zip(steps, by_id, strict=True):
                flags = BY_ID * (whole & np.logical_or(in_shards, step % 2)) + HEAD * heads
                rows = {"key": row_ids(batch), "record": row_records(batch), "step": step, "flags": flags}
                writer.add("gone", table_rows("gone", **rows))
    facts |= {"documents": documents, "tokens": tokens}
    yield from ()  # its failures are FormatErrors


def add_present(writer: RunWriter, place: int, batch: pa.RecordBatch, first: int) -> None:
    """Rows of "present" for documents of provenance or removals. place: of the file, of `place_name`; first: the row
    of the first one. Cost: about 2 microseconds a row."""
    rows = {"key": row_ids(batch), "record": row_records(batch), "shard": place}
    writer.add("present", table_rows("present", **rows, row=first + np.arange(len(batch))))


def place_name(manifest: Manifest, place: int) -> str:
    """The file of that number: provenance of the shards, then removals."""
    shards = len(manifest.shards)
    return manifest.shards[place].provenance.path if place < shards else manifest.removals[place - shards].path


def row_ids(batch: pa.RecordBatch) -> Any:
    """The ids of rows, "S16"."""
    return np.ascontiguousarray(column_ids(batch.column("id"))).view("S16").reshape(-1)


def row_records(batch: pa.RecordBatch) -> Any:
    """A hash of the record that each row was read from, and of its id."""
    columns = (batch.column(name).to_pylist() for name in ("id", "source", "origin"))
    return np.array([hash64(*row) for row in zip(*columns, strict=True)], np.uint64)
