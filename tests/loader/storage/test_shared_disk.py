"""What disks do that machines share: no hard links, no locks, late errors, lost answers, stale names. Local storage is
right all the same, or says which file it is and why."""

import errno
import io
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from refinery.loader.storage import local_files, publish_new
from refinery.loader.storage import store as store_module
from refinery.loader.storage.full_disk import DiskFull
from refinery.loader.storage.local_files import retried
from refinery.loader.storage.publish_new import CLAIM
from refinery.loader.storage.store import LocalStore, StorageConflict
from tests.loader.disk_faults import done_then, failing_first, refused

WAYS = ("link", "rename without replacing", "claim")


def use(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what comes before this way of exclusive creation."""
    if way != "link":
        monkeypatch.setattr(os, "link", refused(errno.EPERM))
    if way == "claim":
        monkeypatch.setattr(publish_new, "_renameat2", lambda: None)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "root"))


def names(store: LocalStore) -> list[str]:
    """Of all files, hidden ones too."""
    root = Path(store.root)
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


# --- exclusive creation


@pytest.mark.parametrize("code", publish_new.NO_LINKS)
@pytest.mark.parametrize("way", WAYS[1:])
def test_without_hard_links_a_name_is_exclusive_too(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, way: str, code: int
) -> None:
    use(way, monkeypatch)
    monkeypatch.setattr(os, "link", refused(code))
    store.create("a/x", b"first")
    store.create("a/x", b"first")
    with pytest.raises(StorageConflict):
        store.create("a/x", b"other")
    assert store.read("a/x") == b"first" and names(store) == ["a/x"]


@pytest.mark.parametrize("way", WAYS)
def test_one_of_many_writers_wins_whatever_the_way(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    use(way, monkeypatch)
    monkeypatch.setattr(publish_new, "POLL_SECONDS", 0.001)
    barrier, outcomes = threading.Barrier(8), []

    def write(number: int) -> None:
        barrier.wait()
        try:
            store.create("shard", b"%d" % (number % 4) * 1000)
        except StorageConflict:
            outcomes.append((number % 4, False))
        else:
            outcomes.append((number % 4, True))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = int(store.read("shard")[:1])
    assert sorted(outcomes) == sorted((number % 4, number % 4 == winner) for number in range(8))
    assert names(store) == ["shard"]


def test_a_claim_of_a_killed_writer_lapses(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    use("claim", monkeypatch)
    claims: list[Path] = []
    create = publish_new._create
    monkeypatch.setattr(publish_new, "_create", lambda claim, own: bool(claims.append(claim)) or create(claim, own))
    store.create("x", b"x")
    store.delete("x")
    claims[0].write_bytes(b"of a killed writer")
    monkeypatch.setattr(publish_new, "CLAIM_SECONDS", 0.0)
    monkeypatch.setattr(publish_new, "POLL_SECONDS", 0.001)
    store.create("x", b"x")
    assert names(store) == ["x"]


def test_a_writer_whose_claim_lapsed_takes_another_one(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    use("claim", monkeypatch)
    content, answers = publish_new._content, iter([b"of another writer"])
    monkeypatch.setattr(publish_new, "_content", lambda claim: next(answers, None) or content(claim))
    renames: list[Any] = []
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda *paths: renames.append(paths) or rename(*paths))
    store.create("x", b"x")
    assert len(renames) == 1 and next(answers, None) is None and names(store) == ["x"]


def test_where_nothing_creates_exclusively_path_and_causes_are_said(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    use("claim", monkeypatch)
    monkeypatch.setattr(os, "rename", refused(errno.ENOSYS))
    with pytest.raises(OSError, match=r"a hard link fails .Operation not permitted.*Function not .*root/x'") as told:
        store.create("x", b"x")
    assert told.value.errno == errno.ENOSYS and names(store) == []


# --- answers that are lost


def test_a_link_that_was_made_and_says_it_was_there(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", done_then(os.link, errno.EEXIST))
    store.create("x", b"mine")
    with pytest.raises(StorageConflict):
        store.create("x", b"other")
    assert store.read("x") == b"mine" and names(store) == ["x"]


def test_a_rename_that_was_made_and_says_nothing_is_there(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    use("claim", monkeypatch)
    monkeypatch.setattr(os, "rename", done_then(os.rename, errno.ENOENT))
    monkeypatch.setattr(os, "replace", done_then(os.replace, errno.ENOENT))
    store.create("x", b"mine")
    store.replace("y", b"one")
    store.replace("y", b"two")
    assert (store.read("x"), store.read("y")) == (b"mine", b"two") and names(store) == ["x", "y"]


@pytest.mark.parametrize("call", ["link", "replace"])
def test_a_temporary_file_that_was_swept_is_written_again(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real, swept = getattr(os, call), []

    def sweeping(temporary: Path, final: Path) -> None:
        if len(swept) < 2:
            swept.append(temporary)
            temporary.unlink()
        real(temporary, final)

    monkeypatch.setattr(os, call, sweeping)
    monkeypatch.setattr(local_files.time, "sleep", lambda seconds: None)
    (store.create if call == "link" else store.replace)("x", b"data")
    assert store.read("x") == b"data" and len(swept) == 2
    swept[:] = []
    monkeypatch.setattr(store_module, "WRITES", 2)
    with pytest.raises(FileNotFoundError, match="root/y"):
        (store.create if call == "link" else store.replace)("y", b"data")


# --- errors that come late


class Late(io.BufferedWriter):
    """A file of which closing says that it could not be written."""

    code = errno.EDQUOT

    def close(self) -> None:
        first = not self.closed
        super().close()
        if first:
            raise OSError(self.code, os.strerror(self.code))


@pytest.mark.parametrize("code", [errno.EDQUOT, errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("at", ["fsync", "close"])
def test_what_is_refused_late_gets_no_name_and_is_named(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, at: str, code: int
) -> None:
    """Also where it replaces something."""
    store.replace("marker", b"before")
    new_file = local_files._new_file

    def late(path: Path) -> Any:
        writer = Late(new_file(path).detach())  # type: ignore[attr-defined]  # a BufferedWriter
        writer.code = code
        return writer

    with monkeypatch.context() as patched:
        if at == "fsync":
            patched.setattr(os, "fsync", refused(code))
        else:
            patched.setattr(local_files, "_new_file", late)
        for write, name in ((store.create, "a/x"), (store.replace, "marker")):
            with pytest.raises(OSError, match=f"{os.strerror(code)}.*root/{name}") as told:
                write(name, b"data")
            assert told.value.errno == code and isinstance(told.value, DiskFull) == (code != errno.EIO)
    assert names(store) == ["marker"] and store.read("marker") == b"before"
    store.create("a/x", b"data")


@pytest.mark.parametrize(("files", "left", "said"), [(5, 2, "4.0 MB and 2 inodes free"), (0, 0, "4.0 MB free")])
def test_a_disk_without_inodes_says_so(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, files: int, left: int, said: str
) -> None:
    """Some file systems do not count them: they say 0 of 0."""
    room = SimpleNamespace(f_files=files, f_favail=left, f_bavail=1000, f_bfree=1000, f_blocks=2000, f_frsize=4000)
    monkeypatch.setattr(os, "statvfs", lambda path: room)
    monkeypatch.setattr(local_files, "_new_file", refused(errno.ENOSPC))
    with pytest.raises(DiskFull, match=rf"No space left on device: .*root/x \({said} in "):
        store.create("x", b"x")


def test_a_source_that_cannot_be_read_is_named_too(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"data")
    monkeypatch.setattr(local_files.shutil, "copyfileobj", refused(errno.EIO))
    with pytest.raises(OSError, match=r"Input/output error: '.*/source' -> '.*root/x'"):
        store.create("x", source)
    assert names(store) == []


@pytest.mark.parametrize("code", local_files.NO_FOLDER_SYNC)
def test_a_folder_that_cannot_be_synced_is_no_error(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    real = os.fsync

    def files_alone(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", files_alone)
    store.create("x", b"x")


def test_a_folder_whose_sync_fails_is_named_and_synced_again(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, folders = os.fsync, []

    def once(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            folders.append(path)
            if len(folders) == 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", once)
    with pytest.raises(OSError, match=r"Input/output error: '.*root'"):
        store.create("x", b"x")
    store.create("x", b"x")
    assert len(folders) == 2


# --- what other machines did is seen late


def test_a_name_that_the_server_has_and_this_machine_does_not_see(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a listing or a look a moment ago said is not believed against the server."""
    store.create("x", b"of another machine")
    path = Path(store.root) / "x"
    stat, unseen = Path.stat, [4]

    def late(self: Path, **named: Any) -> os.stat_result:
        if self == path and unseen[0]:
            unseen[0] -= 1
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return stat(self, **named)

    monkeypatch.setattr(Path, "stat", late)
    monkeypatch.setattr(local_files.time, "sleep", lambda seconds: None)
    store.create("x", b"of another machine")
    assert not unseen[0]
    unseen[0] = 4
    with pytest.raises(StorageConflict):
        store.create("x", b"other")
    unseen[0] = 1 << 30
    monkeypatch.setattr(store_module, "HIDDEN_SECONDS", 0.0)
    with pytest.raises(FileExistsError, match="root/x"):
        store.create("x", b"of another machine")
    unseen[0] = 0
    assert names(store) == ["x"]


def test_a_folder_that_the_server_has_and_this_machine_does_not_see(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(store.root) / "a"
    folder.mkdir(parents=True)
    stat, unseen = Path.stat, [4]

    def late(self: Path, **named: Any) -> os.stat_result:
        if self == folder and unseen[0]:
            unseen[0] -= 1
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return stat(self, **named)

    monkeypatch.setattr(Path, "stat", late)
    monkeypatch.setattr(local_files.time, "sleep", lambda seconds: None)
    store.create("a/x", b"x")
    assert not unseen[0] and names(store) == ["a/x"]
    with pytest.raises((FileExistsError, NotADirectoryError), match="root/a/x"):
        store.create("a/x/y", b"y")


@pytest.mark.parametrize(("code", "times"), [(errno.ESTALE, 5), (errno.EIO, 2), (errno.ETIMEDOUT, 2)])
def test_stale_handles_and_slow_servers_are_asked_again(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int, times: int
) -> None:
    store.create("a/x", b"data")
    monkeypatch.setattr(local_files.time, "sleep", lambda seconds: None)
    for where, call in ((Path, "open"), (Path, "stat"), (os, "stat"), (os, "scandir"), (Path, "unlink")):
        with monkeypatch.context() as patched:
            patched.setattr(where, call, failing_first(getattr(where, call), code, times))
            if call == "unlink":
                store.delete("a/x")
            elif call == "scandir":
                assert store.list() == ["a/x"]
            else:
                assert (store.size("a/x"), store.read("a/x")) == (4, b"data")
    assert store.list() == []


def test_it_ends_where_it_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def fails(code: int) -> None:
        calls.append(code)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(local_files.time, "sleep", lambda seconds: None)
    for code, times in ((errno.EIO, local_files.TRIES), (errno.EACCES, 1)):
        calls[:] = []
        with pytest.raises(OSError, match=os.strerror(code)):
            retried(lambda code=code: fails(code))  # type: ignore[misc]  # bound at once
        assert len(calls) == times
    monkeypatch.setattr(local_files, "STALE_SECONDS", -1.0)
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
        retried(lambda: fails(errno.ESTALE))


def test_listings_leave_out_what_is_no_object(store: LocalStore) -> None:
    store.create("a/x", b"x")
    root = Path(store.root)
    for name in (".nfs000000000004c2a100000001", ".fuse_hidden0000a1b200000001", f"{CLAIM}{'0' * 16}", ".tmp-x"):
        (root / "a" / name).touch()
    (root / "a" / ".nfs-notes").touch()  # somebody's file
    (root / "gone").symlink_to(root / "nowhere")
    (root / "elsewhere").symlink_to(root / "a")
    assert store.list() == ["a/.nfs-notes", "a/x", "gone"]
