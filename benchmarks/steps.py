"""What one step costs, and what `dedup` finds, beside the programs that people take for it, on the same files.

    python -m benchmarks.steps cost --input DIR --peer datatrove=OTHER/bin/python [--repeat 3]
    python -m benchmarks.steps recall --families 3000 --peer rensa=OTHER/bin/python --peer text-dedup=…
    python -m benchmarks.steps text --input DIR

`cost`: --input is a folder of .jsonl.gz files whose rows have `id` and `text`. Both sides read these files and write
what stays as compressed JSON Lines; `extract` is in benchmarks/warc_path.py. Processor time is that of all processes of
a side, start-up included; the sides take turns, medians are compared. `recall`: families of a text and two copies with
so many words replaced, whose true Jaccard similarity (of sets of five words) is counted; what of them each program
removes at .8. `text`: what a corpus of texts costs beside its phases 1 and 2.
"""

import argparse
import gzip
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.funnel import RECIPE, lid_model, session_processes, timed
from benchmarks.slices import adopt_orphans, cpu

ROOT = Path(__file__).resolve().parent.parent
THRESHOLD, WORDS = 0.8, 5
STEPS: dict[str, tuple[list[str], list[str]]] = {  # name -> words of our command, programs of steps_peer.py
    "dedup --exact": (["dedup", "--exact"], ["dolma-exact"]),
    "dedup --near 0.8": (["dedup", "--near", str(THRESHOLD)], ["datatrove-near", "rensa-near", "text-dedup-near"]),
    "filter": (["filter", "--rules", "gopher,c4,fineweb"], ["datatrove-filter"]),
    "redact": (["redact", "--only", "email,ip", "--no-secrets"], ["datatrove-redact"]),
    "detect-language": (["detect-language"], ["datatrove-language"]),
}
LETTERS = "abcdefghijklmno"
WORD_LIST = ["".join(word) for word in itertools.product(LETTERS, repeat=4)]  # no digits: datatrove counts them as one
REPLACED = (2, 3, 5, 7, 9, 14, 18, 22)  # words of 400


@dataclass
class Cost:
    """What a side took: seconds of wall and processor, bytes at the peak."""

    wall: float
    cpu: float
    memory: int


def measured(command: list[str], folder: Path) -> Cost:
    """A command's cost; it ends the script if it fails. What its processes left goes into the folder's log."""
    before = cpu()
    wall, memory = timed(command, folder / "log", {"HF_HOME": str(folder / "cache"), "PATH": "/usr/bin:/bin"})
    return Cost(wall, cpu() - before, memory)


def ours(words: list[str], args: argparse.Namespace, inputs: Path, folder: Path) -> Cost:
    pattern = f"{inputs}/*.jsonl.gz"
    command = [sys.executable, "-m", "refinery", words[0], pattern, "--output", str(folder / "out"), *words[1:]]
    return measured([*command, "--workers", str(args.workers), "--quiet"], folder)


def theirs(program: str, python: str, args: argparse.Namespace, inputs: Path, folder: Path) -> Cost:
    command = [python, str(ROOT / "benchmarks" / "steps_peer.py"), program, "--input", str(inputs)]
    command += ["--work", str(folder / "work"), "--workers", str(args.workers), "--lid", str(lid_model())]
    return measured(command, folder)


def peer_of(program: str, peers: dict[str, str]) -> str:
    """The Python that has a program: peers are named by the program's beginning. "": none."""
    return next((python for name, python in peers.items() if program.startswith(f"{name}-")), "")


def cost(args: argparse.Namespace, peers: dict[str, str]) -> None:
    """Each step and its peers, in turns."""
    print(f"{'step':18}{'side':18}{'wall, s':>10}{'CPU s':>10}{'MB':>8}{'CPU ratio':>11}{'wall ratio':>12}")
    for name, (words, programs) in STEPS.items():
        if args.only and name not in args.only:
            continue
        found: dict[str, list[Cost]] = defaultdict(list)
        for _ in range(args.repeat):
            for side in ("ours", *programs):
                python = peer_of(side, peers)
                if side != "ours" and not python:
                    continue
                with tempfile.TemporaryDirectory(dir=args.work) as made:
                    folder = Path(made)
                    each = (
                        ours(words, args, args.input, folder)
                        if side == "ours"
                        else theirs(side, python, args, args.input, folder)
                    )
                found[side].append(each)
        base = middle(found["ours"])
        for side, costs in found.items():
            each = middle(costs)
            print(f"{name:18}{side:18}{each.wall:10.1f}{each.cpu:10.1f}{each.memory / 1e6:8,.0f}", end="")
            print(f"{each.cpu / base.cpu:11.1f}{each.wall / base.wall:12.1f}", flush=True)


def middle(costs: list[Cost]) -> Cost:
    walls, processors, memories = zip(*((each.wall, each.cpu, each.memory) for each in costs), strict=True)
    return Cost(statistics.median(walls), statistics.median(processors), int(statistics.median(memories)))


def families(count: int, generator: random.Random) -> Iterator[list[str]]:
    """Texts of a family: a base and two copies of it with other words here and there."""
    for _ in range(count):
        base = [generator.choice(WORD_LIST) for _ in range(400)]
        texts = [" ".join(base)]
        for _ in range(2):
            copy = list(base)
            for place in generator.sample(range(len(copy)), generator.choice(REPLACED)):
                copy[place] = generator.choice(WORD_LIST)
            texts.append(" ".join(copy))
        yield texts


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}


