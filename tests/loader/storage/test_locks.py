"""Locks of one machine, with flock and without; temporary files of killed writers, which locks tell from others."""

import errno
import fcntl
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.storage import local_files, locks
from refinery.loader.storage.local_files import sweep_temporaries
from refinery.loader.storage.locks import hold, machine_name
from refinery.loader.storage.publish_new import CLAIM
from refinery.loader.storage.store import LocalStore
from tests.loader.disk_faults import refused


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "root"))


def names(store: LocalStore) -> list[str]:
    """Of all files, hidden ones too."""
    root = Path(store.root)
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


# --- temporary files of killed writers


def left(store: LocalStore, machine: str, age: float = 0.0, start: str = ".tmp-0123456789abcdef") -> Path:
    path = Path(store.root) / f"{start}{machine}"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - age, time.time() - age))
    return path


@pytest.mark.parametrize("with_locks", [True, False])
def test_own_files_are_swept_unless_their_writer_is_alive(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, with_locks: bool
) -> None:
    if not with_locks:
        monkeypatch.setattr(fcntl, "flock", refused(errno.ENOLCK))
    left(store, machine_name())
    assert store.sweep() == 1
    copy, swept = local_files.shutil.copyfileobj, []

    def copying(*arguments: Any) -> None:
        swept.append(store.sweep())
        copy(*arguments)

    monkeypatch.setattr(local_files.shutil, "copyfileobj", copying)
    source = Path(store.root).with_name("source")
    source.write_bytes(b"data")
    store.create("x", source)
    assert swept == [0] and names(store) == ["x"]


def test_files_of_other_machines_are_swept_after_an_hour(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the storage's clock, whatever this machine's says: no lock is believed across machines."""
    elsewhere = "0" * 8
    assert elsewhere != machine_name()
    young = left(store, elsewhere, 600)
    left(store, elsewhere, 7200, ".tmp-fedcba9876543210")
    left(store, "", 7200)  # of an earlier version
    left(store, "", 7200, f"{CLAIM}0123456789abcdef")
    strange = left(store, "", 7200, ".tmp-notes")
    assert store.sweep() == 3 and names(store) == sorted([young.name, strange.name])
    clock = local_files._clock_of
    monkeypatch.setattr(local_files, "_clock_of", lambda folder: clock(folder) + 3600)
    assert sweep_temporaries(Path(store.root)) == 1


def test_where_no_lock_is_to_be_had_an_hour_decides_too(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", refused(errno.ENOLCK))
    monkeypatch.setattr(locks.socket, "socket", refused(errno.EAFNOSUPPORT))
    young = left(store, machine_name())
    left(store, machine_name(), 7200, ".tmp-fedcba9876543210")
    assert store.sweep() == 1 and names(store) == [young.name]
    store.create("x", b"x")


# --- locks


@pytest.mark.parametrize("code", [None, *locks.NO_LOCKS])
def test_a_lock_is_one_processs_with_flock_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None
) -> None:
    if code is not None:
        monkeypatch.setattr(fcntl, "flock", refused(code))
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("w") as two, (tmp_path / "other").open("w") as third:
        held = hold(one.fileno(), path)
        assert (held == one.fileno()) == (code is None)
        with pytest.raises(BlockingIOError):
            hold(two.fileno(), path, wait=False)
        other = hold(third.fileno(), tmp_path / "other", wait=False)
        got: list[int] = []
        waiting = threading.Thread(target=lambda: got.append(hold(two.fileno(), path)))
        waiting.start()
        one.close() if held == one.fileno() else os.close(held)
        waiting.join()
        for each in {*got, other} - {two.fileno(), third.fileno()}:
            os.close(each)


def test_a_lock_that_is_refused_names_path_and_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    with path.open("w") as file:
        with monkeypatch.context() as patched, pytest.raises(OSError, match=r"flock: Bad file descriptor: '.*/lock'"):
            patched.setattr(fcntl, "flock", refused(errno.EBADF))
            hold(file.fileno(), path)
        monkeypatch.setattr(fcntl, "flock", refused(errno.ENOLCK))
        monkeypatch.setattr(locks.socket.socket, "bind", refused(errno.EINVAL), raising=False)
        with pytest.raises(OSError, match=r"locks are refused: flock says No locks.*a socket Invalid.*: '.*/lock'"):
            hold(file.fileno(), path)
