"""The one way in which data crosses between workers: `Exchange` groups by key, `Deal` spreads single elements.

On any runner an exchange is a Flatten and a GroupByKey with what counts on both sides. The local runner puts partition
files in its place (on_disk.py). Either way the report of the job has what was sent and what arrived, and a job whose
exchanges differ fails before it publishes its report.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import apache_beam as beam
from apache_beam.coders import observable
from apache_beam.transforms.window import GlobalWindows

from refinery.transforms.core.exchange.on_disk import disk_of, settled_exchanges, through_files
from refinery.transforms.core.exchange.records import MAIN, SIDE_OUTPUT, side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output, in_global_window, with_side_output
from refinery.transforms.core.exchange.sliced import Crossing, SlicedExchanges, slice_by, through_sections
from refinery.transforms.core.exchange.tally import (
    ARRIVED,
    KIND,
    SENT,
    Balance,
    ExchangeError,
    Tally,
    add_balances,
    add_tallies,
    difference,
    dump_key,
)

KEYS = "keys"  # tag of the tallies by key of a guarded exchange

_names: "WeakKeyDictionary[beam.Pipeline, list[str]]" = WeakKeyDictionary()
_expected: "WeakKeyDictionary[beam.Pipeline, dict[str, int]]" = WeakKeyDictionary()
_balances: "WeakKeyDictionary[beam.Pipeline, list[beam.PCollection]]" = WeakKeyDictionary()


def _new_name(pipeline: beam.Pipeline, label: str) -> str:
    """A name that no other exchange of the pipeline has, and that a file may have: its number and its label."""
    names = _names.setdefault(pipeline, [])
    names.append(f"{len(names) + 1:03d}-{re.sub('[^0-9A-Za-z]+', '-', label)}")
    return names[-1]


Delivered = dict[str, dict[str, int]]  # exchange -> the fields of its `Tally`


def settle(pipeline: beam.Pipeline) -> Callable[[Delivered], Delivered]:
    """What completes the balance that a report's records give, where the values of the exchange that was applied last
    are read: what all exchanges before it delivered, by name. It raises ExchangeError where one lost data."""
    disk = disk_of(pipeline)
    if isinstance(disk, SlicedExchanges):
        return partial(_delivered, delivered={name: dict(fields) for name, fields in disk.delivered.items()})
    files = None if disk is None else (disk.folder, _names[pipeline][-1])
    return partial(_settle, files=files, expected=dict(_expected.get(pipeline, {})))


def _delivered(_: Delivered, delivered: Delivered) -> Delivered:
    """Where steps run one by one: each was compared with those before it when it was sealed."""
    return delivered


def check_dealt(pipeline: beam.Pipeline, found: Mapping[str, Mapping[str, int]]) -> None:
    """Raises ExchangeError where a `Deal` of the pipeline did not get the elements that it must. found: what exchanges
    delivered, by name."""
    check_elements(_expected.get(pipeline, {}), found)


def check_elements(expected: Mapping[str, int], found: Mapping[str, Mapping[str, int]]) -> None:
    """Raises ExchangeError where fewer or more elements arrived than must. found: what exchanges delivered."""
    for name, elements in expected.items():
        arrived = found.get(name, {}).get("elements", 0)
        if arrived != elements:
            raise ExchangeError(
                f"an exchange between workers lost data, so nothing was published; run the same command again: {name}: "
                f"{elements:,} elements were to be sent, {arrived:,} arrived"
            )


def _settle(balance: Delivered, files: tuple[str, str] | None, expected: Mapping[str, int]) -> Delivered:
    found = balance if files is None else settled_exchanges(*files)
    check_elements(expected, found)
    return found


class _CountSent(beam.DoFn):
    """Passes elements on; per bundle a record of what they were, and their tally by key where it is `guarded`."""

    def __init__(self, name: str, guarded: bool, each: bool) -> None:
        self.name = name
        self.guarded = guarded
        self.each = each

    def start_bundle(self) -> None:
        self.tally = Tally()
        self.by_key: dict[bytes, Tally] = {}

    def process(self, element: Any) -> Iterator[Any]:
        key, value = (b"", element) if self.each else (dump_key(element[0]), element[1])
        self.tally.add(key, value)
        if self.guarded:
            self.by_key.setdefault(key, Tally()).add(key, value)
        yield element

    def finish_bundle(self) -> Iterator[Any]:
        if not self.tally.elements:
            return
        yield in_global_window(side_output_record(KIND, name=self.name, way=SENT, **self.tally.fields()))
        for key, tally in sorted(self.by_key.items()):
            told = GlobalWindows.windowed_value_at_end_of_window((key, tally.dump()))
            yield beam.pvalue.TaggedOutput(KEYS, told)


class _CountArrived(beam.DoFn):
    """Passes groups on and counts their values while they are read. With side inputs, what each key must have is known
    before a group ends, and before a bundle's first one that all exchanges before have delivered."""

    def __init__(self, name: str, each: bool) -> None:
        self.name = name
        self.each = each

    def start_bundle(self) -> None:
        self.tally = Tally()
        self.is_balanced = False

    def process(self, element: Any, expected: Any = None, before: Iterable[bytes] = ()) -> Iterator[Any]:
        if self.each:
            self.tally.add(b"", element)
            yield element
            return
        key, values = element
        dumped = dump_key(key)
        told = None
        if expected is not None:
            if not self.is_balanced:
                Balance.load(add_balances(before)).check()
                self.is_balanced = True
            told = Tally.load(expected.get(dumped, Tally().dump()))
        group = _CountedGroup(self.name, dumped, values, told)
        yield key, group
        group.finish()
        self.tally.merge(group.tally)

    def finish_bundle(self) -> Iterator[Any]:
        if self.tally.elements:
            yield in_global_window(side_output_record(KIND, name=self.name, way=ARRIVED, **self.tally.fields()))


