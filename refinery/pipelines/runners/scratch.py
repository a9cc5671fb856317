"""Where the local runner's temporary files are: one folder a job, removed at its end, however that comes.

The folder is locked as long as its command lives. Workers remove it when their launcher is gone; what a whole killed
group of processes left behind is removed by the next command of the same machine that uses the same place, since nobody
holds its lock. A folder has its machine in its name: other machines that share the disk leave it alone, since they may
not see its lock.
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from refinery.loader.storage.full_disk import RUN_PREFIX, naming_scratch
from refinery.loader.storage.locks import hold, machine_name

LOCK = "lock"
MACHINE = re.compile(rf"{RUN_PREFIX}([0-9a-f]{{8}})-.")


def scratch_of(asked: str, work: str) -> str:
    """The place for temporary files of a run: what was asked for, else its work location if that is on this machine,
    which has room for what the run keeps; "" where it is not."""
    return asked or ("" if "://" in work else work)


@contextlib.contextmanager
def scratch_space(place: str = "") -> Iterator[Path]:
    """A new folder in `place` ("": where TMPDIR says), in which everything temporary of this process goes, too.

    Removed at the end, with those that killed commands left in the same place. Raises DiskFull or OSError where it
    cannot be made.
    """
    root = Path(place or tempfile.gettempdir())
    with naming_scratch(f"{root}/{RUN_PREFIX}", "temporary files"):
        if place:
            root.mkdir(parents=True, exist_ok=True)
        remove_stale(root)
        folder, lock = _locked_folder(root)
    before = tempfile.tempdir
    try:
        tempfile.tempdir = str(folder)
        yield folder
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(root: Path) -> tuple[Path, int]:
    """A new folder and its lock, which is held. Another command may take a folder for stale before it is locked, and
    remove it: then the next one is tried."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{RUN_PREFIX}{machine_name()}-", dir=root))
        with contextlib.suppress(FileNotFoundError):
            file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            lock = hold(file, folder / LOCK)
            try:
                if os.path.samestat(os.fstat(file), os.stat(folder / LOCK)):
                    return folder, lock
            except FileNotFoundError:
                pass
            finally:
                if lock != file:
                    os.close(file)
            os.close(lock)


def remove_stale(place: Path) -> None:
    """Remove what commands of this machine left in `place` that no longer run, also what was never locked."""
    for folder in place.glob(f"{RUN_PREFIX}*"):
        machine = MACHINE.match(folder.name)
        if machine and machine[1] != machine_name():
            continue
        with contextlib.suppress(OSError):
            file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            lock = file
            try:
                lock = hold(file, folder / LOCK, wait=False)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                for each in {file, lock}:
                    os.close(each)
