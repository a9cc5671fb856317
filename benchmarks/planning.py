"""Whether the intervals of `refinery plan --from` hold: forecasts from samples of files beside what the whole gave.

    python -m benchmarks.planning --input docs.jsonl.gz [--files 1000] [--splits 2000] [--runs 3] [--work DIR]
    python -m benchmarks.planning                        (generated families of copies alone)

With --input every document is cut into consecutive pieces of at most --cut characters, which fill --files files of
about equal size in their order, so documents of one file are as alike as in a crawl. `refinery refine` runs on all
of them: that is the truth. Then

1. random samples of the files are drawn, the sample's part of the run is taken out, and its forecast is compared: how
   often the interval holds the truth, how wide it is, how far off the estimate; beside it the interval that takes
   documents for independent;
2. --runs samples are really run, by `refine` on their files alone, and measured as `refinery plan --from` does.

Generated families show the hard case, copies, where the truth is known: their share of distinct documents is forecast
from a sample of the files.
"""

import argparse
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import yaml

from benchmarks.funnel import pieces
from benchmarks.signatures import describe_run
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.reports.plan.extrapolate import (
    RISK,
    Forecast,
    Interval,
    copies_in,
    distinct_share,
    forecast,
    student,
)
from refinery.pipelines.reports.plan.measured import Measured, measure
from refinery.pipelines.reports.plan.sample import Sample
from refinery.pipelines.run.api import refine
from refinery.pipelines.run.phases import seconds_of_work
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Coverage:
    """Of many forecasts: share of intervals with the truth inside, median of their width and of the estimate's error,
    both over the truth."""

    inside: float
    width: float
    error: float


def coverage(intervals: Sequence[Interval], truth: float) -> Coverage:
    """How a set of intervals does."""
    inside = [each.low <= truth * (1 + 1e-9) and truth * (1 - 1e-9) <= each.high for each in intervals]
    return Coverage(
        float(np.mean(inside)),
        float(np.median([(each.high - each.low) / truth for each in intervals])),
        float(np.median([abs(each.middle / truth - 1) for each in intervals])),
    )


def draws(sample: Sample, share: float, count: int) -> Iterator[tuple[Sample, float]]:
    """(a random sample of that share of the files, how many times its bytes the whole is), `count` times."""
    generator = np.random.default_rng(1)
    size = max(2, round(sample.files * share))
    for _ in range(count):
        part = sample.subset(np.sort(generator.choice(sample.files, size, replace=False)))
        yield part, float(sample.sizes.sum() / part.sizes.sum())


def independent(part: Sample, times: float) -> Interval:
    """The interval of one who takes documents for independent and copies for absent: for comparison."""
    kept = part.documents
    spread = student(2 * RISK, max(1, round(kept) - 1)) / math.sqrt(max(1.0, kept))
    whole = part.tokens * times
    return Interval(whole * math.exp(-spread), whole, whole * math.exp(spread))


# --- generated families ----------------------------------------------------------------------------------------------


def placed(sizes: Sequence[int], files: int, seed: int) -> Sample:
    """Families of these sizes, each copy in a random file; documents of one token."""
    generator = np.random.default_rng(seed)
    singles = sum(size == 1 for size in sizes)
    weights = np.bincount(generator.integers(0, files, singles), minlength=files).astype(float)
    families, documents = [], float(singles)
    for size in sizes:
        if size == 1:
            continue
        homes = np.unique(generator.integers(0, files, size))
        weights[homes] += 1
        documents += len(homes)
        if len(homes) > 1:
            families.append((1.0, [int(home) for home in homes]))
    return Sample(np.full(files, 1.0), weights, documents, families)


def mirrored(files: int, documents: int, seed: int) -> Sample:
    """Half of the files are copies of the other half, file by file."""
    order = np.random.default_rng(seed).permutation(files)
    pairs = [(int(a), int(b)) for a, b in zip(order[::2], order[1::2], strict=True)]
    families = [(1.0, list(pair)) for pair in pairs for _ in range(documents)]
    return Sample(np.full(files, 1.0), np.full(files, float(documents)), float(files * documents), families)


