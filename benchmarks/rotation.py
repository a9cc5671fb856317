"""How much of its shards a volunteer's node reads, and how much of it twice, by the losses of its training.

    python -m benchmarks.rotation [--batches 400]

A node with ten shards of so many batches each trains on as many batches as they have in all. Losses are made by shapes
of ordinary training, and two of memorised data. Beside today's rule the one of versions before `max_loss` is simulated,
which states of that time go on by. Everything is counted by the tokens in the batches. Runs in seconds, and depends on
no machine.
"""

import argparse
import math
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np

from refinery.loader import NodeStream
from refinery.loader.stream.node import OLD_PLATEAU
from tests.loader.numbered import build_numbered

SHARDS, LENGTH = 10, 4
Loss = Callable[[int, str], float]  # of a step on a shard


def noise(step: int, width: float) -> float:
    return random.Random(step).gauss(0, width)


def slope(step: int, shard: str) -> float:
    """From 10 nats down to 2 by a power of the step, as in pre-training."""
    return 2 + 8 * math.pow(1 + step, -0.3) + noise(step, 0.05)


def plateau(step: int, shard: str, at: float = 2.5, width: float = 0.08) -> float:
    return at + noise(step, width)


def constant(step: int, shard: str) -> float:
    return 2.5


def spikes(step: int, shard: str) -> float:
    """A plateau at 2.5; every 97th step the loss is 7 and then falls back within some steps."""
    return 2.5 + 4.5 * math.exp(-(step % 97)) + noise(step, 0.04)


def cyclic(step: int, shard: str) -> float:
    """Easy and hard text in turns of 50 steps."""
    return 2.5 + 0.3 * math.sin(2 * math.pi * step / 50) + noise(step, 0.04)


def memorised(step: int, shard: str) -> float:
    return 0.02 + abs(noise(step, 0.005))


def half_memorised(step: int, shard: str) -> float:
    """Shards with even numbers are memorised."""
    number = int(PurePath(shard).name.split("-")[1])
    return (plateau if number % 2 else memorised)(step, shard)


HEALTHY: dict[str, Loss] = {
    "slope": slope,
    "noisy plateau at 2.5": plateau,
    "constant 2.5": constant,
    "plateau at 0.4": partial(plateau, at=0.4, width=0.05),
    "spikes": spikes,
    "cyclic": cyclic,
}
MEMORISED: dict[str, Loss] = {"memorised": memorised, "half of the shards memorised": half_memorised}


class Outcome(NamedTuple):
    """Shares of the tokens of the node's shards.

    first_round: read when every shard has been left once, or at the end. read: at the end. repeated: tokens that were
    delivered again, as a share of all delivered. repeated_first: the same up to the end of the first round.
    rotations: moves to another shard.
    """

    first_round: float
    read: float
    repeated: float
    repeated_first: float
    rotations: int


def make_shards(folder: Path, batches: int) -> Path:
    """A corpus of ten shards of so many batches; the id of each token is its place in the corpus."""
    return build_numbered(folder, {"web": [[batches * LENGTH]] * SHARDS}, vocab_size=SHARDS * batches * LENGTH + 1)


def simulate(corpus: Path, loss: Loss, batches: int, *, old: bool = False) -> Outcome:
    """Train for so many batches. old: by the rule before `max_loss`."""
    first: tuple[int, int] | None = None
    delivered = 0
    with NodeStream(corpus, "anna", sequence_length=LENGTH, batch_size=1, prefetch=0) as stream:
        seen = np.zeros(sum(entry.tokens for entry in stream.shards) + 1, np.int64)
        if old:
            state = {name: part for name, part in stream.state_dict().items() if name not in ("began", "left")}
            stream.load_state_dict(state | {"plateau": dict(OLD_PLATEAU)})
        for step in range(batches):
            batch = next(stream)
            if first is None and stream.rotations >= SHARDS:
                first = int(np.count_nonzero(seen)), delivered
            seen[batch["input_ids"][0]] += 1
            delivered += LENGTH
            stream.observe(loss(step, stream.shard))
        rotations = stream.rotations
    read, tokens = int(np.count_nonzero(seen)), len(seen) - 1
    at, until = first or (read, delivered)
    return Outcome(at / tokens, read / tokens, 1 - read / delivered, 1 - at / until, rotations)


def table(outcomes: Sequence[tuple[str, Outcome, Outcome]]) -> str:
    lines = [
        "| losses | read in the first round | read in all | repeated | before: first round | in all | repeated |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, now, before in outcomes:
        shares = [f"{share:.1%}" for each in (now, before) for share in (each.first_round, each.read, each.repeated)]
        lines.append(f"| {name} | {' | '.join(shares)} |".replace("%", " %"))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=400, help="of a shard")
    batches = parser.parse_args().batches
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_shards(Path(folder) / "corpus", batches)
        run = partial(simulate, corpus, batches=batches * SHARDS)
        print(table([(name, run(loss), run(loss, old=True)) for name, loss in (HEALTHY | MEMORISED).items()]))


if __name__ == "__main__":
    main()
