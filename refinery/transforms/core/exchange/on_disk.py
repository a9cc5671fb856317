"""Exchanges of one machine: partition files in a folder that all workers see; names and counts alone cross the runner.

A bundle writes what it sends into one partition file and enters that in the exchange's ledger. Behind a GroupByKey of
file names, which is the barrier, each worker opens all files and takes groups, one after the other, largest first,
until none is left: a slow worker takes fewer. The ledger counts, whatever names came through: a file that is missing,
cut, doubled or foreign raises ExchangeError before the group that it belongs to is complete. An exchange is settled
once all that was sent has been read; its files are removed then, and a report is published only when all exchanges are
settled.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import apache_beam as beam
from apache_beam.coders import registry
from apache_beam.pipeline import PipelineVisitor
from apache_beam.transforms.window import GlobalWindows

from refinery.transforms.core.exchange.lazy_group import LazyGroupCoder
from refinery.transforms.core.exchange.partition_file import Group, PartitionWriter, read_groups
from refinery.transforms.core.exchange.place import Place, sum_of
from refinery.transforms.core.exchange.records import MAIN
from refinery.transforms.core.exchange.side_outputs import with_side_output
from refinery.transforms.core.exchange.tally import ExchangeError, Tally, difference, dump_key, load_key

TOKENS = "tokens"  # tag of the outputs that say that a slot has read what it took


@dataclass
class DiskExchanges:
    """Where the exchanges of a pipeline keep their files.

    folder: on a disk that all workers see. slots: workers that read at once. repeats: whether the runner replays
    bundles, so only files count whose names came through, and no group is taken for good. groups, tokens: what the
    exchanges so far hand out, and what says that they have.
    """

    folder: str
    slots: int = 1
    repeats: bool = False
    groups: list[beam.PCollection] = field(default_factory=list)
    tokens: list[beam.PCollection] = field(default_factory=list)


registry.register_coder(Group, LazyGroupCoder)
_disks: "WeakKeyDictionary[beam.Pipeline, DiskExchanges]" = WeakKeyDictionary()


def exchange_on_disk(pipeline: beam.Pipeline, disk: DiskExchanges) -> None:
    """Let every exchange that is applied to `pipeline` from now on use files. `finish_graph` comes before it runs."""
    _disks[pipeline] = disk


def disk_of(pipeline: beam.Pipeline) -> DiskExchanges | None:
    """Where the exchanges of a pipeline keep their files; None: they are the runner's."""
    return _disks.get(pipeline)


# What a step holds back for fuller batches, at most: batches cost little where they cross no runner.
HELD_BYTES = 16 << 20


def held_bytes(pipeline: beam.Pipeline, most: int) -> int:
    """How much a step of the pipeline may hold back to send fuller batches. most: where its exchanges are a
    runner's."""
    return most if disk_of(pipeline) is None else min(most, HELD_BYTES)


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


class _Send(beam.DoFn):
    """Writes a bundle's elements to a partition file; yields its name once for each slot. each: give every element a
    key of its own. by: gives the key."""

    def __init__(self, folder: str, slots: int, each: bool, by: Callable[[bytes], int] | None) -> None:
        self.folder = folder
        self.slots = slots
        self.each = each
        self.by = by

    def start_bundle(self) -> None:
        self.place = Place(Path(self.folder))
        self.writer: PartitionWriter | None = None
        self.names: list[bytes] = []
        self.count = 0

    def process(self, element: Any) -> None:
        if self.writer is None:
            self.writer = self.place.writer()
        if self.each:
            self.writer.add(b"i%d" % self.count, element)
            self.count += 1
        else:
            key, value = (self.by(element), element) if self.by else element
            self.writer.add(dump_key(key), value)
        if self.writer.is_full:
            self._enter(self.writer)

    def finish_bundle(self) -> Iterator[Any]:
        if self.writer is not None:
            self._enter(self.writer)
        for slot in range(self.slots):
            for name in self.names:
                yield GlobalWindows.windowed_value_at_end_of_window((slot, name))

    def _enter(self, writer: PartitionWriter) -> None:
        self.names.append(self.place.enter(writer).encode())
        self.writer = None


