"""Rows on their way to published files: held per file until a batch is worth its shuffle, then packed, and written.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.job_input import begin_job
from refinery.transforms.core.exchange.on_disk import held_bytes
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.spill.sorted_tables import sorted_tables
from refinery.transforms.dedup.records.record_batch import places_by_key

BATCH_BYTES = 1 << 20  # of the rows of one batch, before compression
HELD_BYTES = 64 << 20  # of all open batches of a worker


class BatchByFile(beam.DoFn):
    """A base of what reads parts and deals their rows out to files: -> (number of the file, batch of rows).

    At the limit all that is held goes, not the largest batch alone: looking for that one again and again would cost a
    pass over all files each time.
    """

    most = HELD_BYTES

    def start_bundle(self) -> None:
        self.batches: dict[int, list[pa.Table]] = {}
        self.sizes: dict[int, int] = {}
        self.held = 0

    def hold(self, table: pa.Table, files: npt.NDArray[np.int64]) -> Iterator[tuple[int, bytes]]:
        """Take in the rows of `table`, of which row i belongs to file `files[i]`; yields the batches that are full."""
        if not table.num_rows:
            return
        for file, places in places_by_key(files):
            rows = table.take(places)
            self.batches.setdefault(file, []).append(rows)
            self.sizes[file] = self.sizes.get(file, 0) + rows.nbytes
            self.held += rows.nbytes
            if self.sizes[file] >= BATCH_BYTES:
                yield from self._take(file)
        if self.held >= self.most:
            yield from self._take_all()

    def finish_bundle(self) -> Iterator[Any]:
        for element in self._take_all():
            yield GlobalWindows.windowed_value_at_end_of_window(element)

    def _take_all(self) -> Iterator[tuple[int, bytes]]:
        for file in sorted(self.batches):
            yield from self._take(file)

    def _take(self, file: int) -> Iterator[tuple[int, bytes]]:
        """The rows held for a file as one batch, or as several where there are many for it."""
        table = pa.concat_tables(self.batches.pop(file))
        size = self.sizes.pop(file)
        self.held -= size
        pieces = -(-size // (2 * BATCH_BYTES))
        step = -(-table.num_rows // max(1, pieces))
        for start in range(0, table.num_rows, step):
            yield file, serialize_batch(table.slice(start, step))


def serialize_batch(table: pa.Table) -> bytes:
    """An Arrow IPC stream of one record batch, zstd-compressed: what crosses the shuffle."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def deserialize_batch(batch: bytes) -> pa.Table:
    """Inverse of `serialize_batch`."""
    return pa.ipc.open_stream(batch).read_all()


def gather(batches: Iterable[bytes]) -> Iterator[pa.Table]:
    """The rows of all batches of a file, in order of all columns: see `sorted_tables`."""
    return sorted_tables(deserialize_batch(batch) for batch in batches)


def publish_tables(
    name: str, tables: Iterable[pa.Table], write: Callable[[Path, Iterable[pa.Table]], None], location: str
) -> dict[str, Any]:
    """Publish sorted rows as the file `name` of `location`; returns it as the manifest lists it. write: makes its
    bytes."""
    with scratch_folder(name) as scratch:
        local = scratch / "rows.parquet"
        write(local, tables)
        size, crc32c, sha256 = checksums(local)
        open_store(location).create(name, local)
    return {"path": name, "size": size, "crc32c": crc32c, "sha256": sha256}


def _every_file(_: bytes, schema: pa.Schema, files: int) -> Iterator[tuple[int, bytes]]:
    """A batch without rows for each file, so every file is written."""
    empty = serialize_batch(schema.empty_table())
    for file in range(files):
        yield file, empty


def write_files(
    begin: beam.pvalue.PBegin,
    tasks: TaskList,
    deal: BatchByFile,
    schema: pa.Schema,
    files: int,
    publish: Callable[[int, Iterable[bytes]], Iterable[bytes]],
) -> beam.PCollection:
    """The steps of a transform that reads parts and writes `files` files. deal: reads a task's rows. publish: what
    `gather` takes of a file -> its side-output records; called for every file, also for one without rows."""
    deal.most = held_bytes(begin.pipeline, HELD_BYTES)
    every = beam.FlatMap(partial(_every_file, schema=schema, files=files)).with_output_types(tuple[int, bytes])
    batches = begin | ReadTaskList(tasks) | "batch" >> beam.ParDo(deal).with_output_types(tuple[int, bytes])
    starts = begin_job(begin) | "every file" >> every
    grouped = (batches, starts) | Exchange("by file", guarded=True)
    written = grouped | "write" >> beam.FlatMapTuple(publish).with_output_types(bytes)
    add_side_output(begin.pipeline, written)
    return written
