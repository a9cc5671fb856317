"""Whole acquisitions: same bytes, killed anywhere and run again, what an output may be, and who reads it."""

import json
import random
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.storage.store import LocalStore
from refinery.pipelines.acquire import shard_files
from refinery.pipelines.acquire.tree_files import RepositoryError
from refinery.pipelines.cli.command_line import execute
from refinery.transforms.code.source_text import SourceFilesParams
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import plan_sources, read_task
from tests.fake_gcs import fake_gcs
from tests.pipelines.acquire.repositories import MIT, acquire, everything, git, needs_git, records, repository_of, texts
from tests.pipelines.acquire.test_tarballs import member, save, tar_of


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Three tarballs; the second one becomes several shards."""
    monkeypatch.setattr(shard_files, "SHARD_BYTES", 3000)
    found = []
    for name, count in (("a", 1), ("b", 12), ("c", 2)):
        files = [member(f"t/{number}.c", f"{name}{number}\n".encode() * 100) for number in range(count)]
        random.Random(name).shuffle(files)
        made = save(tmp_path / f"{name}.tar", tar_of(member("t/LICENSE", MIT), *files))
        found.append(made | {"name": f"org/{name}"})
    return found


def test_the_same_bytes_and_a_manifest_that_adds_up(tmp_path: Path, entries: list[dict[str, Any]]) -> None:
    said = [acquire(tmp_path / name, *entries) for name in ("one", "two")]
    assert everything(tmp_path / "one") == everything(tmp_path / "two")
    assert said[0][:-2] == said[1][:-2]
    assert "2 of 3: org/b: 5 files so far" in said[0]
    manifest = unseal((tmp_path / "one" / "manifest.json").read_bytes(), "manifest")
    assert manifest["totals"]["taken"]["files"] == len(records(tmp_path / "one")) == 18
    assert [entry["name"] for entry in manifest["repositories"]] == ["org/a", "org/b", "org/c"]
    assert len(list((tmp_path / "one" / "files").iterdir())) > 4
    before = everything(tmp_path / "one")
    assert [line.endswith("is there") for line in acquire(tmp_path / "one", *entries)[:3]] == [True] * 3
    assert everything(tmp_path / "one") == before


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_publication_and_run_again(
    tmp_path: Path, entries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    acquire(tmp_path / "whole", *entries)
    create = LocalStore.create
    left = 0

    def killed(self: LocalStore, name: str, source: bytes | Path) -> None:
        nonlocal left
        if after:
            create(self, name, source)
        left -= 1
        if not left:
            raise KeyboardInterrupt
        if not after:
            create(self, name, source)

    points = len(everything(tmp_path / "whole"))
    for point in range(1, points + 1):
        left = point
        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "create", killed)
            with pytest.raises(KeyboardInterrupt):
                acquire(tmp_path / f"out{point}", *entries)
        acquire(tmp_path / f"out{point}", *entries)
        assert everything(tmp_path / f"out{point}") == everything(tmp_path / "whole")


def test_outputs_that_are_something_else(tmp_path: Path, entries: list[dict[str, Any]]) -> None:
    out = tmp_path / "out"
    acquire(out, *entries)
    with pytest.raises(ValueError, match="holds the files of another list; choose another one"):
        acquire(out, *entries[:2])
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / RUN).write_text("{}")
    with pytest.raises(ValueError, match="holds a corpus"):
        acquire(tmp_path / "corpus", *entries)
    (tmp_path / "foreign" / "files").mkdir(parents=True)
    (tmp_path / "foreign" / "files" / "x.jsonl").write_text("")
    with pytest.raises(RuntimeError, match=r"files/x.jsonl belongs to no repository of the list; remove it"):
        acquire(tmp_path / "foreign", *entries)
    shard = next((out / "files").iterdir())
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(RepositoryError, match="is gone or cut; remove"):
        acquire(out, *entries)
    with pytest.raises(ValueError, match="--output: a local folder, gs://"):
        acquire("ftp://x", *entries)


def test_readers_take_the_records_without_change(tmp_path: Path, entries: list[dict[str, Any]]) -> None:
    said = acquire(tmp_path / "out", *entries)
    paths = f"{tmp_path}/out/files/*.jsonl.zst"
    assert said[-1] == f"read them:   refinery refine recipes/code.yaml --input '{paths}' --output OUTPUT"
    source = SourceFilesParams(name="code", paths=(paths,))
    found = [record for task in plan_sources([source]) for record in read_task(task)]
    assert all(isinstance(record, RawDocument) for record in found)
    read = [{"content": r.content, **r.meta} for r in found if isinstance(r, RawDocument)]
    urls = ["{repo}@{commit}/{path}".format_map(r.meta) for r in found if isinstance(r, RawDocument)]
    assert urls == [r.url for r in found if isinstance(r, RawDocument)]
    key = itemgetter("repo", "path")
    assert sorted(read, key=key) == sorted(records(tmp_path / "out"), key=key)


@needs_git
def test_a_tag_that_moved_is_an_error(tmp_path: Path) -> None:
    first = repository_of(tmp_path / "a", {"x.c": b"x\n"})
    second = repository_of(tmp_path / "b", {"x.c": b"y\n"})
    git(tmp_path / "a", "fetch", "--quiet", str(tmp_path / "b"), "main")
    acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "tag": "v1"})
    git(tmp_path / "a", "update-ref", "refs/tags/v1", second)
    with pytest.raises(RepositoryError, match=f"tag v1 has moved: it was at {first} and is at {second} now"):
        acquire(tmp_path / "out", {"clone": str(tmp_path / "a"), "tag": "v1"})
    assert texts(tmp_path / "out") == {"x.c": "x\n"}


def test_into_a_bucket(tmp_path: Path, entries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    acquire(tmp_path / "local", *entries)
    with fake_gcs("bucket") as server:
        server.use(monkeypatch)
        for _ in range(2):
            acquire("gs://bucket/code", *entries)
        stored = {name.removeprefix("code/"): found.data for (_, name), found in server.objects.items()}
    assert stored == everything(tmp_path / "local")


def test_the_command(
    tmp_path: Path, entries: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    given = ["acquire", "git", str(tmp_path / "list.jsonl"), "--output", str(tmp_path / "out")]
    assert execute(given) == 0
    assert "3 repositories are in" in capsys.readouterr().out
    one = ["--tarball", entries[0]["tarball"], "--commit", entries[0]["commit"], "--output", str(tmp_path / "single")]
    assert execute(["acquire", "git", *one]) == 0
    assert execute(["acquire", "git", *one, "--sha256"]) == 2
    wrong = {
        "a list, or one repository": [given[2], *one],
        "--max-file-bytes: 0 given": [*one, "--max-file-bytes", "0"],
        "--timeout: nan given": [*one, "--timeout", "nan"],
    }
    for message, arguments in wrong.items():
        assert execute(["acquire", "git", *arguments]) == 2
        assert message in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    one = ["--clone", str(tmp_path), "--commit", "c" * 40, "--output", str(tmp_path / "failed")]
    assert execute(["acquire", "git", *one]) == 1
    assert "it is not a git repository\n0 of 1 repositories are complete" in capsys.readouterr().err
    (tmp_path / "objects").mkdir()
    assert execute(["acquire", "git", *one]) == 1
    assert "git is not installed" in capsys.readouterr().err