class _Receive(beam.DoFn):
    """(slot, names of files) -> the groups that this worker takes, and a token for each slot that waits for them. each:
    their values, one by one. guarded: first see that all exchanges before are settled."""

    def __init__(self, folder: str, slots: int, repeats: bool, each: bool, guarded: bool = False) -> None:
        self.folder = folder
        self.slots = slots
        self.repeats = repeats
        self.each = each
        self.guarded = guarded

    def process(self, element: tuple[int, Any]) -> Iterator[Any]:
        slot, encoded = element
        names = {name.decode() for name in encoded if name}  # tokens have none
        place = Place(Path(self.folder))
        if self.guarded:
            settled_exchanges(str(place.folder.parent), place.folder.name)
        groups = self._open(place, names)
        order = sorted(groups, key=(lambda key: int(key[1:])) if self.each else (lambda key: (-groups[key].size, key)))
        tally = Tally()
        number = slot if self.repeats or not order else place.take()
        while number < len(order):
            key = order[number]
            counted = _Counted(groups[key], key, tally)
            if self.each:
                yield from counted
            else:
                yield load_key(key), counted
                counted.finish()
            number = number + self.slots if self.repeats else place.take()
        if groups:
            place.settle(slot, tally, names, self.repeats)
        for waiting in range(self.slots):
            yield beam.pvalue.TaggedOutput(TOKENS, (waiting, b""))

    def _open(self, place: Place, names: set[str]) -> dict[bytes, Group]:
        """All groups; none where nothing was sent, or where faster workers have read all and removed the files."""
        if not names and not place.is_begun():
            return {}
        try:
            return read_groups(place.files(names, self.repeats))
        except ExchangeError:
            sides = place.sides()
            if sides is None or sides[0] != sides[1] or self.repeats:
                raise
            return {}


class _Counted(Group):
    """A group whose values are counted as they are read for the first time."""

    def __init__(self, group: Group, key: bytes, tally: Tally) -> None:
        super().__init__(group.paths, group.files, group.segments)
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
        if self.seen < self.count:
            for _ in self:
                pass


def send_into(
    elements: beam.PCollection,
    folder: str,
    disk: DiskExchanges,
    label: str,
    by: Callable[[bytes], int] | None,
    each: bool = False,
) -> beam.PCollection:
    """Write elements to partition files in a folder: -> (slot, name of a file)."""
    send = beam.ParDo(_Send(folder, disk.slots, each, by)).with_output_types(tuple[int, bytes])
    return elements | label >> send


def _every_slot(_: bytes, slots: int) -> Iterator[tuple[int, bytes]]:
    for slot in range(slots):
        yield slot, b""


def receive_groups(begin: beam.PCollection, folder: str, disk: DiskExchanges) -> beam.PCollection:
    """The groups of partition files that lie in a folder before the graph runs. begin: one element."""
    every = beam.FlatMap(_every_slot, slots=disk.slots).with_output_types(tuple[int, bytes])
    slots = begin | "slots" >> every | "barrier" >> beam.GroupByKey()
    receive = beam.ParDo(_Receive(folder, disk.slots, disk.repeats, each=False))
    return with_side_output(slots, "receive", receive, tag=TOKENS)[MAIN]


def through_files(
    disk: DiskExchanges,
    name: str,
    inputs: tuple[beam.PCollection, ...],
    each: bool,
    by: Callable[[bytes], int] | None,
    guarded: bool,
) -> beam.PCollection:
    """The steps of an exchange on disk: without a Flatten of what is sent, which a runner would keep. A guarded one
    waits for all before it."""
    folder = str(Path(disk.folder) / name)
    sent = []
    for number, elements in enumerate(inputs):
        sent.append(send_into(elements, folder, disk, f"send {number}" if number else "send", by, each))
    if guarded:
        sent += disk.tokens
    names = sent[0] if len(sent) == 1 else tuple(sent) | "names" >> beam.Flatten()
    receive = beam.ParDo(_Receive(folder, disk.slots, disk.repeats, each, guarded))
    outputs = with_side_output(names | "barrier" >> beam.GroupByKey(), "receive", receive, tag=TOKENS)
    outputs[TOKENS].element_type = beam.typehints.Tuple[int, bytes]
    disk.tokens.append(outputs[TOKENS])
    if not each:
        disk.groups.append(outputs[MAIN])
    return outputs[MAIN]


def settled_exchanges(folder: str, before: str = "~") -> dict[str, dict[str, int]]:
    """What every exchange under `folder` delivered, by name, of those whose names come before that one.

    Raises ExchangeError where one was not read to its end.
    """
    found = {}
    for path in sorted(path for path in Path(folder).iterdir() if path.name < before):
        place = Place(path)
        sides = place.sides()
        sent, read = sides or (sum_of(tally.fields().values() for _, tally in place.entered().values()), Tally())
        if sides is None or sent != read:
            raise ExchangeError(
                "an exchange between workers lost data, so nothing was published; run the same command again: "
                + difference(str(path), sent, read)
            )
        found[path.name] = sent.fields()
    return found