class _CountedGroup(observable.ObservableMixin):
    """A group whose values are counted as they are read for the first time. expected: what they must be; None where
    only their sum over all keys is known. Beam's own size counters do not read it."""

    def __init__(self, name: str, key: bytes, values: Iterable[bytes], expected: Tally | None) -> None:
        super().__init__()
        self.name = name
        self.key = key
        self.values = values
        self.expected = expected
        self.tally = Tally()
        self.is_read = False

    def __iter__(self) -> Iterator[bytes]:
        """Raises ExchangeError at the end where the values are not those that were sent."""
        for number, value in enumerate(self.values):
            if number == self.tally.elements and not self.is_read:
                self.tally.add(self.key, value)
            yield value
        self.is_read = True
        if self.expected is not None and self.expected != self.tally:
            where = f"{self.name}, key {self.key!r:.80}"
            raise ExchangeError(f"{difference(where, self.expected, self.tally)}; run the same command again")

    def finish(self) -> None:
        """Count what its consumer left unread."""
        if not self.is_read:
            for _ in self:
                pass


@dataclass
class Exchange(beam.PTransform):
    """(key, value) of one or several PCollections -> (key, all its values), each key once. Keys: int, str or bytes;
    values: bytes.

    guarded: True if the step that takes the groups publishes under final names. Then each group, and all exchanges
    before it, are known to be complete before it ends; costs a side input where the exchange is the runner's. like:
    a step whose resource hints the counting step gets, if the step that takes the groups has hints: Beam must not
    separate them. by: gives the key of a value, where the elements are values alone. Values come in no order. A
    group is read lazily, in one pass or several; it may be larger than memory. whole: its groups are so few that one
    task takes them all, where the job runs by slices. spread: there, the number of a key by which slices take it in
    turn. beside: there, what its groups' taker has as a side input.
    """

    title: str = "exchange"
    guarded: bool = False
    like: Any = None
    by: Callable[[bytes], int] | None = None
    whole: bool = False
    spread: Callable[[Any], int] | None = None
    beside: beam.PCollection | None = None

    def __post_init__(self) -> None:
        super().__init__(self.title)

    def expand(self, inputs: Any) -> beam.PCollection:
        every = inputs if isinstance(inputs, tuple) else (inputs,)
        key_type = int if self.by else every[0].element_type.tuple_types[0]
        groups = _expand(self, every)
        groups.element_type = beam.typehints.Tuple[key_type, beam.typehints.Iterable[bytes]]
        return groups


@dataclass
class Deal(beam.PTransform):
    """Single elements, bytes, spread over all workers; those that are sent first are taken first.

    elements: how many there must be, where that is known: a job in which fewer arrive publishes no report.
    """

    title: str = "deal"
    elements: int | None = None

    def __post_init__(self) -> None:
        super().__init__(self.title)

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        dealt = _expand(self, (elements,))
        dealt.element_type = bytes
        return dealt


