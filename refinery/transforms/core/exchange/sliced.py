"""Exchanges of a job that runs step by step, each step as N slices: commands of their own, on any machines.

The graph is cut at its exchanges. A step is what lies between them: it receives the exchanges that all steps before it
have filled, and sends into later ones. Each command builds the whole graph and feeds the transforms of one step alone;
those of other steps get no elements. What a slice receives lies in local partition files before its graph runs
(`Section`s of what earlier slices sent); what it sends lies in local partition files when the graph has run, and counts
once its slice is committed (refinery.pipelines.run.slices). A `Deal` stays within a slice.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apache_beam as beam
import google_crc32c

from refinery.transforms.core.exchange.on_disk import DiskExchanges, receive_groups, send_into
from refinery.transforms.core.exchange.tally import dump_key

OUT = "sent"  # folder of what the slices send, beside that of what they receive
FIRST = 0  # the step that reads the job's input


@dataclass(frozen=True)
class Crossing:
    """An exchange between steps. step: the one that receives it. whole: its groups are few, so one task takes all.
    slice_of: the slice that receives a key."""

    step: int
    whole: bool
    slice_of: Callable[[Any], int]


@dataclass
class SlicedExchanges(DiskExchanges):
    """The exchanges of some slices of a step.

    step: which one, from 0; NO_STEP builds the graph to learn its steps. slices: of `of`, those that this command does.
    delivered: what exchanges of earlier steps delivered, by name. crossings: by name, known once the graph is built.
    """

    step: int = FIRST
    slices: tuple[int, ...] = (0,)
    of: int = 1
    delivered: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    crossings: dict[str, Crossing] = field(default_factory=dict)
    steps_of: dict[beam.PCollection, int] = field(default_factory=dict)

    @property
    def out(self) -> str:
        """The folder of what is sent."""
        return str(Path(self.folder).parent / OUT)

    @property
    def is_first(self) -> bool:
        """Whether the job's input is read in this step."""
        return self.step == FIRST

    def has_item(self, number: int) -> bool:
        """Whether an item of the job's input is one of these slices'."""
        return number % self.of in self.slices

    def step_of(self, elements: beam.PCollection) -> int:
        """The step in which these elements are made: that of the last exchange before them."""
        known = self.steps_of.get(elements)
        if known is None:
            producer = elements.producer
            before = [*producer.inputs, *(side.pvalue for side in producer.side_inputs)]
            steps = (self.step_of(each) for each in before if isinstance(each, beam.PCollection))
            known = self.steps_of[elements] = max(steps, default=FIRST)
        return known

    def steps(self) -> list[bool]:
        """The steps of the graph that was built, each with whether one task does all of it: where every exchange that
        it receives has few groups."""
        last = max((crossing.step for crossing in self.crossings.values()), default=FIRST)
        whole = [True] * (last + 1)
        whole[FIRST] = False
        for crossing in self.crossings.values():
            whole[crossing.step] &= crossing.whole
        return whole


NO_STEP = -1


def slice_by(key: Any, of: int) -> int:
    """The slice that receives a key: in turn for numbers, by a hash for texts and bytes."""
    return (key if isinstance(key, int) else int(google_crc32c.value(dump_key(key)))) % of


def _nothing(_: Any) -> Iterator[Any]:
    return iter(())


def through_sections(
    disk: SlicedExchanges,
    name: str,
    inputs: tuple[beam.PCollection, ...],
    by: Callable[[bytes], int] | None,
    crossing: Crossing,
) -> beam.PCollection:
    """The steps of an exchange between slices, of which one step has only the sending side, another only the receiving
    one: nothing in the graph joins the two."""
    disk.crossings[name] = crossing
    for number, elements in enumerate(inputs):
        if disk.step_of(elements) == disk.step:
            send_into(elements, str(Path(disk.out) / name), disk, f"send {number}" if number else "send", by)
    begin = inputs[0].pipeline | "start" >> beam.Impulse()
    if crossing.step == disk.step:
        groups = receive_groups(begin, str(Path(disk.folder) / name), disk)
    else:
        groups = begin | "nothing" >> beam.FlatMap(_nothing).with_output_types(tuple[Any, Any])
    disk.steps_of[groups] = crossing.step
    disk.groups.append(groups)
    return groups
