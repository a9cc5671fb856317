"""From S3 to S3: a run, its check, the loader with a state, a takedown; the same bytes as in a local folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from refinery.loader import TokenStream
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.s3_client import forget_clients
from refinery.pipelines.run.at_work import LEASE
from refinery.transforms.core.document import hash64
from tests.fake_s3 import Call, FakeS3, Fault, fake_s3
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import check_corpus, check_work, digests

FAULTS = ("408", "429", "500", "502", "503", "504", "reset", "lost", "short", "reset in body")
UPLOAD_FAULTS = (*FAULTS[:-2], "corrupt request", "part of request")
SHARE = 0.05
SEED = 1
OPTIONS: dict[str, Any] = {"sequence_length": 32, "batch_size": 2, "seed": 3, "epochs": 1}


@pytest.fixture(scope="module")
def server(small: Path) -> Iterator[FakeS3]:
    """s3://raw with the inputs, and two empty buckets; listings have pages of two."""
    with fake_s3("raw", "corpus", "parts") as server:
        server.api.page_size = 2
        for name in ("a.jsonl", "b.jsonl"):
            server.put("raw", f"in/{name}", (small / name).read_bytes())
        yield server


@pytest.fixture(scope="module")
def recipe(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    fields: dict[str, Any] = yaml.safe_load((small / "recipe.yaml").read_text())
    fields["sources"][0]["paths"] = ["s3://raw/in/[ab].jsonl"]
    path = tmp_path_factory.mktemp("recipe") / "s3.yaml"
    path.write_text(yaml.safe_dump(fields))
    return path


@pytest.fixture(scope="module")
def local(server: FakeS3, recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the same recipe makes in a local folder."""
    prefix = tmp_path_factory.mktemp("local") / "corpus"
    run("refine", recipe, "--output", prefix, "--workers", 0, environment=server.environment)
    return prefix


@pytest.fixture(scope="module")
def there(server: FakeS3, recipe: Path) -> str:
    """The run's own prefix in a bucket, its work in another one, where every twentieth call goes wrong."""
    faults: list[tuple[str, str]] = []

    def weather(call: Call) -> Fault | None:
        if (call.kind, call.bucket) == ("delete", "corpus") and not call.name.rpartition("/")[2].startswith(".tmp-"):
            return Fault("status", 403, message="AccessDenied")
        if hash64("weather", SEED, call.number) >= SHARE * 2**64:
            return None
        kinds = UPLOAD_FAULTS if call.kind == "put" else FAULTS if call.kind == "get" else FAULTS[:-2]
        fault = Fault.named(kinds[hash64("kind", SEED, call.number) % len(kinds)])
        faults.append((call.kind, fault.kind if fault else ""))
        return fault

    server.changes.clear()
    server.on_call = weather
    places = ("--output", "s3://corpus/run", "--work", "s3://parts/run")
    run("refine", recipe, *places, "--workers", 0, environment=server.environment)
    server.on_call = lambda call: None
    print(f"{len(faults)} faults in {len(server.calls)} calls")
    assert len(faults) > 5
    return "s3://corpus/run"


def test_the_same_bytes_and_nothing_is_replaced(server: FakeS3, local: Path, there: str) -> None:
    published = {name: open_store(local).read(name) for name in open_store(local).list()}
    found = server.read("corpus", "run/")
    assert digests(found) == digests(published)
    check_corpus(found)
    check_work({**found, **{f"work/{name}": data for name, data in server.read("parts", "run/").items()}})
    changes = {what for what, bucket, name in server.changes if not LEASE.search(name) and ".tmp-" not in name}
    assert changes == {"create"}


def test_slices_on_s3_make_the_same_bytes(server: FakeS3, recipe: Path, local: Path) -> None:
    """What crosses between slices is in a bucket, too, where calls go wrong; and it is gone at the end."""
    calls = 0

    def weather(call: Call) -> Fault | None:
        nonlocal calls
        calls += 1
        if hash64("slices", SEED, calls) >= SHARE * 2**64:
            return None
        kinds = UPLOAD_FAULTS if call.kind == "put" else FAULTS if call.kind == "get" else FAULTS[:-2]
        return Fault.named(kinds[hash64("kind", SEED, calls) % len(kinds)])

    command = ("refine", recipe, "--output", "s3://corpus/slices", "--work", "s3://parts/slices", "--workers", 0)
    server.on_call = weather
    try:
        run(*command, "--slices", 2, "--until", "cut", environment=server.environment)
        for step in ("clean", "dedup", "shards-0", "shards-1"):
            for number in range(2):
                run(*command, "--slice", f"{number}/2", "--until", step, environment=server.environment)
        assert server.read("parts", "slices/exchange/")
        run(*command, environment=server.environment)
    finally:
        server.on_call = lambda call: None
    published = {name: open_store(local).read(name) for name in open_store(local).list()}
    assert digests(server.read("corpus", "slices/")) == digests(published)
    assert not server.read("parts", "slices/exchange/")
    assert not server.read("parts", "slices/at_work/")


def test_a_finished_run_is_verified(server: FakeS3, there: str) -> None:
    done = run("verify", there, environment=server.environment, check=False)
    assert "all checks passed" in done.stdout, done.stdout + done.stderr
    again = run("inspect", there, "--work", "s3://parts/run", environment=server.environment)
    assert "s3://corpus/run" in again.stdout


def test_the_loader_goes_on_from_a_state(
    server: FakeS3, local: Path, there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.use(monkeypatch)
    forget_clients()
    remote = RemoteParams(cache=tmp_path)
    with TokenStream(str(local), **OPTIONS) as near:
        expected = [batch["input_ids"] for batch in near]
    with TokenStream(there, remote=remote, **OPTIONS) as stream:
        first = [next(stream)["input_ids"] for _ in range(2)]
        state = stream.state_dict()
    with TokenStream(there, remote=remote, **OPTIONS) as stream:
        stream.load_state_dict(state)
        rest = [batch["input_ids"] for batch in stream]
    assert len(expected) > 4
    for ours, theirs in zip([*first, *rest], expected, strict=True):
        assert np.array_equal(ours, theirs)


def test_a_takedown_makes_a_new_version_beside_it(server: FakeS3, there: str, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("b.example\n")
    server.put("raw", "hosts.txt", hosts.read_bytes())
    before = server.read("corpus", "run/")
    asked = ("--hosts", "s3://raw/hosts.txt", "--work", "s3://parts/run", "--output", "s3://corpus/second")
    run("remove", there, *asked, "--workers", 0, environment=server.environment)
    assert server.read("corpus", "run/") == before
    done = run("verify", "s3://corpus/second", "--against", there, environment=server.environment, check=False)
    assert "all checks passed" in done.stdout, done.stdout + done.stderr
    manifest = check_corpus(server.read("corpus", "second/"))
    assert 0 < manifest.totals["documents"] < check_corpus(before).totals["documents"]


def test_a_store_that_ignores_conditions_gets_nothing(small: Path) -> None:
    with fake_s3("corpus", "raw") as server:
        server.api.ignores = {"put"}
        done = run(
            "refine", small / "recipe.yaml", "--output", "s3://corpus/run", "--workers", 0,
            environment=server.environment, check=False,
        )  # fmt: skip
        assert done.returncode != 0 and "ignores the header If-None-Match" in done.stdout + done.stderr
        assert not server.objects
