"""The job that checks a corpus: its pieces by shares, then the rows that these left, partition by partition, then what
is followed from partition to partition. What a worker holds is bounded as in `Processes`; the launcher gets sums.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.checks.file_checks import SCRATCH
from refinery.pipelines.corpus.verify.joins import add_found, find_cycles, join_partitions
from refinery.pipelines.corpus.verify.keyed_rows import TABLES, Run, Tables
from refinery.pipelines.corpus.verify.partials import Share, find_runs, publish_runs, write_partial
from refinery.pipelines.corpus.verify.pieces import Checker, Piece, Question
from refinery.pipelines.corpus.verify.processes import TASK_BYTES, TASK_DOCUMENTS, check_with
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.exchange import Deal, Exchange
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList, read_task_list, write_task_list
from refinery.transforms.core.prepared import Prepared, prepare_once

JOINED = "joined"  # kind of the record with what all partitions say together
SHARES = 99_999  # at most, by their names
RANGES = 1_024  # of partitions that are joined by one task each, at most
RUNS, EDGES = "runs", "edges"  # folders of the work location


@dataclass(frozen=True)
class VerifyJob:
    """What a worker must know. partials: where partial results go. work: where the job's own files go. asked: as of
    `identity`. shares: how many there are."""

    question: Question
    partials: str
    work: str
    asked: Mapping[str, Any]
    shares: int


def shares_for(pieces: Sequence[Piece]) -> int:
    """Shares of a check by a job: each is of about as much as a process checks at once."""
    size, documents = sum(piece.size for piece in pieces), sum(piece.documents for piece in pieces)
    return min(SHARES, max(1, -(-size // TASK_BYTES), -(-documents // TASK_DOCUMENTS)))


def share_tasks(pieces: Sequence[Piece], shares: int) -> list[bytes]:
    """A line for each share, with its pieces: workers need not list these."""
    return [
        _line(share=number, pieces=[list(vars(piece).values()) for piece in Share(number, shares).of(pieces)])
        for number in range(shares)
    ]


def _line(**fields: Any) -> bytes:
    """JSON in ASCII: names of files may be no UTF-8."""
    return json.dumps(fields).encode()


class CheckShare(beam.DoFn):
    """Check the pieces of a share, unless its partial result is there: -> the runs that it lists, as JSON."""

    def __init__(self, job: VerifyJob) -> None:
        self.job = job

    def setup(self) -> None:
        self.checker: Prepared = prepare_once(partial(Checker, self.job.question))

    def process(self, line: bytes) -> Iterator[bytes]:
        task, job = json.loads(line), self.job
        share, place = Share(task["share"], job.shares), open_store(job.partials)
        runs = find_runs(place, share, job.asked)
        if runs is None:
            pieces = [Piece(*fields) for fields in task["pieces"]]
            with TemporaryDirectory(prefix=SCRATCH) as scratch:
                folder = Path(scratch)
                findings, written = check_with(self.checker.resource, pieces, share.name, folder)
                runs = write_partial(place, share, job.asked, findings, written, folder)
        work_done("shares", 1)
        yield _line(runs=[asdict(run) for run in runs])


def plan_joins(_: int, records: Iterable[bytes], job: VerifyJob) -> Iterator[bytes]:
    """A line for each range of partitions. The list of all runs is written into the work location, once."""
    runs = [run for record in records for run in json.loads(record)["runs"]]
    lines = sorted(_line(**run) for run in runs)
    listed = write_task_list(job.work, RUNS, lines).plain()
    partitions = job.question.partitions
    step = -(-partitions // RANGES)
    for first in range(0, partitions, step):
        yield _line(first=first, stop=min(first + step, partitions), runs=listed)


@lru_cache(maxsize=1)
def _runs(work: str, name: str, items: int, sha256: str) -> list[Run]:
    return [Run(**json.loads(line)) for line in read_task_list(TaskList(work, name, items, sha256))]


def join_range(line: bytes, job: VerifyJob) -> bytes:
    """What partitions say, and the runs of removals to be followed further. Memory: as `join_partitions`."""
    task = json.loads(line)
    runs = _runs(job.work, **task["runs"])
    tables = Tables(open_store(job.partials), job.question.partitions, runs)
    every = range(task["first"], task["stop"])
    with TemporaryDirectory(prefix=SCRATCH) as scratch:
        found, edges = join_partitions(tables, every, Path(scratch))
        published = publish_runs(open_store(job.work), edges, Path(scratch), EDGES)
    removed = sum(run.size for run in runs if run.table == "removed") // TABLES["removed"].itemsize
    work_done("partitions", len(every))
    return _line(found=found, edges=[asdict(run) for run in published], removed=removed)


def follow(_: int, records: Iterable[bytes], job: VerifyJob) -> bytes:
    """The side-output record with what all partitions say together. Disk: the removals whose kept document is removed,
    too, twice."""
    every = [json.loads(record) for record in records]
    work = open_store(job.work)
    with TemporaryDirectory(prefix=SCRATCH) as scratch:
        edges = []
        for run in sorted((Run(**run) for each in every for run in each["edges"]), key=lambda run: run.name):
            local = replace(run, name=run.name.rpartition("/")[2])
            Path(scratch, local.name).write_bytes(work.read(run.name))
            edges.append(local)
        partitions, removed = job.question.partitions, max(each["removed"] for each in every)
        cycles = find_cycles(open_store(scratch), edges, partitions, removed, Path(scratch))
    return side_output_record(JOINED, found={**add_found(each["found"] for each in every), "cycles": cycles})


class JoinedRecord:
    """The one record of a job that counts: a `Merger`."""

    def __init__(self) -> None:
        self.found: Any = None

    def add_record(self, fields: Mapping[str, Any]) -> None:
        self.found = fields["found"]

    def result(self) -> Any:
        return self.found


def _one_key(record: bytes) -> int:
    return 0


@dataclass
class CheckCorpus(beam.PTransform):
    """Check the shares of a list (of `share_tasks`), and join what they left: -> one record, `JOINED`."""

    tasks: TaskList
    job: VerifyJob

    def __post_init__(self) -> None:
        super().__init__("verify")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        join = partial(join_range, job=self.job)
        records = (
            begin
            | ReadTaskList(self.tasks)  # JSON: a share and its pieces
            | "check" >> beam.ParDo(CheckShare(self.job)).with_output_types(bytes)  # JSON: its runs
            | Exchange("checked", by=_one_key)
            | "ranges" >> beam.FlatMapTuple(partial(plan_joins, job=self.job)).with_output_types(bytes)  # JSON
            | Deal("deal ranges")
            | "join" >> beam.Map(join).with_output_types(bytes)  # JSON: what was found
            | Exchange("joined", by=_one_key)
            | "follow" >> beam.MapTuple(partial(follow, job=self.job)).with_output_types(bytes)
        )
        add_side_output(begin.pipeline, records)
        return records
