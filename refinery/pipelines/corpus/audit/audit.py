"""An audit: a sample of records judged again from the inputs, and compared with all that is published of them.

    published rows -> chosen ones, on disk by input file
    input files -> records -> chosen ones judged -> rows claimed, differences, removals
    removals -> documents kept instead -> their records -> similarity, rank
    rows that nobody claimed -> differences

Memory: a row group, the chosen rows of 256th of the input files, and for each process a record and the stages' models.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from refinery.loader.format.removals import REFERENCE
from refinery.pipelines.corpus.audit.examine import Examiner, unclaimed
from refinery.pipelines.corpus.audit.outcome import COUNTS, SURVIVOR, Finding, Later, Outcome
from refinery.pipelines.corpus.audit.recorded import Asked, AuditedRun
from refinery.pipelines.corpus.audit.removals import Spill, Survivor, problem_of, survivors
from refinery.pipelines.corpus.audit.sample import (
    Buckets,
    PublishedFile,
    Row,
    Sample,
    chosen_rows,
    file_of,
    published_files,
)
from refinery.pipelines.corpus.audit.takedowns import believed
from refinery.pipelines.corpus.audit.texts import add_texts
from refinery.pipelines.corpus.audit.verdict import Verdict
from refinery.pipelines.published.scan import scan
from refinery.transforms.core.document import Document, hash64
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.at_origin import read_at
from refinery.transforms.read.plan import ReadTask
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.sources import read_task

SECONDS = 5.0  # between two lines about how far it is
WORTH = 8 << 20  # bytes of input files from which on other processes are started: these take two seconds each
HELD_BACK = "the document kept instead is in a reference corpus"
EARLIER = "the document kept instead is one of an earlier run"
NOT_READ = "the document kept instead is in an input file that was not chosen"
LOST = "the document kept instead is listed nowhere: dropped later, and not in the sample"
CHECKED = "removed as a copy"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What every process of an audit needs. earlier: as of `Buckets`."""

    asked: Asked
    sample: Sample
    folder: str
    earlier: frozenset[str]


class Worker:
    """The state of one process: the run, loaded once."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.run = AuditedRun(job.asked)
        self.examiner: Examiner | None = None

    def choose(self, file: PublishedFile) -> tuple[list[Row], dict[str, int]]:
        """The chosen rows of a published file."""
        found = chosen_rows(self.run.store, self.run.manifest, file, self.job.sample, self.run.recipe.targets())
        add_texts(self.run, file, found[0])
        return found

    def examine(self, number: int, task: ReadTask, last_slices: Mapping[str, int]) -> Outcome:
        """An input file, or a part of one."""
        folder = Path(self.job.folder)
        if self.examiner is None:
            buckets = Buckets(folder / "rows", self.job.earlier)
            self.examiner = Examiner(self.run, self.job.sample, buckets, last_slices, Spill(folder / "none"))
        self.examiner.spill = Spill(folder / f"features-{number}")
        return self.examiner.file(task)

    def look_again(self, tasks: Sequence[ReadTask], wanted: Mapping[str, Sequence[Row]]) -> Outcome:
        """Removals whose documents kept instead are in one input file. wanted: origin of these -> removals."""
        outcome = Outcome()
        if self.examiner is None:
            buckets = Buckets(Path(self.job.folder) / "rows", self.job.earlier)
            self.examiner = Examiner(self.run, self.job.sample, buckets, {}, Spill(Path(self.job.folder) / "none"))
        left = dict(wanted)
        for task, record in self._records(tasks, wanted):
            doc = self.examiner.judge.clean(record, task.source)
            for row in left.pop(printable(record.origin), ()):
                problem = "the record of the document kept gives no document"
                if isinstance(doc, Document):
                    problem = problem_of(row, doc, self.run)
                settle_removal(row, problem, outcome)
        for origin, rows in left.items():
            for row in rows:
                settle_removal(row, f"no record at {origin:.200}, where the document kept is said to be", outcome)
        return outcome

    def _records(self, tasks: Sequence[ReadTask], wanted: Mapping[str, Any]) -> Iterator[tuple[ReadTask, Any]]:
        for task in tasks:
            if find_reader(task.format).enters:
                for origin in wanted:
                    offset = origin.rpartition("@")[2]
                    record = read_at(task, int(offset), self.run.recipe.limits) if offset.isdigit() else None
                    if record is not None:
                        yield task, record
            else:
                for record in read_task(task, self.run.recipe.limits):
                    if printable(record.origin) in wanted:
                        yield task, record


def settle_removal(row: Row, problem: str, outcome: Outcome) -> None:
    """Count a removal whose document kept instead was looked at."""
    if problem:
        said = f"removed: {row['reason']}, similarity {row['similarity']:.4f}, kept {row['kept_id']}"
        outcome.differ(Finding(SURVIVOR, row["source"], row["origin"], row["id"], problem, said))
    else:
        outcome.agreed[CHECKED] += 1


WORKER: list[Worker] = []  # of this process


def _start(job: Job) -> None:
    WORKER[:] = [Worker(job)]


def _call(name: str, arguments: Sequence[Any]) -> Any:
    return getattr(WORKER[0], name)(*arguments)


class Processes:
    """Calls a worker's methods, in so many processes; 0: in this one."""

    def __init__(self, job: Job, workers: int, say: Say) -> None:
        self.say = say
        self.pool = None
        if workers:
            context = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(workers, context, _start, (job,))
        else:
            _start(job)

    def map(self, name: str, calls: Sequence[Sequence[Any]], what: str) -> Iterator[Any]:
        """Results in the order of the calls. what: the items in the plural, for the lines."""
        results: Iterable[Any]
        if self.pool:
            results = self.pool.map(_call, [name] * len(calls), calls)
        else:
            results = (_call(name, arguments) for arguments in calls)
        last = time.monotonic()
        for done, result in enumerate(results, 1):
            yield result
            if time.monotonic() - last > SECONDS:
                last = time.monotonic()
                self.say(f"{done:,} of {len(calls):,} {what}")

    def close(self) -> None:
        WORKER.clear()
        if self.pool:
            self.pool.shutdown(wait=True, cancel_futures=True)  # else its semaphores outlive it, and Python warns


