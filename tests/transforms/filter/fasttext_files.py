"""Files of fastText models: made value by value, and trained by floret."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import floret
import numpy as np

from refinery.pipelines.training.fasttext_training import as_fasttext, silent
from refinery.transforms.filter.quality import classifier_text

LOSSES = {"hs": 1, "ns": 2, "softmax": 3, "ova": 4}
WORDS = ("</s>", "the", "ship", "sea", "über", "日本", "a")

Matrix = tuple[bool, bytes]  # quantised or not, and its bytes


def dense(values: Any) -> Matrix:
    """A plain matrix."""
    values = np.asarray(values, np.float32)
    return False, struct.pack("<2q", *values.shape) + values.tobytes()


def quantised(rng: np.random.Generator, rows: int, dim: int, part: int, norms: bool) -> Matrix:
    """A product-quantised matrix with random codes and centroids, parts of `part` columns, the last one shorter."""
    parts = -(-dim // part)
    codes = rng.integers(0, 256, (rows, parts), np.uint8)
    data = struct.pack("<?2qi", norms, rows, dim, codes.size) + codes.tobytes()
    data += struct.pack("<4i", dim, parts, part, dim - (parts - 1) * part)
    data += rng.normal(0, 1, dim * 256).astype(np.float32).tobytes()
    if norms:
        data += rng.integers(0, 256, rows, np.uint8).tobytes() + struct.pack("<4i", 1, 1, 1, 1)
        data += rng.normal(0, 1, 256).astype(np.float32).tobytes()
    return True, data


def model_file(
    inputs: Matrix,
    outputs: Matrix,
    loss: str = "softmax",
    words: Sequence[str] = WORDS,
    labels: Sequence[str] = ("__label__en", "__label__de"),
    counts: Sequence[int] | None = None,
    pruned: Sequence[tuple[int, int]] | None = None,
    **arguments: int,
) -> bytes:
    """A model file, version 12; `arguments` replace magic, version, dim, word_ngrams, buckets, minn, maxn, kind."""
    values = {"magic": 793_712_314, "version": 12, "dim": 4, "word_ngrams": 1, "kind": 3, "buckets": 50}
    values |= {"minn": 2, "maxn": 4} | arguments
    data = struct.pack("<2i", values["magic"], values["version"])
    numbers = (values["dim"], 5, 5, 1, 5, values["word_ngrams"], LOSSES.get(loss, 9), values["kind"])
    data += struct.pack("<12id", *numbers, values["buckets"], values["minn"], values["maxn"], 100, 1e-4)
    data += struct.pack(
        "<3iqq", len(words) + len(labels), len(words), len(labels), 99, -1 if pruned is None else len(pruned)
    )
    for i, name in enumerate((*words, *labels)):
        kind = i >= len(words)
        count = (list(counts or range(len(labels) + 9, 9, -1)))[i - len(words)] if kind else 7
        data += name.encode() + b"\0" + struct.pack("<qb", count, kind)
    for pair in pruned or ():
        data += struct.pack("<2i", *pair)
    return data + struct.pack("?", inputs[0]) + inputs[1] + struct.pack("?", outputs[0]) + outputs[1]


def trained(folder: Path, lines: Sequence[str], quantise: dict[str, Any] | None = None, **settings: Any) -> bytes:
    """The file of a model that floret trained on `lines` with one thread and a fixed seed, quantised where asked."""
    text, model = folder / "train.txt", folder / "model"
    text.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    with silent():
        found = floret.train_supervised(str(text), thread=1, seed=1, verbose=0, minCount=1, **settings)
        if quantise is not None:
            found.quantize(input=str(text), thread=1, verbose=0, **quantise)
        found.save_model(str(model))
    return as_fasttext(model.read_bytes())


def train_labelled(path: Path, texts: Mapping[str, Sequence[str]], repeat: int = 40) -> None:
    """Write a small model at `path` that tells apart the texts of each label, as `classifier_text` makes lines."""
    lines = [
        f"__label__{label} {classifier_text(text, 1000)}"
        for _ in range(repeat)
        for label, few in texts.items()
        for text in few
    ]
    path.write_bytes(trained(path.parent, lines, dim=8, epoch=20, lr=0.5, bucket=1000))
