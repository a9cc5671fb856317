"""Jobs that outlive their launcher: whatever dies and whenever, one job of a spec runs to its end, never two."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.phases import OWN
from refinery.pipelines.runners.dataflow import jobs as jobs_module
from refinery.pipelines.runners.dataflow.job_records import JobSpec, read_jobs, record_end, record_job
from refinery.pipelines.runners.dataflow.jobs import JobFailed
from refinery.pipelines.runners.dataflow.service import translated
from tests.fake_dataflow import Call, FakeDataflow, FakeJob, fake_dataflow
from tests.fake_gcs import Fault
from tests.pipelines.job_launcher import LABEL, Killed, Launcher, by_state
from tests.sampling import sampled


@pytest.fixture
def spec(tmp_path: Path) -> JobSpec:
    return JobSpec("Web 1", "clean", 0, ("f", "prefix", "work"), str(tmp_path / "work"), "clean/wave-00000.json")


@pytest.fixture
def server(spec: JobSpec) -> Iterator[FakeDataflow]:
    with fake_dataflow() as found:
        found.work = lambda job: open_store(spec.work).create(spec.report, b"{}")
        yield found


# --- names and records ----------------------------------------------------------------------------------------------


@given(st.text(min_size=1), st.sampled_from([("clean", 0), ("clean", 99_999), ("dedup", None), ("shards", None)]))
def test_names_are_of_dataflows_form_and_records_are_the_runs_own(recipe: str, place: tuple[str, int | None]) -> None:
    spec = JobSpec(recipe, *place, ("fingerprint",), "work", "report")
    assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", spec.name)
    assert spec.name.endswith(f"-{spec.key}-{spec.digest}")
    for key, value in spec.labels.items():
        assert re.fullmatch("[a-z][-a-z0-9_]{0,62}", key) and re.fullmatch("[-a-z0-9_]{1,63}", value)
    assert OWN.fullmatch(f"jobs/{spec.key}.2026-11-21_02_00_00-123.json")


def test_another_place_recipe_wave_or_prefix_has_another_name(spec: JobSpec) -> None:
    others = [
        replace(spec, wave=1),
        replace(spec, phase="dedup", wave=None),
        replace(spec, recipe="other"),
        *(
            replace(spec, identity=i)
            for i in (("g", "prefix", "work"), ("f", "elsewhere", "work"), ("f", "prefixwork", ""))
        ),
    ]
    assert len({spec.name, *(other.name for other in others)}) == len(others) + 1
    assert replace(spec, report="x").name == spec.name


def test_records_are_exclusive_and_read_back(spec: JobSpec) -> None:
    store = open_store(spec.work)
    first = record_job(store, spec, "2026-11-21_01", "p", "r")
    assert record_job(store, spec, "2026-11-21_01", "p", "r") == first  # by another launcher
    second = record_job(store, spec, "2026-11-21_02", "p", "r")
    record_end(store, first, "FAILED", ["why"])
    record_end(store, first, "FAILED", ["why", "and more"])
    record_job(store, replace(spec, phase="dedup", wave=None), "2026-11-21_03", "p", "r")
    ended = replace(first, state="FAILED", errors=("why",))
    assert read_jobs(store, spec.key) == [ended, second]
    assert [job.key for job in read_jobs(store)] == ["clean-00000", "clean-00000", "dedup"]
    assert first.link == "https://console.cloud.google.com/dataflow/jobs/r/2026-11-21_01?project=p"
    assert unseal(store.read("jobs/clean-00000.2026-11-21_01.json"), "")["kind"] == "refinery-job"
    with pytest.raises(ValueError, match="letters, digits"):
        record_job(store, spec, "../../x", "p", "r")


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"id": "2026-11-21_01"}'])
def test_damaged_records_are_named(spec: JobSpec, data: bytes) -> None:
    store = open_store(spec.work)
    record_job(store, spec, "2026-11-21_01", "p", "r")
    store.replace("jobs/clean-00000.2026-11-21_01.json", data)
    with pytest.raises(FormatError, match=r"clean-00000\.2026-11-21_01\.json"):
        read_jobs(store)


def test_foreign_files_among_the_records_are_left_alone(spec: JobSpec) -> None:
    store = open_store(spec.work)
    for name in ("jobs/notes.txt", "jobs/clean-1.x.json", "jobs/dedup.x.end.json", "jobs/deep/dedup.x.json"):
        store.create(name, b"mine")
    assert read_jobs(store) == []


# --- launchers that die ---------------------------------------------------------------------------------------------

MOMENTS = ("before create", "after create, before the record", "after the record", "while it runs", "after its end")
FATES = ("RUNNING", "DONE", "FAILED", "CANCELLED", "CANCELLING")
MET = sampled("fates of jobs whose launcher dies", product(MOMENTS, FATES), 7, axes=lambda cell: cell)


@pytest.mark.parametrize(("moment", "fate"), MET)
def test_a_launcher_that_dies_is_started_again(
    server: FakeDataflow, spec: JobSpec, monkeypatch: pytest.MonkeyPatch, moment: str, fate: str
) -> None:
    """fate: what has become of the job until the next launcher looks."""
    server.plan = lambda job: ["PENDING", "RUNNING", "RUNNING", *(["DONE"] if len(server.jobs) > 1 else [])]
    dying = Launcher(server, spec)
    dying.die_in_submit = {MOMENTS[0]: "before", MOMENTS[1]: "after"}.get(moment, "")
    dying.clock.at = {{MOMENTS[2]: 1, MOMENTS[3]: 3}.get(moment, 0): Killed()}
    if moment == "after its end":
        server.plan = lambda job: ["PENDING", fate if fate.endswith("ED") else "DONE"]
        monkeypatch.setattr(jobs_module, "record_end", raise_killed)
    with pytest.raises(Killed):
        dying.run()
    monkeypatch.undo()
    assert len(server.jobs) == (moment != "before create")
    for job in server.jobs:
        job.plan[:] = {"RUNNING": ["DONE"], "CANCELLING": ["CANCELLED"]}.get(fate, [])
        if job.running:
            job.plan.insert(0, fate)
            server.advance(job)  # while nobody looks
    server.plan = lambda job: ["PENDING", "RUNNING", "DONE"]

    second = Launcher(server, spec)
    second.run()
    third = Launcher(server, spec)
    third.run()
    finished = fate in ("RUNNING", "DONE") or (moment == "after its end" and fate == "CANCELLING")
    expected = 1 if finished or moment == "before create" else 2
    assert len(server.jobs) == len({job.id for job in server.jobs}) == expected
    assert by_state(server)["DONE"] == 1 and not any(job.running for job in server.jobs)
    assert len({job.name for job in server.jobs}) == 1
    assert third.submitted == [] and len(dying.submitted) + len(second.submitted) == expected
    assert sum(call.kind == "create" for call in server.calls) == expected  # the name never had to be the lock


def raise_killed(*_: object) -> None:
    raise Killed


@pytest.mark.parametrize("state", ["QUEUED", "STOPPED", "RESOURCE_CLEANING_UP", "PAUSED", "DRAINING"])
def test_rare_states_are_waited_through(server: FakeDataflow, spec: JobSpec, state: str) -> None:
    server.plan = lambda job: ["PENDING", state, state, "DONE"]
    Launcher(server, spec).run()
    assert by_state(server) == {"DONE": 1}


def test_an_updated_job_is_followed(server: FakeDataflow, spec: JobSpec) -> None:
    server.plan = lambda job: ["RUNNING", "UPDATED"]
    heir = server.add("other-name", "RUNNING", "DONE")
    server.after_call = lambda call: setattr(server.jobs[-1], "replaced_by", heir.id)
    Launcher(server, spec).run()
    assert [job.state for job in server.jobs] == ["DONE", "UPDATED"]
    assert {job.state for job in read_jobs(open_store(spec.work))} == {"DONE", "UPDATED"}


# --- jobs that fail -------------------------------------------------------------------------------------------------


def test_a_failed_job_is_reported_and_started_again(server: FakeDataflow, spec: JobSpec) -> None:
    server.plan = lambda job: ["RUNNING", "FAILED"]
    messages = [
        ("BASIC", "Worker pool stopped"),
        ("ERROR", "Traceback (most recent call last):\n  File x\nValueError: SECRET text [while running 'pii/pii']"),
        ("ERROR", "Traceback (most recent call last):\n  x\nrefinery.loader.errors.FormatError: gs://b/p: damaged\n"),
        ("ERROR", "Workflow failed. Causes: S02:read failed.\nThe job failed because a work item has failed 4 times."),
        ("ERROR", "Workflow failed. Causes: S02:read failed.\nagain"),
    ]
    launcher = Launcher(server, spec)
    server.after_call = lambda call: late(call, server, messages)
    with pytest.raises(JobFailed) as caught:
        launcher.run()
    job = server.jobs[0]
    assert str(caught.value).splitlines() == [
        f"{LABEL}: the job ended as FAILED: https://console.cloud.google.com/dataflow/jobs/region/{job.id}?project=project",
        "  ValueError [while running 'pii/pii']",
        "  refinery.loader.errors.FormatError: gs://b/p: damaged",
        "  Workflow failed. Causes: S02:read failed.",
        jobs_module.AGAIN,
    ]
    (record,) = read_jobs(open_store(spec.work))
    assert record.state == "FAILED" and len(record.errors) == 3 and "SECRET" not in str(record)
    server.plan = lambda job: ["RUNNING", "DONE"]
    Launcher(server, spec).run()
    assert [state for _, state in server.states()] == ["FAILED", "DONE"] and len(dict(server.states())) == 1


def late(call: Call, server: FakeDataflow, messages: list[tuple[str, str]]) -> None:
    """The service says why a job failed only when asked for the third time."""
    if call.kind == "messages":
        (job,) = server.jobs
        job.messages.append(("DEBUG", "asked"))
        if len(job.messages) == 2:
            job.messages[:] = messages


def test_a_failed_job_without_a_word(server: FakeDataflow, spec: JobSpec) -> None:
    server.plan = lambda job: ["RUNNING", "FAILED"]
    launcher = Launcher(server, spec)
    with pytest.raises(JobFailed, match="ended as FAILED"):
        launcher.run()
    server.on_call = lambda call: Fault("status", 403) if call.kind == "messages" else None
    with pytest.raises(JobFailed, match="messages cannot be read: HTTP 403"):
        launcher.run()


@pytest.mark.parametrize("state", ["CANCELLED", "DRAINED", "UPDATED"])
def test_other_ends_are_failures(server: FakeDataflow, spec: JobSpec, state: str) -> None:
    server.plan = lambda job: ["RUNNING", state]
    with pytest.raises(JobFailed, match=f"ended as {state}"):
        Launcher(server, spec).run()


def test_a_failed_job_that_has_written_its_report_has_done_its_work(server: FakeDataflow, spec: JobSpec) -> None:
    server.plan = lambda job: ["RUNNING", "FAILED"]
    server.after_call = lambda call: server.work(server.jobs[0]) if call.kind == "get" else None
    launcher = Launcher(server, spec)
    launcher.run()
    assert "its report is there" in launcher.said[-1]


# --- two at once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taken", ["409", "other"])
@pytest.mark.parametrize("unlisted", [0, 1, 3])
def test_a_job_launched_between_look_and_launch_is_waited_for(
    server: FakeDataflow, spec: JobSpec, taken: str, unlisted: int
) -> None:
    server.heedless = taken == "other"
    server.add("of-somebody-else", "RUNNING", "FAILED")
    other = server.add(spec.name, "PENDING", "RUNNING", "DONE")
    for i in range(5):  # and the listing has pages
        server.add(spec.name, "FAILED" if i % 2 else "CANCELLED")
        server.add(f"other-{i}", "RUNNING")
    server.unlisted = 1 + unlisted
    server.taken = taken
    launcher = Launcher(server, spec)
    submit = launcher.submit
    launcher.submit = lambda name, labels: beam_like(submit(name, labels), other)  # type: ignore[method-assign]
    launcher.run()
    assert other.state == "DONE" and server.jobs.count(other) == 1
    assert [job.id for job in read_jobs(open_store(spec.work))] == [other.id]
    assert len(launcher.submitted) == 1 + max(0, unlisted)


def beam_like(job_id: str, other: FakeJob) -> str:
    """Beam compares the ids of the request and raises an error of its own."""
    if job_id == other.id:
        with translated(launch=True):
            raise DataflowJobAlreadyExistsError(f"There is already active job named x with id: {job_id}.")
    return job_id


def test_a_name_that_is_taken_for_ever_is_an_error(server: FakeDataflow, spec: JobSpec) -> None:
    server.add(spec.name, "RUNNING")
    server.unlisted = 1000
    with pytest.raises(JobFailed, match="project in region runs a job of that name, but does not list it"):
        Launcher(server, spec).run()


def test_two_launchers_at_once_share_one_job(server: FakeDataflow, spec: JobSpec) -> None:
    server.plan = lambda job: ["PENDING", *["RUNNING"] * 30, "DONE"]
    launchers = [Launcher(server, spec) for _ in range(2)]
    threads = [threading.Thread(target=launcher.run) for launcher in launchers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.states() == [(spec.name, "DONE")]
    assert len(read_jobs(open_store(spec.work))) == 1


def test_a_report_that_comes_while_we_look_is_the_end(server: FakeDataflow, spec: JobSpec) -> None:
    """The job that a dead launcher left is done between refine's look at the report and ours at the jobs."""
    server.after_call = lambda call: server.work(None) if call.kind == "list" else None  # type: ignore[arg-type]
    launcher = Launcher(server, spec)
    launcher.run()
    assert server.jobs == [] and launcher.submitted == []
