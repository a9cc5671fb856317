"""A volunteer's node: it trains alone, on its own shards, fetched over https as they are needed.

    python examples/train_volunteer.py https://host/corpus --node anna --output out/anna --steps 1000

Stop it at any time, also by force; the same command goes on from the last checkpoint, to the last bit. Which shards it
has follows from its name: `refinery shards https://host/corpus --node anna` lists them. Read blocks stay in --cache.

The model is a bigram table in numpy, so this runs wherever the loader does. `step` is all that a real model has to
replace: it takes a batch and returns its loss. Nodes send what they learned to each other by means of their own.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refinery.loader import Corpus, NodeStream, RemoteParams


class Bigrams:
    """Logits of the next token for each token: float32 [V, V], trained by plain gradient descent."""

    def __init__(self, vocab_size: int, rate: float = 20.0) -> None:
        self.logits = np.zeros((vocab_size, vocab_size), np.float32)
        self.rate = rate

    def step(self, batch: Mapping[str, Any]) -> float:
        """One step on a batch of input_ids and labels, int64 [B, S] each; the loss before it, a mean over labels."""
        valid = batch["labels"] != -100
        before, after = batch["input_ids"][valid], batch["labels"][valid]
        if not len(after):
            return 0.0
        rows = self.logits[before]
        rows = np.exp(rows - rows.max(axis=1, keepdims=True))
        rows /= rows.sum(axis=1, keepdims=True)
        places = np.arange(len(after))
        loss = float(-np.log(rows[places, after]).mean())
        rows[places, after] -= 1
        np.subtract.at(self.logits, before, self.rate / len(after) * rows)
        return loss


def save(path: Path, model: Bigrams, state: Mapping[str, Any], steps: int) -> None:
    """Model, position and number of steps, as one file that is replaced at once."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as stream:
        np.savez(stream, logits=model.logits, state=np.array(json.dumps({"stream": state, "steps": steps})))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a folder, gs://… or https://…")
    parser.add_argument("--node", required=True, help="this node's name")
    parser.add_argument("--output", type=Path, required=True, help="folder for checkpoint.npz and losses.jsonl")
    parser.add_argument("--cache", type=Path, help="folder for what was read (default: the user's cache folder)")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--checkpoint-every", type=int, default=50, metavar="STEPS")
    args = parser.parse_args(argv)
    args.output.mkdir(parents=True, exist_ok=True)

    model = Bigrams(Corpus(args.corpus).manifest.tokenizer.vocab_size)
    stream = NodeStream(
        args.corpus,
        args.node,
        sequence_length=args.sequence_length,
        batch_size=args.batch_size,
        remote=RemoteParams(cache=args.cache),
    )
    checkpoint, log, done = args.output / "checkpoint.npz", args.output / "losses.jsonl", 0
    if checkpoint.exists():
        with np.load(checkpoint) as saved:
            model.logits, state = saved["logits"], json.loads(str(saved["state"]))
        stream.load_state_dict(state["stream"])
        done = state["steps"]
        print(f"going on after step {done}, with {stream.shard}")
    lines = log.read_text().splitlines(keepends=True)[:done] if log.exists() else []
    with log.open("w") as losses, stream:
        losses.writelines(lines)
        while done < args.steps:
            batch = next(stream)
            shard, done = stream.shard, done + 1
            loss = model.step(batch)
            losses.write(json.dumps({"step": done, "shard": shard, "loss": loss}) + "\n")
            if stream.observe(loss):
                print(f"step {done}: {shard} is memorised; {stream.shard} is next")
            if done % args.checkpoint_every == 0 or done == args.steps:
                losses.flush()
                os.fsync(losses.fileno())
                save(checkpoint, model, stream.state_dict(), done)
    print(f"{done} steps, {stream.rotations} shards left behind, last loss {loss:.3f}" if done else "nothing to do")


if __name__ == "__main__":
    main()
