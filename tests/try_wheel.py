"""Read a corpus with an installed refinery and nothing else of the project: for `make test-wheel` and cibuildwheel.

    python tests/try_wheel.py [CORPUS]      without one, a small corpus is made first

Ends with an error unless every compiled kernel loads, every training token is delivered once, and neither Beam nor
PyTorch was imported. Prints what it found as JSON. Needs the base dependencies alone.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from refinery.loader import TokenStream
from refinery.loader.read.corpus import Corpus

KERNELS = ("refinery.loader.native", "refinery.transforms.native")
ELSEWHERE = {"apache_beam", "torch", "trafilatura", "tokenizers"}  # what only the extras bring


def load_kernels() -> dict[str, str]:
    """Module -> file of every compiled kernel: one for each C source, which is installed beside it."""
    found = {}
    for package in KERNELS:
        folder = Path(importlib.import_module(package).__path__[0])
        for source in sorted(folder.glob("*.c")):
            name = f"{package}.{source.stem}"
            found[name] = str(importlib.import_module(name).__file__)
    return found


def count_tokens(corpus: Path) -> int:
    """Tokens of the training split; AssertionError unless one epoch delivers each of them once, as inputs."""
    stored = np.concatenate([shard[i] for shard in Corpus(str(corpus)).shards() for i in range(len(shard))])
    with TokenStream(corpus, sequence_length=16, batch_size=2, seed=1, epochs=1, loss_mask=True) as stream:
        read = np.concatenate([batch["labels"][batch["labels"] != -100] for batch in stream])
    assert np.array_equal(np.bincount(read, minlength=1 << 16), np.bincount(stored[1:], minlength=1 << 16))
    return len(stored)


def main(corpus: Path) -> None:
    kernels, tokens = load_kernels(), count_tokens(corpus)
    assert len(kernels) > 2 and tokens > 0
    assert not ELSEWHERE & set(sys.modules), ELSEWHERE & set(sys.modules)
    print(json.dumps({"kernels": kernels, "tokens": tokens}))


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    else:
        from corpus_factory import build_corpus

        with tempfile.TemporaryDirectory() as folder:
            main(build_corpus(Path(folder) / "corpus"))
