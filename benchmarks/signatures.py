"""Text in, MinHash signature out: this project beside rensa, datasketch and datatrove, on one core, in one run.

    python -m benchmarks.signatures [--input docs.jsonl.gz] [--megabytes 5] [--repeat 5]

Needs the extra [bench]. Every side computes signatures of 128 permutations from 5-word shingles of the same texts,
which are in memory. Ours includes finding the words. The peers split at white space with `str.split`, the cheapest way
there is; datatrove's default takes its own English words (spaCy). "rensa rho" samples positions and is not a MinHash of
all shingles; it is shown because its authors recommend it for bulk work, and no goal counts it.

The process pins itself to one core and sets all known thread counts to 1. The sides take turns; a figure is
the median over the turns of the CPU time of the process. Texts: 2,000 documents of word-like text that the script makes
(median 862 characters), and with --input the field text of a JSONL file, documents spread evenly over it.
"""

import argparse
import gzip
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, shingle_hashes

PERMUTATIONS, WORDS = 128, 5
PARAMS = SignatureParams(permutations=PERMUTATIONS, ngram=WORDS)
ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB", "RAYON", "TOKENIZERS")
}
LEAST_SECONDS = 0.1  # a turn repeats a side until it has used this much CPU time
GOALS = {"rensa": 4.0, "datasketch bulk": 15.0, "datatrove default": 100.0}
GOAL_SPEED = 150.0  # MB/s
SYLLABLES = [c + v + e for c in "bdfgklmnprst" for v in "aeiou" for e in ("", "n", "r", "s")]

Side = Callable[[Sequence[str]], Any]


@cache
def zipf_vocabulary() -> tuple[list[str], list[float]]:
    """Word-like strings, and the running sums of their weights: the n-th has 1 / (n + 1)."""
    generator = random.Random(0)
    made = ("".join(generator.choices(SYLLABLES, k=generator.choice((1, 1, 2, 2, 3)))) for _ in range(60_000))
    words = list(dict.fromkeys(made))
    return words, np.cumsum(1.0 / np.arange(2, len(words) + 2)).tolist()


def make_texts(count: int, seed: int = 1, median: int = 862, spread: float = 0.95) -> list[str]:
    """`count` documents of word-like text: Zipf vocabulary, sentences, paragraphs; deterministic.

    Lengths in characters are log-normal: median and standard deviation of the logarithm (0.95 makes the mean 1.57
    times the median, which is what web text shows).
    """
    generator = random.Random(seed)
    vocabulary, weights = zipf_vocabulary()
    texts = []
    for _ in range(count):
        size = max(20, round(generator.lognormvariate(np.log(median), spread)))
        words = generator.choices(vocabulary, cum_weights=weights, k=size // 3 + 12)
        pieces, length = [], 0
        while length < size:
            sentence = [words.pop() for _ in range(min(len(words), generator.randrange(5, 25)))]
            if not sentence:
                words = generator.choices(vocabulary, cum_weights=weights, k=100)
                continue
            piece = " ".join(sentence).capitalize() + generator.choice((". ", ". ", "? ", ".\n\n"))
            pieces.append(piece)
            length += len(piece)
        texts.append("".join(pieces)[:size].rstrip())
    return texts


def read_texts(path: Path, limit: int = 0) -> list[str]:
    """The field text of a JSONL file, plain or .gz; with a limit in bytes, rows spread evenly over the file.

    Raises SystemExit with a sentence when the file holds no such rows.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            texts = [json.loads(line)["text"] for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path}: JSONL with a field text is needed ({type(error).__name__}: {error})")
    if not texts:
        sys.exit(f"{path}: no documents found")
    total = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return texts[:: max(1, round(total / limit))] if limit else texts


def describe_run() -> str:
    """Machine, interpreter, date and command, printed first by every benchmark."""
    names = [line.partition(": ")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = os.getloadavg()[0]
    command = " ".join(["python", *sys.orig_argv[1:]])
    return (
        f"{names[0] if names else platform.machine()}, {cores} cores, load {load:.1f}, "
        f"Python {platform.python_version()}, {date.today()}\n{command}\n"
    )


def _cpu_lines() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


# --- the sides --------------------------------------------------------------------------------------------------------


def shingles_of(text: str) -> list[str]:
    """5-word shingles of text split at white space; fewer words make one shingle."""
    words = text.split()
    return [" ".join(words[i : i + WORDS]) for i in range(max(1, len(words) - WORDS + 1))]


def make_sides() -> dict[str, Side]:
    """Every side by name, ours first. Imports the peers."""
    try:
        import datasketch
        from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
        from rensa import RMinHash
    except ImportError as error:
        sys.exit(f"{error.name} is not installed: the peers come with the extra [bench]")

    def rensa_each(texts: Sequence[str]) -> list[list[int]]:
        digests = []
        for text in texts:
            sketch = RMinHash(num_perm=PERMUTATIONS, seed=1)
            sketch.update(shingles_of(text))
            digests.append(sketch.digest())
        return digests

    def datatrove(step: Any) -> Side:
        return lambda texts: [
            step.get_signature(step.get_shingles(text)) for text in texts if len(text.split()) >= WORDS
        ]

    config = MinhashConfig(n_grams=WORDS, num_buckets=PERMUTATIONS // 8, hashes_per_bucket=8)
    default = MinhashDedupSignature("/nonexistent", config)  # writes only when run as a step
    split = MinhashDedupSignature("/nonexistent", config)
    split.word_tokenizer = SimpleNamespace(word_tokenize=str.split)
    return {
        "ours": lambda texts: compute_signatures(texts, PARAMS),
        "rensa, one by one": rensa_each,
        "rensa, bulk": lambda texts: RMinHash.digest_matrix_from_token_sets(map(shingles_of, texts), PERMUTATIONS, 1),
        "rensa rho (samples)": lambda texts: RMinHash.digest_matrix_from_token_sets_rho(
            map(shingles_of, texts), PERMUTATIONS, 1
        ),
        "datasketch bulk": lambda texts: datasketch.MinHash.bulk(
            ([shingle.encode() for shingle in shingles_of(text)] for text in texts), num_perm=PERMUTATIONS
        ),
        "datatrove, str.split": datatrove(split),
        "datatrove default": datatrove(default),
    }


def equals_datasketch(texts: Sequence[str]) -> bool:
    """Whether the signatures of these texts are datasketch's own affine32 values for our shingle hashes."""
    from datasketch import MinHash

    for text, signature in zip(texts, compute_signatures(texts, PARAMS), strict=True):
        theirs = MinHash(num_perm=PERMUTATIONS, seed=PARAMS.seed, scheme="affine32", hashfunc=int)
        theirs.update_batch(shingle_hashes(text, PARAMS).tolist())
        if not np.array_equal(theirs.hashvalues, signature):
            return False
    return True


# --- measuring --------------------------------------------------------------------------------------------------------


def cpu_seconds(side: Side, texts: Sequence[str]) -> float:
    """CPU seconds of the process for all texts once: the mean over the rounds that fit LEAST_SECONDS."""
    rounds = 0
    start = time.process_time()
    while (used := time.process_time() - start) < LEAST_SECONDS or not rounds:
        side(texts)
        rounds += 1
    return used / rounds


def compare(sides: dict[str, Side], texts: Sequence[str], repeat: int) -> dict[str, float]:
    """Median CPU seconds of every side; the sides take turns. One untimed warm-up call each."""
    for side in sides.values():
        side(texts[:20])
    turns: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeat):
        for name, side in sides.items():
            turns[name].append(cpu_seconds(side, texts))
    return {name: statistics.median(seconds) for name, seconds in turns.items()}


