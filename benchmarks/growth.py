"""How time, processor time and memory of a run grow with its text: `refinery refine` on 149 MB, 655 MB, 2.7 GB

    python -m benchmarks.growth [DOCS.jsonl.gz] --folder out/growth --sizes 149e6 655e6 2.7e9 --workers 2

DOCS.jsonl.gz: documents with a field `text`; without it, this project's own sources and pages. They are cut at 8,000
characters; what is beyond them is made of the same documents with their words in another order, so hardly a
document is a copy. Every stage of the web recipe runs but language
and heuristics, which would drop what is out of order; the tokenizer is learned first, on the smallest size.

For each size a line: wall seconds, processor seconds of the workers and of the launcher beside them, and the peak of
the PSS of all processes, sampled twice a second, by phase. --load: so many busy processes beside it. --repeat: how
often each size runs; every run must write the same bytes; otherwise the script fails. --series FILE: all samples, for a
curve. --flush-ms N: let Beam's data channels flush by time in the launcher, which loses what is written meanwhile
(docs/beam-data-loss.md): a run must come through even so.
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import zstandard

CUT = 8_000  # characters
PART = 40_000_000  # characters of text in one input file
SAMPLE_SECONDS = 0.5
ROOT = Path(__file__).parents[1]
OWN = [ROOT / name for name in ("docs", "loader", "pipelines", "transforms", "tests")]
PHASES = ("clean", "dedup", "shards", "publish")
RECIPE = """\
name: growth
sources: [{{name: prose, paths: ["{inputs}/*.jsonl.zst"], format: jsonl, text_field: text}}]
tokenizer: {{path: "{tokenizer}"}}
language: null
heuristics: null
"""


# `refinery`, with the limit of the launcher's timed flush set again after the runner has switched it off.
FLUSHING = """
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from refinery.pipelines.cli.command_line import main
from refinery.pipelines.runners import local_runner
worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = {milliseconds}
main()
"""


def texts_of(path: Path | None) -> list[str]:
    """The documents of a file, or those of this project."""
    if path is None:
        files = (each for pattern in ("*.py", "*.md", "*.c") for folder in OWN for each in folder.rglob(pattern))
        return [each.read_text() for each in sorted(files)]
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["text"] for line in lines]


def one_copy(path: Path | None, folder: Path, copy: int, most: int) -> int:
    """Write one copy of the documents as files of a folder, up to `most` characters: copy 0 as they are, every other
    one with the words of each document in another order. Returns how many documents that is."""
    rng = np.random.default_rng(copy)
    texts = [text[at : at + CUT] for text in texts_of(path) for at in range(0, len(text), CUT)]
    count, made, held = 0, 0, PART
    with ExitStack() as stack:
        for text in texts:
            if held >= PART:
                stack.close()
                raw = stack.enter_context((folder / f"copy-{copy:05d}-{count:07d}.jsonl.zst").open("wb"))
                out = stack.enter_context(zstandard.ZstdCompressor(level=1).stream_writer(raw))
                held = 0
            words = text.split(" ")
            if copy:
                rng.shuffle(words)
            url = f"https://host{count % 997}.example/{copy}/{count}"
            out.write(json.dumps({"text": " ".join(words), "url": url}).encode() + b"\n")
            count, made, held = count + 1, made + len(text), held + len(text)
            if made >= most:
                break
    return count


def write_corpus(path: Path | None, characters: int, folder: Path) -> int:
    """Documents of that many characters as files of a folder; how many they are. What is there already is kept."""
    done = folder / "done"
    if done.exists():
        return int(done.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    whole = sum(map(len, texts_of(path)))
    left = [characters - copy * whole for copy in range(-(-characters // whole))]
    with ProcessPoolExecutor() as pool:
        count = sum(pool.map(partial(one_copy, path, folder), range(len(left)), left))
    done.write_text(str(count))
    return count


@dataclass
class Measured:
    """What a run took. peaks: phase -> bytes of PSS of all processes. processes: those of the highest peak."""

    wall: float = 0.0
    launcher: float = 0.0
    workers: dict[int, float] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    processes: list[int] = field(default_factory=list)

    @property
    def worker_seconds(self) -> float:
        """Processor seconds of all processes but the launcher."""
        return sum(self.workers.values())

    @property
    def peak(self) -> int:
        """Bytes."""
        return max(self.peaks.values(), default=0)


def descendants(pid: int) -> list[int]:
    """The process and all that it started, as far as they run."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                found += descendants(int(child))
    except OSError:
        pass
    return found


