"""The one exchange of texts or tokens as a PTransform: every encoded document gets its place in the order and goes to
its shard.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.job_input import begin_job
from refinery.transforms.core.exchange.on_disk import held_bytes
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.document_batch import DocumentBatch, new_compressor
from refinery.transforms.write.input_order import InputPlaces
from refinery.transforms.write.shuffle import ShardParams, ShuffledPlaces, parse_shard_key, shard_key, split_of

BATCH_BYTES = 1 << 20  # of tokens and provenance in one batch, before compression
# Of all open batches of a bundle; a third more with what Python needs. The fuller the batches, the less they cost: at
# 20,000 shards these are two or three documents each.
HELD_BYTES = 128 << 20


class BatchDocuments(beam.DoFn):
    """Collects documents by where they go: `place` says it. domains: source -> domain. columns: whether those of tokens
    go along. most: bytes held, of all open batches."""

    def __init__(self, domains: Mapping[str, str], columns: bool, most: int) -> None:
        self.columns = columns
        self.most = most
        self.domains = dict(domains)

    def place(self, doc: EncodedDocument) -> tuple[bytes, int]:
        """The key of a document, and its place in the order there."""
        raise NotImplementedError

    def setup(self) -> None:
        self.compressor = new_compressor()

    def start_bundle(self) -> None:
        self.batches: dict[bytes, DocumentBatch] = {}
        self.held = 0

    def process(self, doc: EncodedDocument) -> Iterable[tuple[bytes, bytes]]:
        key, order = self.place(doc)
        batch = self.batches.get(key)
        if batch is None:
            batch = self.batches[key] = DocumentBatch()
        self.held += batch.add(order, doc, doc.columns if self.columns else b"")
        if batch.size >= BATCH_BYTES:
            return [self._take(key)]
        # All, not the largest: with many shards it would not be much larger than the others, and searching for it
        # would cost more with every document than the batch.
        return self._take_all() if self.held >= self.most else ()

    def finish_bundle(self) -> Iterator[Any]:
        for element in self._take_all():
            yield GlobalWindows.windowed_value_at_end_of_window(element)

    def _take_all(self) -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(self.batches):
            yield self._take(key)

    def _take(self, key: bytes) -> tuple[bytes, bytes]:
        batch = self.batches.pop(key)
        self.held -= batch.size
        return key, batch.pack(self.compressor)


class _BatchDocuments(BatchDocuments):
    def __init__(
        self,
        params: ShardParams,
        counts: Mapping[str, int],
        domains: Mapping[str, str],
        columns: bool,
        most: int,
        borders: TaskList | None = None,
    ) -> None:
        super().__init__(domains, columns, most)
        self.params = params
        self.counts = dict(counts)
        self.borders = borders

    def setup(self) -> None:
        super().setup()
        shuffled = ShuffledPlaces(self.params.seed, self.counts)
        self.places = shuffled if self.borders is None else InputPlaces(self.borders)

    def place(self, doc: EncodedDocument) -> tuple[bytes, int]:
        place = f"{split_of(doc.id, self.params.validation)}/{self.domains[doc.source]}"
        order = self.places.order(doc)
        return shard_key(place, self.places.index(place, order)), order


def empty_shards(_: bytes, counts: Mapping[str, int]) -> Iterator[tuple[bytes, bytes]]:
    """A batch without documents for each shard, so every shard is counted as done, also one without documents."""
    for place, n in sorted(counts.items()):
        for index in range(n):
            yield shard_key(place, index), b""


def number_of_shard(key: bytes, counts: Mapping[str, int]) -> int:
    """The number of a shard among all, by its key."""
    split, domain, index = parse_shard_key(key)
    before = sum(count for place, count in counts.items() if place < f"{split}/{domain}")
    return before + index


@dataclass
class ShuffleToShards(beam.PTransform):
    """EncodedDocument -> (shard key, its batches). Every shard appears, even one without documents.

    counts: shards for every "split/domain" (`shard_counts`). domains: source name -> domain. columns: whether those of
    tokens are included. like, beside: of `Exchange`. borders: of `write_borders`, where documents stay in input order.
    """

    params: ShardParams
    counts: Mapping[str, int]
    domains: Mapping[str, str]
    columns: bool = False
    like: Any = None
    beside: beam.PCollection | None = None
    borders: TaskList | None = None

    def __post_init__(self) -> None:
        super().__init__("shuffle")

    def expand(self, docs: beam.PCollection) -> beam.PCollection[tuple[bytes, Iterable[bytes]]]:
        most = held_bytes(docs.pipeline, HELD_BYTES)
        collect = beam.ParDo(_BatchDocuments(self.params, self.counts, self.domains, self.columns, most, self.borders))
        batches = docs | "batch" >> collect.with_output_types(tuple[bytes, bytes])
        every = beam.FlatMap(empty_shards, counts=dict(self.counts)).with_output_types(tuple[bytes, bytes])
        shards = begin_job(docs.pipeline) | "every shard" >> every
        spread = partial(number_of_shard, counts=dict(self.counts))
        return (batches, shards) | Exchange("by shard", True, self.like, spread=spread, beside=self.beside)
