"""This project's stream compared with other loaders, in one process, in one run.

    python -m benchmarks.loader [--tokens 100000000] [--repeat 5] [--only ours megatron] [--work FOLDER]

The corpus is random int32 tokens in documents of about 500, in this project's format, in the page cache; batches are 8
rows of 4,096 tokens as int64, shuffled, made without worker processes. Needs the extra [bench]; a peer that cannot be
imported is reported in the table. Mosaic's streaming is not in the extra: it forbids the versions of numpy and
google-cloud-storage that this project needs, but works with them. In a separate environment, install
mosaicml-streaming==0.13.0 first and then this project.

The loaders are interleaved; a figure is the median over the turns. A turn creates a new loader: "first batch" is the
time until its first batch, "middle" the same for the middle of the epoch. Speeds are per CPU time of the process,
including all threads, so other load changes little; on an idle machine wall time gives the same for loaders
without threads. "First pass" is the rest of the epoch (or a second of CPU): every page of a memory map is read for the
first time, as in training. "Later" is the speed of the same loader after that, if it got so far.
"""

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.loader_corpus import BATCH, SEED, SEQUENCE, Batches, Corpus, Side, Start, make_corpus
from benchmarks.loader_peers import PEERS
from benchmarks.signatures import ONE_THREAD, describe_run
from refinery.loader import TokenStream

SECONDS = 1.0  # of CPU for a pass, if the epoch does not end earlier
MOST_WALL = 6  # times SECONDS that a pass may take
MASKS: dict[str, Any] = dict.fromkeys(
    ("loss_mask", "position_ids", "doc_ids", "cu_seqlens", "ignore_cross_document"), True
)
GOALS = {"ours": 600.0, "ours-masks": 300.0}  # M tokens/s
RATIOS = (("ours", "megatron", 8.0), ("ours-masks", "megatron-documents", 10.0))
GOAL_FIRST = 50.0  # ms


