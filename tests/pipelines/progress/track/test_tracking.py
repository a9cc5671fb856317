"""Figures of runs to other services: what goes out, and that no service can stop or delay a run."""

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.progress.measure import Snapshot
from refinery.pipelines.progress.output import Output
from refinery.pipelines.progress.track import tracking as module
from refinery.pipelines.progress.track.figures import name_of, of_corpus, of_snapshot
from refinery.pipelines.progress.track.tracker import KINDS, Kind, check_kind, open_tracker
from refinery.pipelines.progress.track.tracking import MOST_WAITING, Tracking, tracking
from refinery.pipelines.progress.work import StageCounts, Work
from tests.pipelines.small_runs import command

WAIT = 10.0  # for what comes at once


class FakeTracker:
    """A service that keeps what it gets, and does what a test wants."""

    def __init__(self, fails: str = "", blocks: threading.Event | None = None) -> None:
        self.logged: list[tuple[int, Mapping[str, float]]] = []
        self.ended: list[bool] = []
        self.fails, self.blocks = fails, blocks

    def log(self, figures: Mapping[str, float], step: int) -> None:
        if self.blocks is not None:
            self.blocks.wait()
        if self.fails == "log":
            raise OSError("https://user:secret@host/")
        self.logged.append((step, figures))

    def end(self, is_done: bool) -> None:
        if self.fails == "end":
            raise SystemExit(1)
        self.ended.append(is_done)


def snapshot(**more: Any) -> Snapshot:
    return Snapshot("label with https://a.example", Work(phase="clean", phases=("clean", "dedup")), **more)


@pytest.fixture
def blocked() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_figures_are_numbers_by_names_of_phases_and_stages() -> None:
    stages = (StageCounts("language", kept=7, dropped=2, dead=1),)
    found = of_snapshot(snapshot(seconds=1.5, documents=9, stages=stages, state="on https://a.example", fraction=None))
    assert found["clean/elapsed_seconds"] == 1.5
    assert found["clean/documents"] == 9.0
    assert found["clean/stage/language/dropped"] == 2.0
    assert "clean/fraction" not in found and "clean/state" not in found
    assert {type(value) for value in found.values()} == {float}
    assert not [name for name in found if "example" in name]
    other = Snapshot("https://a.example", Work(phase="https://a.example/x"))
    assert {name.split("/")[0] for name in of_snapshot(other)} == {"job"}
    assert name_of("a b\nhttps://ü" * 20) == name_of("a b\nhttps://ü" * 20)[:64]
    assert set(name_of("a/b ü\x1b")) <= set("ab_")


def test_figures_of_a_corpus_put_sources_together() -> None:
    counts = {"documents": 3, "bytes": 9}
    row = {"stage": "url", "in": counts, "kept": counts, "dropped": {"blocked-word": counts}, "dead": {}}
    found = of_corpus({"documents": 6}, [{**row, "source": "secret"}, {**row, "source": "other"}])
    assert found == {
        "final/documents": 6.0,
        "final/stage/url/in": 6.0,
        "final/stage/url/kept": 6.0,
        "final/stage/url/dropped": 6.0,
        "final/stage/url/dropped/blocked-word": 6.0,
        "final/stage/url/dead": 0.0,
    }


def test_every_set_of_figures_arrives_in_order_and_then_the_end() -> None:
    fake, said = FakeTracker(), []
    followed = Tracking(lambda: fake, said.append, every=0.0)
    followed.follow("progress", snapshot(documents=1))
    followed.follow("ended", snapshot(documents=2))
    followed.final({"documents": 3}, [])
    followed.end(True)
    assert [step for step, _ in fake.logged] == [0, 1, 2]
    assert [figures.get("clean/documents") for _, figures in fake.logged] == [1.0, 2.0, None]
    assert fake.ended == [True] and said == []


def test_progress_goes_out_now_and_then() -> None:
    fake = FakeTracker()
    followed = Tracking(lambda: fake, print, every=3600.0)
    for number in range(9):
        followed.follow("progress", snapshot(documents=number))
    followed.follow("ended", snapshot(documents=99))
    followed.end(False)
    assert [figures["clean/documents"] for _, figures in fake.logged] == [0.0, 99.0]
    assert fake.ended == [False]


@pytest.mark.parametrize("fails", ["open", "log", "end"])
def test_a_service_that_fails_costs_one_warning(fails: str) -> None:
    said: list[str] = []

    def opened() -> FakeTracker:
        if fails == "open":
            raise RuntimeError("https://user:secret@host/")
        return FakeTracker(fails)

    followed = Tracking(opened, said.append, every=0.0)
    for _ in range(3 * MOST_WAITING):
        followed.follow("progress", snapshot())
    followed.end(True)
    assert len(said) == 1 and said[0].startswith("warning: --track: ")
    assert "secret" not in said[0]


