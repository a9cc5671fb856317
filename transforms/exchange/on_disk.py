"""Exchanges of one machine: partition files in a folder that all workers see; names and counts alone cross the runner.

A bundle writes what it sends into one partition file and enters that in the exchange's ledger. Behind a GroupByKey of
file names, which is the barrier, each worker opens all files and takes groups, one after the other, largest first, until
none is left: a slow worker takes fewer. What is in the ledger counts, whatever names came through: a file that is
missing, cut, doubled or foreign raises ExchangeError before the group that it belongs to is complete. The last worker to
finish removes the files.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import contextlib
import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import apache_beam as beam
import orjson
from apache_beam.coders import coder_impl, registry
from apache_beam.coders.coders import FastCoder
from apache_beam.pipeline import PipelineVisitor
from apache_beam.transforms.window import GlobalWindows

from refinery.loader.storage.full_disk import naming_scratch
from refinery.transforms.exchange.partition_file import Group, PartitionWriter, read_groups
from refinery.transforms.exchange.side_outputs import (
    MAIN,
    SIDE_OUTPUT,
    add_side_output,
    in_global_window,
    side_output_record,
    with_side_output,
)
from refinery.transforms.exchange.tally import ARRIVED, KIND, SENT, ExchangeError, Tally, dump_key, load_key

COUNTER_BYTES = 8


@dataclass
class DiskExchanges:
    """Where the exchanges of a pipeline keep their files.

    folder: on a disk that all workers see; it exists. slots: workers that read at once. repeats: whether the runner
    replays bundles, so that only files count whose names came through, and no group is taken for good.
    """

    folder: str
    slots: int = 1
    repeats: bool = False
    groups: list[beam.PCollection] = field(default_factory=list)


_disks: "WeakKeyDictionary[beam.Pipeline, DiskExchanges]" = WeakKeyDictionary()


def exchange_on_disk(pipeline: beam.Pipeline, disk: DiskExchanges) -> None:
    """Let every exchange that is applied to `pipeline` from now on use files. `finish_graph` comes before it runs."""
    _disks[pipeline] = disk


def disk_of(pipeline: beam.Pipeline) -> DiskExchanges | None:
    """Where the exchanges of a pipeline keep their files; None: they are the runner's."""
    return _disks.get(pipeline)


class _GroupImpl(coder_impl.StreamCoderImpl):
    def encode_to_stream(self, value: Any, stream: Any, nested: bool) -> None:
        raise ExchangeError("a group of an exchange was about to be copied whole: its reader and its consumer are apart")

    def decode_from_stream(self, stream: Any, nested: bool) -> Any:
        raise ExchangeError("a group of an exchange cannot be decoded")

    def estimate_size(self, value: Any, nested: bool = False) -> int:
        return 1


class _GroupCoder(FastCoder):
    """Refuses: a lazy group never crosses a runner."""

    def _create_impl(self) -> Any:
        return _GroupImpl()

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return Group

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register_coder(Group, _GroupCoder)


def finish_graph(pipeline: beam.Pipeline) -> None:
    """Make sure that no runner copies a lazy group: groups get a coder that refuses, and steps lose their memory hints,
    which would put a reader and its consumer on different workers."""
    disk = _disks.get(pipeline)
    if disk is None:
        return
    for groups in disk.groups:
        key_type = groups.element_type.tuple_types[0]
        groups.element_type = beam.typehints.Tuple[key_type, Group]
    pipeline.visit(_WithoutHints())


class _WithoutHints(PipelineVisitor):
    def enter_composite_transform(self, transform_node: Any) -> None:
        self.visit_transform(transform_node)

    def visit_transform(self, transform_node: Any) -> None:
        transform_node.resource_hints = {}


