"""One record of a file, read again at its origin, with as little of the file as its format allows."""

from dataclasses import replace
from typing import BinaryIO, cast

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import ByteSource, open_source
from refinery.transforms.read.own_records import records_of
from refinery.transforms.read.reader import all_of_it
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.task import LimitParams, ReadTask


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
    or compressed record by record); the part around it (`Split.narrow`); of other files all up to it.
    Raises the same errors as `read_task`.
    """
    origin = task.origin(offset)
    reader = find_reader(task.format)
    if reader.enters and 0 < offset < task.size:
        if not task.samples(origin):
            return Skipped(NOT_SAMPLED, origin, 0)
        with open_source(task.place, task.size, task.version, payer=task.payer) as source:
            tail = Tail(source, offset)
            found = next(iter(records_of(reader, replace(task, sample=1.0), tail, limits)), None)
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
    split = find_reader(task.format).split
    if split.narrow is all_of_it:
        return task
    with open_source(task.place, task.size, task.version, payer=task.payer) as source:
        return split.narrow(task, source, offset)
