"""What running by slices costs: processor time and wall of one run as 1, 4, 16 and 64 slices, beside one command.

    python -m benchmarks.slices RECIPE --input 'docs/*.jsonl.gz' [--slices 1 4 16 64] [--workers 2] [--work DIR]

Each slice of each step is a command of its own, one after the other, as tasks of an array would be; the last command
publishes. Processor time is that of all processes, imports included. Every run must publish the same shards. Also
printed: commands, bytes that crossed between slices, and how many of them were read (a section is read once by the
slice that it is for, and nothing else of the file but 44 bytes).
"""

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Cost:
    """What a run took."""

    commands: int
    seconds: float
    cpu: float
    crossed: int
    digest: str


def adopt_orphans() -> None:
    """Become the parent of processes whose own has ended: a command's workers are killed with it, and their time counts
    only for who waits for them. Linux."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def cpu() -> float:
    """Processor seconds of all processes that were started and have ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def digest(prefix: Path) -> str:
    """Of all shards at a prefix."""
    total = hashlib.sha256()
    for path in sorted(path for split in ("train", "validation") for path in (prefix / split).rglob("*")):
        if path.suffix in (".bin", ".idx"):
            total.update(path.relative_to(prefix).as_posix().encode() + path.read_bytes())
    return total.hexdigest()


def run(arguments: list[str], prefix: Path, slices: int) -> Cost:
    """One run; slices 0: in one command."""
    command = [sys.executable, "-m", "refinery", "refine", *arguments, "--output", str(prefix), "--quiet"]
    commands = crossed = 0

    def call(*more: object) -> None:
        nonlocal commands
        commands += 1
        subprocess.run([*command, *map(str, more)], check=True, stdout=subprocess.DEVNULL)

    began, used = time.monotonic(), cpu()
    if slices:
        call("--slices", slices, "--until", "cut")
        cut = json.loads((prefix / "work" / "clean" / "cut.json").read_bytes())
        for step in cut["steps"]:
            for number in range(step["tasks"]):
                call("--slice", f"{number}/{slices}", "--until", step["name"])
            sent = (prefix / "work" / "exchange" / step["name"]).glob("*.sections")
            crossed += sum(path.stat().st_size for path in sent)
    call()
    return Cost(commands, time.monotonic() - began, cpu() - used, crossed, digest(prefix))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--input", required=True, help="a pattern of input files")
    parser.add_argument("--slices", type=int, nargs="*", default=[1, 4, 16, 64])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--work", default=None, help="a folder for the corpora; removed at the end")
    args = parser.parse_args()
    settings = [word for each in args.set for word in ("--set", each)]
    arguments = [args.recipe, "--input", args.input, "--workers", str(args.workers), *settings]
    adopt_orphans()
    root = Path(tempfile.mkdtemp(prefix="slices-", dir=args.work))
    try:
        plain = run(arguments, root / "plain", 0)
        print("slices  commands   wall s   CPU s   CPU/one command   MB crossed   same shards")
        print(
            f"{'-':>6}  {plain.commands:8}  {plain.seconds:7.1f}  {plain.cpu:6.1f}   {1:15.2f}   {'-':>10}   -",
            flush=True,
        )
        for slices in args.slices:
            cost = run(arguments, root / f"slices-{slices}", slices)
            same = "yes" if cost.digest == plain.digest else "NO"
            print(
                f"{slices:6}  {cost.commands:8}  {cost.seconds:7.1f}  {cost.cpu:6.1f}   {cost.cpu / plain.cpu:15.2f}"
                f"   {cost.crossed / 1e6:10.1f}   {same}",
                flush=True,
            )
            shutil.rmtree(root / f"slices-{slices}")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
