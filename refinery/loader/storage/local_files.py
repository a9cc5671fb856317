"""How a file gets onto a disk that other machines may share, and what shared disks do that others do not.

- What could not be written is often said late, by fsync or close (quotas over NFS). So a file is synced and closed
  before it gets its name, and the error names it.
- A name that another machine made, or removed, is seen late. What contradicts what the server says is asked again.
- A handle of a file that another machine replaced or removed is stale (ESTALE), and a soft mount says EIO while its
  server is slow. What reads from the beginning is tried again.
- An open file that is removed stays under a name of the client's (.nfs…) until it is closed.
- A folder may not be synced, and a file may not be locked.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from refinery.loader.storage.full_disk import naming_full_disk
from refinery.loader.storage.locks import hold, holding, machine_name
from refinery.loader.storage.publish_new import CLAIM, TEMPORARY

COPIED_BYTES = 8 << 20  # at a time
NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EACCES, errno.EPERM, errno.EISDIR)
T = TypeVar("T")
SLOW_SERVER = (errno.EIO, errno.ETIMEDOUT)
TRIES = 3
STALE_SECONDS = 15.0  # for which a stale handle is opened again
HIDDEN_SECONDS = 90.0  # for which a name may stay unseen that the server has: NFS's acdirmax is 60 by default
ABANDONED_SECONDS = 3600.0  # after which a temporary file of another machine is nobody's, by the storage's own clock

_OWN_TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}([0-9a-f]{8})?")  # names that `temporary_file` creates
_CLAIM = re.compile(rf"{re.escape(CLAIM)}[0-9a-f]{{16}}")
_SILLY = re.compile(r"\.nfs[0-9a-f]{12,}|\.fuse_hidden[0-9a-f]{8,}")


def is_hidden(name: str) -> bool:
    """Whether a file's own name is one of temporary files, or of a removed file that a client still has open."""
    return name.startswith(TEMPORARY) or _SILLY.fullmatch(name) is not None


def retried(call: Callable[[], T]) -> T:
    """What `call`, which reads or opens, returns: called again while it says that a handle is stale, for STALE_SECONDS
    at most, and up to TRIES times where it says what soft mounts say of a slow server (EIO, ETIMEDOUT)."""
    until, wait, tries = time.monotonic() + STALE_SECONDS, 0.01, 0
    while True:
        tries += 1
        try:
            return call()
        except OSError as error:
            may_pass = error.errno == errno.ESTALE or (error.errno in SLOW_SERVER and tries < TRIES)
            if not may_pass or time.monotonic() > until:
                raise
        time.sleep(wait)
        wait = min(2 * wait, 0.5)


def rename_own(old: Path, new: Path) -> None:
    """Rename a file to a name that nobody else gives, also where the answer is lost: the request is sent again then,
    and says ENOENT."""
    try:
        os.rename(old, new)
    except FileNotFoundError:
        if os.path.lexists(old) or not os.path.lexists(new):
            raise


def is_seen(path: Path) -> bool:
    """Whether a file is there for this machine that was there for the server a moment ago; waits a moment if not."""
    with contextlib.suppress(OSError):
        os.close(os.open(path.parent, os.O_RDONLY))  # makes NFS look whether the folder has changed
    with contextlib.suppress(FileNotFoundError):
        retried(path.stat)
        return True
    time.sleep(0.2)
    return False


