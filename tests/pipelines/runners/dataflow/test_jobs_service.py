"""Dataflow's service as a launcher meets it: failing, silent, and talkative; and what the user sees of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from google.auth.exceptions import DefaultCredentialsError

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.runners.dataflow.error_lines import short_error
from refinery.pipelines.runners.dataflow.job_records import JobSpec, cancel_command, read_jobs, record_job
from refinery.pipelines.runners.dataflow.jobs import JobFailed, LauncherLeft, ServiceRefusal, Watch
from refinery.pipelines.runners.dataflow.service import translated
from tests.fake_dataflow import Call, FakeDataflow, counter, fake_dataflow
from tests.fake_gcs import Fault
from tests.pipelines.job_launcher import Clock, Launcher, by_state


@pytest.fixture
def spec(tmp_path: Path) -> JobSpec:
    return JobSpec("Web 1", "clean", 0, ("f", "prefix", "work"), str(tmp_path / "work"), "clean/wave-00000.json")


@pytest.fixture
def server(spec: JobSpec) -> Iterator[FakeDataflow]:
    with fake_dataflow() as found:
        found.work = lambda job: open_store(spec.work).create(spec.report, b"{}")
        yield found


# --- a service that fails -------------------------------------------------------------------------------------------

FAULTS: dict[str, Callable[[Call], Fault | None]] = {
    "429 now and then": lambda call: Fault("status", 429) if call.number % 2 and call.kind != "create" else None,
    "503 for long": lambda call: Fault("status", 503) if call.kind == "get" and 4 < call.number < 40 else None,
    "500": lambda call: Fault("status", 500) if call.kind == "get" and call.number < 8 else None,
    "404 at first": lambda call: Fault("status", 404) if call.kind == "get" and call.number < 7 else None,
    "reset": lambda call: Fault("reset") if call.kind in ("get", "list") and call.number % 3 else None,
    "rate limit as 403": lambda call: (
        Fault("status", 403, message="rateLimitExceeded") if call.kind == "get" and call.number < 6 else None
    ),
    "429 at launch": lambda call: Fault("status", 429) if call.kind == "create" and call.number < 4 else None,
    "503 at launch": lambda call: Fault("status", 503) if call.kind == "create" and call.number < 3 else None,
    "no metrics": lambda call: Fault("status", 403) if call.kind == "metrics" else None,
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_that_pass_are_waited_out(server: FakeDataflow, spec: JobSpec, name: str) -> None:
    server.on_call = FAULTS[name]
    Launcher(server, spec).run()
    assert server.states() == [(spec.name, "DONE")]


def test_a_launch_whose_answer_is_lost_makes_one_job(server: FakeDataflow, spec: JobSpec) -> None:
    server.after_call = lambda call: Fault("reset") if call.kind == "create" and len(server.calls) < 3 else None
    launcher = Launcher(server, spec)
    launcher.run()
    assert server.states() == [(spec.name, "DONE")] and len(launcher.submitted) == 2
    assert "not launched yet, retrying" in launcher.said[0]


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        (
            "get",
            403,
            "no answer from Dataflow: HTTP 403.*may still run.*run the same command again.*gcloud dataflow jobs",
        ),
        ("get", 503, "no answer from Dataflow: HTTP 503"),
        ("get", 404, "does not know job"),
        ("list", 403, "no answer from Dataflow: HTTP 403.*Run the same command to resume"),
        ("create", 503, "could not be launched: HTTP 503"),
        ("create", 400, "could not be launched: HTTP 400 scripted\nRun the same command"),
        ("create", 403, "could not be launched: HTTP 403"),
    ],
)
def test_faults_that_stay_are_reported_in_a_few_lines(
    server: FakeDataflow, spec: JobSpec, kind: str, status: int, message: str
) -> None:
    server.on_call = lambda call: Fault("status", status) if call.kind == kind else None
    launcher = Launcher(server, spec)
    with pytest.raises(JobFailed, match=f"(?s){message}") as caught:
        launcher.run()
    assert launcher.clock.slept == 0 or status in (404, 503)  # a refusal is not asked again
    assert len(str(caught.value).splitlines()) <= 4
    server.on_call = lambda call: None
    Launcher(server, spec).run()
    assert by_state(server)["DONE"] == 1


def test_a_recorded_job_that_is_gone_does_not_block(server: FakeDataflow, spec: JobSpec) -> None:
    record_job(open_store(spec.work), spec, "2026-01-01_gone", "project", "region")
    launcher = Launcher(server, spec)
    launcher.run()
    assert "project does not know job 2026-01-01_gone any more" in launcher.said
    assert [job.state for job in read_jobs(open_store(spec.work))] == ["UNKNOWN", "DONE"]


def test_a_job_is_asked_for_where_it_was_launched(server: FakeDataflow, spec: JobSpec) -> None:
    """The command was repeated with another --region."""
    there = server.add(spec.name, "RUNNING", "DONE", region="elsewhere")
    record_job(open_store(spec.work), spec, there.id, "project", "elsewhere")
    Launcher(server, spec).run()
    assert server.states() == [(spec.name, "DONE")]


# --- what is shown --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sleeps", [1, 3])
def test_ctrl_c_says_how_to_go_on_and_how_to_cancel(server: FakeDataflow, spec: JobSpec, sleeps: int) -> None:
    server.plan = lambda job: ["PENDING", "RUNNING", "RUNNING", "RUNNING", "DONE"]
    launcher = Launcher(server, spec, Clock(at={sleeps: KeyboardInterrupt()}))
    with pytest.raises(LauncherLeft) as caught:
        launcher.run()
    (job,) = read_jobs(open_store(spec.work))
    assert server.jobs[0].running and job.link in str(caught.value)
    assert "run the same command again" in str(caught.value) and cancel_command(job) in str(caught.value)
    assert cancel_command(job) == f"gcloud dataflow jobs cancel {job.id} --region=region --project=project"
    Launcher(server, spec).run()
    assert server.states() == [(spec.name, "DONE")]


def test_state_and_counters_are_shown(server: FakeDataflow, spec: JobSpec) -> None:
    seen: list[tuple[str, int]] = []
    elapsed: list[float] = []
    watch = Watch()

    @contextmanager
    def show(seconds: float) -> Iterator[Watch]:
        elapsed.append(seconds)
        yield watch

    def note(call: Call) -> None:
        seen.append((watch.state.split(" for")[0], watch.totals["url dropped"]))
        if len(seen) > 8:
            server.jobs[0].metrics = [counter("url", "dropped", 5), counter("url", "dropped", 7, tentative=True)]

    server.plan = lambda job: ["PENDING", "PENDING", "PENDING", *["RUNNING"] * 12, "DONE"]
    server.on_call = lambda call: Fault("status", 503) if call.kind == "get" and call.number in (7, 8) else note(call)
    Launcher(server, spec).run(show=show)
    assert {("PENDING", 0), ("RUNNING", 0), ("no answer", 0), ("RUNNING", 7)} <= set(seen)
    assert watch.state == "DONE" and watch.totals["url dropped"] == 7 and elapsed[0] > 0


def test_totals_take_the_users_counters_alone(server: FakeDataflow, spec: JobSpec) -> None:
    job = server.add("x", "RUNNING")
    foreign = [{"name": {"origin": "dataflow/v1b3", "name": "kept", "context": {}}, "scalar": 9}]
    wrong = [{"name": {"origin": "user", "name": "kept", "context": {"namespace": "a"}}, "scalar": "text"}]
    ours = [counter("a", "kept", 5), counter("a", "kept", 4), counter("work", "bytes", 7)]
    job.metrics = [*ours, counter("b", "other", 1), *foreign, *wrong]
    assert Launcher(server, spec).connect().totals(job.id) == {"a kept": 9, "work bytes": 7}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Workflow failed. Causes: x\nmore", "Workflow failed. Causes: x"),
        ("Traceback (most recent call last):\n  File\nKeyError: 'SECRET'", "KeyError"),
        ("Traceback (most recent call last):\n  File\nSystemError", "SystemError"),
        (
            "Error. Traceback (most recent call last):\n  x\nOSError: a\nb SECRET c [while running 'w-ptransform-9']",
            "OSError",
        ),
        ("Traceback (most recent call last):\n SECRET", "an unnamed exception"),
        (
            "Traceback (most recent call last):\nx\n"
            "refinery.transforms.errors.Unreadable: gs://x: bad [while running 's']",
            "refinery.transforms.errors.Unreadable: gs://x: bad [while running 's']",
        ),
        ("\x1b[2Jclear", "\\x1b[2Jclear"),
        ("y" * 1000, "y" * 299 + "…"),
    ],
)
def test_errors_are_one_line_without_content(text: str, shown: str) -> None:
    found = short_error(text)
    assert found == shown or (shown == "OSError" and found.startswith("OSError") and "SECRET" not in found)


def test_other_errors_of_google_are_translated() -> None:
    with pytest.raises(ServiceRefusal, match=r"DefaultCredentialsError: no credentials$"), translated():
        raise DefaultCredentialsError("no credentials\nlong story")  # type: ignore[no-untyped-call]