def ours(corpus: Corpus, **options: Any) -> Start:
    """TokenStream with its defaults, except for these options."""

    def open_stream() -> TokenStream:
        return TokenStream(str(corpus.folder), sequence_length=SEQUENCE, batch_size=BATCH, seed=SEED, **options)

    with open_stream() as stream:
        for _ in range(corpus.steps // 2):
            next(stream)
        middle = stream.state_dict()

    def start(step: int) -> Batches:
        with open_stream() as stream:
            if step:
                stream.load_state_dict(middle)
            yield from stream

    return start


SIDES = {
    "ours": Side(
        "TokenStream, prefetch=0: input_ids, labels; verifies each MiB when it is first read",
        partial(ours, prefetch=0),
    ),
    "ours-prefetch": Side(
        "the same with the default prefetch=1, whose thread is not used by a back-to-back caller, as here", ours
    ),
    "ours-masks": Side(
        "prefetch=0 and loss_mask, position_ids, doc_ids, cu_seqlens; labels across documents are ignored",
        partial(ours, prefetch=0, **MASKS),
    ),
    "ours-masks-prefetch": Side("the same with the thread", partial(ours, **MASKS)),
    "ours-packed": Side(
        'as ours-masks with packing="best_fit": rows of whole documents, padded',
        partial(ours, prefetch=0, packing="best_fit", **MASKS),
    ),
    **PEERS,
}

# --- measuring --------------------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """Milliseconds to the first batch, from the start and from the middle; M tokens/s of CPU time in the first pass and
    later (nan if it did not get so far); M tokens/s of wall time in the first pass.
    """

    first: float
    middle: float
    cpu: float
    later: float
    wall: float


def check_batch(name: str, batch: Any) -> None:
    """Raise SystemExit unless a batch is int64 of the right shape and its labels are the inputs shifted by one."""
    pair = (batch["input_ids"], batch["labels"]) if isinstance(batch, dict) else batch
    inputs, labels = (np.asarray(array) for array in pair)
    for array in (inputs, labels):
        if array.shape != (BATCH, SEQUENCE) or array.dtype != np.int64:
            sys.exit(f"{name}: {array.dtype} of shape {array.shape} given, int64 of {(BATCH, SEQUENCE)} is allowed")
    counted = labels[:, :-1] >= 0
    if counted.mean() < 0.8 or (labels[:, :-1] != inputs[:, 1:])[counted].any() or len(np.unique(inputs)) < SEQUENCE:
        sys.exit(f"{name}: the labels are not the inputs shifted by one")


def run_pass(batches: Iterator[Any], limit: int, seconds: float = SECONDS) -> tuple[int, float, float]:
    """Take batches until `limit` or the CPU time is reached: how many, wall seconds, CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    taken = 0
    for _ in batches:
        taken += 1
        late = time.perf_counter() - wall > MOST_WALL * seconds  # a loader that sleeps, or a busy machine
        if taken == limit or late or time.process_time() - cpu >= seconds:
            break
    return taken, time.perf_counter() - wall, time.process_time() - cpu


def take_turn(start: Start, steps: int) -> Turn:
    """Measure a loader once. steps: batches of an epoch."""
    gc.collect()  # the previous turn's loader: some do not allow a second one
    started = time.perf_counter()
    with closing(start(0)) as batches:
        next(batches)
        first = time.perf_counter() - started
        taken, wall, cpu = run_pass(batches, steps - 1)
        speeds = [million(taken, cpu), float("nan"), million(taken, wall)]
        if taken == steps - 1:
            again, _, used = run_pass(batches, 1 << 62)
            speeds[1] = million(again, used)
    del batches
    gc.collect()
    started = time.perf_counter()
    with closing(start(steps // 2)) as batches:
        next(batches)
        middle = time.perf_counter() - started
    return Turn(first * 1e3, middle * 1e3, *speeds)


def million(batches: int, seconds: float) -> float:
    """M tokens/s."""
    return batches * BATCH * SEQUENCE / max(seconds, 1e-9) / 1e6


def compare(names: list[str], corpus: Corpus, repeat: int) -> dict[str, Turn | str]:
    """The medians of every loader, interleaved, or why there are none."""
    starts: dict[str, Start] = {}
    missing: dict[str, Turn | str] = {}
    for name in names:
        try:
            with warnings.catch_warnings(), redirect_stdout(sys.stderr):
                warnings.simplefilter("ignore")
                starts[name] = SIDES[name].prepare(corpus)
        except (ImportError, RuntimeError) as error:  # of extensions built for another torch
            missing[name] = f"cannot be used: {type(error).__name__}: {error}"
            continue
        with closing(starts[name](0)) as batches:
            check_batch(name, next(batches))
    turns: dict[str, list[Turn]] = {name: [] for name in starts}
    for _ in range(repeat):
        for name, start in starts.items():
            turns[name].append(take_turn(start, corpus.steps))
    medians = {name: Turn(*map(statistics.median, zip(*found, strict=True))) for name, found in turns.items()}
    return {name: medians[name] if name in medians else missing[name] for name in names}


def table(found: dict[str, Turn | str]) -> list[str]:
    """Lines of Markdown. Ratios are of first-pass speeds."""
    columns = ["", "first pass", "later", "wall", "first batch, ms", "middle, ms", "ours / it", "ours-masks / it"]
    lines = [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    for name, turn in found.items():
        if isinstance(turn, str):
            lines.append(f"| {name} | {turn} |" + " |" * (len(columns) - 2))
            continue
        cells = [figure(turn.cpu), figure(turn.later), figure(turn.wall), f"{turn.first:.1f}", f"{turn.middle:.1f}"]
        cells += [figure(ratio(found, side, name)) for side in ("ours", "ours-masks")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def ratio(found: dict[str, Turn | str], a: str, b: str) -> float:
    """How many times faster a is than b in the first pass; nan if one of them is missing."""
    speeds = [turn.cpu if isinstance(turn, Turn) else float("nan") for turn in (found.get(a, ""), found.get(b, ""))]
    return speeds[0] / speeds[1]


def figure(value: float) -> str:
    return (
        "" if np.isnan(value) else f"{value:.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.1f}"
    )


def goals(found: dict[str, Turn | str]) -> list[str]:
    """A line for each goal whose loaders were all measured."""
    lines = []
    for name, goal in GOALS.items():
        turn = found.get(name)
        if isinstance(turn, Turn):
            passes = {"first pass": turn.cpu, "later": turn.later}
            judged = [
                f"{what} {speed:.0f} ({reached(speed >= goal)})" for what, speed in passes.items() if speed == speed
            ]
            lines.append(f"{name}: goal {goal:.0f} M tokens/s, {', '.join(judged)}")
    for a, b, goal in RATIOS:
        value = ratio(found, a, b)
        if not np.isnan(value):
            lines.append(f"{a}: goal {goal:.0f} x {b}, {value:.1f} ({reached(value >= goal)})")
    firsts = {name: turn.first for name, turn in found.items() if name.startswith("ours") and isinstance(turn, Turn)}
    if firsts:
        slowest = max(firsts.values())
        lines.append(
            f"goal {GOAL_FIRST:.0f} ms to the first batch, slowest of ours {slowest:.1f} "
            f"({reached(slowest <= GOAL_FIRST)})"
        )
    return lines


def reached(yes: bool) -> str:
    return "reached" if yes else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=100_000_000, help="of the generated corpus (default 100,000,000)")
    parser.add_argument("--repeat", type=int, default=5, help="turns of every loader (default 5)")
    parser.add_argument("--only", nargs="+", choices=SIDES, metavar="NAME", help=f"some of: {', '.join(SIDES)}")
    parser.add_argument("--work", type=Path, help="keep corpus and conversions here; default: a temporary folder")
    args = parser.parse_args()
    for name, least in (("tokens", 1_000_000), ("repeat", 1)):
        if getattr(args, name) < least:
            parser.error(f"--{name}: {getattr(args, name)} given, {least} or more is allowed")
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):  # read when libraries are loaded
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **ONE_THREAD})  # noqa: S606 - the same command again
    print(describe_run())
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(args.work or scratch) / str(args.tokens)
        corpus = make_corpus(work / "corpus", args.tokens)
        print(f"{corpus.tokens:,} tokens in {corpus.documents:,} documents; M tokens/s\n")
        names = args.only or list(SIDES)
        found = compare(names, corpus, args.repeat)
        print("\n".join([*table(found), "", *goals(found), "", *(f"{name}: {SIDES[name].about}" for name in names)]))


if __name__ == "__main__":
    main()
