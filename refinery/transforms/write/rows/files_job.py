"""The job of the workers that write files of the inputs' shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from refinery.loader.format.manifest import Column
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.extract.extract import ExtractParams
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.statistics.tally import NO_NOTES, Measured
from refinery.transforms.write.rows.labels import LabelOf
from refinery.transforms.write.rows.rows import Label


@dataclass(frozen=True)
class OutputFile:
    """An input file and where its rows go. task: reads all of the file. path: below the outputs. number, of: its place
    among the files of its domain."""

    task: ReadTask
    domain: str
    number: int
    of: int
    path: str

    def to_line(self) -> bytes:
        """A line of the list of files; `from_line` is its inverse."""
        fields = {"domain": self.domain, "number": self.number, "of": self.of, "path": self.path}
        return orjson.dumps({**fields, "task": orjson.Fragment(self.task.to_json())}, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_line(cls, line: bytes) -> "OutputFile":
        fields = orjson.loads(line)
        return cls(**{**fields, "task": ReadTask.from_json(orjson.dumps(fields["task"]))})


@dataclass(frozen=True)
class FilesJob:
    """What copying must know of a run. files: the list of `OutputFile`s. outputs: where they go. prefix: where their
    provenance goes. domains: source -> domain. counts: files of each domain. columns, notes, counted: as of
    `ShardsJob`. labels: fields that every row gets; then all rows stay. extract: how rows without a document are judged
    for their label. beside: whether there are such rows. into: the new field of texts, None where they replace those
    that were read. experiment: where labels are attributes beside the rows, the first part of their names."""

    files: TaskList
    outputs: str
    prefix: str
    domains: Mapping[str, str]
    counts: Mapping[str, int]
    limits: LimitParams
    columns: Sequence[Column] = ()
    notes: Measured = NO_NOTES
    counted: frozenset[str] = frozenset()
    labels: Sequence[LabelOf] = ()
    extract: ExtractParams = field(default_factory=ExtractParams)
    beside: bool = True
    into: Label | None = None
    experiment: str = ""
