"""A fake Cloud Dataflow on this machine, for tests: the REST service v1b3 as far as launchers use it, and the method of
Cloud Monitoring that their heartbeat needs.

    with fake_dataflow() as server:
        flags = server.flags                        # --dataflow_endpoint and --no_auth, for Beam and for refinery
        server.plan = lambda job: ["PENDING", "RUNNING", "FAILED"]
        server.on_call = lambda call: Fault("status", 503) if call.number == 7 else None

A job goes one state of its plan further with every question for it. Before one is DONE, `server.work(job)` is called in
the server's thread: a test's way of doing the job. `run_staged` does so for real, with the pipeline that was staged.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partialmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns, python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.runners.dataflow.jobs import PollingPolicy
from tests.fake_gcs import Fault
from tests.loader.range_server import running

STATES = (
    *("UNKNOWN", "STOPPED", "RUNNING", "DONE", "FAILED", "CANCELLED", "UPDATED", "DRAINING", "DRAINED", "PENDING"),
    *("CANCELLING", "QUEUED", "RESOURCE_CLEANING_UP", "PAUSING", "PAUSED"),
)  # in the order of google.dataflow.v1beta3.JobState
ENDED = ("DONE", "FAILED", "CANCELLED", "UPDATED", "DRAINED")
IMPORTANCE = {"1": "DEBUG", "2": "DETAILED", "5": "BASIC", "3": "WARNING", "4": "ERROR"}
TAKEN = "There is already an active job named {}. If you want to submit a second job, try again by setting a different"

_PATH = re.compile(
    r"/v1b3/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/jobs(?:/(?P<id>[^/]+)(?P<of>/\w+)?)?"
)


@dataclass(frozen=True)
class Call:
    """A request, numbered from 1 in the order of arrival. kind: create, get, cancel, list, messages, metrics."""

    number: int
    kind: str
    job_id: str
    query: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass
class FakeJob:
    """A job. plan: the states that are still to come; body: what was sent to create it.

    messages: (importance, text). metrics: as in the API.
    """

    id: str
    project: str
    region: str
    body: dict[str, Any]
    state: str
    plan: list[str]
    messages: list[tuple[str, str]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    replaced_by: str = ""

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def running(self) -> bool:
        return self.state not in ENDED

    @property
    def options(self) -> dict[str, Any]:
        """Beam's options, as the workers get them."""
        return dict(self.body["environment"]["sdkPipelineOptions"]["options"])

    def plain(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "projectId": self.project,
            "location": self.region,
            "clientRequestId": self.body.get("clientRequestId", ""),
            "createTime": "2026-11-21T10:00:00Z",
            "currentState": f"JOB_STATE_{self.state}",
            "replacedByJobId": self.replaced_by,
        }


def counter(stage: str, outcome: str, value: int, tentative: bool = False) -> dict[str, Any]:
    """A counter of a stage as the service reports it."""
    context = {"namespace": stage, "step": "s1"} | ({"tentative": "true"} if tentative else {})
    return {"name": {"origin": "user", "name": outcome, "context": context}, "scalar": value}


