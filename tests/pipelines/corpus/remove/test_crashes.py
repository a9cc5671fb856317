"""Killed at any change of its folder and started again, in a bucket, with other workers: the same bytes, never half."""

from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import MANIFEST, read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.publish_new import TEMPORARY
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.reports.run.write import REPORT
from tests.fake_gcs import Call, Fault, fake_gcs
from tests.fork_server import ForkServer
from tests.pipelines.corpus.remove.conftest import Place
from tests.pipelines.corpus.remove.corpora import write_list
from tests.sampling import ALL, one_commit_in_four, scaled, spread

ASKED = ["https://a.example/1", "https://site12.example/12"]
PARTS, KEEP = scaled(40, 1), 1  # tests that share the crash points, and those of each, where not all run


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_list(tmp_path_factory.mktemp("asked") / "urls.txt", ASKED)


def command(taken: object, asked: Path, output: object, workers: int = 0) -> list[object]:
    return ["remove", taken, "--urls", asked, "--output", output, "--workers", workers, "--quiet"]


def files_of(folder: Path) -> dict[str, bytes]:
    """All files, but for the report, which no manifest lists."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != REPORT}


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_and_started_again(
    part: int, taken: Place, asked: Path, forks: ForkServer, tmp_path: Path, record_property: Any
) -> None:
    whole = tmp_path / "whole"
    faults = [("at_change", {"root": str(whole), "syncs": ALL})]
    done = forks.run(*command(taken.prefix, asked, whole), faults=faults)
    assert done.code == 0, done.err
    finished = files_of(whole)
    points = spread(f"crash points of takedowns, {part}", list(range(done.notes["changes"]))[part::PARTS], KEEP)
    for point in points:
        out = tmp_path / f"out-{point}"
        faults = [("at_change", {"root": str(out), "kill": point, "syncs": ALL})]
        killed = forks.run(*command(taken.prefix, asked, out), faults=faults)
        assert killed.was_killed, f"point {point}: {killed}"
        left = files_of(out) if out.exists() else {}
        if MANIFEST in left:  # then all of it is there; a report that was being written is no file of the corpus
            published = {name for name in left if not name.startswith(("work/", TEMPORARY))}
            assert {name: left[name] for name in published} == finished
        again = forks.run(*command(taken.prefix, asked, out))
        assert again.code == 0, f"point {point}: {again.err}"
        assert files_of(out) == finished, point
    assert verify(str(whole), against=str(taken.prefix)).failures == []
    record_property("crash point", len(points))


@one_commit_in_four
def test_the_same_bytes_with_two_workers_and_in_a_bucket(
    taken: Place, asked: Path, forks: ForkServer, tmp_path: Path
) -> None:
    """In a bucket nothing that stays is downloaded or uploaded: the service copies it."""
    done = forks.run(*command(taken.prefix, asked, tmp_path / "new", workers=2))
    assert done.code == 0, done.err
    with fake_gcs("bucket") as gcs:
        gcs.put_folder("bucket", "old/", taken.prefix)
        done = forks.run(*command("gs://bucket/old", asked, "gs://bucket/new"), environment=gcs.environment)
        assert done.code == 0, done.err
        made = {name: data for name, data in gcs.read("bucket", "new/").items() if name != REPORT}
        assert made == files_of(tmp_path / "new")
        same = [
            s for s in read_manifest(open_store(str(tmp_path / "new"))).shards if is_same(taken.prefix, tmp_path, s)
        ]
        assert same
        read = {call.name for call in gcs.calls if call.kind == "download"}
        copied = [call.name for call in gcs.calls if call.kind == "rewrite"]
        for shard in same:
            assert any(shard.bin.path in name for name in copied)
            assert f"old/{shard.bin.path}" not in read


def is_same(old: Path, new: Path, shard: Any) -> bool:
    return (old / shard.bin.path).read_bytes() == (new / "new" / shard.bin.path).read_bytes()


@one_commit_in_four
def test_storage_that_fails_now_and_then(taken: Place, asked: Path, forks: ForkServer, tmp_path: Path) -> None:
    """Every call fails once, every fifth answer is lost: the result is the same."""
    done = forks.run(*command(taken.prefix, asked, tmp_path / "new"))
    assert done.code == 0, done.err
    with fake_gcs("bucket") as gcs:
        gcs.put_folder("bucket", "old/", taken.prefix)
        seen: set[tuple[str, str, str]] = set()

        def once(call: Call) -> Fault | None:
            key = (call.kind, call.bucket, f"{call.name}{sorted(call.query.items())}")
            if key in seen:
                return None
            seen.add(key)
            return Fault("lost") if call.number % 5 == 0 else Fault("status", 503)

        gcs.on_call = once
        done = forks.run(
            *command("gs://bucket/old", asked, "gs://bucket/new"),
            environment=gcs.environment,
            faults=[("shorten_deadline", {"deadline": 20.0})],
        )
        assert done.code == 0, done.err
        gcs.on_call = lambda call: None
        made = {name: data for name, data in gcs.read("bucket", "new/").items() if name != REPORT}
        assert made == files_of(tmp_path / "new")


def test_another_request_is_refused(taken: Place, asked: Path, forks: ForkServer, tmp_path: Path) -> None:
    """Of a finished version, of one that was begun, of a folder with other files, and of the corpus itself."""
    other = write_list(tmp_path / "other.txt", ["https://site13.example/13"])
    out = tmp_path / "out"
    faults = [("kill_at", {"root": str(out), "what": "link", "name": r"manifest\.json"})]
    assert forks.run(*command(taken.prefix, asked, out), faults=faults).was_killed
    refused = forks.run(*command(taken.prefix, other, out))
    assert refused.code == 1 and "beginning of another takedown" in refused.err
    assert forks.run(*command(taken.prefix, asked, out)).code == 0
    refused = forks.run(*command(taken.prefix, other, out))
    assert refused.code == 1 and "another corpus" in refused.err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    refused = forks.run(*command(taken.prefix, asked, tmp_path / "mine"))
    assert refused.code == 1 and "thesis.txt" in refused.err
    for place in (taken.prefix, taken.prefix / "new", taken.prefix.parent):
        refused = forks.run(*command(taken.prefix, asked, place))
        assert refused.code == 1 and "needs its own prefix" in refused.err, place