def _with_key(value: bytes, by: Callable[[bytes], int]) -> tuple[int, bytes]:
    return by(value), value


def _expand(step: Exchange | Deal, inputs: tuple[beam.PCollection, ...]) -> beam.PCollection:
    pipeline = inputs[0].pipeline
    name = _new_name(pipeline, step.title)
    each = isinstance(step, Deal)
    guarded, like, by = (False, None, None) if isinstance(step, Deal) else (step.guarded, step.like, step.by)
    disk = disk_of(pipeline)
    if isinstance(step, Deal) and step.elements is not None:
        _expected.setdefault(pipeline, {})[name] = step.elements
    if isinstance(disk, SlicedExchanges) and isinstance(step, Exchange):
        return through_sections(disk, name, inputs, by, _crossing(step, disk, inputs))
    if disk is not None:
        return through_files(disk, name, inputs, each, by, guarded)
    elements = inputs[0] if len(inputs) == 1 else inputs | "together" >> beam.Flatten()
    if by is not None:
        elements = elements | "key" >> beam.Map(_with_key, by=by).with_output_types(tuple[int, bytes])
    send = beam.ParDo(_CountSent(name, guarded, each)).with_output_types(elements.element_type)
    tags = (SIDE_OUTPUT, KEYS) if guarded else (SIDE_OUTPUT,)
    send.label = "each"
    sent = elements | "sent" >> send.with_outputs(*tags, main=MAIN)
    add_side_output(pipeline, sent[SIDE_OUTPUT])
    sent[MAIN].element_type = elements.element_type
    grouped = sent[MAIN] | "grouped" >> (beam.Reshuffle() if each else beam.GroupByKey())
    sides = _guard(pipeline, sent[KEYS]) if guarded else ()
    receive = beam.ParDo(_CountArrived(name, each), *sides)
    if like is not None:
        receive.get_resource_hints().update(like.get_resource_hints())
    arrived = with_side_output(grouped, "arrived", receive)
    add_side_output(pipeline, arrived[SIDE_OUTPUT])
    _balances.setdefault(pipeline, []).extend([sent[SIDE_OUTPUT], arrived[SIDE_OUTPUT]])
    return arrived[MAIN]


def _crossing(step: Exchange, disk: SlicedExchanges, inputs: tuple[beam.PCollection, ...]) -> Crossing:
    """How an exchange crosses between slices: received in the step after the last that sends into it, and not before
    what its taker has as a side input."""
    receiving = 1 + max(disk.step_of(elements) for elements in inputs)
    if step.beside is not None:
        receiving = max(receiving, disk.step_of(step.beside))
    return Crossing(receiving, step.whole, partial(_slice_of, spread=step.spread, of=disk.of))


def _slice_of(key: Any, spread: Callable[[Any], int] | None, of: int) -> int:
    return slice_by(key if spread is None else spread(key), of)


def _balance(record: bytes) -> tuple[int, bytes]:
    balance = Balance()
    balance.add_record(record)
    return 0, balance.dump()


def _sum_of_key(key: bytes, tallies: Iterable[bytes]) -> tuple[bytes, bytes]:
    return key, add_tallies(tallies)


def _sum_of_all(_: int, balances: Iterable[bytes]) -> bytes:
    return add_balances(balances)


def _guard(pipeline: beam.Pipeline, keys: beam.PCollection) -> tuple[Any, Any]:
    """Side inputs: the tally of each key, and what went into and came out of all exchanges so far."""
    pair = beam.typehints.Tuple[bytes, bytes]
    keys.element_type = pair
    expected = keys | "of key" >> beam.GroupByKey() | "sum of key" >> beam.MapTuple(_sum_of_key).with_output_types(pair)
    before = _balances.get(pipeline, [])
    if not before:
        return beam.pvalue.AsDict(expected), ()
    records = tuple(before) | "before" >> beam.Flatten()
    dumped = records | "balance" >> beam.Map(_balance).with_output_types(tuple[int, bytes])
    summed = (
        dumped | "of all" >> beam.GroupByKey() | "sum of all" >> beam.MapTuple(_sum_of_all).with_output_types(bytes)
    )
    return beam.pvalue.AsDict(expected), beam.pvalue.AsIter(summed)
