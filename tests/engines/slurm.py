"""A private Slurm for tests, and what they do with it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.private_slurm import PrivateSlurm, what_is_missing

MOST_SECONDS = 900.0  # of a whole run on a busy machine, with tasks that are requeued after two minutes


@pytest.fixture(scope="module")
def slurm() -> Iterator[PrivateSlurm]:
    """Two nodes; skipped, and said on the terminal, where this machine has no Slurm."""
    if missing := what_is_missing():
        print(f"\nSLURM IS LEFT OUT: {missing}", file=sys.__stderr__)
        pytest.skip(f"no Slurm here: {missing}")
    with PrivateSlurm() as started:
        yield started


def cluster(slurm: PrivateSlurm, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """`refinery cluster …` on a login node of this Slurm."""
    command = [sys.executable, "-m", "refinery", "cluster", *words]
    environment = {**os.environ, **slurm.environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def status(slurm: PrivateSlurm, folder: Path, prefix: str) -> dict[str, Any]:
    """What `refinery cluster status --json` says."""
    done = cluster(slurm, folder, "status", prefix, "--json")
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    """Raises AssertionError where time is up."""
    deadline = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)


def is_running(slurm: PrivateSlurm, step: str) -> bool:
    return (f"refinery-{step}", "RUNNING") in {(name, state) for _, name, state in slurm.queue()}