@contextlib.contextmanager
def temporary_file(final: Path, source: bytes | Path) -> Iterator[Path]:
    """A synced and closed temporary file with the bytes of `source`, in the folder of `final`; removed at the end if it
    exists. Errors of writing name `final`.

    Locked while it is written, so `sweep_temporaries` recognises files of killed writers. One that has come between its
    last byte and its name may be swept: what uses it then says FileNotFoundError.
    """
    temporary = final.parent / f"{TEMPORARY}{secrets.token_hex(8)}{machine_name()}"
    try:
        with naming_full_disk(final), naming_file(final, source if isinstance(source, Path) else None):
            with _new_file(temporary) as out, holding(out.fileno(), temporary, needed=False):
                if isinstance(source, bytes):
                    out.write(source)
                else:
                    with retried(lambda: source.open("rb")) as stream:
                        shutil.copyfileobj(stream, out, COPIED_BYTES)
                out.flush()
                os.fsync(out.fileno())
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def naming_file(path: Path, source: Path | None = None) -> Iterator[None]:
    """Errors that name no file, as those of writing and syncing, get the file's name. source: what is copied into it,
    and named too."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        said = error.strerror or os.strerror(error.errno)
        if source is None:
            raise OSError(error.errno, said, str(path)) from error
        raise OSError(error.errno, said, str(source), None, str(path)) from error


def _new_file(path: Path) -> BinaryIO:
    _make_folder(path.parent)
    try:
        return path.open("xb")
    except FileNotFoundError:  # another process has pruned the folder since
        _make_folder(path.parent)
        return path.open("xb")


def _make_folder(folder: Path) -> None:
    """Make a folder that may be there; waits until this machine sees one that another machine made. Raises
    FileExistsError where it is a file."""
    until = time.monotonic() + HIDDEN_SECONDS
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return
        except FileExistsError:
            if (is_seen(folder) and not folder.is_dir()) or time.monotonic() > until:
                raise


def sync_folder(folder: Path) -> None:
    """Sync a folder, so a new entry in it is durable; where the file system can do that. Errors name it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may be allowed to write into it, and not to read it
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise OSError(error.errno, error.strerror, str(folder)) from error
    finally:
        os.close(descriptor)


def files_below(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Each folder from `folder` on, and the names of its files. Folders that are gone are left out; links to folders
    are neither files nor followed."""
    todo = [folder]
    while todo:
        base = todo.pop()
        try:
            folders, files = retried(partial(_entries, base))
        except (FileNotFoundError, NotADirectoryError):
            continue
        todo += [base / name for name in folders]
        yield base, files


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    """Names of folders and of files."""
    folders: list[str] = []
    files: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                files.append(entry.name)
            elif not entry.is_symlink():
                folders.append(entry.name)
    return folders, files


def sweep_temporaries(root: Path) -> int:
    """Remove temporary files of killed writers; returns how many.

    Those of this machine are locked while their writer is alive. Of other machines, and where the file system has no
    locks, what nobody has written to for an hour is abandoned: by the storage's clock, from which alone the times of
    files come. A writer that stood still for as long fails, and writes again when it is run again.
    """
    found = 0
    now: float | None = None
    for base, files in files_below(root):
        for name in files:
            path = base / name
            if _OWN_TEMPORARY.fullmatch(name) and name.endswith(machine_name()):
                removed = _remove_unlocked(path)
                if removed is not None:
                    found += removed
                    continue
            elif not _OWN_TEMPORARY.fullmatch(name) and not _CLAIM.fullmatch(name):
                continue
            with contextlib.suppress(FileNotFoundError):
                now = now or _clock_of(root)
                if now - path.stat().st_mtime > ABANDONED_SECONDS:
                    path.unlink()
                    found += 1
    return found


def _remove_unlocked(temporary: Path) -> int | None:
    """1 if the file was removed, 0 if its writer is alive or has just finished, None where locks cannot tell."""
    try:
        descriptor = os.open(temporary, os.O_RDWR)
    except FileNotFoundError:
        return 0
    lock = descriptor
    try:
        lock = hold(descriptor, temporary, wait=False)
        temporary.unlink(missing_ok=True)
    except BlockingIOError:
        return 0
    except OSError:
        return None
    finally:
        for each in {descriptor, lock}:
            os.close(each)
    return 1


def _clock_of(folder: Path) -> float:
    """What time it is for the storage: of a file that is made there now."""
    probe = folder / f"{TEMPORARY}{secrets.token_hex(8)}{machine_name()}"
    try:
        with probe.open("xb") as stream:
            return os.fstat(stream.fileno()).st_mtime
    finally:
        probe.unlink(missing_ok=True)
