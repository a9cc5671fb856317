"""The one global shuffle: every encoded document gets a seeded position in its domain's order and goes to its shard.

The order is arithmetic: `order_key(seed, id)` is uniform over 64 bits; shard k of n holds the k-th of n equal parts of
that range, in key order. So the concatenation of a domain's shards is its global order, and no document's position
depends on workers, bundles or the other documents (except through the number of shards).

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import apache_beam as beam
import orjson
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from pydantic import Field

from refinery.transforms.core.document import hash64
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.tokenize.encode import EncodedDocument

BATCH_BYTES = 1 << 20  # of tokens and provenance in one batch, before compression
HELD_BYTES = 64 << 20  # of all open batches of a worker

BATCH_SCHEMA = pa.schema(
    [
        ("order", pa.uint64()),
        ("id", pa.binary()),
        ("origin", pa.string()),
        ("url", pa.string()),
        ("source", pa.string()),
        ("text_bytes", pa.int64()),
        ("meta", pa.string()),
        ("tokens", pa.large_binary()),
        ("columns", pa.large_binary()),  # of the tokens, where the writer wants them: of `token_columns`
    ]
)


class ShardParams(Params):
    """How the corpus is cut and ordered."""

    seed: int = 1
    """of the global order"""
    target_bytes: Positive = 256 << 20
    """UTF-8 text of deduplicated documents that one shard holds, about (256 MiB of text make a .bin of about 120 MB at
    16-bit ids)"""
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """share of documents that become the validation split, chosen by a hash of the id alone, so that a document never
    changes sides when data is added or the seed changes"""


def order_key(seed: int, id_: bytes) -> int:
    """The document's position in the global order, uniform in [0, 2**64)."""
    return hash64("order", seed, id_)


def split_of(id_: bytes, validation: float) -> str:
    """ "validation" for the chosen share of ids, else "train". Depends on the id alone."""
    return "validation" if hash64("validation", id_) < validation * 2**64 else "train"


def shard_counts(kept: Mapping[str, Mapping[str, int]], params: ShardParams) -> dict[str, int]:
    """Number of shards for every "split/domain", from the deduplicated bytes of each domain.

    kept: {domain: {"documents": n, "bytes": n}}. A domain without documents gets no shard.
    """
    counts = {}
    for domain, total in sorted(kept.items()):
        if not total["documents"]:
            continue
        counts[f"train/{domain}"] = max(1, -(-round(total["bytes"] * (1 - params.validation)) // params.target_bytes))
        if params.validation:
            counts[f"validation/{domain}"] = max(
                1, -(-round(total["bytes"] * params.validation) // params.target_bytes)
            )
    return counts


def shard_key(split_domain: str, index: int) -> bytes:
    """The shuffle's key of a shard; `parse_shard_key` is its inverse."""
    return f"{split_domain}/{index}".encode()


def parse_shard_key(key: bytes) -> tuple[str, str, int]:
    """(split, domain, index) of a shard key."""
    split, domain, index = key.decode().split("/")
    return split, domain, int(index)


@dataclass
class _OpenBatch:
    rows: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in BATCH_SCHEMA.names})
    size: int = 0

    def add(self, order: int, doc: EncodedDocument, columns: bytes) -> int:
        tokens = doc.tokens.tobytes()
        meta = orjson.dumps(dict(doc.meta), option=orjson.OPT_SORT_KEYS).decode()
        values = (order, doc.id, doc.origin, doc.url, doc.source, doc.text_bytes, meta, tokens, columns)
        for column, value in zip(self.rows.values(), values, strict=True):
            column.append(value)
        size = len(tokens) + len(columns) + len(meta) + len(doc.url) + len(doc.origin) + 64
        self.size += size
        return size

    def serialize(self) -> bytes:
        return serialize_batch(pa.table(self.rows, schema=BATCH_SCHEMA))


def serialize_batch(table: pa.Table) -> bytes:
    """An Arrow IPC stream of one record batch, zstd-compressed: what crosses the shuffle."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def deserialize_batch(batch: bytes) -> pa.Table:
    """Inverse of `serialize_batch`."""
    return pa.ipc.open_stream(batch).read_all()


class _BatchDocuments(beam.DoFn):
    def __init__(
        self, params: ShardParams, counts: Mapping[str, int], domains: Mapping[str, str], columns: bool
    ) -> None:
        self.params = params
        self.columns = columns
        self.counts = dict(counts)
        self.domains = dict(domains)

    def start_bundle(self) -> None:
        self.batches: dict[bytes, _OpenBatch] = {}
        self.held = 0

    def process(self, doc: EncodedDocument) -> Iterable[tuple[bytes, bytes]]:
        place = f"{split_of(doc.id, self.params.validation)}/{self.domains[doc.source]}"
        order = order_key(self.params.seed, doc.id)
        key = shard_key(place, order * self.counts[place] >> 64)
        batch = self.batches.setdefault(key, _OpenBatch())
        self.held += batch.add(order, doc, doc.columns if self.columns else b"")
        if batch.size >= BATCH_BYTES:
            return [self._take(key)]
        if self.held >= HELD_BYTES:
            return [self._take(max(self.batches, key=lambda k: (self.batches[k].size, k)))]
        return ()

    def finish_bundle(self) -> Iterator[Any]:
        for key in sorted(self.batches):
            yield GlobalWindows.windowed_value_at_end_of_window(self._take(key))

    def _take(self, key: bytes) -> tuple[bytes, bytes]:
        batch = self.batches.pop(key)
        self.held -= batch.size
        return key, batch.serialize()


def empty_shards(_: bytes, counts: Mapping[str, int]) -> Iterator[tuple[bytes, bytes]]:
    """A batch without documents for each shard, so that every shard is counted as done, also one without documents."""
    empty = serialize_batch(BATCH_SCHEMA.empty_table())
    for place, n in sorted(counts.items()):
        for index in range(n):
            yield shard_key(place, index), empty


@dataclass
class ShuffleToShards(beam.PTransform):
    """EncodedDocument -> (shard key, its batches). Every shard appears, even one without documents.

    counts: shards for every "split/domain" (`shard_counts`). domains: source name -> domain. columns: whether those of
    tokens come along.
    """

    params: ShardParams
    counts: Mapping[str, int]
    domains: Mapping[str, str]
    columns: bool = False

    def __post_init__(self) -> None:
        super().__init__("shuffle")

    def expand(self, docs: beam.PCollection) -> beam.PCollection[tuple[bytes, Iterable[bytes]]]:
        collect = beam.ParDo(_BatchDocuments(self.params, self.counts, self.domains, self.columns))
        batches = docs | "batch" >> collect.with_output_types(tuple[bytes, bytes])
        every = beam.FlatMap(empty_shards, counts=dict(self.counts)).with_output_types(tuple[bytes, bytes])
        shards = docs.pipeline | "start" >> beam.Impulse() | "every shard" >> every
        return (batches, shards) | "merge" >> beam.Flatten() | "by shard" >> beam.GroupByKey()
