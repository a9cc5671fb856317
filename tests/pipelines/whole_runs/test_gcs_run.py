"""The demo from buckets to buckets: the same bytes as in a local folder, also where every twentieth call goes wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from refinery.loader import TokenStream
from refinery.loader.format.manifest import MANIFEST, read_manifest, unseal
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.at_work import LEASE
from refinery.transforms.core.document import hash64
from tests.fake_gcs import Call, FakeGcs, Fault, fake_gcs
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import digests
from tests.sampling import one_commit_in_four

FAULTS = ("408", "429", "500", "502", "503", "504", "reset", "lost", "short", "reset in body")
UPLOAD_FAULTS = (*FAULTS[:-2], "corrupt request", "part of request")
SHARE = 0.05
SEED = 1
ONE_WAVE = ("--set", "run.wave_files=100")


@pytest.fixture(scope="module")
def server(inputs: Path) -> Iterator[FakeGcs]:
    """gs://raw with crawl and models, and two empty buckets."""
    with fake_gcs("raw", "corpus", "work") as server:
        server.put_folder("raw", "in/", inputs / "input")
        server.put("raw", "models/tokenizer.json", (inputs / "tokenizer.json").read_bytes())
        server.put("raw", "models/quality.bin", (inputs / "quality.bin").read_bytes())
        yield server


@pytest.fixture(scope="module")
def recipe(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small recipe with every path in gs://raw."""
    fields: dict[str, Any] = yaml.safe_load((inputs / "recipe.yaml").read_text())
    for source in fields["sources"]:
        source["paths"] = [path.replace(str(inputs / "input"), "gs://raw/in") for path in source["paths"]]
    fields["tokenizer"]["path"] = "gs://raw/models/tokenizer.json"
    fields["quality"]["model"] = "gs://raw/models/quality.bin"
    path = tmp_path_factory.mktemp("recipe") / "gcs.yaml"
    path.write_text(yaml.safe_dump(fields))
    return path


@pytest.fixture(scope="module")
def local(server: FakeGcs, recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the same recipe makes in a local folder."""
    prefix = tmp_path_factory.mktemp("local") / "corpus"
    run("refine", recipe, "--output", prefix, "--workers", 1, *ONE_WAVE, environment=server.environment)
    return prefix


def published(local: Path) -> dict[str, bytes]:
    store = open_store(local)
    return {name: store.read(name) for name in store.list() if not name.startswith("work/")}


def bad_weather(call: Call, is_first: bool = False) -> Fault | None:
    """Every twentieth call, by its number, has one of the faults that may pass, and so has the first one of a kind."""
    if not is_first and hash64("weather", SEED, call.number) >= SHARE * 2**64:
        return None
    kinds = UPLOAD_FAULTS if call.kind.startswith("upload") else FAULTS if call.kind == "download" else FAULTS[:-2]
    return Fault.named(kinds[hash64("kind", SEED, call.number) % len(kinds)])


@one_commit_in_four
def test_nothing_is_deleted_from_the_corpus(server: FakeGcs, recipe: Path, local: Path) -> None:
    """With --work elsewhere. The worker's role there cannot delete, nor overwrite."""
    server.changes.clear()
    server.on_call = lambda call: Fault("status", 403) if (call.kind, call.bucket) == ("delete", "corpus") else None
    places = ("--output", "gs://corpus/demo", "--work", "gs://work/demo")
    run("refine", recipe, *places, "--workers", 1, *ONE_WAVE, environment=server.environment)
    assert digests(server.read("corpus", "demo/")) == digests(published(local))
    changes = {(what, bucket) for what, bucket, name in server.changes if not LEASE.search(name)}
    assert changes == {("create", "corpus"), ("create", "work")}
    done = run("verify", "gs://corpus/demo", environment=server.environment)
    assert "all checks passed" in done.stdout


@one_commit_in_four
def test_bad_weather(server: FakeGcs, recipe: Path, local: Path) -> None:
    faults: list[tuple[str, str]] = []

    def weather(call: Call) -> Fault | None:
        fault = bad_weather(call, all(kind != call.kind for kind, _ in faults))
        if fault is not None:
            faults.append((call.kind, fault.kind if fault.kind != "status" else str(fault.status)))
        return fault

    server.changes.clear()
    server.calls.clear()
    server.on_call = weather
    run("refine", recipe, "--output", "gs://corpus/weather", "--workers", 1, environment=server.environment)
    found = server.read("corpus", "weather/")
    assert digests(found) == digests(published(local))
    assert {what for what, _, name in server.changes if not LEASE.search(name)} == {"create"}
    print(f"{len(faults)} faults in {len(server.calls)} calls")
    assert len(faults) > 10 and {kind for kind, _ in faults} >= {"download", "stat", "upload"}


def test_the_same_documents_as_from_local_inputs(local: Path, corpus: Path) -> None:
    """Origins differ, and with them ties among copies; what is counted does not."""
    ours, theirs = (unseal((prefix / MANIFEST).read_bytes(), MANIFEST) for prefix in (local, corpus))
    assert ours["funnel"] == theirs["funnel"]
    assert ours["totals"]["documents"] == theirs["totals"]["documents"] > 0


def test_the_loader_reads_all_of_it(
    server: FakeGcs, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.use(monkeypatch)
    server.on_call = bad_weather
    for name, data in published(local).items():
        server.put("corpus", f"read/{name}", data)
    options: dict[str, Any] = {"sequence_length": 256, "batch_size": 4, "seed": 3, "epochs": 1}
    with (
        TokenStream("gs://corpus/read", remote=RemoteParams(cache=tmp_path), **options) as remote,
        TokenStream(str(local), **options) as near,
    ):
        rows = 0
        for ours, theirs in zip(remote, near, strict=True):
            assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)
            rows += int((ours["labels"] != -100).any(axis=1).sum())
    tokens = [shard.tokens for shard in read_manifest(open_store(local)).shards if shard.split == "train"]
    assert rows == -(-sum(tokens) // 256)
