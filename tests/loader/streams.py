"""A small corpus, streams over it, and their batches as plain rows: shared by the tests of the stream."""

from pathlib import Path
from typing import Any

import numpy as np

from refinery.loader import TokenStream
from refinery.loader.order.order import Order, OrderParams
from tests.corpus_factory import EOS
from tests.plain_manifest import manifest_of

S = 16
TEXTS = {
    ("train", "web"): [[f"page {i} " * (i % 5 + 1) for i in range(8)], ["a" * 100, ""], [], ["x" * 53]],
    ("train", "code"): [[f"def f{i}(): return {i}" for i in range(9)]],
    ("validation", "web"): [["held out", "kept aside"]],
}
ORDER = OrderParams(block=3, lanes=4, window=2)
IGNORE = -100


def tokens_of(corpus: Path, domain: str = "*") -> list[int]:
    """All tokens of a domain, or of all domains in manifest order, concatenated."""
    payload = manifest_of(corpus)
    paths = [
        shard["files"]["bin"]["path"]
        for shard in payload["shards"]
        if shard["split"] == "train" and domain in ("*", shard["domain"])
    ]
    found: list[int] = np.concatenate([np.fromfile(corpus / path, "<u2") for path in paths]).tolist()
    return found


def expected_rows(tokens: list[int], seed: int, epoch: int, order: OrderParams = ORDER, domain: str = "") -> list[Any]:
    """(inputs, labels) of an epoch in order, computed directly."""
    n = -(-len(tokens) // S)
    shape = Order(
        n, seed=seed, epoch=epoch, block=order.block or 1, lanes=order.lanes, window=order.window, domain=domain
    )
    rows = []
    for i in shape[np.arange(n)].tolist():
        read = tokens[i * S : i * S + S + 1]
        inputs, labels = read[:S], read[1:]
        rows.append((inputs + [EOS] * (S - len(inputs)), labels + [IGNORE] * (S - len(labels))))
    return rows


def stream(corpus: Path, **options: Any) -> TokenStream:
    defaults: dict[str, Any] = {"sequence_length": S, "batch_size": 2, "seed": 5, "order": ORDER, "prefetch": 0}
    return TokenStream(str(corpus), **(defaults | options))


def rows(batches: Any) -> list[Any]:
    """(inputs, labels) of all rows except empty ones."""
    found = []
    for batch in batches:
        for inputs, labels in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True):
            if inputs != [EOS] * S or labels != [IGNORE] * S:
                found.append((inputs, labels))
    return found
