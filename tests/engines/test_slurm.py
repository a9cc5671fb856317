"""The demo by slices on a private Slurm: a node dies in the middle, a step is cancelled, and the bytes are the same."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.lanes import RECIPES, digests, refinery
from tests.engines.slurm import cluster, is_running, slurm, status, wait_until
from tools.private_slurm import PrivateSlurm

__all__ = ["slurm"]  # a fixture
pytestmark = [
    pytest.mark.skipif(not os.environ.get("REFINERY_ENGINES"), reason="minutes of whole runs: make test-engines"),
    pytest.mark.timeout(2400),
]


@pytest.fixture
def demo(slurm: PrivateSlurm, lane_folder: Callable[[str], Path]) -> Path:
    return lane_folder("web")


def test_the_same_bytes_although_a_node_died(slurm: PrivateSlurm, demo: Path) -> None:
    words = ("slurm", RECIPES["web"], "--output", "web", "--tasks", "4", "--workers", "1", "--submit")
    begun = cluster(slurm, demo, *words)
    assert begun.returncode == 0, begun.stderr
    wait_until("shards-0 runs", lambda: is_running(slurm, "shards-0"))
    slurm.kill_node("n2")
    wait_until("Slurm sees that n2 is gone", lambda: slurm.node_state("n2") == "down")
    slurm.start_node("n2")
    wait_until("all jobs end", lambda: not slurm.queue())
    found = status(slurm, demo, "web")
    assert found["complete"], found
    assert digests(demo / "web") == digests(demo / "expected")
    refinery(demo, "verify", "web")


def test_what_was_cancelled_is_resumed(slurm: PrivateSlurm, demo: Path) -> None:
    words = ("slurm", RECIPES["web"], "--output", "cancelled", "--tasks", "3", "--workers", "1", "--throttle", "1")
    assert cluster(slurm, demo, *words, "--submit").returncode == 0
    wait_until("a slice is done", lambda: bool(status(slurm, demo, "cancelled")["steps"][0]["done"]))
    assert cluster(slurm, demo, "cancel", "cancelled").returncode == 0
    wait_until("all jobs end", lambda: not slurm.queue())
    done = status(slurm, demo, "cancelled")["steps"][0]["done"]
    assert not status(slurm, demo, "cancelled")["complete"]
    resumed = cluster(slurm, demo, "resume", "cancelled", "--throttle", "4")
    assert resumed.returncode == 0, resumed.stderr
    array = next((demo / "cancelled-slurm").glob("submit.sh")).read_text()
    assert done == 3 or f"--array={done}" in array  # slices that are done are not submitted again
    wait_until("all jobs end", lambda: not slurm.queue())
    assert status(slurm, demo, "cancelled")["complete"]
    assert digests(demo / "cancelled") == digests(demo / "expected")
