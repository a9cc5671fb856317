"""Each part of making a batch is in the time of one stage, whatever a stream reads: by a clock that only these move."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refinery.loader import LengthBuckets, PackedStream, RemoteParams, TokenStream
from refinery.loader.order.context_parallel import ContextSlice
from refinery.loader.packing.best_fit_domain import PieceStarts
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.read.remote.remote_bytes import RemoteFileStream
from refinery.loader.read.samples import DocumentStarts
from refinery.loader.stream import assemble, masks
from refinery.loader.stream.packed import packed_source
from refinery.loader.stream.packed.packed_files import LocalFiles
from refinery.loader.stream.schedule import Schedule
from refinery.loader.stream.telemetry import MAKING
from refinery.pipelines.corpus.mix.make_view import make_view
from refinery.pipelines.corpus.mix.recipe import load_mix
from refinery.pipelines.progress.work import Work
from tests.corpus_factory import build_corpus
from tests.loader.range_server import range_server
from tests.loader.streams import TEXTS
from tests.mix_factory import mix_corpus, write_recipe
from tests.packed_factory import add_packed_rows

L = 24
PARTS: list[tuple[str, Any, str, int]] = [
    ("plan", Schedule, "plan", 1),
    ("read", LocalSource, "read_pieces", 10),
    ("read", LocalSource, "read_with_labels", 10),
    ("read", LocalFiles, "_verify", 100),
    ("decode", packed_source, "parse_rows", 1000),
    ("read", RemoteFileStream, "piece", 100),
    ("enrichment", DocumentStarts, "inside", 10_000),
    ("enrichment", PieceStarts, "inside", 10_000),
    ("enrichment", packed_source.PackedSource, "read_columns", 10_000),
    ("assemble", masks, "fill_read", 100_000),
    ("staging", ContextSlice, "cut", 1_000_000),
    ("staging", assemble, "_unshifted", 1_000_000),
]


class Clock:
    """Time that passes only in PARTS: `spent` by stage, since `reset`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0
        self.reset()
        patch.setattr(time, "perf_counter_ns", lambda: self.now)
        for stage, owner, name, cost in PARTS:
            patch.setattr(owner, name, self.slow(stage, getattr(owner, name), cost))

    def reset(self) -> None:
        self.spent = dict.fromkeys(MAKING, 0)

    def slow(self, stage: str, function: Callable[..., Any], cost: int) -> Callable[..., Any]:
        def slower(*given: Any, **named: Any) -> Any:
            self.now += cost
            self.spent[stage] += cost
            return function(*given, **named)

        return slower


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("stages")
    add_packed_rows(build_corpus(root / "corpus", TEXTS), L)
    part = mix_corpus(root / "part", 1, {("train", "web"): [60, 30]})
    recipe = write_recipe(root / "view.yaml", {"p": part}, [{"name": "all", "parts": ["p"], "where": "quality > 0.2"}])
    make_view(load_mix(str(recipe)), str(root / "view"), Work())
    return root


SOURCES: dict[str, tuple[type[TokenStream], str, dict[str, Any]]] = {
    "tokens": (TokenStream, "corpus", {}),
    "packed rows": (PackedStream, "corpus", {"columns": ["chunk_kind"]}),
    "best fit": (TokenStream, "corpus", {"packing": "best_fit"}),
    "buckets": (TokenStream, "corpus", {"packing": LengthBuckets((8,))}),
    "mixture": (TokenStream, "corpus", {"weights": {"web": 1, "code": 2}}),
    "view": (TokenStream, "view", {}),
}
MASKS: dict[str, Any] = {"position_ids": True, "doc_ids": True}
OPTIONS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "masks": (MASKS, {"enrichment", "assemble"}),
    "unshifted": (MASKS | {"labels": "unshifted"}, {"enrichment", "assemble", "staging"}),
    "a part of each row": (MASKS | {"cp_size": 2}, {"enrichment", "assemble", "staging"}),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_part_is_in_its_stage(source: str, options: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, prefix, own = SOURCES[source]
    more, stages = OPTIONS[options]
    clock = Clock(monkeypatch)
    how: dict[str, Any] = {"sequence_length": L, "batch_size": 2, "epochs": 1, "prefetch": 0} | own | more
    with kind(folder / prefix, **how) as stream:
        clock.reset()  # opening is no step
        for _ in stream:
            pass
        found = stream.telemetry.snapshot()["stages"]
    taken = {stage: round(found[stage]["total_s"] * 1e9) for stage in MAKING}
    assert taken == clock.spent
    assert {stage for stage, ns in taken.items() if ns} == stages | {"plan", "read"} | (
        {"decode"} if source == "packed rows" else set()
    )
    assert round(found["wait"]["total_s"] * 1e9) == sum(taken.values()) and found["queue_wait"]["total_s"] == 0


def test_remote_packed_rows(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes over the network while a row group is decoded is read, not decoded."""
    clock = Clock(monkeypatch)
    with range_server() as server:
        for path in (folder / "corpus").rglob("*"):
            if path.is_file():
                server.files[path.relative_to(folder / "corpus").as_posix()] = path.read_bytes()
        how: dict[str, Any] = {"sequence_length": L, "batch_size": 2, "epochs": 1, "prefetch": 0}
        with PackedStream(server.url, **how, remote=RemoteParams(cache=tmp_path)) as stream:
            clock.reset()
            assert len(list(stream)) > 5
            found = stream.telemetry.snapshot()["stages"]
    taken = {stage: round(found[stage]["total_s"] * 1e9) for stage in MAKING}
    assert taken == clock.spent and taken["read"] > 0 and taken["decode"] > 0


@pytest.mark.parametrize("prefetch", [0, 1])
def test_shapes_are_counted(folder: Path, prefetch: int) -> None:
    """Batches that were delivered, by the shape of their inputs."""
    how: dict[str, Any] = {"batch_size": 2, "epochs": 1, "prefetch": prefetch}
    with TokenStream(folder / "corpus", L, **how, packing=LengthBuckets((8,))) as stream:
        assert stream.telemetry.snapshot()["shapes"] == {}
        widths = [batch["input_ids"].shape[1] for batch in stream]
        assert stream.telemetry.snapshot()["shapes"] == {f"2 x {width}": widths.count(width) for width in (8, L)}
