"""Folders of temporary files: one a job, locked while its command lives, gone whatever ends it."""

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from refinery.loader.storage.full_disk import RUN_PREFIX, DiskFull, naming_scratch
from refinery.pipelines.runners import scratch
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.runners.scratch import LOCK, remove_stale, scratch_space
from tests.loader.disk_faults import refused


def test_what_killed_commands_left_is_removed(tmp_path: Path) -> None:
    """With a lock that nobody holds, without one, and not what is in use or of somebody else."""
    with scratch_space(str(tmp_path)) as used:
        (tmp_path / "refinery-run-killed").mkdir()
        (tmp_path / "refinery-run-killed" / LOCK).touch()
        (tmp_path / "refinery-run-never-locked" / "exchanges" / "a").mkdir(parents=True)
        (tmp_path / "of-others").mkdir()
        remove_stale(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {used.name, "of-others"}
    assert [path.name for path in tmp_path.iterdir()] == ["of-others"]


@pytest.mark.parametrize("with_locks", [True, False])
def test_a_folder_of_another_machine_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_locks: bool
) -> None:
    """Its lock may not be seen from here. Of this machine it is removed once nobody holds its lock, of either kind."""
    if not with_locks:
        monkeypatch.setattr(fcntl, "flock", refused(errno.ENOLCK))
    elsewhere = tmp_path / f"{RUN_PREFIX}{'0' * 8}-abcdefgh"
    (elsewhere / "exchanges").mkdir(parents=True)
    with scratch_space(str(tmp_path)) as used:
        (tmp_path / f"{used.name}x").mkdir()
        remove_stale(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([used, elsewhere])
    assert list(tmp_path.iterdir()) == [elsewhere]


def test_a_folder_that_another_command_takes_for_stale_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making, its lock file and the lock, another command may find it unlocked."""
    steps = {"open": (scratch.os, os.open), "flock": (fcntl, fcntl.flock)}
    left = list(steps)

    def meddling(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if left and left[0] == name:
                left.pop(0)
                with monkeypatch.context() as unpatched:
                    for each, (module, real) in steps.items():
                        unpatched.setattr(module, each, real)
                    remove_stale(tmp_path)
            return steps[name][1](*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name, (module, _) in steps.items():
            patched.setattr(module, name, meddling(name))
        folder, lock = scratch._locked_folder(tmp_path)
    assert not left
    remove_stale(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    os.close(lock)


def test_many_commands_share_a_place(tmp_path: Path) -> None:
    problems: list[BaseException] = []

    def use() -> None:
        try:
            for _ in range(40):
                folder, lock = scratch._locked_folder(tmp_path)
                (folder / "file").touch()
                remove_stale(tmp_path)
                assert (folder / "file").exists()
                os.close(lock)
        except BaseException as error:  # noqa: BLE001 - crosses the thread
            problems.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    remove_stale(tmp_path)
    assert not list(tmp_path.iterdir())


def test_advice_names_what_moves_the_folder(tmp_path: Path) -> None:
    for folder, means in (
        ("refinery-run-x/exchanges/y", "--scratch names"),
        ("refinery-x", "the variable TMPDIR names"),
    ):
        with pytest.raises(DiskFull, match=means), naming_scratch(str(tmp_path / folder), "part"):
            raise OSError(28, "No space left on device")


def fails_and_writes_on(folder: Path) -> None:
    """What a worker may do that has not heard yet that its job failed elsewhere."""

    def write() -> None:
        while True:
            with contextlib.suppress(OSError):
                (folder / "exchanges").mkdir(parents=True, exist_ok=True)

    threading.Thread(target=write, daemon=True).start()
    raise ValueError("this job fails")


def test_workers_of_a_failed_job_write_nothing_more(tmp_path: Path) -> None:
    """The folder is gone, and the next job has other workers."""
    place = tmp_path / "scratch"

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | beam.Create([0]) | beam.Map(lambda _: fails_and_writes_on(next(place.glob(f"{RUN_PREFIX}*"))))

    with Runner("local", 1, quiet=True, scratch=str(place)).open() as runner:
        with pytest.raises(RuntimeError, match="this job fails"):
            runner.run("bad", build)
        time.sleep(0.05)
        assert not list(place.iterdir())
        runner.run("good", lambda pipeline: pipeline | beam.Create([str(tmp_path / "ran")]) | beam.Map(os.mkdir))
    assert (tmp_path / "ran").exists()
    assert not list(place.iterdir())
