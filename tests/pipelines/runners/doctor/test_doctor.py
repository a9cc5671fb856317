"""`refinery doctor`: a line for everything that a run needs, and what to do about what is missing."""

import functools
import json
import sys
import time
from collections import namedtuple
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import google.auth
import pytest
from google.auth.exceptions import DefaultCredentialsError

from refinery import DISTRIBUTION
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.s3_client import forget_clients
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.recipe.quantities.disk import text_bytes
from refinery.pipelines.runners.doctor import amazon_s3, examine, google_cloud, installation, machine, room
from refinery.pipelines.runners.doctor.examine import guarded, text_lines
from refinery.pipelines.runners.doctor.finding import Finding, State, ok, within
from refinery.transforms.read.sources import ReadTask
from tests.fake_gcs import fake_gcs
from tests.fake_s3 import KEY, SECRET, fake_s3
from tests.pipelines.dataflow_graphs import NEEDED

HIDDEN = "keep-this-to-yourself"  # must not be printed
LOGIN_FILE = {"type": "authorized_user", "client_id": "x", "client_secret": HIDDEN, "refresh_token": HIDDEN}
LIBRARIES = installation.libraries
looked_at = functools.cache(lambda needed: list(LIBRARIES(needed)))  # half a second each time


@pytest.fixture(autouse=True)
def no_google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of the machine that runs the tests. Libraries are looked at once."""
    monkeypatch.setattr(installation, "libraries", looked_at)
    for name in (google_cloud.VARIABLE, google_cloud.EMULATOR, "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_COMPUTE_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setattr(google.auth, "default", nothing)


def nothing() -> Any:
    raise DefaultCredentialsError(f"none, {HIDDEN}")


def doctor(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, list[tuple[str, str]]]]:
    """Exit code, and check -> (state, text) of every finding."""
    code = execute(["doctor", "--json", *map(str, words)])
    said = capsys.readouterr()
    assert HIDDEN not in said.out + said.err
    answer = json.loads(said.out)
    found: dict[str, list[tuple[str, str]]] = {}
    for finding in answer["findings"]:
        found.setdefault(finding["check"], []).append((finding["state"], finding["text"]))
        assert finding["state"] == "ok" or any(mark in finding["text"] for mark in (": ", "; ", "see above"))
    assert answer["ok"] == (code == 0)
    return code, found


def states(found: dict[str, list[tuple[str, str]]], state: str) -> set[str]:
    return {check for check, lines in found.items() for s, _ in lines if s == state}


# --- the whole command ----------------------------------------------------------------------------------------------


def test_a_run_that_fits(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is looked at, nothing is written."""
    code, found = doctor(capsys, small / "recipe.yaml", "--output", tmp_path / "new" / "corpus")
    assert (code, states(found, "problem")) == (0, set())
    assert {"Python", "kernels", "libraries", "libraries [pipeline]", "open files", "shared memory"} <= found.keys()
    assert {"encoding", "clock", "runner", "Google credentials", "memory", "recipe"} <= found.keys()
    assert found["source s"][0][1].startswith("2 files, ") and f"disk of {tmp_path}" in found
    assert found["output"] == [("ok", f"{tmp_path / 'new' / 'corpus'} is free")]
    assert not (tmp_path / "new").exists()
    (tmp_path / "manifest.json").touch()
    code, found = doctor(capsys, small / "recipe.yaml", "--output", tmp_path)
    assert code == 0 and states(found, "warning") == {"output"}


