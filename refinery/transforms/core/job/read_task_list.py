"""A task list's lines in a job: one worker reads the list and deals them out to all.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

from refinery.transforms.core.exchange.exchange import Deal
from refinery.transforms.core.job.task_list import TaskList, read_task_list


class _Items(beam.DoFn):
    def __init__(self, task_list: TaskList) -> None:
        self.task_list = task_list

    def process(self, _: bytes) -> Iterator[bytes]:
        yield from read_task_list(self.task_list)


@dataclass
class ReadTaskList(beam.PTransform):
    """The items of a list, dealt out to all workers: -> bytes."""

    task_list: TaskList

    def __post_init__(self) -> None:
        super().__init__("list")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        items = begin | "start" >> beam.Impulse() | "items" >> beam.ParDo(_Items(self.task_list))
        items.element_type = bytes
        return items | Deal("deal", self.task_list.items)
