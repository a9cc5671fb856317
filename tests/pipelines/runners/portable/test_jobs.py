"""Jobs on a job service: found again by name, counted while they run, one line for every way in which they end."""

import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import URLError

import grpc
import pytest
from apache_beam.metrics.monitoring_infos import int64_user_counter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.runners.portability.portable_runner import JobServiceHandle, PipelineResult
from google.protobuf.struct_pb2 import Struct

from refinery.pipelines.runners.dataflow.jobs import JobFailed
from refinery.pipelines.runners.portable import attach, launch, watch
from refinery.pipelines.runners.portable.addresses import Address
from refinery.pipelines.runners.portable.launch import launching
from refinery.pipelines.runners.portable.watch import JobCounts, telling_of_missing_workers, wait

RUNNING, DONE, FAILED = api.JobState.RUNNING, api.JobState.DONE, api.JobState.FAILED


class Gone(grpc.RpcError):
    """No answer."""

    def code(self) -> Any:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "failed to connect\nto all addresses"


class FakeService:
    """A job service with some jobs: (id, name, state). counters: (namespace, name) -> value."""

    def __init__(self, *jobs: tuple[str, str, int]) -> None:
        self.jobs = list(jobs)
        self.steps: tuple[str, ...] = ("step",)
        self.counters: dict[tuple[str, str], int] = {}
        self.cancelled: list[str] = []
        self.is_gone = False

    def GetJobs(self, request: Any, timeout: float) -> Any:
        if self.is_gone:
            raise Gone
        found = []
        for job, name, state in self.jobs:
            options = Struct()
            options.update({attach.NAME: name})
            found.append(api.JobInfo(job_id=job, job_name="job", pipeline_options=options, state=state))
        return api.GetJobsResponse(job_info=found)

    def DescribePipelineOptions(self, request: Any, timeout: float) -> Any:
        if self.is_gone:
            raise Gone
        options = [api.PipelineOptionDescriptor(name="objectReuse", type=api.PipelineOptionType.BOOLEAN)]
        return api.DescribePipelineOptionsResponse(options=options)

    def Cancel(self, request: Any, timeout: float) -> Any:
        self.cancelled.append(request.job_id)
        return api.CancelJobResponse(state=api.JobState.CANCELLED)

    def GetStateStream(self, request: Any) -> Iterator[Any]:
        return iter([api.JobStateEvent(state=RUNNING), api.JobStateEvent(state=DONE)])

    def GetMessageStream(self, request: Any) -> Iterator[Any]:
        return iter([])

    def GetJobMetrics(self, request: Any, timeout: float) -> Any:
        if self.is_gone:
            raise Gone
        infos = [
            int64_user_counter(namespace, name, value, ptransform=step)
            for step in self.steps
            for (namespace, name), value in self.counters.items()
        ]
        return api.GetJobMetricsResponse(metrics=api.MetricResults(attempted=infos))


def result_of(service: FakeService, *states: int, message: str = "") -> PipelineResult:
    events = iter([api.JobStateEvent(state=state) for state in states])
    error = api.JobMessage(importance=api.JobMessage.JOB_MESSAGE_ERROR, message_text=message)
    messages = iter([api.JobMessagesResponse(message_response=error)] if message else [])
    return PipelineResult(service, "one", messages, events)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> FakeService:
    found = FakeService(("a", "other", RUNNING), ("b", "mine", DONE), ("c", "mine", RUNNING))
    monkeypatch.setattr(attach, "job_service", lambda endpoint: found)
    return found


def test_a_running_job_is_found_by_its_name_and_waited_for(service: FakeService) -> None:
    said: list[str] = []
    result = attach.find_job("host:1", "mine", loses_workers=False, say=said.append)
    assert result is not None and said == ["job c was launched before and still runs at host:1; waiting for it"]
    wait(result, "clean")
    assert service.cancelled == []


def test_a_job_that_lost_its_workers_is_cancelled(service: FakeService) -> None:
    said: list[str] = []
    assert attach.find_job("host:1", "mine", loses_workers=True, say=said.append) is None
    assert service.cancelled == ["c"] and "has lost its workers" in said[0]


def test_nothing_is_found_where_nothing_runs(service: FakeService) -> None:
    assert attach.find_job("host:1", "none", loses_workers=False, say=print) is None
    service.is_gone = True
    assert attach.find_job("host:1", "mine", loses_workers=False, say=print) is None


def test_counts_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    service = FakeService()
    counts = JobCounts(result_of(service))
    assert counts.totals() == {} and not counts.is_working
    service.counters = {("language", "kept"): 3, ("language", "dropped"): 1, ("work", "bytes"): 70, ("beam", "x"): 9}
    assert counts.totals() == {"language kept": 3, "language dropped": 1, "work bytes": 70} and counts.is_working
    service.is_gone = True
    assert counts.totals()["language kept"] == 3  # the display goes on with what it knew


def test_counts_of_all_steps_are_added() -> None:
    """A stage's counter is one metric for each step that counts it."""
    service = FakeService()
    service.steps, service.counters = ("one", "two"), {("url", "kept"): 2}
    assert JobCounts(result_of(service)).totals() == {"url kept": 4}


