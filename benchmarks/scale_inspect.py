"""What `refinery inspect` costs of a run of very many files: seconds, seconds of CPU, and peak memory.

    python -m benchmarks.scale_inspect [--shards 100000] [--parts 600000] [--waves 23] [--inputs 90000]

It makes, in a temporary folder, what such a run leaves of small sealed files: first with all waves but one done, then
with phase 1 done, then with the corpus complete; and inspects each in a process of its own, as text and as JSON.
"""

import argparse
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.scale_manifest import made_payload
from refinery.loader.format.manifest import SCHEMA_VERSION, seal
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.run.phases import finish_phase, merge_reports

ASK = """
import re, sys, time
from refinery.pipelines.run.inspection.inspection import inspect
from refinery.pipelines.run.inspection.text import json_line, text_lines
prefix, kind = sys.argv[1:]
began, used = time.perf_counter(), time.process_time()
found = inspect(prefix)
size = len(json_line(found)) if kind == "json" else sum(map(len, text_lines(found)))
spent = time.perf_counter() - began, time.process_time() - used
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
print(*spent, peak, found.state, size)
"""
PHASES = ("clean", "dedup", "shards")
FOLDERS = {"clean": ("documents", "signatures"), "dedup": ("verdicts",), "shards": ()}


def reports(phase: str, waves: int, parts: int) -> Iterator[dict[str, Any]]:
    """So many reports, with `parts` parts of each folder together."""
    chance = random.Random(phase)
    for number in range(waves):
        many = parts * (number + 1) // waves - parts * number // waves
        yield {
            "fingerprint": phase,
            "counters": [
                {"stage": "read", "source": "crawl", "outcome": outcome, "reason": "", "documents": many, "bytes": many}
                for outcome in ("in", "kept")
            ],
            "seconds": {"read": 1.5},
            "parts": {folder: [part(folder, chance) for _ in range(many)] for folder in FOLDERS[phase]},
            "waves_left": waves - number - 1,
        }


def part(folder: str, chance: random.Random) -> dict[str, Any]:
    return {
        "path": f"{folder}/part-{chance.randbytes(16).hex()}.parquet",
        "rows": chance.randrange(50_000),
        "groups": 4,
        "size": chance.randrange(1 << 28),
        "crc32c": chance.randbytes(4).hex(),
    }


def run_payload(inputs: int) -> dict[str, Any]:
    """What `_run.json` says of a run of so many files."""
    chance = random.Random(1)
    files = [
        {
            "path": f"gs://raw/crawl/{n:06d}.warc.gz",
            "source": "crawl",
            "size": 10**9,
            "crc32c": chance.randbytes(4).hex(),
        }
        for n in range(inputs)
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "refinery-run",
        "name": "scale",
        "fingerprint": "5f" * 32,
        "phases": {name: name for name in PHASES},
        "recipe": {"sources": [{"name": "crawl"}]},
        "stages": {"clean": [{"name": "read"}], "dedup": [], "shards": []},
        "inputs": files,
    }


def ask(root: Path, what: str) -> None:
    """Inspect, and say what that took."""
    for kind in ("text", "json"):
        command = [sys.executable, "-c", ASK, str(root), kind]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds, used, memory, state, size = done.stdout.split()
        cost = f"{float(seconds):6.1f} s  {float(used):6.1f} s of CPU  {memory:>5} MB"
        print(f"{what:26} {kind}  {cost}  {state}, {int(size):,} characters", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--parts", type=int, default=600_000, help="in work/, three for each of phase 1")
    parser.add_argument("--waves", type=int, default=23)
    parser.add_argument("--inputs", type=int, default=90_000)
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        root, each = Path(folder), args.parts // 3
        work = root / "work"
        (work / "clean").mkdir(parents=True)
        (root / "_run.json").write_bytes(seal(run_payload(args.inputs)))
        done = list(reports("clean", args.waves, each))
        for number, report in enumerate(done[:-1]):
            (work / f"clean/wave-{number:05d}.json").write_bytes(seal(report))
        size = sum(path.stat().st_size for path in work.rglob("*.json"))
        print(f"{args.waves - 1} reports of waves, {size / 1e6:.0f} MB")
        ask(root, "phase 1 in progress")
        finish_phase(str(work), "clean", "clean", merge_reports(done))
        ask(root, "phase 1 done")
        finish_phase(str(work), "dedup", "dedup", merge_reports(reports("dedup", 1, each)))
        del done
        make_manifest(made_payload(args.shards, 8, 64)).publish(open_store(folder))
        ask(root, "complete")


if __name__ == "__main__":
    main()
