"""Killed in the middle of each phase and started again: the same bytes, and nothing finished is done twice."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipelines.inputs import COMMAND, ROOT, corpus_bytes, refine

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


def start_and_kill(inputs: Path, output: Path, moment: Callable[[Path], bool], signal_number: int) -> int:
    arguments = ["refine", str(inputs / "recipe.yaml"), "--output", str(output), "--workers", "2"]
    process = subprocess.Popen([*COMMAND, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not moment(output) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal_number)
    process.communicate(timeout=60)
    return process.returncode


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_and_started_again(corpus: Path, inputs: Path, tmp_path: Path, moment: str) -> None:
    output = tmp_path / "out"
    assert start_and_kill(inputs, output, MOMENTS[moment], signal.SIGKILL) == -signal.SIGKILL
    assert not (output / "manifest.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in (output / "work").rglob("*.json")}
    done = refine(inputs, output)
    assert all(path.stat().st_mtime_ns == changed for path, changed in kept.items())
    for phase in ("clean", "dedup", "shards"):
        assert (f"{phase}: complete already" in done.stdout) is (output / "work" / f"{phase}.json" in kept)
    assert corpus_bytes(output) == corpus_bytes(corpus)
    assert not list(output.rglob(".tmp-*"))
    claimed = {path.stem for path in (output / "work" / "documents").iterdir()}
    assert claimed == {path.stem for path in (output / "work" / "signatures").iterdir()}
    assert claimed == {path.stem for path in (output / "work" / "verdicts").iterdir()}


def test_interrupted_by_ctrl_c(corpus: Path, inputs: Path, tmp_path: Path) -> None:
    code = start_and_kill(inputs, tmp_path / "out", MOMENTS["clean, between waves"], signal.SIGINT)
    assert code == 130
    refine(inputs, tmp_path / "out")
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)