@pytest.mark.parametrize("environment", watch.WHAT_TO_CHECK)
def test_missing_workers_are_told_once_with_what_to_check(environment: str) -> None:
    said: list[str] = []
    counts = JobCounts(result_of(FakeService()))
    with telling_of_missing_workers(counts, environment, said.append, seconds=0):
        pass
    with telling_of_missing_workers(counts, environment, said.append, seconds=0.01):
        wait_for(lambda: bool(said))
    assert 1 <= len(said) <= 2 and all(watch.WHAT_TO_CHECK[environment] in line for line in said)


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_workers_that_count_are_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_SECONDS", 0)
    service, said = FakeService(), list[str]()
    service.counters = {("read", "in"): 1}
    counts = JobCounts(result_of(service))
    with telling_of_missing_workers(counts, "EXTERNAL", said.append, seconds=0):
        wait_for(lambda: counts.is_working)
    assert said == []


TRACEBACK = "Traceback (most recent call last):\n  File x\nKeyError: 'a document's words' [while running 'pii']"


@pytest.mark.parametrize(
    ("states", "message", "said"),
    [
        ((RUNNING, FAILED), TRACEBACK, "KeyError [while running 'pii']"),
        ((RUNNING, api.JobState.CANCELLED), "", "CANCELLED"),
        ((RUNNING,), "", "RUNNING"),
    ],
)
def test_a_job_that_fails_is_one_line_without_a_documents_words(states: Any, message: str, said: str) -> None:
    with pytest.raises(JobFailed) as caught:
        wait(result_of(FakeService(), *states, message=message), "clean, wave 1 of 2")
    text = str(caught.value)
    assert text.startswith("clean, wave 1 of 2: ") and said in text and "words" not in text and "\n" not in text


def test_a_service_that_goes_away_is_one_line() -> None:
    def events() -> Iterator[Any]:
        yield api.JobStateEvent(state=RUNNING)
        raise Gone

    with pytest.raises(JobFailed, match=r"clean: the job service is gone \(UNAVAILABLE\)\. Run the same command"):
        wait(PipelineResult(FakeService(), "one", iter([]), events()), "clean")


def test_a_job_that_fails_because_its_pool_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine says that a call failed; who is gone is known here."""
    pool = Address("--environment_config", "localhost:1", "the worker pool", "")
    monkeypatch.setattr(launch, "no_answer", lambda address: "connection refused")
    with pytest.raises(
        JobFailed, match=r"clean: the worker pool at localhost:1 is gone \(connection refused\)\. Start it"
    ):
        wait(result_of(FakeService(), RUNNING, FAILED, message="_InactiveRpcError"), "clean", [pool])


@pytest.mark.parametrize("error", [Gone(), grpc.FutureTimeoutError(), URLError("no such host")])
def test_a_launch_that_fails_is_one_line(error: Exception) -> None:
    with pytest.raises(JobFailed) as caught, launching("clean"):
        raise error
    assert str(caught.value).startswith("clean: the job could not be launched: ") and "\n" not in str(caught.value)


def test_options_of_an_engine_in_java_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the job service describes is known; everything else is refused, also where it does not answer."""
    from refinery.pipelines.shell.arguments import check_beam_flags

    service, asked = FakeService(), []

    def described() -> set[str]:
        asked.append(1)
        return attach.described_options(service)

    check_beam_flags(["--parallelism=4"], (), described)
    assert not asked
    check_beam_flags(["--parallelism=4", "--objectReuse"], (), described)
    with pytest.raises(ValueError, match=r"unknown flag --objectReuze"):
        check_beam_flags(["--objectReuze"], (), described)
    service.is_gone = True
    with pytest.raises(ValueError, match=r"unknown flag --objectReuse"):
        check_beam_flags(["--objectReuse"], (), described)


def test_a_job_service_that_dies_during_a_launch_is_not_waited_for() -> None:
    """Nobody listens there: the wait, which has no limit here, ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"localhost:{server.getsockname()[1]}"
    with (
        pytest.raises(
            JobFailed, match=r"clean: the job service at \S+ is gone \(connection refused\)\. Start it again\."
        ),
        launching("clean"),
    ):
        launch.connected(endpoint, None)


def test_a_job_is_followed_as_long_as_it_takes() -> None:
    """Beam would give up after the time that a launch may take."""
    limits = []

    class Service(FakeService):
        def GetStateStream(self, request: Any, timeout: float | None = None) -> Iterator[Any]:
            limits.append(timeout)
            return super().GetStateStream(request)

        def GetMessageStream(self, request: Any, timeout: float | None = None) -> Iterator[Any]:
            limits.append(timeout)
            return super().GetMessageStream(request)

        def Run(self, request: Any) -> Any:
            return api.RunJobResponse(job_id=request.preparation_id)

    launch.settle_launches()
    JobServiceHandle(Service(), PipelineOptions(["--job_server_timeout=2"])).run("one")
    assert limits == [None, None]
