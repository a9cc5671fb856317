"""Killed at every single call to its storage, and started again: the same bytes, and never half a corpus.

A crash point is the process killed with SIGKILL at one call. At each point three things hold. No reader takes what lies
there for a corpus, unless it is the whole one. The same command, started again, brings the same bytes. And nothing that
was published before the crash has been touched: names are created exclusively, never overwritten.

In a bucket, the points are every call before it is acted on, and every upload after it is acted on and before it is
answered. In a folder, they are the moments before every change: a file made, half filled, linked or removed, a folder
made. What is killed while it reads, or before it syncs, leaves what the next change finds, so the syncs are for
`make test-all` alone, which runs all points; other sessions take one of each stretch of the run.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fake_gcs import Call, FakeGcs, Fault, fake_gcs
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, check_work, command, digests, folder_files, is_accepted
from tests.pipelines.whole_runs.bucket_runs import BUCKET, PREFIX, run_in_bucket
from tests.sampling import ALL, one_commit_in_four, scaled, spread

LEAST_POINTS = 50
LEAST_PACKED = 4  # a file made, filled, linked and removed
KEEP, FEW = 2, 1  # of each kind, where not all run
SHARES = scaled(40, 4)  # each storage's points are dealt to this many tests, so that processes and tenths share them
PACKED = ("--set", "packed.length=32", "--set", "tokenizer.bos=^")  # documents are cut; a BOS that no text has

Record = Callable[[str, object], None]


class Unbroken(NamedTuple):
    """What a run publishes when nothing happens to it, and where it could be killed."""

    digests: dict[str, str]
    points: list[object]


def is_temporary(name: str) -> bool:
    """Whether a run may remove a file: a part that no report claims, or what a command that is gone had for itself, its
    lease and its temporary files."""
    return name.startswith("work/") and ("/part-" in name or name.startswith(("work/at_work/", "work/refinery-run-")))


# --- folders ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_folder(small: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    prefix = tmp_path_factory.mktemp("unbroken") / "out"
    done = forks.run(*command(small, prefix), faults=[("at_change", {"root": str(prefix), "syncs": ALL})])
    assert done.code == 0, done.err
    files = folder_files(prefix)
    check_corpus(files)
    check_work(files)
    points = list(range(done.notes["changes"]))
    assert len(points) >= LEAST_POINTS
    some = spread("crash points in a folder", points, KEEP)
    return Unbroken(digests(files), sorted({*some, points[-1]}))  # the last one: nothing is left to do, but to tidy


def identities(prefix: Path) -> dict[str, tuple[int, int, int]]:
    """Of every finished file: whether it is the same one, unchanged."""
    found = {p.relative_to(prefix).as_posix(): p.stat() for p in prefix.rglob("*") if p.is_file()}
    return {n: (s.st_ino, s.st_mtime_ns, s.st_size) for n, s in found.items() if ".tmp-" not in n}


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_change_of_a_folder(
    share: int, small: Path, forks: ForkServer, in_folder: Unbroken, tmp_path: Path, record_property: Record
) -> None:
    points = in_folder.points[share::SHARES]
    for point in points:
        check_killed(point, forks, in_folder, command(small, tmp_path / f"out-{point}"), tmp_path / f"out-{point}")
    record_property("crash point", len(points))


def check_killed(
    point: object, forks: ForkServer, unbroken: Unbroken, words: list[object], prefix: Path, below: str = "."
) -> None:
    """Kill a command before a change below a folder of its prefix, and run it again."""
    root = str(prefix / below)
    killed = forks.run(*words, faults=[("at_change", {"root": root, "kill": point, "syncs": ALL})])
    assert killed.was_killed, f"point {point}: {killed}"
    before = identities(prefix)
    assert not is_accepted(prefix) or set(unbroken.digests) <= set(before), point

    again = forks.run(*words)
    assert again.code == 0, f"point {point}: {again.err}"
    files = folder_files(prefix)
    assert digests(files) == unbroken.digests, point
    check_work(files)
    assert not [name for name in files if name.startswith("work/at_work/")], point
    after = identities(prefix)
    assert {n: after[n] for n in before if n in after} == {n: before[n] for n in before if n in after}, point
    assert all(is_temporary(name) for name in before if name not in after), point


@one_commit_in_four
def test_killed_at_every_change_of_packed_rows(
    small: Path, forks: ForkServer, tmp_path: Path, record_property: Record
) -> None:
    """The same for the files below packed/, with the shards beside them already published."""
    prefix = tmp_path / "unbroken"
    done = forks.run(
        *command(small, prefix, *PACKED), faults=[("at_change", {"root": str(prefix / "packed"), "syncs": ALL})]
    )
    assert done.code == 0, done.err
    files = folder_files(prefix)
    assert all(shard.packed for shard in check_corpus(files).shards)
    unbroken = Unbroken(digests(files), list(range(done.notes["changes"])))
    assert len(unbroken.points) >= LEAST_PACKED
    points = spread("crash points of packed rows in a folder", unbroken.points, FEW)
    for point in points:
        place = tmp_path / f"out-{point}"
        check_killed(point, forks, unbroken, command(small, place, *PACKED), place, "packed")
    record_property("crash point", len(points))


# --- buckets ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gcs() -> Iterator[FakeGcs]:
    with fake_gcs(BUCKET) as server:
        yield server


@pytest.fixture(scope="module")
def in_bucket(small: Path, forks: ForkServer, gcs: FakeGcs) -> Unbroken:
    files = run_in_bucket(forks, gcs, small)
    before = [(call.number, False) for call in gcs.calls]
    after = [(call.number, True) for call in gcs.calls if call.kind == "upload"]
    assert len(before) + len(after) >= LEAST_POINTS
    before = spread("crash points at a bucket, before a call", before, KEEP)
    return Unbroken(digests(files), [*before, *spread("crash points at a bucket, after an upload", after, FEW)])


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_call_to_a_bucket(
    share: int,
    small: Path,
    forks: ForkServer,
    gcs: FakeGcs,
    in_bucket: Unbroken,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    gcs.use(monkeypatch)
    points = in_bucket.points[share::SHARES]
    for point in points:
        check_killed_at_call(point, forks, gcs, in_bucket, command(small, PREFIX))
    record_property("crash point", len(points))


def check_killed_at_call(where: Any, forks: ForkServer, gcs: FakeGcs, unbroken: Unbroken, words: list[object]) -> None:
    """Kill a command at a call to the bucket, and run it again. where: number of the call, and whether it is acted
    on."""
    number, is_acted_on = where
    point = f"call {number}, {'after' if is_acted_on else 'before'} it is acted on"

    def kill(call: Call, number: int = number) -> Fault | None:
        if call.number != number:
            return None
        forks.kill()
        return Fault("reset")

    gcs.clear()
    gcs.on_call, gcs.after_call = (gcs.on_call, kill) if is_acted_on else (kill, gcs.after_call)
    killed = forks.run(*words, environment=gcs.environment)
    gcs.on_call = gcs.after_call = lambda call: None
    assert killed.was_killed, f"{point}: {killed}"
    before = set(gcs.read(BUCKET, "out/"))
    assert not is_accepted(PREFIX) or set(unbroken.digests) <= before, point

    again = forks.run(*words, environment=gcs.environment)
    assert again.code == 0, f"{point}: {again.err}"
    files = gcs.read(BUCKET, "out/")
    assert digests(files) == unbroken.digests, point
    check_work(files)
    # One generation of every object, but for leases and parts that no report claims: removed, never replaced.
    made = [name for change, _, name in gcs.changes if change == "create"]
    gone = [name for change, _, name in gcs.changes if change == "delete"]
    assert {change for change, _, _ in gcs.changes} <= {"create", "delete"}, point
    assert len(set(made)) == len(made) == len(files) + len(gone), point
    assert all(is_temporary(name.removeprefix("out/")) for name in gone), point


@one_commit_in_four
def test_killed_at_every_upload_of_packed_rows(
    small: Path, forks: ForkServer, gcs: FakeGcs, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    gcs.use(monkeypatch)
    gcs.clear()
    words = command(small, PREFIX, *PACKED)
    done = forks.run(*words, environment=gcs.environment)
    assert done.code == 0, done.err
    files = gcs.read(BUCKET, "out/")
    check_corpus(files)
    uploads = [call for call in gcs.calls if call.name.startswith("out/packed/") and call.kind.startswith("upload")]
    assert uploads
    every = [(call.number, acted) for call in uploads for acted in (False, True)]
    points = spread("crash points of packed rows at a bucket", every, FEW)
    for point in points:
        check_killed_at_call(point, forks, gcs, Unbroken(digests(files), []), words)
    record_property("crash point", len(points))
