"""What the examples share: arguments, a tiny model, one step of training, and a log of what the model has seen."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from refinery.loader import Corpus

WIDTH = 16


class Tiny(nn.Module):
    """Predicts a token from the one before it. The same parameters in every process."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.out = nn.Embedding(vocab_size, WIDTH), nn.Linear(WIDTH, vocab_size)

    def forward(self, input_ids: Tensor) -> Tensor:
        logits: Tensor = self.out(self.embedding(input_ids))
        return logits


def arguments(text: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a corpus prefix: a folder, gs://… or https://…")
    parser.add_argument("--output", type=Path, required=True, help="folder for the checkpoint and the logs")
    parser.add_argument("--sequence-length", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=2, help="rows of one rank")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--stop-at", type=int, help="save a checkpoint after this step and stop; run again to resume")
    return parser


def shape_of(args: argparse.Namespace) -> dict[str, Any]:
    """The stream's arguments."""
    return {"sequence_length": args.sequence_length, "batch_size": args.batch_size, "seed": 1, "epochs": args.epochs}


def vocabulary(corpus: str) -> int:
    return Corpus(corpus).manifest.tokenizer.vocab_size


def summed_loss(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of the cross entropy, and the number of labels that count: a rank's last batch may have none."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum"), (labels != -100).sum()


class SeenLog:
    """A line of JSON for each batch of a rank, in OUTPUT/seen-RANK.jsonl."""

    def __init__(self, output: Path, rank: int) -> None:
        output.mkdir(parents=True, exist_ok=True)
        self._path = output / f"seen-{rank}.jsonl"

    def add(self, batch: dict[str, Any], loss: float) -> None:
        """loss: summed over the rank's labels."""
        line = {"input_ids": batch["input_ids"].tolist(), "labels": batch["labels"].tolist(), "loss": loss}
        with self._path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def leave() -> NoReturn:
    """End the process without destructors. Those of gloo, PyTorch's backend without GPUs, hold Python's lock while they
    wait for a thread that may need it, so now and then a process never ends, or aborts."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
