"""`refinery shards`: what a node is told, what it fetches over a bad line, and the example that trains."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from refinery.loader import NodeStream
from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import FileEntry
from refinery.loader.read.remote.fetch_files import fetch_files
from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.store import checksums
from refinery.loader.stream.assignment import PlateauParams
from refinery.loader.stream.node import PLATEAU, node_shards
from refinery.pipelines.cli.command_line import build_parser
from refinery.pipelines.corpus.export.distribution import shards_of_node
from tests.corpus_factory import build_corpus
from tests.docs.blocks import subject_text
from tests.loader.range_server import RangeServer, range_server
from tests.pipelines.corpus.export.exporting import export, files_of, read_pt
from tests.pipelines.inputs import run
from tests.plain_manifest import manifest_of
from tests.sampling import one_commit_in_four
from tests.test_docs import FENCE, ROOT, rows

TEXTS = {("train", "web"): [[f"shard {k} page {i} " * 3 for i in range(6)] for k in range(12)]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("nodes") / "corpus", TEXTS)


@pytest.fixture(scope="module")
def tokens(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("nodes") / "tokens"
    export(corpus, out, "torch", shard_tokens=200)
    return out


def serve(server: RangeServer, folder: Path) -> str:
    server.files.update(files_of(folder))
    return server.url


@pytest.mark.parametrize("kind", ["corpus", "tokens"])
def test_the_command_lists_the_primary_and_the_next_nine(kind: str, corpus: Path, tokens: Path) -> None:
    place = corpus if kind == "corpus" else tokens
    payload = manifest_of(place)
    files = [shard["files"]["bin"] if kind == "corpus" else shard["file"] for shard in payload["shards"]]
    wanted = node_shards([file["path"] for file in files], "anna")
    with range_server() as server:
        found = [
            json.loads(line)
            for line in run("shards", serve(server, place), "--node", "anna", "--json").stdout.split("\n")[:-1]
        ]
        assert [entry["url"] for entry in found] == [f"{server.url}/{path}" for path in wanted]
    assert [entry["path"] for entry in found] == wanted and [entry["rank"] for entry in found] == list(range(10))
    known = {file["path"]: file["sha256"] for file in files}
    assert all(entry["sha256"] == known[entry["path"]] for entry in found)
    text = run("shards", place, "--node", "anna", "--count", 2).stdout
    assert text.startswith("primary ") and "next 1" in text and len(text.splitlines()) == 2


def test_what_has_no_shards_is_refused(corpus: Path, tmp_path: Path) -> None:
    export(corpus, tmp_path / "texts", "jsonl")
    with pytest.raises(FormatError, match="an export of documents; nodes train on a corpus"):
        shards_of_node(str(tmp_path / "texts"), "anna")
    with pytest.raises(FormatError, match=r"is not a corpus: manifest\.json is missing"):
        shards_of_node(str(tmp_path / "nothing"), "anna")
    with pytest.raises(ValueError, match="--split: 'validation' given, which has no shards"):
        shards_of_node(str(corpus), "anna", split="validation")


def test_files_are_fetched_once_and_right(tokens: Path, tmp_path: Path) -> None:
    """Through the command, from a server that drops connections; a second call fetches nothing."""
    with range_server() as server:
        url = serve(server, tokens)
        server.scripts = {}
        mine = [shard.file.path for shard in shards_of_node(url, "anna", 3)]
        server.script.extend(["", "", "", "", "reset in body", "", "503"])
        run("shards", url, "--node", "anna", "--count", 3, "--fetch", tmp_path / "mine")
        assert sorted(files_of(tmp_path / "mine")) == sorted(mine)
        for path in mine:
            assert read_pt(tmp_path / "mine" / path).tolist() == read_pt(tokens / path).tolist()
        before = len([name for name, _, _ in server.requests if name.endswith(".pt")])
        run("shards", url, "--node", "anna", "--count", 3, "--fetch", tmp_path / "mine")
        assert len([name for name, _, _ in server.requests if name.endswith(".pt")]) == before


def entry_of(path: Path, name: str) -> FileEntry:
    size, crc32c, sha256 = checksums(path)
    return FileEntry(name, size, crc32c, sha256)


@pytest.mark.parametrize("left", [0, 1, 1000, 2_999_999, 3_000_000, 5_000_000])
def test_a_file_goes_on_where_it_ended(tmp_path: Path, left: int) -> None:
    """left: bytes that an earlier attempt has left, rightly, or more than the file has."""
    data = bytes(range(256)) * 11_719
    (tmp_path / "data").write_bytes(data[:3_000_000])
    entry = entry_of(tmp_path / "data", "a/data.pt")
    partial = tmp_path / "mine" / "a" / "data.pt.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes((data * 2)[:left])
    with range_server() as server:
        server.files["a/data.pt"] = data[:3_000_000]
        (path,) = fetch_files(HttpStore(server.url), [entry], tmp_path / "mine")
        asked = [start for _, start, _ in server.requests]
    assert path.read_bytes() == data[:3_000_000] and not partial.exists()
    assert asked == ([] if left == 3_000_000 else [0 if left > 3_000_000 else left])


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_wrong_file_is_fetched_once_more_and_then_refused(tmp_path: Path, attempts: int) -> None:
    (tmp_path / "data").write_bytes(b"x" * 5000)
    entry = entry_of(tmp_path / "data", "data.pt")
    said: list[str] = []
    with range_server() as server:
        server.files["data.pt"] = b"x" * 5000
        server.script.extend(["wrong"] * attempts)
        store = HttpStore(server.url)
        store.params = FetchParams()
        if attempts == 1:
            (path,) = fetch_files(store, [entry], tmp_path / "mine", said.append)
            assert path.read_bytes() == b"x" * 5000
        else:
            with pytest.raises(CorruptShard, match=r"data\.pt: sha256 [0-9a-f]{64} found"):
                fetch_files(store, [entry], tmp_path / "mine", said.append)
            assert list(files_of(tmp_path / "mine")) == []
    assert len(said) == 2
    with range_server() as server, pytest.raises(FormatError, match="missing, 5000 bytes expected"):
        fetch_files(HttpStore(server.url), [entry], tmp_path / "other")


@one_commit_in_four
def test_the_example_trains_is_killed_and_goes_on(corpus: Path, tmp_path: Path) -> None:
    """Two halves are one whole, to the last bit; the loss falls, and shards are left behind."""

    def train(url: str, output: str, steps: int) -> str:
        command = [sys.executable, str(ROOT / "examples" / "train_volunteer.py"), url, "--node", "anna", "--steps"]
        command += [str(steps), "--output", str(tmp_path / output), "--cache", str(tmp_path / "cache")]
        command += ["--sequence-length", "16", "--batch-size", "2", "--checkpoint-every", "7"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with range_server() as server:
        url = serve(server, corpus)
        train(url, "whole", 120)
        train(url, "halves", 45)
        assert "going on after step 45" in train(url, "halves", 120)
    whole = (tmp_path / "whole" / "losses.jsonl").read_text()
    assert (tmp_path / "halves" / "losses.jsonl").read_text() == whole
    losses = [json.loads(line) for line in whole.splitlines()]
    assert losses[-1]["loss"] < losses[0]["loss"] / 2
    assert len({entry["shard"] for entry in losses}) > 2


PAGE = (ROOT / "docs" / "volunteers.md").read_text()


def test_the_page_names_every_argument_and_its_default() -> None:
    parameters = inspect.signature(NodeStream).parameters
    told = {cells[0].strip("`"): cells[1] for cells in rows(PAGE) if cells[0].startswith("`") and len(cells) == 3}
    told = {name: cell for name, cell in told.items() if name not in ("NodeStream",)}
    assert list(told) == list(parameters)
    for name, parameter in parameters.items():
        if name == "plateau":
            assert told[name] == f"`PlateauParams(window={PLATEAU.window})`"
            assert PlateauParams(window=PLATEAU.window) == PLATEAU and PLATEAU.max_improvement is None
            rule = f"over the last {PLATEAU.window} batches, their variance is at most {PLATEAU.max_variance} and their"
            assert f"{rule} mean is below {PLATEAU.max_loss} nats a token" in " ".join(PAGE.split())
        elif parameter.default is not inspect.Parameter.empty:
            assert ast.literal_eval(told[name]) == parameter.default


def test_the_pages_code_runs(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out" / "demo").mkdir(parents=True)
    (tmp_path / "out" / "demo" / "corpus").symlink_to(corpus)
    monkeypatch.chdir(tmp_path)
    blocks = [body for language, body in FENCE.findall(PAGE) if language == "python"]
    found, moved = ({}, {})  # type: tuple[dict[str, object], dict[str, object]]
    for block, names in zip(blocks, (found, moved), strict=True):
        exec(compile(block, "volunteers.md", "exec"), names)  # noqa: S102 - our own page
    assert moved["saved"]["plateau"]["max_loss"] == 0.05  # type: ignore[index] # a state
    assert isinstance(found["state"], dict) and found["state"]["node"] == "anna"


def test_the_pages_commands_are_commands() -> None:
    """Every `refinery …` line of the pages, with its flags, is understood by the command line."""
    lines = [
        line.split("  #")[0]
        for subject in ("volunteers", "export")
        for _, body in FENCE.findall(subject_text(subject))
        for line in body.splitlines()
        if line.startswith("refinery ")
    ]
    assert len(lines) >= 8
    for line in lines:
        words = line.replace("FORMAT", "jsonl").split()[1:]
        args, flags = build_parser().parse_known_args(words)
        assert flags == [] and args.command == words[0], line
