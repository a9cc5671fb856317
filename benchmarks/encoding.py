"""Encoding speed of the funnel's tokenizer beside Hugging Face's library, on the same texts, one thread, in one run.

    python -m benchmarks.encoding --input docs.jsonl.gz [--cut 8000] [--megabytes 15] [--repeat 3]

A byte-level BPE of 16,000 entries is trained on a tenth of the texts (not timed). Both sides encode every text one by
one; the ids are compared, and the run fails if any differ. The median of the repetitions counts.
"""

import argparse
import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import Tokenizer

from refinery.pipelines.commands.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer


def texts_of(path: Path, cut: int, size: int) -> list[str]:
    """Consecutive pieces of at most `cut` characters, spread evenly over the file, up to about `size` bytes."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    pieces = [text[start : start + cut] for text in texts for start in range(0, len(text), cut)]
    total = sum(len(piece.encode()) for piece in pieces)
    return pieces[:: max(1, total // size)]


def median_seconds(encode: Callable[[str], Any], texts: list[str], repeat: int) -> float:
    """Median wall seconds of encoding all texts."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        for text in texts:
            encode(text)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True, help="JSONL, plain or .gz, with a field text")
    parser.add_argument("--cut", type=int, default=8000)
    parser.add_argument("--megabytes", type=int, default=15)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    texts = texts_of(args.input, args.cut, args.megabytes * 1_000_000)
    size = sum(len(text.encode()) for text in texts) / 1e6
    with TemporaryDirectory() as scratch:
        path = f"{scratch}/tokenizer.json"
        train_tokenizer(texts[::10], path, TrainTokenizerParams(vocab_size=16_000))
        ours, theirs = load_tokenizer(path), Tokenizer.from_file(path)
    different = sum(ours.encode(text).tolist() != theirs.encode(text).ids for text in texts)
    if different:
        sys.exit(f"{different} of {len(texts)} texts have other ids")
    seconds = median_seconds(ours.encode, texts, args.repeat)
    peer = median_seconds(theirs.encode, texts, args.repeat)
    print(f"{len(texts):,} texts, {size:.1f} MB, engine {ours.engine}, equal ids")
    print(f"ours {size / seconds:.1f} MB/s, Hugging Face {size / peer:.1f} MB/s, ratio {peer / seconds:.1f}")


if __name__ == "__main__":
    main()
