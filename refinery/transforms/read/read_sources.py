"""Reading sources in a pipeline: tasks in, records out; records that are not documents are counted.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from dataclasses import dataclass
from functools import partial

import apache_beam as beam

from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.per_document import PerFile, Recorder
from refinery.transforms.core.rejects import DEFAULT_REJECTS, RejectParams
from refinery.transforms.read.sources import DEFAULT_LIMITS, read_file, read_task
from refinery.transforms.read.task import LimitParams, ReadTask


@dataclass
class ReadSources(beam.PTransform):
    """Read every record of `tasks`, in parallel by task.

    tasks: of `write_tasks`. limits: sizes above which a record is skipped. sums: whether the job reports checksums of
    what it read, which `MergeReads` collects. recorder: of records that it skips, as of `PerFile`.
    """

    tasks: TaskList
    limits: LimitParams = DEFAULT_LIMITS
    rejects: RejectParams = DEFAULT_REJECTS
    sums: bool = False
    recorder: Recorder | None = None

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[RawDocument]:
        read = read_file if self.sums else read_task
        return (
            begin
            | ReadTaskList(self.tasks)  # bytes
            | "tasks" >> beam.Map(ReadTask.from_json)  # ReadTask
            | PerFile("read", partial(read, limits=self.limits), self.rejects, self.recorder)  # RawDocument
        )
