"""This project's batches beside numpy's random rows of the same shape, at several lengths of rows.

    python -m benchmarks.loader_lengths [--lengths 1024 8192 131072] [--tokens 40000000] [--repeat 15] [--work FOLDER]

The corpus is that of benchmarks.loader. numpy copies rows at random places of the mapped file into one int64 array that
it uses for every batch: 8 bytes a token. A batch with all masks has 25 bytes a token, with shared labels 17
(mask_labels=False), in memory of its own while the caller has the batch before it. All sides take turns in one process;
a figure is the median, over the turns, of a side's speed by numpy's in the same turn. Speeds are per CPU time. "first"
is the CPU time, in milliseconds, from opening a stream to its first batch, the median of new processes.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loader import MASKS
from benchmarks.loader_corpus import BATCH, SEED, Batches, Corpus, make_corpus
from benchmarks.signatures import ONE_THREAD, describe_run
from refinery.loader import TokenStream

LENGTHS = (1024, 2048, 8192, 32_768, 131_072)
TURN = 2_000_000  # tokens of a side in a turn
STREAMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "all masks": MASKS,
    "all masks, shared labels": {**MASKS, "mask_labels": False},
    "best fit": {"packing": "best_fit"},
    "best fit, all masks": {"packing": "best_fit", **MASKS},
}


def numpy_rows(corpus: Corpus, length: int) -> Batches:
    tokens, generator = corpus.open(), np.random.default_rng(SEED)
    samples, buffer = (corpus.tokens - 1) // length, np.empty((BATCH, length + 1), np.int64)
    while True:
        for rows in (generator.permutation(samples)[: samples // BATCH * BATCH] * length).reshape(-1, BATCH).tolist():
            for out, first in zip(buffer, rows, strict=True):
                out[:] = tokens[first : first + length + 1]
            yield buffer


def ours(folder: str, length: int, options: dict[str, Any]) -> Batches:
    with TokenStream(folder, length, BATCH, seed=SEED, prefetch=0, **options) as stream:
        yield from stream


def measure(corpus: Corpus, length: int, repeat: int) -> dict[str, float]:
    """By side: its speed divided by numpy's, the median of the turns."""
    sides: dict[str, Iterator[Any]] = {"numpy": numpy_rows(corpus, length)}
    sides |= {name: ours(str(corpus.folder), length, options) for name, options in STREAMS.items()}
    steps, kept = max(TURN // (BATCH * length), 2), None
    for batches in sides.values():  # an epoch, in which every page is mapped and compared with its checksum
        for _ in range(corpus.tokens // (BATCH * length) + 1):
            kept = next(batches)
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeat):
        for name, batches in sides.items():
            begin = time.process_time()
            for _ in range(steps):
                kept = next(batches)  # noqa: F841 - as a loop has it, the batch before lives until this one is there
            found[name].append(time.process_time() - begin)
    return {
        name: statistics.median(base / mine for base, mine in zip(found["numpy"], times, strict=True))
        for name, times in found.items()
    }


def first_batch(folder: str, length: int, name: str) -> float:
    """Milliseconds of CPU in this process from opening a stream to its first batch."""
    begin = time.process_time()
    with closing(ours(folder, length, STREAMS[name])) as batches:
        next(batches)
        return (time.process_time() - begin) * 1e3


def first_batches(corpus: Corpus, length: int, name: str, runs: int) -> float:
    command = [sys.executable, "-m", "benchmarks.loader_lengths", "--first", name, "--lengths", str(length)]
    command += ["--work", str(corpus.folder)]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(runs)]
    return statistics.median(map(float, found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS, help="of rows")
    parser.add_argument("--tokens", type=int, default=40_000_000, help="of the generated corpus (default 40,000,000)")
    parser.add_argument("--repeat", type=int, default=15, help="turns of every side (default 15)")
    parser.add_argument("--work", type=Path, help="keep the corpus here; default: a temporary folder")
    parser.add_argument("--first", choices=STREAMS, help=argparse.SUPPRESS)  # in a process of its own
    args = parser.parse_args()
    if args.first:
        print(first_batch(str(args.work), args.lengths[0], args.first))
        return
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # read when libraries are loaded
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **ONE_THREAD})  # noqa: S606 - the same command again
    print(describe_run())
    with tempfile.TemporaryDirectory() as scratch:
        corpus = make_corpus(Path(args.work or scratch) / str(args.tokens) / "corpus", args.tokens)
        print(f"\n| rows of | {' | '.join(STREAMS)} | first, ms: {', '.join(STREAMS)} |")
        print("| --- " * (len(STREAMS) + 2) + "|")
        for length in args.lengths:
            ratios = measure(corpus, length, args.repeat)
            firsts = [f"{first_batches(corpus, length, name, 5):.0f}" for name in STREAMS]
            cells = [f"{length:,}", *(f"{ratios[name]:.2f}" for name in STREAMS), ", ".join(firsts)]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