def test_problems_of_a_recipe(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = small / "recipe.yaml"
    missing = ("--set", "tokenizer.path=no.json", "--input", tmp_path / "*.jsonl")
    code, found = doctor(capsys, recipe, *missing)
    assert (code, states(found, "problem")) == (1, {"recipe, encode", "source s"})
    code, found = doctor(capsys, recipe, "--set", "nonsense=1")
    assert code == 1 and "nonsense" in found["recipe"][0][1]
    assert "--workers: -1 given, 0 or more is allowed" in str(doctor(capsys, "--workers", -1))
    code, found = doctor(capsys, tmp_path / "no.yaml", "--runner", "NoRunner")
    assert (code, states(found, "problem")) == (1, {"recipe", "runner"})


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"ok       Python: {'.'.join(map(str, sys.version_info[:3]))}")
    assert lines[-1] == f"{len(lines) - 1} ok, 0 warning, 0 problem"
    assert execute(["doctor", "--region=here"]) == 2  # a flag of Beam's, and no runner of Beam's


def test_a_check_that_breaks_hides_no_other() -> None:
    def broken() -> list[Finding]:
        raise ZeroDivisionError("why")

    lines = list(text_lines([*guarded("a", broken), *guarded("b", lambda: [ok("b", "fine")])]))
    assert lines[0].startswith("problem  a: this check itself failed (ZeroDivisionError: why)")
    assert lines[1:] == ["ok       b: fine", "1 ok, 0 warning, 1 problem"]


# --- what is installed ----------------------------------------------------------------------------------------------


def test_every_kernel_of_the_folders_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    names = installation.kernel_names()
    files = [path for package in ("loader", "transforms") for path in Path(package, "native").glob("*.c")]
    assert len(names) == len(files) and "refinery.transforms.native.bpe" in names
    assert [finding.state for finding in installation.kernels()] == [State.OK]
    monkeypatch.setattr(installation, "kernel_names", lambda: [*names, "refinery.transforms.native.no_such_kernel"])
    (finding,) = installation.kernels()
    assert finding.state is State.PROBLEM and "no_such_kernel" in finding.text and "pip install" in finding.text
    monkeypatch.setattr(installation, "kernel_names", lambda: names)
    monkeypatch.setattr(installation, "newest_source", lambda name: float("inf" if name == names[0] else 0))
    (finding,) = installation.kernels()
    assert finding.state is State.WARNING and names[0] in finding.text and names[1] not in finding.text


def test_libraries_beside_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every extra has its line, or is in the line of those that are not needed; what is missing, or of another version,
    is named."""
    extras = distribution(DISTRIBUTION).metadata.get_all("Provides-Extra") or []
    lines = {finding.check: finding for finding in LIBRARIES(True)}
    other = lines.pop("other libraries", None)
    absent = [part.strip("[] ") for part in other.text.rpartition(": ")[2].split(",")] if other else []
    assert set(lines) == {"libraries", *(f"libraries [{extra}]" for extra in extras if extra not in absent)}
    assert set(absent) <= set(extras) and not {"pipeline", ""} & set(absent)
    assert lines["libraries [pipeline]"].state is State.OK

    class Older:
        version, requires = "1.0", ()

    def changed(name: str) -> Any:
        if name == "orjson":
            raise installation.PackageNotFoundError(name)
        return Older() if name == "fastwarc" else distribution(name)

    monkeypatch.setattr(installation, "distribution", changed)
    lines = {finding.check: finding for finding in LIBRARIES(True)}
    finding = lines["libraries [pipeline]"]
    assert finding.state is State.PROBLEM and "pip install 'corpus-refinery[pipeline]'" in finding.text
    assert "fastwarc 1.0 found, fastwarc==2.0.1 needed" in finding.text and "orjson<4,>=3.10 is missing" in finding.text
    assert lines["libraries"].state is State.OK
    monkeypatch.setattr(installation, "lacking_libraries", lambda extra, deep: ["a==1 is missing"] * (extra == "torch"))
    assert {finding.check: finding.text for finding in LIBRARIES(True)}["other libraries"] == (
        "not needed to make corpora, and not (all) installed: [torch]"
    )


def test_the_loader_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library that compares versions, which the pipeline brings along."""
    monkeypatch.setitem(sys.modules, "packaging", None)
    monkeypatch.setitem(sys.modules, "packaging.specifiers", None)
    assert installation.python_version().state is State.OK
    (finding,) = LIBRARIES(False)
    assert finding.state is State.WARNING and "[pipeline]" in finding.text
    assert next(LIBRARIES(True)).state is State.PROBLEM
    monkeypatch.setattr(examine, "find_spec", lambda _: None)
    lines = [finding.line() for finding in examine.examine(examine.Asked(output="out"))]
    assert lines[-1].startswith("ok       Google credentials: none found; none are needed")


