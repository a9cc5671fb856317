"""The examples run and do what they describe."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus_factory import build_corpus

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")

ROOT = Path(__file__).parents[1]
TEXTS = {("train", "web"): [[f"The {i}th of {k} small documents. " * (1 + i % 3) for i in range(30)] for k in (1, 2)]}


def train(corpus: Path, output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "examples" / "train_tiny.py")
    command = [sys.executable, script, str(corpus), "--output", str(output), "--steps", "30"]
    command += ["--sequence-length", "32", "--batch-size", "2", "--checkpoint-every", "10", *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)


def test_a_killed_and_resumed_run_equals_an_unbroken_one(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path / "corpus", TEXTS)
    unbroken = train(corpus, tmp_path / "unbroken")
    assert unbroken.returncode == 0, unbroken.stderr
    killed = train(corpus, tmp_path / "killed", "--kill-at", "17")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert torch.load(tmp_path / "killed" / "checkpoint.pt", weights_only=True)["step"] == 10
    resumed = train(corpus, tmp_path / "killed")
    assert resumed.returncode == 0 and "resuming from step 10" in resumed.stdout, resumed.stderr

    text = (tmp_path / "unbroken" / "losses.jsonl").read_text()
    losses = [json.loads(line) for line in text.splitlines()]
    assert [entry["step"] for entry in losses] == list(range(1, 31))
    assert losses[-1]["loss"] < losses[0]["loss"]  # it learns
    assert (tmp_path / "killed" / "losses.jsonl").read_text() == text

    one, other = (torch.load(tmp_path / name / "checkpoint.pt", weights_only=True) for name in ("unbroken", "killed"))
    assert one["loader"] == other["loader"] and one["step"] == 30
    assert all(torch.equal(one["model"][name], other["model"][name]) for name in one["model"])
    receipt = json.loads(one["receipt"])
    assert receipt == json.loads(other["receipt"]) and receipt["state"] == one["loader"] and receipt["shards"]