class FakeDataflow(ThreadingHTTPServer):
    """jobs: all so far. plan: the states of a new job, the first is that of the answer to create. work: see above.

    on_call: asked before a call is acted on, after_call: before its answer is sent; both may return a Fault ("status",
    "reset", "stall"; for after_call "reset" is a lost acknowledgement). unlisted: that many listings show nothing.
    taken: how a name in use is reported, "409" or by the "other" job as the answer. heedless: listings ignore names.
    """

    daemon_threads = True
    page_size = 2

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.jobs: list[FakeJob] = []
        self.calls: list[Call] = []
        self.plan: Callable[[FakeJob], Sequence[str]] = lambda job: ["PENDING", "RUNNING", "DONE"]
        self.work: Callable[[FakeJob], None] = lambda job: None
        self.on_call: Callable[[Call], Fault | None] = lambda call: None
        self.after_call: Callable[[Call], Fault | None] = lambda call: None
        self.unlisted = 0
        self.taken = "409"
        self.heedless = False
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.errors: list[Exception] = []
        self.points: list[dict[str, Any]] = []  # the time series that Cloud Monitoring would have been sent
        self.points_status = 200

    @property
    def url(self) -> str:
        return f"http://localhost:{self.server_address[1]}"  # by this name Beam knows that it is not the real one

    @property
    def flags(self) -> list[str]:
        return [f"--dataflow_endpoint={self.url}", "--no_auth"]

    def add(self, name: str, *plan: str, project: str = "project", region: str = "region") -> FakeJob:
        """A job that somebody launched, in the first of these states."""
        return self._create({"name": name}, project, region, plan)

    def states(self) -> list[tuple[str, str]]:
        """(name, state) of all jobs, in order of their creation."""
        return [(job.name, job.state) for job in self.jobs]

    def advance(self, job: FakeJob) -> None:
        """One state further."""
        if not job.plan:
            return
        state = job.plan.pop(0)
        if state == "DONE":
            try:
                self.work(job)
            except Exception as error:  # noqa: BLE001 - as the service does with whatever a worker raises
                job.messages.append(("ERROR", f"Traceback (most recent call last):\n  File x\n{error}"))
                job.plan.clear()
                state = "FAILED"
        job.state = state

    def finish(self, job: FakeJob) -> None:
        """To its end, with nobody watching."""
        while job.plan:
            self.advance(job)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away are what some tests are about."""

    # --- the service --------------------------------------------------------------------------------------------

    def act(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.startswith("/v3/"):
            assert (method, path) == ("POST", "/v3/projects/project/timeSeries"), path
            self.points += body["timeSeries"]
            return self.points_status, {}
        match = _PATH.fullmatch(path)
        assert match, path
        kind = {"POST": "create", "PUT": "cancel"}.get(method, (match["of"] or "/get" if match["id"] else "/list")[1:])
        with self.lock:
            call = Call(len(self.calls) + 1, kind, match["id"] or "", query)
            self.calls.append(call)
        for hook in (self.on_call, self.after_call):
            if hook is self.after_call:
                with self.lock:
                    answer = self._answer(kind, match, query, body)
            if fault := hook(call):
                if fault.kind == "stall":
                    self.stopping.wait(fault.seconds)
                return (fault.status if fault.kind == "status" else 0), {"error": {"message": fault.message}}
        return answer

    def _answer(
        self, kind: str, match: re.Match[str], query: dict[str, str], body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        place = match["project"], match["region"]
        if kind == "create":
            return self._launch(body, *place)
        jobs = [job for job in self.jobs if (job.project, job.region) == place]
        if kind == "list":
            shown = (
                []
                if self.unlisted > 0
                else [job for job in jobs if self.heedless or query.get("name", job.name) == job.name]
            )
            self.unlisted -= 1
            shown.sort(key=lambda job: not job.running)
            return 200, self._page("jobs", [job.plain() for job in shown], query)
        found = [job for job in jobs if job.id == match["id"]]
        if not found:
            return 404, {"error": {"code": 404, "message": f"no job {match['id']}", "status": "NOT_FOUND"}}
        job = found[0]
        if kind == "messages":
            least = IMPORTANCE.get(query.get("minimumImportance", "1"), "DEBUG")
            messages = [
                {"id": str(i), "messageText": text, "messageImportance": f"JOB_MESSAGE_{level}"}
                for i, (level, text) in enumerate(job.messages)
                if least != "ERROR" or level == "ERROR"
            ]
            return 200, self._page("jobMessages", messages, query)
        if kind == "metrics":
            return 200, {"metrics": job.metrics}
        if kind == "cancel":
            assert STATES[int(body["requestedState"])] == "CANCELLED", body
            job.plan[:] = ["CANCELLING", "CANCELLED"] if job.running else []
        self.advance(job)
        return 200, job.plain()

    def _launch(self, body: dict[str, Any], project: str, region: str) -> tuple[int, dict[str, Any]]:
        name = body["name"]
        assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name), name
        for job in self.jobs:
            if body.get("clientRequestId") and job.body.get("clientRequestId") == body["clientRequestId"]:
                return 200, job.plain()  # the same request again: its first answer was lost
            if job.running and (job.name, job.project, job.region) == (name, project, region):
                message = {"code": 409, "message": TAKEN.format(name), "status": "ALREADY_EXISTS"}
                return (409, {"error": message}) if self.taken == "409" else (200, job.plain())
        return 200, self._create(body, project, region).plain()

    def _create(self, body: dict[str, Any], project: str, region: str, plan: Sequence[str] = ()) -> FakeJob:
        job = FakeJob(f"2026-11-21_02_00_{len(self.jobs):02d}-1234567890123456789", project, region, body, "", [])
        first, *job.plan = plan or self.plan(job)
        job.state = first
        self.jobs.append(job)
        return job

    def _page(self, key: str, items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
        start = int(query.get("pageToken") or 0)
        stop = start + self.page_size
        return {key: items[start:stop]} | ({"nextPageToken": str(stop)} if stop < len(items) else {})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: FakeDataflow

    def log_message(self, *args: Any) -> None:
        pass

    def handle_request(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        try:
            status, answer = self.server.act(self.command, url.path, query, json.loads(data or b"{}"))
        except Exception as error:  # noqa: BLE001 - raised at the end
            self.server.errors.append(error)
            status, answer = 501, {"error": {"message": str(error)}}
        self.close_connection |= not status
        if status:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = handle_request


def run_staged(job: FakeJob) -> None:
    """Do what a worker of Dataflow would: run, on FnApiRunner in this process, the pipeline that Beam staged."""
    folder, _, name = job.options["pipelineUrl"].rpartition("/")
    proto = beam_runner_api_pb2.Pipeline.FromString(open_store(folder).read(name))
    for environment in proto.components.environments.values():
        assert environment.urn == common_urns.environments.DOCKER.urn
        del environment.dependencies[:]
        environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
    FnApiRunner().run_via_runner_api(proto, PipelineOptions([])).wait_until_finish()


@contextmanager
def fake_dataflow() -> Iterator[FakeDataflow]:
    """A running server. Launchers that wait for its jobs by the clock on the wall wait for a moment only."""
    ask_soon = partialmethod(PollingPolicy.__init__, sleep=lambda seconds: time.sleep(min(seconds, 0.02)))
    with running(FakeDataflow()) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(PollingPolicy, "__init__", ask_soon)
        yield server
    if server.errors:
        raise server.errors[0]