# --- the machine ----------------------------------------------------------------------------------------------------


def test_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (256, 4096))
    assert "ulimit -n 4096" in machine.open_files().text
    assert machine.shared_memory(tmp_path / "no").state is State.OK
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: usage(1 << 26, 0, 1 << 26))
    assert "--shm-size" in machine.shared_memory(tmp_path).text
    monkeypatch.setattr(machine.sys, "getfilesystemencoding", lambda: "ascii")
    assert "files are named in ascii" in machine.encoding().text
    assert machine.clock(0.0).state is State.PROBLEM and machine.clock().state is State.OK


def test_room_beside_what_a_run_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Memory for each worker, whatever the text; disk for each byte of it: ok, a warning where only part of the text
    would fit, a problem."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: usage(0, 0, 4_000_000_000))
    monkeypatch.setattr(room, "free_memory", lambda: 1_100_000_000)
    places = [str(tmp_path / "out"), str(tmp_path / "work")]

    def found(text: float, local: bool = True) -> list[str]:
        return [finding.state for finding in room.room(room.Load(int(text), 2, local, places))]

    assert found(1e9) == ["ok", "ok", "ok"]  # 1.4 GB, 0.7 of temporary files
    assert found(4.5e9) == ["ok", "warning", "ok"]
    assert found(9e9) == ["ok", "warning", "warning"]
    assert found(90e9) == ["ok", "problem", "problem"]
    assert found(90e9, local=False) == ["ok", "problem", "ok"]
    monkeypatch.setattr(room, "free_memory", lambda: 1_000_000_000)
    assert found(1e9)[0] == "problem"  # the launcher and two workers
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: usage(0, 0, 100_000_000))
    assert found(1e9)[2] == "problem"  # two parts of 256 MB of temporary files


def test_text_in_files() -> None:
    """Each file once, however many tasks read it; compressed text counts four times, a crawl's is a fifth."""
    tasks = [
        ReadTask(path="a.jsonl", format="jsonl", source="s", file_index=0, size=100, part=part, parts=2)
        for part in range(2)
    ]
    tasks += [ReadTask(path="b.jsonl.zst", format="jsonl", source="s", file_index=1, size=100)]
    tasks += [ReadTask(path="c.warc.gz", format="warc", source="s", file_index=2, size=100)]
    assert text_bytes(tasks) == 100 + 400 + 20


def test_memory_within_a_containers_limit(tmp_path: Path) -> None:
    system = tmp_path / "meminfo"
    system.write_text("MemTotal: 200 kB\nMemAvailable:  100 kB\n")
    assert room.free_memory(system, tmp_path) == 102_400
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert room.free_memory(system, tmp_path) == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert room.free_memory(system, tmp_path) == 102_400


# --- Google ---------------------------------------------------------------------------------------------------------


def test_credentials_are_told_by_kind_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(LOGIN_FILE))
    monkeypatch.setenv(google_cloud.VARIABLE, str(file))
    code, found = doctor(capsys)
    assert code == 0 and "a person's login (GOOGLE_APPLICATION_CREDENTIALS); none are needed" in str(found)
    code, found = doctor(capsys, "--output", "gs://bucket/corpus")
    ((state, text),) = found["Google credentials"]
    assert (code, state) == (1, "problem") and "DefaultCredentialsError" in text and "gcloud auth" in text
    file.write_text(HIDDEN)
    assert google_cloud.credentials_file() == "GOOGLE_APPLICATION_CREDENTIALS is not a file of credentials"
    file.unlink()
    assert google_cloud.credentials_file() == "GOOGLE_APPLICATION_CREDENTIALS names a file that does not exist"
    login = type("Credentials", (), {"__module__": "google.oauth2.service_account"})
    monkeypatch.setattr(google.auth, "default", lambda: (login(), None))
    assert google_cloud.credentials() == ok("Google credentials", "a service account's key")