def test_a_service_that_hangs_delays_nothing(blocked: threading.Event) -> None:
    said: list[str] = []
    fake = FakeTracker(blocks=blocked)
    followed = Tracking(lambda: fake, said.append, every=0.0, patience=0.1)
    for number in range(10 * MOST_WAITING):  # more than wait: none of them blocks
        followed.follow("progress", snapshot(documents=number))
    followed.final({"documents": 7}, [])
    followed.end(True)
    assert len(said) == 1 and "does not answer" in said[0]
    blocked.set()
    deadline = time.monotonic() + WAIT
    while not fake.ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert fake.logged[-1][1] == {"final/documents": 7.0}  # the newest are kept
    assert len(fake.logged) <= MOST_WAITING + 1


def test_jobs_are_followed_while_the_context_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTracker()
    monkeypatch.setattr(module, "check_kind", lambda name: name)
    monkeypatch.setattr(module, "open_tracker", lambda kind: fake)
    with Output("refine", log_json=True) as output:
        with pytest.raises(KeyError), tracking("otel", print, output):
            with output.watch("1/2 clean", Counter, Work(phase="clean", phases=("clean",))):
                pass
            raise KeyError
        assert output.followers == []
    assert fake.ended == [False]
    assert fake.logged[-1][1]["clean/elapsed_seconds"] >= 0


def test_without_its_library_it_is_refused_at_once(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "refinery.pipelines.progress.track.tracker.KINDS", {name: Kind(f"no_such_{name}.x", "y") for name in KINDS}
    )
    for name in KINDS:
        with pytest.raises(ValueError, match=rf"--track {name}: no_such_{name}\.x is needed: pip install"):
            check_kind(name)
    words = [str(word) for word in command(small, tmp_path / "out", "--track", "mlflow")]
    assert execute(words) == 2
    assert "pip install" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_last_figures_of_a_run_are_the_manifests(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeTracker()
    monkeypatch.setattr(module, "check_kind", lambda name: name)
    monkeypatch.setattr(module, "open_tracker", lambda kind: fake)
    assert execute([str(word) for word in command(small, tmp_path / "out", "--track", "wandb")]) == 0
    manifest = Corpus(open_store(str(tmp_path / "out"))).manifest
    _, last = fake.logged[-1]
    assert last == of_corpus(manifest.totals, manifest.funnel)
    assert last["final/documents"] == manifest.totals["documents"] > 0
    assert last["final/tokens"] == manifest.totals["tokens"]
    assert last["final/stage/read/dead"] == sum(
        dead["documents"] for row in manifest.funnel if row["stage"] == "read" for dead in row["dead"].values()
    )
    phases = {name.split("/")[0] for _, figures in fake.logged for name in figures}
    assert phases - {"job"} == {"clean", "dedup", "shards", "final"}
    sent = json.dumps(fake.logged)
    assert not [word for word in ("example", str(small), "word1", "tail") if word in sent]
    assert fake.ended == [True]


# --- the services, where their libraries are ------------------------------------------------------------------------

FIGURES = {"final/documents": 3.0, "final/stage/url/dropped/blocked-word": 2.0}


def test_opentelemetry_gets_gauges() -> None:
    pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from refinery.pipelines.progress.track.otel_tracker import OtelTracker

    reader = InMemoryMetricReader()
    tracker = OtelTracker(reader)
    tracker.log({"final/documents": 1.0}, 0)
    tracker.log(FIGURES, 1)
    data: Any = reader.get_metrics_data()
    metrics = [each for resource in data.resource_metrics for scope in resource.scope_metrics for each in scope.metrics]
    assert {each.name: each.data.data_points[0].value for each in metrics} == {
        "refinery.final.documents": 3.0,
        "refinery.final.stage.url.dropped.blocked-word": 2.0,
    }
    assert not [key for key in data.resource_metrics[0].resource.attributes if "command" in key or "host" in key]
    tracker.end(True)


def test_mlflow_gets_a_run_with_nothing_but_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow: Any = pytest.importorskip("mlflow")
    from refinery.pipelines.progress.track.mlflow_tracker import MlflowTracker

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient((tmp_path / "runs").as_uri())
    tracker = MlflowTracker(client)
    tracker.log({"final/documents": 1.0}, 0)
    tracker.log(FIGURES, 1)
    tracker.end(False)
    run = client.get_run(tracker.run_id)
    assert run.data.metrics == FIGURES
    assert run.data.params == {}
    assert set(run.data.tags) <= {"mlflow.runName"}
    assert run.info.status == "FAILED"
    assert [each.step for each in client.get_metric_history(tracker.run_id, "final/documents")] == [0, 1]
    MlflowTracker(client).end(True)  # in the same experiment


def test_wandb_gets_a_run_offline_with_nothing_but_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name, value in {"MODE": "offline", "DIR": str(tmp_path), "SILENT": "true", "ERROR_REPORTING": "false"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    tracker = open_tracker(KINDS["wandb"])
    tracker.log(FIGURES, 0)
    tracker.end(True)
    (path,) = tmp_path.glob("wandb/offline-*/*.wandb")
    deadline = time.monotonic() + WAIT
    while b"blocked-word" not in path.read_bytes() and time.monotonic() < deadline:  # its own process writes
        time.sleep(0.05)
    data = path.read_bytes()
    assert b"final/stage/url/dropped/blocked-word" in data
    assert not [word for word in (socket.getfqdn(), sys.argv[0]) if len(word) > 4 and word.encode() in data]