POPULATIONS: dict[str, Callable[[], Sample]] = {
    "no copies": lambda: placed([1] * 100_000, 2000, 1),
    "half the documents in pairs": lambda: placed([1] * 50_000 + [2] * 25_000, 2000, 2),
    "a tenth in families of ten": lambda: placed([1] * 90_000 + [10] * 1000, 2000, 3),
    "Zipf's families, to 2,000": lambda: placed([max(1, 2000 // rank) for rank in range(1, 40_001)], 2000, 4),
    "ten families of 1,000": lambda: placed([1] * 90_000 + [1000] * 10, 2000, 5),
    "files that are mirrors of others": lambda: mirrored(2000, 50, 6),
}


def print_families(splits: int) -> None:
    print(
        "| copies | truth | share read | holds the truth | width | estimate's error | error if taken as in the sample |"
    )
    print("| --- " * 7 + "|")
    for name, make in POPULATIONS.items():
        whole = make()
        truth = whole.tokens / float(whole.weights.sum())
        for share in (0.01, 0.05, 0.2):
            found = [distinct_share(copies_in(part), part.files, times) for part, times in draws(whole, share, splits)]
            result = coverage(found, truth)
            flat = float(np.median([abs(each.high / truth - 1) for each in found]))
            cells = f"{result.inside:.1%} | {result.width:.0%} | {result.error:.1%} | {flat:.1%}"
            print(f"| {name} | {truth:.3f} | {share:.0%} | {cells} |", flush=True)


# --- documents -------------------------------------------------------------------------------------------------------


def write_files(args: argparse.Namespace, folder: Path) -> list[Path]:
    """The pieces in their order, in files of about equal size."""
    texts = list(pieces(args.input, args.cut))
    ends = np.cumsum([len(text.encode()) for text in texts])
    places = np.minimum(ends * args.files // (ends[-1] + 1), args.files - 1)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{number:04d}.jsonl" for number in range(args.files)]
    for number, path in enumerate(paths):
        rows = (json.dumps({"text": texts[at]}) + "\n" for at in np.flatnonzero(places == number))
        path.write_text("".join(rows))
    random.Random(1).shuffle(texts)
    train_tokenizer(texts[:1000], str(folder / "tokenizer.json"), TrainTokenizerParams(vocab_size=8000, held_out=0))
    return paths


def measured(prefix: Path) -> Measured:
    """What a finished run says of itself."""
    seconds = seconds_of_work(open_store(str(prefix))) or {}
    return measure(str(prefix), sum(seconds.values()))


def run(paths: Sequence[Path], folder: Path, output: Path, workers: int) -> Path:
    """`refine` on these files with the published defaults, deduplication on, toxicity off."""
    recipe = {
        "name": "planning",
        "sources": [{"name": "s", "paths": [str(path) for path in paths]}],
        "language": {"languages": {"en": 0.65}},
        "near_dup": {"threshold": 0.75},
        "toxicity": False,
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "shards": {"validation": 0.0},
    }
    (output.parent / f"{output.name}.yaml").write_text(yaml.safe_dump(recipe))
    refine(str(output.parent / f"{output.name}.yaml"), str(output), workers=workers)
    return output


def print_documents(args: argparse.Namespace, work: Path) -> None:
    paths = write_files(args, work / "input")
    truth = measured(run(paths, work / "input", work / "whole", args.workers))
    whole = truth.sample
    if whole is None:
        raise SystemExit(truth.why)
    distinct = whole.tokens / float(whole.weights.sum())
    print(
        f"{whole.files} files, {truth.raw / 1e6:.0f} MB, {whole.tokens:,.0f} tokens, {distinct:.2%} of them distinct\n"
    )
    print("| share read | files | holds the truth | width | estimate's error | as if independent: holds | width |")
    print("| --- " * 7 + "|")
    for share in SHARES:
        parts = list(draws(whole, share, args.splits))
        result = coverage([forecast(part, times).tokens for part, times in parts], whole.tokens)
        plain = coverage([independent(part, times) for part, times in parts], whole.tokens)
        cells = (
            f"{result.inside:.1%} | {result.width:.0%} | {result.error:.1%} | {plain.inside:.1%} | {plain.width:.0%}"
        )
        print(f"| {share:.0%} | {round(whole.files * share)} | {cells} |", flush=True)
    print("\n| share really run | forecast, M tokens | truth | low | high | holds | speed of a core, sample | whole |")
    print("| --- " * 8 + "|")
    for share in (0.01, 0.05):
        for number in range(args.runs):
            chosen = random.Random(number).sample(paths, round(len(paths) * share))
            found = measured(run(sorted(chosen), work / "input", work / f"{share}-{number}", args.workers))
            if found.sample is None:
                raise SystemExit(found.why)
            said: Forecast = forecast(found.sample, truth.stored / found.stored)
            numbers = (said.tokens.middle, truth.tokens, said.tokens.low, said.tokens.high)
            row = [f"{each / 1e6:.2f}" for each in numbers]
            row.append("yes" if said.tokens.low <= truth.tokens <= said.tokens.high else "no")
            row += [f"{each.raw / each.seconds / 1e6:.1f} MB/s" for each in (found, truth)]
            print(f"| {share:.0%} | {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, help="JSONL with a field text, .gz or not")
    parser.add_argument("--cut", type=int, default=8000, help="longest piece, in characters (8000)")
    parser.add_argument("--files", type=int, default=1000, help="files that the pieces fill (1000)")
    parser.add_argument("--splits", type=int, default=2000, help="random samples of each share (2000)")
    parser.add_argument("--runs", type=int, default=3, help="samples of each share that are really run (3)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--work", type=Path, help="folder to work in (default: one that is removed)")
    args = parser.parse_args()
    print(describe_run())
    print_families(max(1, args.splits // 10))
    if args.input:
        print()
        with TemporaryDirectory(prefix="planning-") as scratch:
            work = args.work or Path(scratch)
            work.mkdir(parents=True, exist_ok=True)
            print_documents(args, work)


if __name__ == "__main__":
    main()
