"""Killed in the middle of each phase and started again: the same bytes, and nothing finished is done twice."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fork_server import ForkServer, Outcome
from tests.pipelines.inputs import corpus_bytes, refine
from tests.sampling import sampled

# When to kill: as soon as this holds, the phase has begun and is far from its end.
MOMENTS: dict[str, Callable[[Path], bool]] = {
    "clean, before the first wave ended": lambda out: (out / "_run.json").exists(),
    "clean, between waves": lambda out: (out / "work" / "clean" / "wave-00001.json").exists(),
    "dedup": lambda out: (out / "work" / "clean.json").exists(),
    "dedup, verdicts begun": lambda out: any((out / "work").glob("verdicts/*")),
    "shards": lambda out: (out / "work" / "dedup.json").exists(),
    "shards, files begun": lambda out: any(out.glob("train/*/*.bin")),
    "the very end": lambda out: (out / "work" / "shards.json").exists(),
}


def start_and_kill(
    forks: ForkServer, inputs: Path, output: Path, moment: Callable[[Path], bool], signal_number: int
) -> Outcome:
    forks.start("refine", inputs / "recipe.yaml", "--output", output, "--workers", 1)
    while not moment(output) and not forks.ended:
        time.sleep(0.001)
    forks.kill(signal_number)
    return forks.wait()


@pytest.mark.parametrize("moment", sampled("moments of phases", MOMENTS, 1))
def test_killed_and_started_again(forks: ForkServer, corpus: Path, inputs: Path, tmp_path: Path, moment: str) -> None:
    output = tmp_path / "out"
    assert start_and_kill(forks, inputs, output, MOMENTS[moment], signal.SIGKILL).was_killed
    assert not (output / "manifest.json").exists()
    reports = [path for path in (output / "work").rglob("*.json") if path.parent.name != "at_work"]
    kept = {path: path.stat().st_mtime_ns for path in reports}
    done = refine(inputs, output, "--workers", 0)
    assert all(path.stat().st_mtime_ns == changed for path, changed in kept.items())
    for phase in ("clean", "dedup", "shards"):
        assert (f"{phase}: complete already" in done.stdout) is (output / "work" / f"{phase}.json" in kept)
    assert corpus_bytes(output) == corpus_bytes(corpus)
    assert not list(output.rglob(".tmp-*"))
    claimed = {path.stem for path in (output / "work" / "documents").iterdir()}
    assert claimed == {path.stem for path in (output / "work" / "signatures").iterdir()}
    assert claimed == {path.stem for path in (output / "work" / "verdicts").iterdir()}


def test_interrupted_by_ctrl_c(forks: ForkServer, corpus: Path, inputs: Path, tmp_path: Path) -> None:
    done = start_and_kill(forks, inputs, tmp_path / "out", MOMENTS["clean, between waves"], signal.SIGINT)
    assert done.code == 130, done.err
    refine(inputs, tmp_path / "out", "--workers", 0)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)
