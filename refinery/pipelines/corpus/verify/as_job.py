"""`refinery verify --runner …`: the same check as by processes here, by a Beam job; what it leaves is judged here."""

from collections.abc import Callable
from dataclasses import dataclass

import apache_beam as beam

from refinery.pipelines.corpus.export.work_place import WorkPlace
from refinery.pipelines.corpus.verify.corpus import Checked, CheckedCorpus, report_on
from refinery.pipelines.corpus.verify.joins import Found
from refinery.pipelines.corpus.verify.partials import read_partials, refuse_other_counts
from refinery.pipelines.corpus.verify.pieces import SAMPLES, Question
from refinery.pipelines.corpus.verify.verify_job import (
    JOINED,
    CheckCorpus,
    JoinedRecord,
    VerifyJob,
    share_tasks,
    shares_for,
)
from refinery.pipelines.corpus.verify.whole import Report
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.job.task_list import write_task_list
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tokenizer import Tokenizer

REPORT = "joined.json"


@dataclass
class PartialsPlace(WorkPlace):
    """Where partial results go, the job's own files in a folder below them."""

    WORK = "job"
    PHASE = "verify"


def work_of(partials: str) -> str:
    """Where the job's own files go."""
    return f"{partials.rstrip('/')}/{PartialsPlace.WORK}"


def verify_as_job(
    prefix: str,
    partials: str,
    runner: Runner,
    *,
    samples: int = SAMPLES,
    load: Callable[[str], Tokenizer] = load_tokenizer,
    against: str = "",
    say: Callable[[str], None] = print,
) -> Report:
    """The report of `verify`, byte for byte, from a job that writes partial results of all shares to `partials`.

    runner: opened. Shares that are there are not checked again, and a job that runs is waited for. Raises ValueError
    for partial results of another check, and whatever the job raises. Cost here: the manifest, about 1 kB for each file
    of the corpus and part under work/, and what `Whole` reads. Of the workers: as `verify`, and the rows that pieces
    leave are written and read once more.
    """

    def check(corpus: CheckedCorpus) -> Checked:
        pieces, asked, shares = corpus.pieces, corpus.identity, shares_for(corpus.pieces)
        place = PartialsPlace(partials, {"asked": asked, "shares": shares}, runner, corpus.corpus.manifest.name, say)
        place.refuse_file()
        refuse_other_counts(place.store, shares)
        job = VerifyJob(corpus.question, place.root, place.work, asked, shares)
        with place.at_work():
            joined = _joined(place, job, share_tasks(pieces, shares), sum(piece.size for piece in pieces))
        findings, _ = read_partials(place.store, asked, pieces, f"`refinery verify {prefix} --partial {partials} `")
        return findings, joined

    return report_on(Question(prefix, samples, load, against), check)


def _joined(place: PartialsPlace, job: VerifyJob, tasks: list[bytes], size: int) -> Found:
    """What all partitions say together, by a job unless an earlier one of this check has said it."""

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | CheckCorpus(write_task_list(place.work, "shares", tasks), job)
        facts = {"fingerprint": place.fingerprint}
        pipeline | WriteReport(place.work, REPORT, facts, {JOINED: JoinedRecord})

    steps = [Step("shares", job.shares), Step("partitions", job.question.partitions, 0.2)]
    work = Work("verify", steps=steps, bytes=size)
    found = place.jobs(place.fingerprint).run(place.PHASE, REPORT, "verify", build, 0, work)
    return {what: tuple(each) for what, each in found[JOINED].items()}
