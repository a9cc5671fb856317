"""recipes/data/mix.yaml, whole, from servers on this machine: a hub, a web server and S3."""

import gzip
import io
import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from refinery.loader.format.manifest import Manifest
from tests.docs.recipe_commands import DATA, RECIPES, commands_of
from tests.fake_hub import FakeHub, commit, fake_hub
from tests.fake_s3 import FakeS3, fake_s3
from tests.fork_server import fork_server
from tests.loader.range_server import RangeServer, range_server
from tests.pipelines.inputs import ROOT, run
from tests.pipelines.small_runs import check_corpus, check_work, digests, folder_files, text_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

TOKEN = "hf_" + "a" * 34
SOURCES = ("fineweb-edu", "fineweb", "redpajama", "slimpajama", "c4")
TARGETS = {"fineweb-edu": 2000, "fineweb": 700, "redpajama": 900, "slimpajama": 10_000, "c4": 600}
NUMBERS = dict(
    zip(SOURCES, (range(60), range(40, 100), range(90, 150), range(140, 160), range(1000, 1060)), strict=True)
)


def parquet(numbers: range) -> bytes:
    out = io.BytesIO()
    columns = {"text": [text_of(n) for n in numbers], "id": [str(n) for n in numbers]}
    columns |= {name: [f"{name} {n}" for n in numbers] for name in ("url", "date", "dump")}
    pq.write_table(pa.table(columns), out, row_group_size=7)
    return out.getvalue()


def lines(numbers: range) -> bytes:
    return b"".join(json.dumps({"text": text_of(n), "meta": {"url": f"u{n}"}}).encode() + b"\n" for n in numbers)


def halves(numbers: range) -> tuple[range, range]:
    middle = len(numbers) // 2
    return numbers[:middle], numbers[middle:]


def card(config: str, path: str) -> bytes:
    return f"---\nconfigs:\n- config_name: {config}\n  data_files:\n  - split: train\n    path: {path}\n---\n".encode()


@dataclass(frozen=True)
class Servers:
    hub: FakeHub
    web: RangeServer
    s3: FakeS3
    tokenizer: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"HF_ENDPOINT": self.hub.url, "HF_TOKEN": TOKEN, **self.s3.environment}

    def refine(self, output: Path, *more: object, check: bool = True) -> str:
        """`refine recipes/data/mix.yaml`, and what it printed."""
        settings = [f"sources.{name}.target={target}" for name, target in TARGETS.items()]
        settings += [f"tokenizer.path={self.tokenizer}", "shards.validation=0.1", "near_dup=off", "pii=off"]
        settings += [f"sources.redpajama.path_lists=['{self.web.url}/v1/urls.txt']"]
        arguments = [part for setting in settings for part in ("--set", setting)]
        done = run("refine", ROOT / "recipes" / "data" / "mix.yaml", "--output", output, *arguments, *more,
                   environment=self.environment, check=check)  # fmt: skip
        assert (done.returncode == 0) == check, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def servers(small: Path) -> Iterator[Servers]:
    with fake_hub() as hub, range_server() as web, fake_s3() as s3:
        hub.token = TOKEN
        for name in SOURCES[:2]:
            first, second = halves(NUMBERS[name])
            files = {"sample/10BT/000.parquet": parquet(first), "sample/10BT/001.parquet": parquet(second)}
            hub.put(f"HuggingFaceFW/{name}", commit(1), files | {"README.md": card("sample-10BT", "sample/10BT/*")})
        first, second = halves(NUMBERS["redpajama"])
        web.files["v1/0.jsonl"] = lines(first)
        s3.put("pajama", "v1/1.jsonl", lines(second))
        web.files["v1/urls.txt"] = f"{web.url}/v1/0.jsonl\ns3://pajama/v1/1.jsonl\n".encode()
        files = {"train/chunk1/a.jsonl.zst": zstandard.compress(lines(NUMBERS["slimpajama"])), "test/b.jsonl.zst": b"x"}
        hub.put("cerebras/SlimPajama-627B", commit(2), files)
        rows = [{"text": text_of(n), "url": "", "timestamp": "2019"} for n in NUMBERS["c4"]]
        packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0)
        files = {"en/c4-train.0.json.gz": packed, "README.md": card("en", "en/c4-train.*.json.gz")}
        hub.put("allenai/c4", commit(3), files)
        yield Servers(hub, web, s3, small / "tokenizer.json")


