"""One record of a file, read again at its origin, with as little of the file as its format allows."""

from dataclasses import replace
from typing import BinaryIO, cast

import pyarrow.parquet as pq

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import ByteSource, MemberStream, open_source
from refinery.transforms.read.jsonl import BLOCK
from refinery.transforms.read.plan import LimitParams, ReadTask
from refinery.transforms.read.sources import READERS, read_task

ARCHIVES = ("warc", "wet", "arc")
TABLES = ("parquet",)


class Tail(ByteSource):
    """A file from a byte on, as a file of its own: offsets count from there."""

    def __init__(self, source: ByteSource, start: int) -> None:
        super().__init__(cast(BinaryIO, source.file), source.path)
        self.start = start

    def view(self, offset: int) -> memoryview:
        return super().view(self.start + offset)

    def size(self) -> int:
        return max(super().size() - self.start, 0)


def read_at(task: ReadTask, offset: int, limits: LimitParams) -> RawDocument | Skipped | Damaged | None:
    """What `read_task` gives for the record at that offset (a row's number, in tables), None where no record begins.

    task: all of one file, without a cap. Cost: the record, where a file can be entered at one (archives that are plain
    or compressed record by record); the MiB around it of plain JSONL; its row group; of other files all up to it.
    Raises as `read_task`.
    """
    origin = task.origin(offset)
    if task.format in ARCHIVES and 0 < offset < task.size:
        if not task.samples(origin):
            return Skipped(NOT_SAMPLED, origin, 0)
        with open_source(task.place, task.size, task.version) as source:
            tail = Tail(source, offset)
            found = next(iter(READERS[task.format](replace(task, sample=1.0), tail, limits)), None)
        if found is not None and not isinstance(found, Damaged) and found.origin == task.origin(0):
            if isinstance(found, RawDocument):
                return replace(found, origin=origin, position=task.position(offset))
            return replace(found, origin=origin)
    for record in read_task(narrowed(task, offset), limits):
        if record.origin == origin:
            return record
    return None


def narrowed(task: ReadTask, offset: int) -> ReadTask:
    """The part of the file that holds the offset, where parts can be read by themselves; else all of it."""
    if task.format in TABLES:
        with open_source(task.place, task.size, task.version) as source:
            try:
                facts = pq.ParquetFile(source.file).metadata
            except (OSError, ValueError):  # no Parquet: the reader says what is wrong
                source.file.check()
                return task
        stop = 0
        for group in range(facts.num_row_groups):
            stop += facts.row_group(group).num_rows
            if offset < stop:
                return replace(task, part=group, parts=facts.num_row_groups)
    elif task.format == "jsonl" or (task.format == "text" and task.unit == "line"):
        blocks = -(-task.size // BLOCK)
        if blocks > 1 and offset < task.size:
            with open_source(task.place, task.size, task.version) as source:
                if not MemberStream(source).magic:
                    return replace(task, part=offset // BLOCK, parts=blocks)
    return task