def test_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gcs("there") as server:
        server.use(monkeypatch)
        found = {finding.check: finding for finding in google_cloud.google(["gs://there/x", "gs://gone/y", "local"])}
        assert found["gs://there"].state is State.OK
        assert found["gs://gone"].state is State.PROBLEM and "Create it" in found["gs://gone"].text
        assert "emulator" in found["Google credentials"].text


def test_buckets_of_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said where none is named; an output is tried out, and nothing stays there."""
    with fake_s3("there") as server:
        server.use(monkeypatch)
        assert list(amazon_s3.amazon(["gs://a", "local"], ["local"])) == []
        places = ["s3://there/x", "s3://gone/y"]
        found = {finding.check: finding for finding in amazon_s3.amazon(places, places)}
        assert found["s3://there"].state is State.OK
        assert found["s3://gone"].state is State.PROBLEM and "Create it" in found["s3://gone"].text
        assert found["AWS credentials"].text == f"of AWS_ACCESS_KEY_ID, for {server.url}"
        assert len(found) == 3
        checks = [finding.state for finding in amazon_s3.amazon(places[:1], [places[0], "gs://x"])]
        assert checks == [State.OK] * 3 and not server.objects
        forget_clients()
        server.api.ignores = {"put"}
        *_, last = amazon_s3.amazon(places[:1], places[:1])
        assert last.state is State.PROBLEM and "ignores the header If-None-Match" in last.text
        assert KEY not in str(found) and SECRET not in str(found)
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://example.org")
        (only,) = amazon_s3.amazon(places, places)
        assert only.state is State.PROBLEM and "AWS_ENDPOINT_URL" in only.text


def test_without_a_network_one_bucket_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that nobody listens on; then an answer that never comes."""
    monkeypatch.setenv(google_cloud.EMULATOR, "http://127.0.0.1:9")
    monkeypatch.setattr(google_cloud, "REQUEST", google_cloud.FetchParams(deadline=0.2, first_delay=0.05))
    first, second = google_cloud.reach(["gs://a", "gs://b"])
    assert "check the network" in first.text and "not asked, since gs://a gave no answer" in second.text
    monkeypatch.setattr(google_cloud, "SECONDS", 0.05)
    monkeypatch.setattr(GcsStore, "check", lambda _: time.sleep(0.5))
    first, second = google_cloud.reach(["gs://a", "gs://b"])
    assert first.text.startswith("no answer within 0.05 seconds: check the network")
    monkeypatch.delenv(google_cloud.EMULATOR)
    monkeypatch.setattr(google.auth, "default", lambda: time.sleep(0.5))
    assert "no answer within 0.05 seconds" in google_cloud.credentials().text


def test_an_answer_in_time_is_the_calls_own() -> None:
    assert within(60, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0)


# --- Dataflow -------------------------------------------------------------------------------------------------------