def print_table(title: str, texts: Sequence[str], seconds: dict[str, float]) -> None:
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6
    median = statistics.median(map(len, texts))
    print(f"\n{title}: {len(texts):,} documents, {size:.1f} MB, median {median:,.0f} characters")
    print("\n| | documents/s | MB/s | ours is faster by |\n| --- | --- | --- | --- |")
    ratios = {name: used / seconds["ours"] for name, used in seconds.items()}
    for name, used in seconds.items():
        print(f"| {name} | {len(texts) / used:,.0f} | {size / used:.1f} | {ratios[name]:.1f} |")
    best = {**ratios, "rensa": min(ratios["rensa, one by one"], ratios["rensa, bulk"])}
    speed = size / seconds["ours"]
    print(f"\ngoal {GOAL_SPEED:.0f} MB/s a core: {speed:.0f}, {'reached' if speed >= GOAL_SPEED else 'missed'}")
    for name, goal in GOALS.items():
        print(f"goal {goal:.0f} x {name}: {best[name]:.1f}, {'reached' if best[name] >= goal else 'missed'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, help="JSONL, plain or .gz, with a field text: a second table")
    parser.add_argument("--megabytes", type=float, default=5, help="megabytes of --input, about (default 5)")
    parser.add_argument("--documents", type=int, default=2000, help="generated documents (default 2000)")
    parser.add_argument("--repeat", type=int, default=5, help="turns of every side (default 5)")
    args = parser.parse_args()
    for name in ("documents", "repeat", "megabytes"):
        if getattr(args, name) < 1:
            parser.error(f"--{name}: {getattr(args, name)} given, 1 or more is allowed")
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # read when the libraries are imported
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **ONE_THREAD})  # noqa: S606 - this very command again
    print(describe_run())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sides = make_sides()
    made = make_texts(args.documents)
    print(f"equal to datasketch's affine32 values: {equals_datasketch(made[:200])} (200 documents)")
    print_table("generated text", made, compare(sides, made, args.repeat))
    if args.input:
        texts = read_texts(args.input, round(args.megabytes * 1e6))
        print_table(args.input.name, texts, compare(sides, texts, args.repeat))


if __name__ == "__main__":
    main()