class Place:
    """The folder of one exchange: its partition files, its ledger, and how many of its groups are taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def writer(self) -> PartitionWriter:
        """A new partition file."""
        with naming_scratch(str(self.folder), "partition files"):
            self.folder.mkdir(parents=True, exist_ok=True)
        return PartitionWriter(self.folder / f"{uuid.uuid4().hex}.partition")

    def enter(self, writer: PartitionWriter) -> str:
        """Close a partition file and enter it in the ledger; its name. An interrupted bundle leaves none behind."""
        writer.close()
        size = writer.path.stat().st_size
        line = orjson.dumps([writer.path.name, size, writer.tally.elements, writer.tally.size]) + b"\n"
        with naming_scratch(str(self.folder), "ledger"), self._locked("ledger") as file:
            os.lseek(file, 0, os.SEEK_END)
            os.write(file, line)
        return writer.path.name

    def files(self, names: set[str], trust: bool) -> list[Path]:
        """The partition files of the exchange, all of them whole. names: those that came through. trust: they alone
        count, since bundles are replayed.

        Raises ExchangeError for a file that is gone, has another size or was entered twice, and for a name that nobody
        entered.
        """
        entered: dict[str, int] = {}
        with self._locked("ledger") as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
        for line in data.splitlines():
            try:
                name, size, *_ = orjson.loads(line)
            except ValueError as error:
                raise ExchangeError(f"{self.folder}/ledger: a line was cut short or overwritten") from error
            if name in entered:
                raise ExchangeError(f"{self.folder}/ledger: {name} was entered twice")
            entered[name] = size
        if unknown := sorted(names - set(entered)):
            raise ExchangeError(f"{self.folder}/ledger: {unknown[0]} was sent, the ledger does not have it")
        found = [self.folder / name for name in sorted(names if trust else entered)]
        for path in found:
            try:
                size = path.stat().st_size
            except OSError as error:
                raise ExchangeError(f"{path}: {error.strerror}; a partition file is gone") from error
            if size != entered[path.name]:
                raise ExchangeError(f"{path}: {size:,} bytes found, {entered[path.name]:,} were written")
        return found

    def take(self) -> int:
        """The number of the next group that nobody has taken, from 0."""
        return self._count("taken")

    def leave(self, slots: int) -> None:
        """Say that one of `slots` workers has read all that it took; the last one removes the files."""
        if self._count("left") + 1 == slots:
            for path in self.folder.iterdir():
                path.unlink(missing_ok=True)

    def _count(self, what: str) -> int:
        with self._locked(what) as file:
            number = int.from_bytes(os.pread(file, COUNTER_BYTES, 0), "little")
            os.pwrite(file, (number + 1).to_bytes(COUNTER_BYTES, "little"), 0)
        return number

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[int]:
        """A file of the folder, which one process has at a time."""
        file = os.open(self.folder / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


class _Send(beam.DoFn):
    """Writes a bundle's elements to a partition file; yields its name once for each slot. each: give every element a
    key of its own. by: gives the key."""

    def __init__(
        self, name: str, folder: str, slots: int, each: bool, by: Callable[[bytes], int] | None = None
    ) -> None:
        self.name = name
        self.folder = folder
        self.slots = slots
        self.each = each
        self.by = by

    def start_bundle(self) -> None:
        self.place = Place(Path(self.folder))
        self.writer: PartitionWriter | None = None

    def process(self, element: Any) -> None:
        if self.writer is None:
            self.writer = self.place.writer()
        if self.each:
            self.writer.add(b"i%d" % self.writer.tally.elements, element)
        else:
            key, value = (self.by(element), element) if self.by else element
            self.writer.add(dump_key(key), value)

    def finish_bundle(self) -> Iterator[Any]:
        writer, self.writer = self.writer, None
        if writer is None:
            return
        name = self.place.enter(writer)
        yield in_global_window(side_output_record(KIND, name=self.name, way=SENT, **writer.tally.fields()))
        for slot in range(self.slots):
            yield GlobalWindows.windowed_value_at_end_of_window((slot, name.encode()))


class _Receive(beam.DoFn):
    """(slot, names of files) -> the groups that this worker takes. each: their values, one by one."""

    def __init__(self, name: str, folder: str, slots: int, repeats: bool, each: bool) -> None:
        self.name = name
        self.folder = folder
        self.slots = slots
        self.repeats = repeats
        self.each = each

    def start_bundle(self) -> None:
        self.tally = Tally()

    def process(self, element: tuple[int, Any]) -> Iterator[Any]:
        slot, names = element
        place = Place(Path(self.folder))
        groups = read_groups(place.files({name.decode() for name in names}, self.repeats))
        order = sorted(groups, key=(lambda key: int(key[1:])) if self.each else (lambda key: (-groups[key].size, key)))
        while (number := slot if self.repeats else place.take()) < len(order):
            slot += self.slots
            key = order[number]
            counted = _Counted(groups[key].pieces, key, self.tally)
            if self.each:
                yield from counted
            else:
                yield load_key(key), counted
                counted.finish()
        if not self.repeats:
            place.leave(self.slots)

    def finish_bundle(self) -> Iterator[Any]:
        if self.tally.elements:
            yield in_global_window(side_output_record(KIND, name=self.name, way=ARRIVED, **self.tally.fields()))


class _Counted(Group):
    """A group whose values are counted as they are read for the first time."""

    def __init__(self, pieces: list[Any], key: bytes, tally: Tally) -> None:
        super().__init__(pieces)
        self.key = key
        self.tally = tally
        self.seen = 0

    def __iter__(self) -> Iterator[bytes]:
        for number, value in enumerate(super().__iter__()):
            if number == self.seen:
                self.seen += 1
                self.tally.add(self.key, value)
            yield value

    def finish(self) -> None:
        """Count what its consumer left unread."""
        if self.seen < sum(piece.values for piece in self.pieces):
            for _ in self:
                pass


def through_files(
    disk: DiskExchanges,
    name: str,
    inputs: tuple[beam.PCollection, ...],
    each: bool,
    by: Callable[[bytes], int] | None,
) -> beam.PCollection:
    """The steps of an exchange on disk: without a Flatten of what is sent, which a runner would keep."""
    folder = str(Path(disk.folder) / name.partition(" ")[0])
    sent = []
    for number, elements in enumerate(inputs):
        step = beam.ParDo(_Send(name, folder, disk.slots, each, by)).with_output_types(tuple[int, bytes])
        outputs = with_side_output(elements, f"send {number}" if number else "send", step)
        add_side_output(elements.pipeline, outputs[SIDE_OUTPUT])
        sent.append(outputs[MAIN])
    names = sent[0] if len(sent) == 1 else tuple(sent) | "names" >> beam.Flatten()
    receive = beam.ParDo(_Receive(name, folder, disk.slots, disk.repeats, each))
    outputs = with_side_output(names | "barrier" >> beam.GroupByKey(), "receive", receive)
    add_side_output(names.pipeline, outputs[SIDE_OUTPUT])
    if not each:
        disk.groups.append(outputs[MAIN])
    return outputs[MAIN]
