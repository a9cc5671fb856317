"""What the test processes of a session share: a folder is filled once, by the first that asks for it."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], object]) -> Path:
    """The session's folder of that name, which `fill` has filled. Nobody may change what is in it."""
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = root / "shared" / name, root / "shared" / f"{name}.done"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir()
            fill(folder)
            done.touch()
    return folder
