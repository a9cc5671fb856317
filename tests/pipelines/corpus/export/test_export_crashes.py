"""Killed at any change of its folder and started again, in a bucket, with other workers: the same bytes, never half."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import MANIFEST
from refinery.loader.storage.store import LocalStore
from refinery.pipelines.corpus.checks.verify_export import verify_export
from refinery.pipelines.corpus.export.checkpoint import CHECKPOINT
from refinery.pipelines.corpus.export.options import WORK
from refinery.pipelines.corpus.export.status import export_status
from refinery.pipelines.run.at_work import at_work
from tests.corpus_factory import build_corpus
from tests.fake_gcs import fake_gcs
from tests.fork_server import ForkServer
from tests.pipelines.corpus.export.exporting import export, files_of
from tests.sampling import ALL, one_commit_in_four, scaled, spread

TEXTS = {
    ("train", "web"): [[f"page {i} " * (i % 3 + 1) for i in range(6)], ["x" * 90]],
    ("validation", "web"): [["held out"]],
}
MORE = {("train", "web"): [["new page"] * 3, ["z" * 70]]}
SIZE = 32
PARTS, KEEP = scaled(5, 1), 2  # tests that share the points of a kind, and the points of each, where not all run

ONE_FILE = ("--format", "jsonl", "--single-file")
TOKENS = ("--format", "torch", "--shard-tokens", SIZE, "--append")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("crashes")
    return [build_corpus(folder / "one", TEXTS), build_corpus(folder / "two", MORE, fingerprint="2a" * 32)]


def command(corpus: object, output: object, *more: object, workers: int = 0) -> list[object]:
    return ["export", corpus, "--output", output, "--workers", workers, "--quiet", *more]


def start(kind: str, corpora: list[Path], place: Path) -> list[object]:
    """The command that is to be killed; for tokens one that adds a corpus to an export that is there."""
    if kind == "one file":
        return command(corpora[0], place, *ONE_FILE)
    export(corpora[0], place, "torch", shard_tokens=SIZE)
    return command(corpora[1], place, *TOKENS)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", ["one file", "tokens"])
def test_killed_and_started_again(
    kind: str, part: int, corpora: list[Path], forks: ForkServer, tmp_path: Path, record_property: Any
) -> None:
    """Each point costs two commands."""
    whole, begun = tmp_path / "whole", tmp_path / "begun"
    words = start(kind, corpora, begun)
    if begun.exists():
        shutil.copytree(begun, whole)
    words[3] = whole
    done = forks.run(*words, faults=[("at_change", {"root": str(whole), "syncs": ALL})])
    assert done.code == 0, done.err
    finished, old = files_of(whole), files_of(begun)
    points = spread(f"crash points of exports, {kind}, {part}", list(range(done.notes["changes"]))[part::PARTS], KEEP)
    for point in points:
        out = tmp_path / f"out-{point}"
        if begun.exists():
            shutil.copytree(begun, out)
        words[3] = out
        killed = forks.run(*words, faults=[("at_change", {"root": str(out), "kill": point, "syncs": ALL})])
        assert killed.was_killed, f"point {point}: {killed}"
        left = files_of(out)
        if MANIFEST in left:  # readers see what was there before, or all that is new
            assert left[MANIFEST] in (old.get(MANIFEST), finished[MANIFEST]), point
            listed = finished if left[MANIFEST] == finished[MANIFEST] else old
            missing = set(listed) - set(left) - {CHECKPOINT}
            assert not missing, point
        if "_run.json" in left:
            assert export_status(str(out)).state in ("running", "growing", "complete")
        again = forks.run(*words)
        assert again.code == 0, f"point {point}: {again.err}"
        assert files_of(out) == finished, point
    assert verify_export(str(whole)).failures == []
    assert all(any(path.iterdir()) for path in whole.rglob("*") if path.is_dir())  # nothing is left, no folder either
    record_property("crash point", len(points))


@one_commit_in_four
def test_the_same_bytes_with_two_workers_and_in_a_bucket(
    corpora: list[Path], forks: ForkServer, tmp_path: Path
) -> None:
    """From a bucket into a bucket, and through worker processes."""
    with fake_gcs("bucket") as gcs:
        gcs.put_folder("bucket", "corpus/", corpora[0])
        for number, words in enumerate((ONE_FILE, TOKENS)):
            done = forks.run(*command(corpora[0], tmp_path / f"local-{number}", *words, workers=2))
            assert done.code == 0, done.err
            remote = command("gs://bucket/corpus", f"gs://bucket/out-{number}", *words)
            done = forks.run(*remote, environment=gcs.environment)
            assert done.code == 0, done.err
            assert gcs.read("bucket", f"out-{number}/") == files_of(tmp_path / f"local-{number}")
            checked = forks.run("verify", f"gs://bucket/out-{number}", environment=gcs.environment)
            assert checked.code == 0 and "all checks passed" in checked.out
            told = forks.run("status", f"gs://bucket/out-{number}", environment=gcs.environment)
            assert told.code == 0 and "complete" in told.out


@pytest.mark.parametrize("kind", ["one file", "tokens"])
def test_a_second_command_is_told_of_the_first(
    kind: str, corpora: list[Path], forks: ForkServer, tmp_path: Path
) -> None:
    """This process is the first command; at its end it would remove what the second one works with."""
    words = start(kind, corpora, tmp_path / "out")
    if kind == "one file":  # begun, and not finished
        export(corpora[0], tmp_path / "out", "jsonl", single_file=True)
        (tmp_path / "out" / MANIFEST).unlink()
    with at_work(LocalStore(str(tmp_path / "out" / WORK)), False, print):
        done = forks.run(*words)
        assert done.code == 1 and "another command is at work here since " in done.err, done.err
    done = forks.run(*words)
    assert done.code == 0, done.err
    assert verify_export(str(tmp_path / "out")).failures == []
    assert not [name for name in files_of(tmp_path / "out") if name.startswith(WORK)]
