"""A full disk named: which file was being written, and how much room there is where it was to go.

The system's own error names no file where a write fails, only where an open does; and a part is written to a scratch
folder first, which is often not on the corpus's disk.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

# No room, no room left for this user, a file larger than this process or file system may make.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FEW_INODES = 100  # with fewer, they are what a file system is short of
RUN_PREFIX = "refinery-run-"  # of the folders in which the local runner has its temporary files


class DiskFull(OSError):
    """A file could not be written for want of room. One line: error, file, free space at its place."""


@contextlib.contextmanager
def naming_full_disk(path: str | Path, advice: str = "") -> Iterator[None]:
    """Turn "no space left" of any kind into DiskFull, which names `path`; every other error passes. advice: what to do,
    at the line's end.
    """
    try:
        yield
    except DiskFull:
        raise
    except OSError as error:
        if error.errno not in FULL:
            raise
        said = f"{os.strerror(error.errno)}: {path} ({free_space(Path(path).parent)}){advice}"
        raise DiskFull(error.errno, said) from error


@contextlib.contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """A temporary folder, removed at the end, whose full disk is named. purpose: what is written there."""
    with TemporaryDirectory(prefix="refinery-") as folder, naming_scratch(folder, purpose):
        yield Path(folder)


def naming_scratch(folder: str, purpose: str) -> contextlib.AbstractContextManager[None]:
    """`naming_full_disk` for what is first written to a temporary folder: one of a run, which --scratch places, or one
    of the system."""
    means = "--scratch" if f"/{RUN_PREFIX}" in folder else "the variable TMPDIR"
    return naming_full_disk(f"{folder}/{purpose}", f"; {means} names another place for temporary files")


def free_space(folder: Path) -> str:
    """ "12.3 MB free in /out", of the nearest folder that exists; and how many inodes, where they are few."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free: float = shutil.disk_usage(folder).free
        found = os.statvfs(folder)
    except OSError:
        return f"free space of {folder} unknown"
    few = f" and {found.f_favail} inodes" if found.f_files and found.f_favail < FEW_INODES else ""
    for unit in ("B", "kB", "MB", "GB"):
        if free < 1000:
            size = f"{free:.0f} {unit}" if unit == "B" else f"{free:.1f} {unit}"
            return f"{size}{few} free in {folder}"
        free /= 1000
    return f"{free:.1f} TB{few} free in {folder}"