def audit(asked: Asked, sample: Sample, workers: int, most_files: int | None, say: Say) -> Verdict:
    """Audit a corpus. workers: processes, which start for inputs of `WORTH` bytes or more. most_files: of the inputs,
    chosen by hash; all without it.

    Raises ValueError for what is wrong with the flags, the inputs or the files that they name, FormatError for a corpus
    that is none, OSError for files that cannot be read.
    """
    run = AuditedRun(asked)
    inputs = chosen_inputs(run, sample.seed, most_files)
    if run.earlier and len(inputs) < len(run.inputs):
        raise ValueError(f"--files: source {min(run.earlier)} has documents of an earlier run, which are read whole")
    say(f"{len(inputs):,} of {len(run.inputs):,} input files; check that they are those of the run")
    tasks = {key_of(entry): found for entry, found in zip(inputs, scan(run.tasks, inputs, "inputs", say), strict=True)}
    with TemporaryDirectory(prefix="refinery-audit-") as folder:
        job = Job(asked, sample, folder, run.earlier)
        most = max(len(published_files(run.manifest)), sum(map(len, tasks.values())))
        size = sum(task.share_bytes for found in tasks.values() for task in found)
        processes = Processes(job, min(workers, most) if size >= WORTH else 0, say)
        try:
            return _audit(run, job, processes, tasks, len(inputs) == len(run.inputs))
        finally:
            processes.close()


def _audit(
    run: AuditedRun, job: Job, processes: Processes, tasks: Mapping[str, Sequence[ReadTask]], is_whole: bool
) -> Verdict:
    buckets = Buckets(Path(job.folder) / "rows", job.earlier)
    slices: dict[str, int] = {}
    files = published_files(run.manifest)
    for rows, last in processes.map("choose", [(file,) for file in files], "published files looked through"):
        buckets.add(row for row in rows if is_whole or file_of(row, job.earlier) in tasks)
        for source, value in last.items():
            slices[source] = max(slices.get(source, -1), value)
    buckets.flush()
    takedowns = believed(run.store, run.manifest)
    lines = tuple(each.line for each in takedowns.takedowns)
    verdict = Verdict.begin(run, job.sample, len(tasks), lines)
    calls = [(number, task, slices) for number, task in enumerate(task for many in tasks.values() for task in many)]
    claimed: set[int] = set()
    removals: list[Row] = []
    later: list[Later] = []
    for outcome in processes.map("examine", calls, "parts of input files read"):
        verdict.add(outcome)
        claimed.update(outcome.claimed)
        removals += outcome.removals
        later += outcome.later
    for outcome in _removals(run, processes, survivors(run, removals, later), tasks, verdict):
        verdict.add(outcome)
    for finding in unclaimed(buckets, claimed):
        verdict.outcome.differ(finding)
    if is_whole:
        verdict.faults += list(count_differences(run, verdict))
    if verdict.is_whole:
        verdict.faults += list(reason_differences(run, verdict))
    verdict.faults += list(takedowns.differences(run.manifest, verdict.outcome, verdict.is_whole))
    return verdict


