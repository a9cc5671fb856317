"""`refinery inspect`: where a run stands, at every step of it, damaged or not, without reading its data."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import read_manifest, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import LocalStore
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.run.inspection.inspection import Inspection, inspect
from refinery.pipelines.run.inspection.text import json_line, text_lines
from refinery.pipelines.runners.dataflow.job_records import JobRecord, JobSpec, record_end, record_job
from refinery.pipelines.runners.dataflow.jobs import JobState, ServiceTrouble
from tests.fake_dataflow import fake_dataflow
from tests.fake_gcs import fake_gcs
from tests.loader.range_server import range_server
from tests.sampling import one_commit_in_four, sampled

Change = Callable[[Path], None]


@pytest.fixture
def run(corpus: Path, tmp_path: Path) -> Path:
    """A finished run of three waves, to be changed by tests. Files are links: replace them, never write into them."""
    return Path(shutil.copytree(corpus, tmp_path / "out", copy_function=os.link))


def remove(run: Path, *names: str) -> None:
    for name in names:
        (run / name).unlink()


def rewrite(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def spec(run: Path, phase: str, wave: int | None = None) -> JobSpec:
    return JobSpec("demo", phase, wave, ("x",), str(run / "work"), "report.json")


def words(found: Inspection) -> str:
    return "\n".join(text_lines(found))


PUBLISHED = ("manifest.json", "work/shards.json", "work/shards/report.json")
DEDUP = ("work/dedup.json", "work/dedup/report.json")
STEPS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "complete": ((), "complete", "the corpus is complete"),
    "manifest to be written": (PUBLISHED[:1], "started", "all phases are done, but the manifest is not written yet"),
    "shards": (PUBLISHED, "started", "phase 3 of 3 is not finished"),
    "dedup": ((*PUBLISHED, *DEDUP), "started", "phase 2 of 3 is not finished"),
    "a wave is missing": (
        (*PUBLISHED, *DEDUP, "work/clean.json", "work/clean/wave-00002.json"),
        "started",
        "phase 1 of 3 is in progress",
    ),
    "no wave yet": (
        (*PUBLISHED, *DEDUP, "work/clean.json", *(f"work/clean/wave-0000{i}.json" for i in range(3))),
        "started",
        "phase 1 of 3 is not finished",
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_every_step_of_a_run(run: Path, step: str) -> None:
    missing, state, headline = STEPS[step]
    remove(run, *missing)
    found = inspect(str(run))
    assert (found.state, found.problems, found.name) == (state, (), "demo")
    assert words(found).startswith(f"{run}: {headline}\n")
    assert f"refinery {'verify' if state == 'complete' else 'refine'}" in words(found)
    assert json.loads(json_line(found))["state"] == state
    if "wave" in step:
        assert found.phases[0].waves == (2 if step.startswith("a") else 0)
        assert ("phase 1 of 3  clean: 2 of 3 waves are done" in words(found)) is step.startswith("a")
    read = [row for row in found.funnel if row["stage"] == "read"]
    assert (sum(row["in"]["documents"] for row in read) == 0) is (step == "no wave yet")
    assert found.inputs["crawl"]["files"] == 4 and found.inputs["notes"]["bytes"] > 0


def test_a_run_that_stopped_at_an_empty_source_is_not_just_repeated(run: Path) -> None:
    remove(run, *STEPS["dedup"][0])
    found = inspect(str(run))
    assert "since nothing is kept" not in words(found)
    rows = [{**row, "kept": {"documents": 0, "bytes": 0}} if row["source"] == "notes" else row for row in found.funnel]
    stopped = words(replace(found, funnel=tuple(rows)))
    assert "it stops, since nothing is kept of notes, unless failures.allow_empty allows that" in stopped


def test_what_it_says_of_a_corpus(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = read_manifest(open_store(str(corpus)))
    assert execute(["inspect", str(corpus)]) == 0
    output = capsys.readouterr().out
    totals, shards = manifest.totals, Counter(shard.split for shard in manifest.shards)
    for part in (
        f"corpus        {totals['documents']:,} documents, {totals['tokens']:,} tokens",
        manifest.fingerprint,
        f"shards        {shards['train']} train, {shards['validation']} validation of ",
        "vocabulary 1,000, tokenizer/tokenizer.json",
        "phase 2 of 3  dedup: done",
        "near-duplicate",
        f"dead letters of read: BadGzip 2, BadHeader 1, BadJson 1, Truncated 1; listed in {corpus}/dead_letters",
        f"next: refinery verify {corpus}",
    ):
        assert part in output, output
    assert execute(["inspect", str(corpus), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["manifest"]["totals"] == dict(totals) and answer["dead"]["read"]["BadGzip"] == 2
    assert answer["manifest"]["bytes"] == sum(file.size for file in manifest.all_files)
    assert answer["manifest"]["shards"] == shards


def test_it_reads_no_data_and_writes_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*")}
    opened: list[str] = []
    opens = LocalStore.open
    monkeypatch.setattr(LocalStore, "open", lambda self, name: opened.append(name) or opens(self, name))  # type: ignore[func-returns-value]
    inspect(str(corpus))
    assert opened and all(name.endswith(".json") or name.startswith("manifests/") for name in opened)
    assert {path: path.stat().st_mtime_ns for path in corpus.rglob("*")} == before


def test_nothing_and_what_is_not_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.doc").touch()
    for name, state in (
        ("empty", "empty"),
        ("missing", "empty"),
        ("foreign", "foreign"),
        ("foreign/thesis.doc", "foreign"),
    ):
        assert inspect(str(tmp_path / name)).state == state
        assert execute(["inspect", str(tmp_path / name)]) == 2
        assert (
            f"{tmp_path / name}: {'the prefix is empty' if state == 'empty' else 'not a prefix'}"
            in capsys.readouterr().out
        )
    for wrong in (["inspect", "ftp://x"], ["inspect", str(tmp_path), "--no_auth"], ["inspect", ""]):
        assert execute(wrong) == 2


def test_work_elsewhere_discarded_or_taken_over(run: Path, tmp_path: Path) -> None:
    (run / "work").rename(tmp_path / "parts")
    assert inspect(str(run)).state == "complete"
    remove(run, "manifest.json")
    found = inspect(str(run), str(tmp_path / "parts"))
    assert [phase.state for phase in found.phases] == ["done"] * 3 and found.state == "started"
    assert f"--output {run} --work {tmp_path / 'parts'}" in words(found)

    (run / "work").mkdir()
    clean = unseal((tmp_path / "parts" / "clean.json").read_bytes(), "")
    pointer = {key: clean[key] for key in ("schema_version", "kind", "phase", "fingerprint")}
    (run / "work" / "clean.json").write_bytes(seal(pointer | {"reused_from": str(tmp_path / "parts")}))
    found = inspect(str(run))
    assert f"clean: done, reused from {tmp_path / 'parts'}" in words(found)
    assert [phase.state for phase in found.phases] == ["done", "to do", "to do"]
    found = inspect(str(run), str(tmp_path / "nowhere"))
    assert found.state == "started" and "if it has another --work, give it here, too" in words(found)


# --- jobs -----------------------------------------------------------------------------------------------------------


def test_jobs_are_shown_with_state_link_and_errors(run: Path) -> None:
    remove(run, *PUBLISHED)
    store = open_store(run / "work")
    record_job(store, spec(run, "clean", 0), "2026-01", "p", "r")
    for number in range(1, 7):
        record_end(store, record_job(store, spec(run, "clean", number), f"2026-1{number}", "p", "r"), "DONE")
    failed = record_job(store, spec(run, "shards"), "2026-20", "p", "r")
    record_end(store, failed, "FAILED", ["it broke\x1b[2J"])
    found = inspect(str(run))
    assert found.state == "started"
    assert [job.state for job in found.jobs] == ["DONE"] * 7 + ["FAILED"]  # the first by its wave's report
    assert "jobs          4 earlier ones are DONE" in words(found)
    assert f"job shards    FAILED  2026-20  {failed.link}\n              it broke\\x1b[2J" in words(found)

    record_job(store, spec(run, "shards"), "2026-21", "p", "r")
    found = inspect(str(run))
    assert (found.state, found.jobs[-1].state) == ("running", "launched")
    assert "gcloud dataflow jobs cancel 2026-21 --region=r --project=p" in words(found)


@pytest.mark.parametrize(
    ("answer", "state", "shown"),
    [
        (JobState("i", "n", "RUNNING"), "running", "RUNNING"),
        (JobState("i", "n", "QUEUED"), "running", "QUEUED"),
        (JobState("i", "n", "FAILED"), "started", "FAILED"),
        (None, "started", "UNKNOWN"),
        (ServiceTrouble("HTTP 503 x"), "running", "launched"),
    ],
)
def test_live_states(run: Path, answer: JobState | Exception | None, state: str, shown: str) -> None:
    remove(run, *PUBLISHED)
    record_job(open_store(run / "work"), spec(run, "shards"), "2026-21", "p", "r")

    def ask(job: JobRecord) -> JobState | None:
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = inspect(str(run), ask=ask)
    assert (found.state, found.jobs[-1].state) == (state, shown)
    assert bool(found.notes) is isinstance(answer, Exception)


def test_live_from_the_command_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remove(run, *PUBLISHED)
    with fake_dataflow() as server:
        job = server.add("x", "PENDING", "RUNNING")
        record_job(open_store(run / "work"), spec(run, "shards"), job.id, "project", "region")
        assert execute(["inspect", str(run), "--live", *server.flags]) == 1
    assert f"job shards    RUNNING  {job.id}" in capsys.readouterr().out


# --- damage ---------------------------------------------------------------------------------------------------------


def sealed(payload: Any) -> bytes:
    return seal({"schema_version": 1, "kind": "refinery-run", **payload})


def hostile(path: Path) -> list[bytes]:
    data = path.read_bytes()
    payload = unseal(data, "")
    types: list[Any] = [None, 1, 1e300, "x", [], [[1]], {"a": "x"}, [{"a": None}], True]
    changed = [seal(payload | {key: value}) for key in payload for value in types if payload[key] != value]
    torn = [
        b"",
        b"\0" * 100,
        b"{}",
        b"[]",
        b"null",
        data[:-2],
        data + b" ",
        data.replace(b":", b";", 1),
        b"[" * 100_000,
    ]
    return [*torn, seal({}), sealed({"x": 1}), *changed]


FILES = ("_run.json", "manifest.json", "work/clean.json", "work/dedup.json", "work/clean/wave-00001.json", "work/jobs")


@one_commit_in_four
@pytest.mark.parametrize("name", sampled("files whose damage inspect reports", FILES, 2))
def test_damage_is_reported_and_never_an_exception(run: Path, name: str) -> None:
    store = open_store(run / "work")
    record_end(store, record_job(store, spec(run, "dedup"), "2026-1", "p", "r"), "FAILED", ["why"])
    remove(run, *({"manifest.json"} - {name}), *(["work/clean.json"] if "wave" in name else []))
    for path in (run / "work" / "jobs").iterdir() if name == "work/jobs" else [run / name]:
        good = path.read_bytes()
        damaged = 0
        for data in hostile(path):
            rewrite(path, data)
            found = inspect(str(run))
            json.loads(json_line(found))
            assert words(found)
            damaged += found.state == "damaged"
            if data in (b"", b"{}"):
                assert found.state == "damaged" and path.name in " ".join(found.problems)
                assert "restore the files named above" in words(found)
        assert damaged >= 10
        rewrite(path, good)
    assert inspect(str(run)).state == ("complete" if name == "manifest.json" else "started")


def test_files_of_another_run(run: Path) -> None:
    for name in ("work/dedup.json", "manifest.json"):
        before = (run / name).read_bytes()
        payload = unseal(before, "")
        rewrite(run / name, seal(payload | {"fingerprint": "0" * 64}))
        found = inspect(str(run))
        assert found.state == "damaged" and f"{name} is of another run" in found.problems[0]
        assert execute(["inspect", str(run)]) == 1
        rewrite(run / name, before)


def test_what_is_unprintable_is_escaped(run: Path) -> None:
    payload = unseal((run / "_run.json").read_bytes(), "")
    payload["name"] = "\x1b[2J\nfake line‮"
    rewrite(run / "_run.json", seal(payload))
    output = words(inspect(str(run)))
    assert "\\x1b[2J\\nfake line\\u202e" in output and "\x1b" not in output
    assert json_line(inspect(str(run))).isascii()


# --- elsewhere ------------------------------------------------------------------------------------------------------


def test_buckets(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        assert inspect("gs://bucket/web").state == "empty"
        server.put_folder("bucket", "web/", corpus)
        here, there = inspect(str(corpus)), inspect("gs://bucket/web")
        assert (there.state, there.phases, there.funnel) == ("complete", here.phases, here.funnel)
        assert not [call for call in server.calls if call.kind not in ("stat", "download", "list")]
        server.put("bucket", "other/x", b"x")
        assert inspect("gs://bucket/other").state == "foreign"


def test_a_published_corpus_behind_a_web_server(corpus: Path) -> None:
    with range_server() as server:
        server.files |= {
            path.relative_to(corpus).as_posix(): path.read_bytes()
            for path in corpus.rglob("*")
            if path.is_file() and "work" not in path.parts
        }
        found = inspect(server.url)
        assert (found.state, found.problems) == ("complete", ()) and found.manifest is not None
