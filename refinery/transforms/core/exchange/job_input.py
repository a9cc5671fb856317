"""Where a job begins, and what of its input it reads: all of it, or the share of some slices.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import apache_beam as beam

from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.on_disk import disk_of
from refinery.transforms.core.exchange.sliced import SlicedExchanges


def begin_job(pipeline: Any, once: bool = True) -> beam.PCollection:
    """One element, with which a job begins; none in the later steps of one that runs step by step. once: in one slice
    alone. pipeline: or the PBegin of a transform."""
    disk = disk_of(getattr(pipeline, "pipeline", pipeline))
    begin = pipeline | "start" >> beam.Impulse()
    if isinstance(disk, SlicedExchanges) and not (disk.is_first and (not once or 0 in disk.slices)):
        begin = begin | "not here" >> beam.Filter(_never)
        begin.element_type = bytes
    return begin


def _never(_: Any) -> bool:
    return False


def share_of(pipeline: beam.Pipeline) -> Callable[[int], bool] | None:
    """Which items of its input, by number, a job's slices read; None: all."""
    disk = disk_of(pipeline)
    return disk.has_item if isinstance(disk, SlicedExchanges) else None


def to_all(elements: beam.PCollection) -> beam.PCollection:
    """Elements, bytes, that become a side input: where the job runs by slices, every slice of the next step gets them
    all; otherwise they are what is given."""
    disk = disk_of(elements.pipeline)
    if not isinstance(disk, SlicedExchanges):
        return elements
    every = beam.FlatMap(_for_every, of=disk.of).with_output_types(tuple[int, bytes])
    here = beam.FlatMapTuple(partial(_of_first, first=disk.slices[0])).with_output_types(bytes)
    return elements | "for every slice" >> every | Exchange("to all slices") | "of this one" >> here


def _for_every(element: bytes, of: int) -> Iterator[tuple[int, bytes]]:
    for number in range(of):
        yield number, element


def _of_first(number: int, elements: Iterable[bytes], first: int) -> Iterable[bytes]:
    """A command that does several slices gets the elements once."""
    return elements if number == first else ()
