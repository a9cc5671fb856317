"""The helper that runs commands in forks: an answer always belongs to the command that was asked last."""

import time
from pathlib import Path

import pytest

from tests.fork_server import ForkServer


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_command_that_nobody_waited_for_answers_nobody(has_ended: bool, tmp_path: Path) -> None:
    """A test that was stopped by its time limit leaves such a command."""
    with ForkServer(tmp_path) as forks:
        forks.start("refine", "missing-one.yaml", "--output", tmp_path / "one")
        while has_ended and not forks.ended:
            time.sleep(0.01)
        forks.start("refine", "missing-two.yaml", "--output", tmp_path / "two")
        done = forks.wait()
        assert done.code == 2 and "missing-two.yaml" in done.err, done
        again = forks.run("refine", "missing-three.yaml", "--output", tmp_path / "three")
        assert again.code == 2 and "missing-three.yaml" in again.err, again
