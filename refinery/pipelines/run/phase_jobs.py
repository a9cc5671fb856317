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
from refinery.pipelines.run.slices.sliced_job import SlicedJob, Task
from refinery.pipelines.runners.dataflow.job_records import JobSpec, read_jobs
from refinery.pipelines.runners.runner import Build, Runner
from refinery.transforms.core.names import PHASES


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
    slices: int = 0  # of the run's cut; 0: it has none
    task: Task | None = None  # that this command does, instead of all

    def __post_init__(self) -> None:
        self.store = open_store(self.work)

    def run(
        self, phase: str, name: str, label: str, build: Build, wave: int | None = None, work: Work | None = None
    ) -> dict[str, Any]:
        """The report `name` of a job: as it is there, else after the job has run. The job itself writes it, at its end.
        work: what it is to do, for the display.

        Raises RefineError for a job that ended well and left no report, and whatever the job raises.
        """
        if self.store.size(name) is None and (steps := self._sliced(phase, name)) is not None:
            if self.task is not None and self.task.is_step_of(phase):
                steps.run_slice(self.task, label, build, work)
            elif steps.is_begun():
                steps.run_missing(label, build, work)
        if self.store.size(name) is None:
            places = (location(self.prefix), location(self.work))  # the same run elsewhere has jobs of its own
            spec = JobSpec(self.name, phase, wave, (self.fingerprints[phase], *places), self.work, name)
            for job in [] if self.runner.remote else read_jobs(self.store, spec.key):
                if not job.state:
                    self.say(f"job {job.id} was launched for this on Dataflow and may still run: {job.link}")
            try:
                self.runner.run(label, build, work, spec)
            except Exception:  # of any kind: what counts is whether the report is there
                if self.store.size(name) is None:
                    raise
                self.say(f"{label}: another command was faster; what it did counts")
            if self.store.size(name) is None:
                raise RefineError(
                    f"{label}: the job says that it is done, but {self.store.url(name)}, which it writes last, is "
                    "not there. See the job's log; the same command runs it again"
                )
        return self.read_report(phase, name)

    def read_report(self, phase: str, name: str) -> dict[str, Any]:
        """A report that is there. Raises RefineError for one of another run."""
        report: dict[str, Any] = unseal(self.store.read(name), self.store.url(name))
        self.check_report(phase, name, report)
        return report

    def _sliced(self, phase: str, name: str) -> SlicedJob | None:
        """The job as steps, where the run was cut into slices."""
        if not self.slices or phase not in PHASES[1:]:
            return None
        return SlicedJob(
            self.store,
            phase,
            self.fingerprints[phase],
            self.slices,
            self.runner,
            lambda: self.store.size(name) is not None,
            self.say,
        )

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
