"""Encoded documents to shuffled shards under a prefix, as PTransforms.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import apache_beam as beam
import pyarrow as pa

from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.memory import with_memory
from refinery.transforms.write.document_batch import read_batches
from refinery.transforms.write.find_cuts import FindCuts
from refinery.transforms.write.packing.write_packed import packed_memory
from refinery.transforms.write.shards import SHARD_MEMORY, ShardsJob, write_shard
from refinery.transforms.write.shuffle_to_shards import ShuffleToShards
from refinery.transforms.write.targets import write_within_targets


def write_batches(
    key: bytes, batches: Iterable[bytes], write: Callable[[bytes, Iterable[pa.Table]], Iterable[bytes]]
) -> Iterable[bytes]:
    """What `write(key, tables)` reports of the documents of these batches."""
    return write(key, read_batches(batches))


@dataclass
class WriteShards(beam.PTransform):
    """(shard key, batches) -> files under the job's prefix. A retried bundle writes the same bytes, which is fine.
    cuts: of `FindCuts`, where sources have targets."""

    job: ShardsJob
    cuts: beam.PCollection | None = None

    def __post_init__(self) -> None:
        super().__init__("write-shards")

    def expand(self, shards: beam.PCollection) -> beam.PCollection:
        write = partial(
            write_shard,
            location=self.job.prefix,
            counts=dict(self.job.counts),
            dtype=self.job.dtype,
            columns=tuple(self.job.columns),
            packed=self.job.packed,
            notes=self.job.notes,
            counted=self.job.counted,
            writer=self.job.writer,
            kept=tuple(self.job.kept),
        )
        if self.cuts is None:
            read = beam.FlatMapTuple(partial(write_batches, write=write))
            written = shards | "write" >> read.with_output_types(bytes)
        else:
            cut = beam.FlatMap(write_within_targets, cuts=beam.pvalue.AsDict(self.cuts), write=write)
            written = shards | "write" >> cut.with_output_types(bytes)
        add_side_output(shards.pipeline, written)
        return written


def write_corpus(docs: beam.PCollection, job: ShardsJob) -> beam.PCollection:
    """Encoded documents -> shuffled shards under the prefix, by the job's writer; with packed rows where the job says
    so."""
    columns = job.packed is not None and bool(job.packed.structure)
    cuts = docs | FindCuts(job.targets) if job.targets else None  # (source, slices that it keeps)
    memory = SHARD_MEMORY * job.params.target_bytes
    memory += packed_memory(job.packed) if job.packed else 0
    step = with_memory(WriteShards(job, cuts), memory)
    shuffle = ShuffleToShards(job.params, job.counts, job.domains, columns, step, cuts, job.borders)
    return docs | shuffle | step  # (shard key, its batches), then side-output records
