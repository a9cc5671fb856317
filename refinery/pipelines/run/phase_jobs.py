"""The jobs of a run: launched unless their report is there, and believed only if it is theirs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.manifest import unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.progress.work import Work
from refinery.pipelines.recipe.recipe import FailureParams
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.funnel import check_budget
from refinery.pipelines.run.prefix import location
from refinery.pipelines.runners.dataflow.job_records import JobSpec, read_jobs
from refinery.pipelines.runners.runner import Build, Runner


@dataclass
class PhaseJobs:
    """Runs the jobs of one corpus. name: the recipe's. prefix, work: where it goes. fingerprints: of the phases."""

    name: str
    prefix: str
    work: str
    runner: Runner
    fingerprints: Mapping[str, str]
    failures: FailureParams
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.store = open_store(self.work)

    def run(
        self, phase: str, name: str, label: str, build: Build, wave: int | None = None, work: Work | None = None
    ) -> dict[str, Any]:
        """The report `name` of a job: as it is there, else after the job has run. The job itself writes it, at its end.
        work: what it is to do, for the display.

        Raises RefineError for a job that ended well and left no report, and whatever the job raises.
        """
        if self.store.size(name) is None:
            places = (location(self.prefix), location(self.work))  # the same run elsewhere has jobs of its own
            spec = JobSpec(self.name, phase, wave, (self.fingerprints[phase], *places), self.work, name)
            for job in [] if self.runner.remote else read_jobs(self.store, spec.key):
                if not job.state:
                    self.say(f"job {job.id} was launched for this on Dataflow and may still run: {job.link}")
            self.runner.run(label, build, work, spec)
            if self.store.size(name) is None:
                raise RefineError(
                    f"{label}: the job says that it is done, but {self.store.url(name)}, which it writes last, is "
                    "not there. See the job's log; the same command runs it again"
                )
        report = unseal(self.store.read(name), self.store.url(name))
        self.check_report(phase, name, report)
        return report

    def facts(self, phase: str) -> dict[str, Any]:
        """What the launcher adds to the report of each job of a phase."""
        return {"fingerprint": self.fingerprints[phase]}

    def check_report(self, phase: str, name: str, report: Mapping[str, Any]) -> None:
        """Raises RefineError for the report of another run: its job may end long after its prefix was emptied."""
        if report.get("fingerprint") != self.fingerprints[phase]:
            raise RefineError(f"{self.store.url(name)} is of another run and does not belong here; remove it")

    def check_budget(self, report: Mapping[str, Any]) -> None:
        """Raises RefineError where a stage has more dead letters than the recipe tolerates."""
        problems = check_budget(report["counters"], self.failures.max_ratio, self.failures.grace)
        if problems:
            raise RefineError(
                "too many dead letters:\n  "
                + "\n  ".join(problems)
                + f"\nThey are listed in {self.store.url('dead_letters')}. To tolerate them, run the same command with "
                "--set failures.max_ratio=…: it continues where it stopped. Or fix the inputs and choose another "
                "--output."
            )