def pss(pid: int) -> int:
    """Bytes; 0 once the process is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def seconds(pid: int) -> float:
    """Processor seconds of a process; 0 once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(process: subprocess.Popen[bytes], work: Path, series: IO[str] | None) -> Measured:
    """Sample a run until it ends."""
    measured, start = Measured(), time.monotonic()
    while process.poll() is None:
        phase = next((name for name in PHASES[:-1] if not (work / f"{name}.json").exists()), PHASES[-1])
        pids = descendants(process.pid)
        sizes = [pss(pid) for pid in pids]
        if sum(sizes) > measured.peak:
            measured.processes = sizes
        measured.peaks[phase] = max(measured.peaks.get(phase, 0), sum(sizes))
        measured.launcher = max(measured.launcher, seconds(process.pid))
        for pid in pids[1:]:
            measured.workers[pid] = max(measured.workers.get(pid, 0.0), seconds(pid))
        if series is not None:
            print(f"{time.monotonic() - start:.1f}", phase, *(size >> 20 for size in sizes), file=series, flush=True)
        time.sleep(SAMPLE_SECONDS)
    measured.wall = time.monotonic() - start
    return measured


def digest(prefix: Path) -> str:
    """Of all that a corpus publishes but what differs by design: _run.json and the page about it."""
    whole = hashlib.sha256()
    for folder in ("train", "validation", "removals", "lookup"):
        for path in sorted((prefix / folder).rglob("*")):
            if path.is_file():
                with path.open("rb") as file:
                    whole.update(
                        f"{path.relative_to(prefix)} {hashlib.file_digest(file, 'sha256').hexdigest()}".encode()
                    )
    return whole.hexdigest()


def run(recipe: Path, prefix: Path, workers: int, series: IO[str] | None, flush: int = 0) -> Measured:
    """One run from nothing. flush: milliseconds of the timed flush, 0 for none. Raises RuntimeError where it fails."""
    shutil.rmtree(prefix, ignore_errors=True)
    program = ["-c", FLUSHING.format(milliseconds=flush)] if flush else ["-m", "refinery"]
    command = [sys.executable, *program, "refine", str(recipe), "--output", str(prefix), "--quiet"]
    with (prefix.parent / f"{prefix.name}.log").open("wb") as log:
        process = subprocess.Popen([*command, "--workers", str(workers)], stdout=log, stderr=log)
        measured = watch(process, prefix / "work", series)
    if process.returncode:
        raise RuntimeError((prefix.parent / f"{prefix.name}.log").read_text()[-2000:])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, nargs="?")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sizes", type=float, nargs="+", default=[149e6, 655e6, 2.7e9], help="characters of text")
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--load", type=int, default=0, metavar="N", help="busy processes beside each run")
    parser.add_argument("--flush-ms", type=int, default=0, metavar="N")
    parser.add_argument("--series", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    tokenizer = args.folder / "tokenizer.json"
    heads = f"{'text':>14}{'documents':>11}{'workers':>9}{'wall s':>8}{'CPU s':>8}{'launcher':>10}{'share':>8}"
    print(f"{heads}  peak PSS in MB, by phase")
    with ExitStack() as stack:
        series = stack.enter_context(args.series.open("w")) if args.series else None
        for _ in range(args.load):
            busy = subprocess.Popen([sys.executable, "-c", "while True: sum(range(10**6))"])
            stack.callback(busy.kill)
        for size in sorted(args.sizes):
            inputs = args.folder / f"text-{size:.0f}"
            count = write_corpus(args.documents, int(size), inputs)
            recipe = args.folder / f"growth-{size:.0f}.yaml"
            recipe.write_text(RECIPE.format(inputs=inputs, tokenizer=tokenizer))
            if not tokenizer.exists():
                learn = [sys.executable, "-m", "refinery", "train-tokenizer", str(recipe), "--output", str(tokenizer)]
                subprocess.run([*learn, "--vocab-size", "16000", "--quiet"], check=True)
            digests = set()
            for workers in args.workers:
                for _ in range(args.repeat):
                    prefix = args.folder / "corpus"
                    found = run(recipe, prefix, workers, series, args.flush_ms)
                    digests.add(digest(prefix))
                    share = found.launcher / max(0.01, found.worker_seconds)
                    peaks = ", ".join(f"{name} {peak >> 20:,}" for name, peak in found.peaks.items())
                    print(
                        f"{size:>14,.0f}{count:>11,}{workers:>9}{found.wall:>8.1f}{found.worker_seconds:>8.1f}"
                        f"{found.launcher:>10.1f}{share:>8.1%}  {found.peak >> 20:,}: {peaks} "
                        f"(processes {', '.join(str(size >> 20) for size in found.processes)})",
                        flush=True,
                    )
            if len(digests) != 1:
                raise SystemExit(f"{size:,.0f} characters: {len(digests)} different corpora")
    shutil.rmtree(args.folder / "corpus", ignore_errors=True)


if __name__ == "__main__":
    main()