def tokens_by_source(prefix: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in prefix.rglob("*.provenance.parquet"):
        for row in pq.read_table(path).to_pylist():
            found[row["source"]] += row["token_count"]
    return found


def funnel_of(manifest: Manifest, stage: str, key: str = "kept") -> dict[str, Mapping[str, int]]:
    return {row["source"]: row[key] for row in manifest.funnel if row["stage"] == stage}


@pytest.fixture(scope="module")
def unbroken(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("mix") / "corpus"
    servers.refine(prefix, "--workers", 1)
    return prefix


def test_five_sources_are_mixed_in_order_of_priority_up_to_their_targets(unbroken: Path, servers: Servers) -> None:
    files = folder_files(unbroken)
    manifest = check_corpus(files)
    check_work(files)
    read = funnel_of(manifest, "read")
    assert {name: read[name]["documents"] for name in SOURCES} == {name: len(NUMBERS[name]) for name in SOURCES}
    taken: set[int] = set()
    for name in SOURCES:  # what several sources have counts for the first
        own = set(NUMBERS[name]) - taken
        assert funnel_of(manifest, "encode")[name]["documents"] == len(own)
        taken |= own
    found = tokens_by_source(unbroken)
    over = funnel_of(manifest, "target", "dropped")
    for name, target in TARGETS.items():
        assert found[name] <= target
        assert ("over-target" in over[name]) == (name != "slimpajama")
        assert name == "slimpajama" or found[name] > target - 200  # less than a slice: a document or two here
    inputs = json.loads(files["_run.json"])["inputs"]
    assert {entry["digest"].partition(":")[0] for entry in inputs} == {"sha256", "etag"}
    assert sum(f"@{commit(1)}/" in entry["path"] for entry in inputs) == 4


def test_no_secret_is_written_or_said(unbroken: Path, servers: Servers) -> None:
    assert not any(TOKEN.encode() in data for data in folder_files(unbroken).values())
    assert TOKEN not in servers.refine(unbroken)


def test_the_same_bytes_whatever_the_workers_and_parts(unbroken: Path, servers: Servers, tmp_path: Path) -> None:
    servers.refine(tmp_path / "c", "--workers", 2, "--set", "run.part_bytes=3000", "--set", "run.wave_files=2")
    assert digests(folder_files(tmp_path / "c")) == digests(folder_files(unbroken))


def test_an_outage_costs_a_wave_and_no_document(unbroken: Path, servers: Servers, tmp_path: Path) -> None:
    """The store of large files refuses in the middle of the run; the same command goes on where it stopped."""
    refused = {name: data for name, data in servers.hub.store.files.items() if "SlimPajama" in name}
    asked = len(servers.hub.store.requests)
    servers.refine(tmp_path / "c", "--workers", 1, "--dry-run")
    planning = Counter(name for name, _, _ in servers.hub.store.requests[asked:])
    for name in refused:
        servers.hub.store.scripts[name] = deque([""] * planning[name] + ["405"] * 99)
    text = servers.refine(tmp_path / "c", "--workers", 1, "--set", "run.wave_files=3", check=False)
    assert "status 405" in text
    assert not (tmp_path / "c" / "manifest.json").exists()
    servers.hub.store.scripts.clear()
    servers.hub.store.script.extend(["503", "reset in body", "short"])
    assert "waves are done" in servers.refine(tmp_path / "c", "--workers", 1, "--set", "run.wave_files=3")
    assert digests(folder_files(tmp_path / "c")) == digests(folder_files(unbroken))


def test_a_new_target_repeats_phase_3_alone(unbroken: Path, servers: Servers, tmp_path: Path) -> None:
    more = ("--workers", 1, "--reuse", unbroken)
    text = servers.refine(tmp_path / "c", *more, "--set", "sources.c4.target=1200")
    assert "dedup reused" in text
    assert 1000 < tokens_by_source(tmp_path / "c")["c4"] <= 1200
    assert tokens_by_source(unbroken)["c4"] <= 600


def test_a_source_can_be_switched_off(servers: Servers, tmp_path: Path) -> None:
    asked = len(servers.hub.hub.requests)
    text = servers.refine(tmp_path / "c", "--workers", 1, "--set", "sources.c4.enabled=off", "--set",
                          "sources.fineweb.enabled=off")  # fmt: skip
    assert "tokens" in text
    assert not any("allenai/c4" in request.path for request in servers.hub.hub.requests[asked:])
    assert set(tokens_by_source(tmp_path / "c")) == {"fineweb-edu", "redpajama", "slimpajama"}


@pytest.mark.parametrize("recipe", DATA, ids=lambda path: path.stem)
def test_the_commands_of_a_recipe_run(recipe: Path, servers: Servers, tmp_path: Path) -> None:
    """As they stand in its comments, one after the other. But no variable leads to RedPajama's server, and the texts
    here are short and near copies.
    """
    (tmp_path / "recipes").symlink_to(RECIPES)
    if not any("train-tokenizer" in words for words in commands_of(recipe)):
        (tmp_path / "tokenizer.json").symlink_to(servers.tokenizer)
    server = f"sources.redpajama.path_lists=['{servers.web.url}/v1/urls.txt']"
    for words in commands_of(recipe):
        more = ["--set", "near_dup=off", "--set", "heuristics=off"] if words[1] == "refine" else []
        more += ["--set", server] if "together.xyz" in (tmp_path / words[2]).read_text() else []
        done = fork_server().run(*words[1:], *more, folder=tmp_path, environment=servers.environment)
        assert done.code == 0, done.err
        output = tmp_path / words[words.index("--output") + 1]
        assert output.is_file() or check_corpus(folder_files(output)).shards
