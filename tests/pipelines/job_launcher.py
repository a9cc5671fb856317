"""What `refinery refine` is to one job of Dataflow, without a pipeline and without waiting."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from apache_beam.options.pipeline_options import PipelineOptions
from google.cloud import dataflow

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.runners.dataflow.job_records import JobSpec
from refinery.pipelines.runners.dataflow.jobs import JobRunner, PollingPolicy
from refinery.pipelines.runners.dataflow.service import DataflowService, translated
from tests.fake_dataflow import FakeDataflow

LABEL = "1/3 clean, wave 1 of 2"


class Killed(BaseException):
    """The launcher dies: nothing of it may run after this but what unwinds the stack."""


@dataclass
class Clock:
    """Time that passes by sleeping alone; dies or is interrupted at the sleep of that number."""

    time: float = 1_800_000_000.0
    slept: int = 0
    at: Mapping[int, BaseException] = field(default_factory=dict)

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        self.time += seconds
        if self.slept in self.at:
            raise self.at[self.slept]

    def polling(self) -> PollingPolicy:
        return PollingPolicy(now=lambda: self.time, sleep=self.sleep)


@dataclass
class Launcher:
    """What `refinery refine` is to one job. submitted: the names that it launched."""

    server: FakeDataflow
    spec: JobSpec
    clock: Clock = field(default_factory=Clock)
    die_in_submit: str = ""
    said: list[str] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)

    def connect(self, project: str = "", region: str = "") -> DataflowService:
        flags = [*self.server.flags, "--project=project", "--region=region"]
        return DataflowService(PipelineOptions(flags), project, region)

    def submit(self, name: str, labels: Mapping[str, str]) -> str:
        if self.die_in_submit == "before":
            raise Killed
        self.submitted.append(name)
        request = dataflow.CreateJobRequest(
            project_id="project",
            location="region",
            job=dataflow.Job(name=name, client_request_id=f"{id(self)}-{len(self.submitted)}"),
        )
        with translated(launch=True):
            job = self.connect()._jobs.create_job(request)
        if self.die_in_submit == "after":
            raise Killed
        return str(job.id)

    def run(self, **options: object) -> None:
        """As refine does: nothing to do where the report is there."""
        if open_store(self.spec.work).size(self.spec.report) is None:
            runner = JobRunner(self.connect, self.said.append, self.clock.polling())
            runner.run(self.spec, LABEL, self.submit, **options)  # type: ignore[arg-type]


def by_state(server: FakeDataflow) -> dict[str, int]:
    return dict(Counter(job.state for job in server.jobs))
