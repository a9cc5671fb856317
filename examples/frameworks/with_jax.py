"""JAX: the stream's numpy arrays, without PyTorch. One process for each host; here two on one.

    RANK=0 WORLD_SIZE=2 python examples/frameworks/with_jax.py out/demo/corpus --output out/jax &
    RANK=1 WORLD_SIZE=2 python examples/frameworks/with_jax.py out/demo/corpus --output out/jax

After jax.distributed.initialize() rank and world_size are jax.process_index() and jax.process_count(), and
jax.make_array_from_process_local_data(sharding, batch["input_ids"]) joins the rows of all hosts.
"""

import argparse
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from refinery.loader import Corpus, TokenStream

WIDTH = 16


@jax.jit
def summed_loss(parameters: dict[str, jax.Array], inputs: jax.Array, labels: jax.Array) -> jax.Array:
    """Sum of the cross entropy over the labels that count."""
    logits = parameters["embedding"][inputs] @ parameters["out"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    return -jnp.where(labels >= 0, chosen, 0.0).sum()


def tiny_parameters(vocab_size: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = {"embedding": (vocab_size, WIDTH), "out": (WIDTH, vocab_size)}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--sequence-length", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--stop-at", type=int)
    args = parser.parse_args()
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / f"loader-{rank}.json"
    parameters = jax.tree.map(jnp.asarray, tiny_parameters(Corpus(args.corpus).manifest.tokenizer.vocab_size))
    with TokenStream(
        args.corpus, args.sequence_length, args.batch_size, epochs=args.epochs, rank=rank, world_size=world_size
    ) as stream:
        if path.exists():
            stream.load_state_dict(json.loads(path.read_text()))
        for step, batch in enumerate(stream, 1):
            inputs, labels = (jnp.asarray(batch[name]) for name in ("input_ids", "labels"))
            loss, gradients = jax.value_and_grad(summed_loss)(parameters, inputs, labels)
            seen = {"input_ids": batch["input_ids"].tolist(), "labels": batch["labels"].tolist(), "loss": float(loss)}
            with (args.output / f"seen-{rank}.jsonl").open("a") as log:
                log.write(json.dumps(seen) + "\n")
            parameters = jax.tree.map(lambda p, g: p - 0.001 * g, parameters, gradients)
            if step == args.stop_at:
                break
        path.write_text(json.dumps(stream.state_dict()))


if __name__ == "__main__":
    main()