def _removals(
    run: AuditedRun,
    processes: Processes,
    found: Iterable[tuple[Row, Survivor | None]],
    tasks: Mapping[str, Sequence[ReadTask]],
    verdict: Verdict,
) -> Iterator[Outcome]:
    """What comes of removals once the documents kept instead are looked at. found: of `survivors`."""
    by_file: dict[str, dict[str, list[Row]]] = {}
    entries = {key_of(entry) for entry in run.inputs}
    for row, survivor in found:
        key = file_of({"source": survivor.source, "origin": survivor.origin}, run.earlier) if survivor else ""
        if row["scope"].startswith(REFERENCE):
            verdict.outcome.undecided[HELD_BACK] += 1
        elif survivor and key in tasks:
            by_file.setdefault(key, {}).setdefault(printable(survivor.origin), []).append(row)
        elif survivor and survivor.source in run.earlier:
            verdict.outcome.undecided[EARLIER] += 1
        elif survivor and key in entries:
            verdict.outcome.undecided[NOT_READ] += 1
        elif survivor is None and not verdict.is_whole:
            verdict.outcome.undecided[LOST] += 1
        else:
            place = f"at {survivor.origin:.200}, no input" if survivor else "a document that no record gives"
            outcome = Outcome()
            settle_removal(row, f"the document kept is said to be {place}", outcome)
            yield outcome
    calls = [(tasks[key], wanted) for key, wanted in sorted(by_file.items())]
    yield from processes.map("look_again", calls, "input files read for documents that were kept instead")


def chosen_inputs(run: AuditedRun, seed: int, most_files: int | None) -> list[Mapping[str, Any]]:
    """All inputs, or so many of them, by a hash of source and path."""
    if most_files is None:
        return run.inputs
    ordered = sorted(run.inputs, key=lambda entry: hash64("audit-file", seed, entry["source"], entry["path"]))
    kept = {key_of(entry) for entry in ordered[:most_files]}
    return [entry for entry in run.inputs if key_of(entry) in kept]


def key_of(entry: Mapping[str, Any]) -> str:
    """An input file as a key, the same as `file_of` gives its rows."""
    return f"{entry['source']}\n{printable(str(entry['path']))}"


def count_differences(run: AuditedRun, verdict: Verdict) -> Iterator[Finding]:
    """Where the funnel says that other records were read than the inputs have: all are counted, whatever the sample."""
    for row in run.manifest.funnel:
        if row["stage"] != run.recipe.LANE.funnel[0]:
            continue
        found = verdict.read.get(row["source"], {})
        told = {("in", ""): row["in"], ("kept", ""): row["kept"]}
        told |= {("dropped", reason): count for reason, count in row["dropped"].items()}
        told |= {("dead", error): count for error, count in row["dead"].items()}
        for key in sorted({*told, *found}):
            there = [told.get(key, {}).get(unit, 0) for unit in ("documents", "bytes")]
            here = list(found.get(key, [0, 0]))
            if there != here:
                what = " ".join(filter(None, key))
                says = f"read, {what}: {{}} records, {{}} bytes"
                yield Finding(COUNTS, row["source"], "", "", says.format(*here), says.format(*there))


def reason_differences(run: AuditedRun, verdict: Verdict) -> Iterator[Finding]:
    """Where the funnel counts other documents or bytes for a reason or an error of a stage than all records give,
    whatever rejects/ has of them. Of stages that other documents, cuts or targets decide about nothing is said, nor of
    those behind one that makes several documents of one."""
    told: dict[tuple[str, str, str], list[int]] = {}
    stages = {stage.name for stage in compared_stages(run)}
    for row in run.manifest.funnel:
        for why, count in (*row["dropped"].items(), *row["dead"].items()):
            told[row["source"], row["stage"], why] = [count["documents"], count["bytes"]]
    for key in sorted({*told, *verdict.outcome.lost}):
        here, there = (counts.get(key, [0, 0]) for counts in (verdict.outcome.lost, told))
        if key[1] in stages and here != there:
            says = f"{key[1]}, {key[2]}: {{}} documents, {{}} bytes"
            yield Finding(COUNTS, key[0], "", "", says.format(*here), says.format(*there))


def compared_stages(run: AuditedRun) -> Iterator[AnyStage]:
    """Stages that judge every document by itself, and each that they are given."""
    cut = bool(run.recipe.cutting())
    for phase in PHASES:
        for stage, _ in run.recipe.active(phase):
            if stage.splits or (phase == "shards" and cut):
                return
            if stage.judge is not None and phase != "dedup":
                yield stage
