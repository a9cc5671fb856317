"""The largest bucket: the cost of one band hash that a million documents share, step by step.

    python -m benchmarks.large_bucket [--members 1000000]

One bucket (for links) and one component (for the verified removal) of --members documents, all near copies of one
document or all different except for a band. Each step runs in a process of its own; memory is the resident peak of
the process, its input included; seconds are CPU seconds. The kernels are what link_batches and verify_batches
call, on arrays that exist already.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.made_signatures import PARAMS, PERMUTATIONS, copies_of
from benchmarks.signatures import describe_run
from refinery.transforms.dedup.near_duplicates import (
    BUCKET_REPRESENTATIVES,
    Scope,
    band_dtype,
    link_batches,
    sketch_bytes,
    sketches,
)
from refinery.transforms.dedup.records.record_batch import BANDS, CORPUS, MEMBERS, NEAR, cut
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.verify_similarity import assign_representatives, member_dtype, verify_batches
from refinery.transforms.native import clusters

CHUNK = 10_000
STEPS = ("link_batches", "link kernel", "verify_batches", "assign kernel")
FORMS = ("copies", "different")
GOAL_BYTES, GOAL_SECONDS = 512 << 20, 60.0


def made_chunks(members: int, alike: bool) -> Iterator[Any]:
    """Signatures of a bucket's members, CHUNK at a time: copies of one document, or equal in the first band alone."""
    generator = np.random.default_rng(3)
    base = generator.integers(0, 2**32, (1, PERMUTATIONS), np.uint32)
    band = PARAMS.layout(PERMUTATIONS)[1]
    for start in range(0, members, CHUNK):
        count = min(CHUNK, members - start)
        if alike:
            rows = copies_of(np.repeat(base, count, axis=0), generator)
        else:
            rows = generator.integers(0, 2**32, (count, PERMUTATIONS), np.uint32)
        rows[:, :band] = base[:, :band]
        yield rows


def run_bucket(step: str, alike: bool, members: int) -> dict[str, float]:
    """One step on one bucket or component in this process: seconds, peak resident bytes, bytes of its input."""
    batches: list[bytes] = []
    kernel = step.endswith("kernel")
    width = sketch_bytes(PERMUTATIONS) if step.startswith("link") else 4 * PERMUTATIONS
    whole = np.empty((members if kernel else 0, width), np.uint8)
    for number, values in enumerate(made_chunks(members, alike)):
        sketched = sketches(values) if step.startswith("link") else values
        if kernel:
            whole[number * CHUNK : number * CHUNK + len(values)] = sketched.view(np.uint8)
            continue
        rows = np.zeros(len(values), band_dtype(PERMUTATIONS) if step == "link_batches" else member_dtype(PERMUTATIONS))
        rows["locator"] = np.arange(number * CHUNK, number * CHUNK + len(values))
        rows["tie"] = rows["locator"] * np.uint64(0x9E3779B97F4A7C15)
        rows["sketch" if step == "link_batches" else "signature"] = sketched
        batches += [batch for _, batch in cut(0, BANDS if step == "link_batches" else MEMBERS, rows)]
    size = whole.nbytes + sum(map(len, batches))
    bounds, minimum = np.array([0, members], np.int64), PARAMS.minimum(PERMUTATIONS)
    start = time.process_time()
    if step == "link kernel":
        clusters.link(whole, bounds, PERMUTATIONS, minimum, BUCKET_REPRESENTATIVES)
    elif step == "assign kernel":
        assign_representatives(whole.view(np.uint32), bounds, np.zeros(members, np.bool_), minimum, minimum)
    elif step == "link_batches":
        sum(1 for _ in link_batches(0, batches, PARAMS, Parts(own=1), PERMUTATIONS))
    else:
        scope = Scope(NEAR, CORPUS, (0,), apart=False)
        sum(1 for _ in verify_batches(0, batches, PARAMS, scope, Parts(own=1), PERMUTATIONS))
    seconds = time.process_time() - start
    status = Path("/proc/self/status").read_text()  # not ru_maxrss, which a child inherits from its parent
    return {"seconds": seconds, "peak": int(status.partition("VmHWM:")[2].split()[0]) * 1024, "input": size}


def print_buckets(members: int) -> None:
    print(f"\n{members:,} members in one bucket (goal: {GOAL_SECONDS:.0f} s, {GOAL_BYTES >> 20} MiB) or component\n")
    print("| step | members | CPU seconds | peak memory | of it input | goal |\n| --- | --- | --- | --- | --- | --- |")
    for step in STEPS:
        for form in FORMS:
            command = [sys.executable, "-m", "benchmarks.large_bucket", "--members", str(members)]
            command += ["--step", step, "--form", form]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"| {step} | {form} | ended with {done.returncode}: {done.stderr.strip()[-200:]} | | | missed |")
                continue
            found = json.loads(done.stdout)
            memory = found["peak"] < GOAL_BYTES or not step.startswith("link")  # the memory goal applies to buckets
            reached = memory and found["seconds"] < GOAL_SECONDS
            cells = f"{found['seconds']:.1f} | {found['peak'] / 1e6:,.0f} MB | {found['input'] / 1e6:,.0f} MB"
            print(f"| {step} | {form} | {cells} | {'reached' if reached else 'missed'} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--step", choices=STEPS, help="only this step, in this process; prints JSON")
    parser.add_argument("--form", choices=FORMS, default="copies", help="with --step")
    args = parser.parse_args()
    if args.members < 1:
        parser.error(f"--members: {args.members} given, 1 or more is allowed")
    if args.step:
        print(json.dumps(run_bucket(args.step, args.form == "copies", args.members)))
        return
    print(describe_run())
    print_buckets(args.members)


if __name__ == "__main__":
    main()
