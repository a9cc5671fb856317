"""A task list's lines in a job: one worker reads the list and deals them out to all.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import apache_beam as beam

from refinery.transforms.core.exchange.exchange import Deal
from refinery.transforms.core.exchange.job_input import begin_job, share_of
from refinery.transforms.core.job.task_list import TaskList, read_task_list


class _Items(beam.DoFn):
    def __init__(self, task_list: TaskList, is_ours: Callable[[int], bool] | None) -> None:
        self.task_list = task_list
        self.is_ours = is_ours

    def process(self, _: bytes) -> Iterator[bytes]:
        for number, item in enumerate(read_task_list(self.task_list)):
            if self.is_ours is None or self.is_ours(number):
                yield item


@dataclass
class ReadTaskList(beam.PTransform):
    """The items of a list, dealt out to all workers: -> bytes. Where the job runs by slices, those of its share."""

    task_list: TaskList

    def __post_init__(self) -> None:
        super().__init__("list")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        is_ours = share_of(begin.pipeline)
        items = begin_job(begin, once=False) | "items" >> beam.ParDo(_Items(self.task_list, is_ours))
        items.element_type = bytes
        count = self.task_list.items if is_ours is None else sum(map(is_ours, range(self.task_list.items)))
        return items | Deal("deal", count)
