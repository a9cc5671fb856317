"""A small engine for exchanges on disk: bundles send, slots receive, in threads, and faults happen in between."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apache_beam as beam

from refinery.transforms.core.exchange.on_disk import _Receive, _Send, settled_exchanges

NAME = "001-test"
Element = tuple[int, bytes]


@dataclass
class Delivered:
    """What came out. whole: the groups that were read to their end. error: what ended a slot or the report, or None."""

    whole: list[tuple[int, tuple[bytes, ...]]] = field(default_factory=list)
    error: BaseException | None = None
    report: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def send(folder: Path, bundles: Sequence[Sequence[Element]], slots: int) -> list[tuple[int, bytes]]:
    """Run the bundles one after the other; the names that they tell each slot."""
    told = []
    for bundle in bundles:
        step = _Send(str(folder / NAME), slots, False, None)
        step.start_bundle()
        for element in bundle:
            step.process(element)
        told += [windowed.value for windowed in step.finish_bundle()]
    return told


def receive(
    folder: Path,
    told: Sequence[tuple[int, bytes]],
    slots: int,
    repeats: bool = False,
    pause: Callable[[], None] = lambda: None,
) -> Delivered:
    """Run the slots that were told of files, each in a thread, then what a report asks."""
    delivered = Delivered()
    lock = threading.Lock()

    def read(slot: int) -> None:
        names = [name for to, name in told if to == slot]
        if not names:  # a GroupByKey gives no key without values
            return
        try:
            for output in _Receive(str(folder / NAME), slots, repeats, False).process((slot, names)):
                if isinstance(output, beam.pvalue.TaggedOutput):  # says that the slot is done
                    continue
                key, group = output
                pause()
                values = tuple(group)
                with lock:
                    delivered.whole.append((key, values))
                pause()
        except BaseException as error:  # noqa: BLE001 - the job fails with it
            delivered.error = error

    threads = [threading.Thread(target=read, args=(slot,)) for slot in range(slots)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if delivered.error is None:
        try:
            delivered.report = settled_exchanges(str(folder))
        except Exception as error:  # noqa: BLE001 - the report is refused
            delivered.error = error
    return delivered


def expected(bundles: Sequence[Sequence[Element]]) -> dict[int, list[bytes]]:
    """The groups that must come out, their values sorted."""
    groups: dict[int, list[bytes]] = {}
    for bundle in bundles:
        for key, value in bundle:
            groups.setdefault(key, []).append(value)
    return {key: sorted(values) for key, values in groups.items()}


def found(delivered: Delivered) -> dict[int, list[bytes]]:
    """The groups that came out, their values sorted. Fails where a key came twice."""
    groups: dict[int, Any] = {}
    for key, values in delivered.whole:
        assert key not in groups, f"key {key} came out twice"
        groups[key] = sorted(values)
    return groups