def similarity(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> float:
    return len(one & other) / len(one | other)


def recall(args: argparse.Namespace, peers: dict[str, str]) -> None:
    """What each program removes of planted copies."""
    made = list(families(args.families, random.Random(args.seed)))
    with tempfile.TemporaryDirectory(dir=args.work) as temporary:
        folder = Path(temporary)
        inputs = folder / "in"
        inputs.mkdir()
        with gzip.open(inputs / "a.jsonl.gz", "wt", encoding="utf-8") as lines:
            for family, texts in enumerate(made):
                lines.writelines(
                    json.dumps({"id": f"{family}-{copy}", "text": text}) + "\n" for copy, text in enumerate(texts)
                )
        sides = ["ours", *(name for name in STEPS["dedup --near 0.8"][1] if peer_of(name, peers))]
        print(f"{3 * len(made):,} texts\n{'':18}pairs >= .85: one removed    removed, nothing >= .70")
        for side in sides:
            place = folder / side
            place.mkdir()
            if side == "ours":
                ours(STEPS["dedup --near 0.8"][0], args, inputs, place)
            else:
                theirs(side, peer_of(side, peers), args, inputs, place)
            found, pairs, wrong, removed = judge(made, kept_ids(place))
            print(f"{side:18}{found:,} of {pairs:,}{'':16}{wrong:,} of {removed:,}", flush=True)
            shutil.rmtree(place)


def kept_ids(place: Path) -> set[str]:
    """Ids of the rows that a program left: of JSON Lines, or of a data set in Arrow files."""
    ids = set()
    out = place / "out" if (place / "out").exists() else place / "work"
    for path in out.rglob("*.jsonl.gz"):
        if "cache" not in path.parts:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                ids |= {json.loads(line)["id"] for line in lines}
    if not ids:
        import pyarrow as pa

        for path in (out / "out").rglob("*.arrow"):
            with pa.memory_map(str(path)) as file:
                ids |= set(pa.ipc.open_stream(file).read_all()["id"].to_pylist())
    return ids


def judge(made: list[list[str]], kept: set[str]) -> tuple[int, int, int, int]:
    """Pairs of at least .85 of which one went, all such pairs; removed texts without any text of .70 or more, all
    removed ones."""
    found = pairs = wrong = removed = 0
    for family, texts in enumerate(made):
        sets = [shingles(text) for text in texts]
        gone = [f"{family}-{copy}" not in kept for copy in range(3)]
        near = {(i, j): similarity(sets[i], sets[j]) for i in range(3) for j in range(3) if i != j}
        for i, j in ((0, 1), (0, 2), (1, 2)):
            if near[i, j] >= 0.85:
                pairs += 1
                found += gone[i] or gone[j]
        for i in range(3):
            removed += gone[i]
            wrong += gone[i] and max(near[i, j] for j in range(3) if j != i) < 0.7
    return found, pairs, wrong, removed


def text(args: argparse.Namespace) -> None:
    """Processor seconds of whole runs of the funnel's recipe, and of their phases 1 and 2, by writer."""
    print(f"{'writer':18}{'phases 1 and 2':>16}{'whole run':>12}{'ratio':>8}")
    for writer in ("text", "text-jsonl"):
        ratios = []
        for _ in range(args.repeat):
            with tempfile.TemporaryDirectory(dir=args.work) as made:
                folder = Path(made)
                source = {"name": "prose", "paths": [f"{args.input}/*.jsonl.gz"], "format": "jsonl"}
                recipe = folder / "recipe.yaml"
                recipe.write_text(json.dumps({**RECIPE, "writer": writer, "sources": [source]}))
                ratios.append(halves(recipe, folder / "corpus", args.workers))
        before, whole = (statistics.median(each) for each in zip(*ratios, strict=True))
        print(f"{writer:18}{before:16.1f}{whole:12.1f}{whole / before:8.2f}", flush=True)


def halves(recipe: Path, output: Path, workers: int) -> tuple[float, float]:
    """Processor seconds of a run until its phase 2 has ended, and of all of it."""
    command = [sys.executable, "-m", "refinery", "refine", str(recipe), "--output", str(output), "--quiet"]
    start, before = cpu(), 0.0
    process = subprocess.Popen([*command, "--workers", str(workers)], cwd=ROOT, start_new_session=True)
    while process.poll() is None:
        if not before and (output / "work" / "dedup.json").exists():
            before = session_cpu(process.pid)
        time.sleep(0.02)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return before, cpu() - start


def session_cpu(session: int) -> float:
    """Processor seconds of the processes of a session, and of those of their children that have ended. Linux."""
    ticks = sum(int(tick) for _, fields in session_processes(session) for tick in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "recall", "text"))
    parser.add_argument("--input", type=Path, help="of cost: a folder of .jsonl.gz files")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help="who has which packages")
    parser.add_argument("--only", action="append", default=[], choices=STEPS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--families", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--work", type=Path, help="where temporary folders go")
    args = parser.parse_args()
    peers = dict(each.split("=", 1) for each in args.peer)
    adopt_orphans()
    if args.what == "text":
        text(args)
    else:
        (cost if args.what == "cost" else recall)(args, peers)


if __name__ == "__main__":
    main()