def test_what_dataflow_would_refuse(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it at once, in the words of a launch."""
    flags = ("--runner", "dataflow", "--region=europe-west4", "--network=x", "--job_name=y")
    code, found = doctor(capsys, small / "recipe.yaml", "--output", "out", *flags)
    assert code == 1 and found["memory"][0][1].endswith("jobs run elsewhere")
    told = "\n".join(text for _, text in found["Dataflow"])
    for part in ("--output: 'out' given", "--project is missing", "--network: ", "--job_name: "):
        assert part in told
    seen = [text.partition(":")[0] for _, text in found["Dataflow, recipe"]]
    assert seen == ["sources[0].paths", "tokenizer.path"]


def test_a_launch_that_would_go_through(capsys: pytest.CaptureFixture[str]) -> None:
    """But for credentials: nothing is asked of a service, and nothing is staged."""
    code, found = doctor(capsys, "--output", "gs://corpus/web", "--runner", "DataflowRunner", *NEEDED)
    assert (code, states(found, "problem")) == (1, {"Google credentials"})
    assert found["Dataflow"][0][0] == "ok" and found["Dataflow, machines"][0][1] == "n2-standard-4, 50 at most"
    small_machine = ("--machine_type=n2-highcpu-4", "--flexrs_goal=COST_OPTIMIZED")
    _, found = doctor(capsys, "--output", "gs://corpus/web", "--runner", "DataflowRunner", *NEEDED, *small_machine)
    assert found["Dataflow, machines"][0][0] == "warning"


def test_modules_of_ones_own(tmp_path: Path, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They must be in the image."""
    assert execute(["stages", "new", "too-many-digits", "--folder", str(tmp_path)]) == 0
    capsys.readouterr()
    recipe = tmp_path / "own.yaml"
    used = "stages: [{use: 'too_many_digits:TOO_MANY_DIGITS', after: heuristics}]\n"
    recipe.write_text((small / "recipe.yaml").read_text() + used)
    flags = ("--output", "gs://corpus/web", "--runner", "DataflowRunner", *NEEDED)
    _, found = doctor(capsys, recipe, *flags)
    ((state, text),) = found["Dataflow, stages"]
    assert state == "warning" and text.startswith("your own modules, too_many_digits.py, must also be in europe-west4-")


def test_a_bucket_that_a_source_pays_for_is_not_asked_without(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source itself is looked into, by its project."""
    with fake_gcs("paid") as server:
        server.use(monkeypatch)
        server.api.put("paid", "a.jsonl", (small / "a.jsonl").read_bytes())
        server.api.paid_by["paid"] = "my-project"
        words = (small / "recipe.yaml", "--input", "gs://paid/*.jsonl")
        code, found = doctor(capsys, *words, "--set", "sources.s.requester_pays=my-project")
        assert code == 0 and found["source s"][0][1].startswith("1 file, ") and "gs://paid" not in found
        code, found = doctor(capsys, *words)
        assert code == 1 and "name the project that pays: `requester_pays` of the source" in str(found["gs://paid"])


# --- other engines --------------------------------------------------------------------------------------------------


def test_engines_that_do_not_answer(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What would be a traceback of Beam's is a line each."""
    flags = ("--runner", "PortableRunner", "--job_endpoint=127.0.0.1:9", "--environment_type=EXTERNAL")
    code, found = doctor(capsys, small / "recipe.yaml", "--output", "out", *flags, "--environment_config=127.0.0.1:10")
    assert code == 1 and states(found, "problem") == {"PortableRunner"}
    told = [text for _, text in found["PortableRunner"]]
    assert told[0].startswith("--job_endpoint: the job service at 127.0.0.1:9 does not answer (connection refused); ")
    assert "python -m refinery.pipelines.runners.worker_pool" in told[1] and len(told) == 2
    assert found["PortableRunner, paths"] == [
        ("warning", "--output: 'out' given, a relative path: start the workers in this folder, or give the whole path")
    ]
    away = "--environment_config=registry.example/worker:1"
    code, found = doctor(capsys, small / "recipe.yaml", "--output", "/x", *flags[:2], "--job_endpoint=embed", away)
    assert code == 1 and states(found, "problem") == {"PortableRunner, paths"}
    keys = [text.partition(":")[0] for _, text in found["PortableRunner, paths"]]
    assert keys == ["--output", "sources[0].paths", "tokenizer.path"]


def test_an_engine_that_starts_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "prism").touch(0o755)
    code, found = doctor(capsys, "--runner", "PrismRunner", f"--prism_location={tmp_path / 'prism'}")
    assert code == 0 and found["PrismRunner"] == [("ok", "it starts itself; workers: LOOPBACK")]
