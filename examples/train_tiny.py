"""Train a tiny transformer on a corpus, get killed, and resume without a difference.

    make demo
    pip install torch==2.13.0
    python examples/train_tiny.py out/demo/corpus --output out/tiny --kill-at 130     # dies by SIGKILL
    python examples/train_tiny.py out/demo/corpus --output out/tiny                   # resumes from the last checkpoint
    python examples/train_tiny.py out/demo/corpus --output out/unbroken
    cmp out/tiny/losses.jsonl out/unbroken/losses.jsonl                               # the same, to the last bit

A checkpoint has the model, the optimizer, the loader's state and its receipt: which tokens the model has seen, in which
order, from which corpus. With one thread and deterministic algorithms, losses can be compared bit by bit.
"""

import argparse
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from refinery.loader import Corpus
from refinery.loader.torch.adapter import TokenLoader, build_dataloader, device_prefetch

WIDTH, HEADS, LAYERS = 64, 4, 2
LEARNING_RATE, WARMUP = 3e-3, 20


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, length, _ = x.shape
        heads = self.qkv(self.attention_norm(x)).view(rows, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, WIDTH))
        y: Tensor = x + self.mlp(self.mlp_norm(x))
        return y


class TinyTransformer(nn.Module):
    """Two layers, 64 wide. Attention is limited to a document; positions start at 0 in each."""

    causal: Tensor

    def __init__(self, vocab_size: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, WIDTH), nn.Embedding(length, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)
        self.register_buffer("causal", torch.ones(length, length, dtype=torch.bool).tril(), persistent=False)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        documents = batch["doc_ids"]
        mask = self.causal & (documents[:, :, None] == documents[:, None, :])
        x = self.tokens(batch["input_ids"]) + self.positions(batch["position_ids"])
        for block in self.blocks:
            x = block(x, mask[:, None])
        logits: Tensor = self.norm(x) @ self.tokens.weight.T  # [B, S, vocabulary]
        return logits


def loss_of(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Mean cross entropy over the labels that count; 0 if a batch has none (padding at an epoch's end)."""
    losses = F.cross_entropy(model(batch).flatten(0, 1), batch["labels"].flatten(), reduction="none")
    mask = batch["loss_mask"].flatten()
    return (losses * mask).sum() / mask.sum().clamp(min=1)


def save(path: Path, checkpoint: dict[str, Any]) -> None:
    """Write the checkpoint atomically."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as stream:
        torch.save(checkpoint, stream)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def kept_losses(path: Path, step: int) -> str:
    """The lines up to `step`; those after the checkpoint will be written again."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return "".join(lines[:step])


def train(args: argparse.Namespace, loader: TokenLoader, vocab_size: int) -> None:
    torch.manual_seed(args.seed)
    model = TinyTransformer(vocab_size, args.sequence_length).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARMUP))
    steps, path, step = device_prefetch(loader, args.device), args.output / "checkpoint.pt", 0
    if path.exists():
        checkpoint = torch.load(path, map_location=args.device, weights_only=True)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        schedule.load_state_dict(checkpoint["schedule"])
        steps.load_state_dict(checkpoint["loader"])
        step = checkpoint["step"]
        print(f"resuming from step {step}")

    losses_path = args.output / "losses.jsonl"
    lines = kept_losses(losses_path, step)
    started, tokens = time.perf_counter(), 0
    with losses_path.open("w") as losses:
        losses.write(lines)
        for batch in steps if step < args.steps else ():
            loss = loss_of(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            tokens += batch["input_ids"].numel()
            losses.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")
            if step % args.print_every == 0 or step == args.steps:
                print(f"step {step}, loss {loss.item():.4f}, {tokens / (time.perf_counter() - started):,.0f} tokens/s")
            if step % args.checkpoint_every == 0 or step == args.steps:
                losses.flush()
                os.fsync(losses.fileno())
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                state |= {"schedule": schedule.state_dict(), "loader": steps.state_dict()}
                save(path, state | {"receipt": json.dumps(steps.receipt())})
            if step == args.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if step == args.steps:
                break
    print(loader.telemetry.summary())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a corpus prefix: a folder, gs://… or https://…")
    parser.add_argument("--output", type=Path, required=True, help="folder for checkpoint.pt and losses.jsonl")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--checkpoint-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--print-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--kill-at", type=int, metavar="STEP", help="SIGKILL itself after this step")
    args = parser.parse_args(argv)
    args.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    loader = build_dataloader(
        args.corpus,
        sequence_length=args.sequence_length,
        batch_size=args.batch_size,
        seed=args.seed,
        loss_mask=True,
        position_ids=True,
        doc_ids=True,
    )
    train(args, loader, Corpus(args.corpus).manifest.tokenizer.vocab_size)


if __name__ == "__main__":
    main()
