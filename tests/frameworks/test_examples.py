"""Every framework's example on real processes: each token once, resume from the middle, workers, labels, the loss."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.frameworks.runs import (
    ROOT,
    check_every_token,
    check_labels,
    launch,
    run_all,
    seen_by,
    summed_cross_entropy,
)

torch = pytest.importorskip("torch", reason="the extra [frameworks] is not installed")
for library in ("accelerate", "lightning", "torchdata", "megatron.core", "jax"):
    pytest.importorskip(library, reason="the extra [frameworks] is not installed")

sys.path.insert(0, str(ROOT / "examples" / "frameworks"))
EXAMPLES = ROOT / "examples" / "frameworks"


def tiny_logits(inputs: np.ndarray) -> np.ndarray:
    """Of the examples' model before training."""
    from common import Tiny

    with torch.no_grad():
        found: np.ndarray = Tiny(2000)(torch.from_numpy(inputs)).numpy()
    return found


# example, more arguments, processes, ranks that read different data, workers of the second run
RUNS = [
    ("ddp", (), 2, [0, 1], 2),
    ("fsdp", (), 2, [0, 1], 1),
    ("fsdp", ("--tensor-parallel", "2"), 4, [0, 2], 0),
    ("with_accelerate", (), 2, [0, 1], 1),
    ("with_megatron", (), 4, [0, 2], 1),
]


@pytest.mark.parametrize("example, more, processes, ranks, workers", RUNS, ids=lambda value: str(value))
def test_an_epoch_in_two_runs(
    corpus: Path, tmp_path: Path, example: str, more: tuple[str, ...], processes: int, ranks: list[int], workers: int
) -> None:
    """Stopped after 5 steps and resumed with another number of workers: every token once, none left out."""
    launch(example, corpus, tmp_path, "--stop-at", "5", *more, processes=processes)
    first = [seen_by(tmp_path, rank) for rank in range(processes)]
    assert [len(batches) for batches in first] == [5] * processes
    launch(example, corpus, tmp_path, "--workers", str(workers), *more, processes=processes)
    seen = [seen_by(tmp_path, rank) for rank in range(processes)]
    check_every_token(batch for rank in ranks for batch in seen[rank])
    check_labels(batch for batches in seen for batch in batches)
    for rank in range(processes):
        same = seen[max(r for r in ranks if r <= rank)]  # of its tensor-parallel group
        assert [b["input_ids"].tolist() for b in seen[rank]] == [b["input_ids"].tolist() for b in same]
        inputs = seen[rank][0]["input_ids"]
        assert seen[rank][0]["loss"] == pytest.approx(summed_cross_entropy(tiny_logits(inputs), inputs), rel=1e-5)


def test_torchdata(corpus: Path, tmp_path: Path) -> None:
    """Its states are of one number of workers."""
    for more in (("--stop-at", "4"), ()):
        launch("with_torchdata", corpus, tmp_path, "--workers", "2", *more)
    seen = [seen_by(tmp_path, rank) for rank in range(2)]
    check_every_token(batch for batches in seen for batch in batches)
    check_labels(batch for batches in seen for batch in batches)
    inputs = seen[1][0]["input_ids"]
    assert seen[1][0]["loss"] == pytest.approx(summed_cross_entropy(tiny_logits(inputs), inputs), rel=1e-5)


def test_lightning_over_epochs(corpus: Path, tmp_path: Path) -> None:
    """Two epochs, stopped inside the second: the sanity check and each epoch's validation see the same batches."""
    launch("with_lightning", corpus, tmp_path, "--epochs", "2", "--stop-at", "20")
    text = launch("with_lightning", corpus, tmp_path, "--epochs", "2", "--workers", "1")
    seen = [seen_by(tmp_path, rank) for rank in range(2)]
    check_every_token((batch for batches in seen for batch in batches), times=2)
    check_labels(batch for batches in seen for batch in batches)
    inputs = seen[0][0]["input_ids"]
    assert seen[0][0]["loss"] == pytest.approx(summed_cross_entropy(tiny_logits(inputs), inputs), rel=1e-5)
    assert re.findall(r"validated batches: (\d+)", text) == ["16", "16"]  # an epoch of 16 steps


def test_trainer(corpus: Path, tmp_path: Path) -> None:
    """Two epochs with accumulation, stopped in the second: tokens, labels, two equal evaluations' batches, the loss."""
    from with_trainer import tiny_llama

    launch("with_trainer", corpus, tmp_path, "--epochs", "2", "--stop-at", "11")
    first = [seen_by(tmp_path, rank) for rank in range(2)]
    assert [len(batches) for batches in first] == [22, 22]
    text = launch("with_trainer", corpus, tmp_path, "--epochs", "2", "--workers", "1")
    seen = [seen_by(tmp_path, rank) for rank in range(2)]
    check_every_token((batch for batches in seen for batch in batches), times=2)
    check_labels((batch for batches in seen for batch in batches), unshifted=True)
    losses = json.loads(re.findall(r"evaluations: (\[.*\])", text)[0])
    assert len(losses) == 3 and sorted(losses, reverse=True) == losses  # of each epoch, and where the first run stopped

    model = tiny_llama(2000).eval()
    summed, count = 0.0, 0
    for batches in seen:  # the loss of an optimizer's step is the mean over the labels of both ranks and both batches
        for batch in batches[:2]:
            with torch.no_grad():
                logits = model(torch.from_numpy(batch["input_ids"])).logits.numpy()
            summed += summed_cross_entropy(logits, batch["input_ids"], within=True)
            count += int((batch["labels"] != -100).sum())
    logged = [batch["loss"] for batches in seen for batch in batches[:2]]
    assert sum(logged) / 2 == pytest.approx(summed / count, rel=1e-4)  # each rank's is times the number of ranks


def test_jax(corpus: Path, tmp_path: Path) -> None:
    from with_jax import tiny_parameters

    for more in (("--stop-at", "5"), ()):
        command = [sys.executable, str(EXAMPLES / "with_jax.py"), str(corpus), "--output", str(tmp_path), *more]
        run_all(command, [{"RANK": str(r), "WORLD_SIZE": "2", "JAX_PLATFORMS": "cpu"} for r in range(2)])
    seen = [seen_by(tmp_path, rank) for rank in range(2)]
    check_every_token(batch for batches in seen for batch in batches)
    check_labels(batch for batches in seen for batch in batches)
    parameters, inputs = tiny_parameters(2000), seen[0][0]["input_ids"]
    by_hand = summed_cross_entropy(parameters["embedding"][inputs] @ parameters["out"], inputs)
    assert seen[0][0]["loss"] == pytest.approx(by_hand, rel=1e-4)
