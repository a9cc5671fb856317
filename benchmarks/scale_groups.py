"""The largest groups: ten million near copies of one page and ten million exact copies of one text, step by step.

    python -m benchmarks.scale_groups [--members 10000000] [--copies 10000000]

Every step of deduplication and publishing that is handed all members of a family, or all copies of a text, under one
key, as a Dataflow worker runs it: the step's own function in a process of its own, fed by an iterable whose batches are
made one by one and are gone once the step has let go of them. (The local runner holds what it shuffles in memory, all
of it, whatever the steps do.) Where one step's output is the next one's input, it is made again, not kept.

Memory is the peak that was resident in the process, the interpreter and its imports included (some 0.2 GB); "group" are
the bytes that the key's batches have, as this form of the step gets them; "written" is what it wrote to files, most of
them temporary.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.made_signatures import COPY_SIMILARITY, PERMUTATIONS
from benchmarks.signatures import describe_run
from refinery.loader.format.removals import REMOVALS_SCHEMA
from refinery.transforms.dedup.components.contraction import CHILD, contract, expand, relink
from refinery.transforms.dedup.components.links import NEIGHBOUR, pair
from refinery.transforms.dedup.exact_duplicates import first_copies, keep_first
from refinery.transforms.dedup.near_duplicates import (
    NearParams,
    Scope,
    band_dtype,
    bucket_batches,
    link_batches,
    sketches,
)
from refinery.transforms.dedup.propose_chunks import propose_batches
from refinery.transforms.dedup.records.record_batch import (
    BANDS,
    CHILDREN,
    CORPUS,
    HASH,
    HASHES,
    IDENTITIES,
    IDENTITY,
    JOINED,
    LABEL,
    LABELS,
    MEMBERS,
    NEAR,
    NEIGHBOURS,
    Rows,
    cut,
    form_batches,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.verify_similarity import member_dtype, verify_batches
from refinery.transforms.write.removals import publish_removals
from refinery.transforms.write.table_batches import serialize_batch

PART_COPIES = 250  # of a family or a text in one part: 10 million in 40,000 parts
LOT = 10_000  # members that are made at once
GOAL = 1.5e9
SCOPE = Scope(NEAR, CORPUS, (0,), apart=False)
NUMBERED = Parts(own=1 << 20)
Made = Iterator[bytes]


def lots(members: int) -> Iterator[Any]:
    """Numbers of members, LOT at a time, in an order that is not theirs."""
    starts = np.random.default_rng(7).permutation(range(0, members, LOT))
    for start in starts.tolist():
        yield np.arange(start, min(members, start + LOT), dtype=np.uint64)


def facts(rows: Rows, numbers: Any) -> Rows:
    """Where the members are, and their ranks."""
    rows["locator"] = numbers // PART_COPIES << np.uint64(32) | numbers % PART_COPIES
    for name, salt in (("preference", 3), ("tie", 5), ("id_high", 7), ("id_low", 11)):
        if name in (rows.dtype.names or ()):
            rows[name] = (numbers + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15 ^ salt << 40)
    return rows


def signatures(numbers: Any) -> Any:
    """Near copies of one document: each value its own with a probability of 1 - COPY_SIMILARITY."""
    base = np.random.default_rng(1).integers(0, 2**32, (1, PERMUTATIONS), np.uint32)
    generator = np.random.default_rng([2, int(numbers[0])])
    rows = np.repeat(base, len(numbers), axis=0)
    changed = generator.random(rows.shape, np.float32) >= COPY_SIMILARITY
    rows[changed] = generator.integers(0, 2**32, np.count_nonzero(changed), np.uint32)
    return rows


def batches_of(tag: int, dtype: Any, members: int, fill: Callable[[Rows, Any], object]) -> Made:
    for numbers in lots(members):
        rows = facts(np.zeros(len(numbers), dtype), numbers)
        fill(rows, numbers)
        yield from (batch for _, batch in cut(0, tag, rows))


def set_column(rows: Rows, numbers: Any, name: str, make: Callable[[Any], Any]) -> None:
    rows[name] = make(numbers)


def nothing(rows: Rows, numbers: Any) -> None:
    """The columns that `facts` sets are all."""


HUB = np.uint64(0)  # a vertex, and what its family joins
JOINING = np.uint64(1)


def neighbours(members: int) -> Made:
    """The links of a family's hub."""
    for numbers in lots(members - 1):
        others = facts(np.zeros(len(numbers), HASH), numbers + np.uint64(1))["locator"]
        rows = pair(np.full(len(others), HUB), others)
        yield from (batch for _, batch in cut(0, NEIGHBOURS, rows))


def told(members: int) -> Made:
    """What the neighbours of a hub join: another vertex each, as many as there can be; and what it joins itself."""
    yield from neighbours(members)
    yield from (batch for _, batch in cut(0, JOINED, np.array([(HUB, JOINING)], NEIGHBOUR)))


def children(members: int) -> Made:
    """All documents of a family on their way back, and the label of what they joined."""
    for numbers in lots(members):
        rows = np.zeros(len(numbers), CHILD)
        rows["parent"], rows["node"] = HUB, facts(np.zeros(len(numbers), HASH), numbers)["locator"]
        yield from (batch for _, batch in cut(0, CHILDREN, rows))
    yield from (batch for _, batch in cut(0, LABELS, np.array([(HUB, 0)], LABEL)))


def copies(members: int) -> Made:
    """Copies of one text, combined part by part as `identity_batches` does."""
    for numbers in lots(members):
        rows = facts(np.zeros(len(numbers), IDENTITY), numbers)
        rows["id_high"] = rows["id_low"] = 5
        for part in np.split(rows, range(PART_COPIES, len(rows), PART_COPIES)):
            firsts, _ = first_copies(part)
            yield from (batch for _, batch in cut(0, IDENTITIES, firsts))


def removed(members: int) -> Made:
    """Rows of the removals of one text's copies, as they reach the file that has them."""
    for numbers in lots(members):
        names = [f"crawl/segment-{n % 90_000:05d}.warc.gz@{n * 7919}" for n in numbers.tolist()]
        columns = {
            "id": [bytes(16)] * len(names),
            "kept_id": [bytes(16)] * len(names),
            "similarity": [1.0] * len(names),
            "reason": ["exact-duplicate"] * len(names),
            "scope": ["corpus"] * len(names),
            "url": [f"https://host-{n % 50_000}.example/page/{n}" for n in numbers.tolist()],
            "source": ["crawl"] * len(names),
            "origin": names,
        }
        yield serialize_batch(pa.table(columns, schema=REMOVALS_SCHEMA))


def steps(members: int, exact_copies: int, folder: str) -> dict[str, tuple[Callable[[], Made], Callable[[Made], Any]]]:
    """Step -> (what makes its group, what it does with it)."""
    estimate, exact = NearParams(verify="signature"), NearParams(verify="exact")
    common: dict[str, Any] = {"scope": SCOPE, "parts": NUMBERED, "permutations": PERMUTATIONS}
    whole = partial(set_column, name="signature", make=signatures)
    sketched = partial(set_column, name="sketch", make=lambda numbers: sketches(signatures(numbers)))
    made_members = partial(batches_of, MEMBERS, member_dtype(PERMUTATIONS), members, whole)
    return {
        "buckets": (
            partial(batches_of, HASHES, HASH, members, nothing),
            lambda given: drain(bucket_batches(0, given, NUMBERED, 1)),
        ),
        "links": (
            partial(batches_of, BANDS, band_dtype(PERMUTATIONS), members, sketched),
            lambda given: drain(link_batches(0, given, estimate, NUMBERED, PERMUTATIONS)),
        ),
        "contract": (
            partial(neighbours, members),
            lambda given: drain(contract(0, given, 1024, "corpus", 0)),
        ),
        "relink": (partial(told, members), lambda given: drain(relink(0, given, 1024, 0))),
        "expand": (partial(children, members), lambda given: drain(expand(0, given, 1024, 1))),
        "verify": (made_members, lambda given: drain(verify_batches(0, given, estimate, **common))),
        "propose": (made_members, lambda given: drain(propose_batches(0, given, exact, **common))),
        "exact copies": (partial(copies, exact_copies), lambda given: drain(keep_first(0, list(given), NUMBERED))),
        "removals": (partial(removed, exact_copies), lambda given: publish_removals(0, given, folder, 1, {})),
    }


def drain(outputs: Iterable[Any]) -> int:
    return sum(1 for _ in form_batches(outputs))


def measure(step: str, members: int, exact_copies: int) -> dict[str, float]:
    """One step in this process."""
    size = 0

    def counted(batches: Made) -> Made:
        nonlocal size
        for batch in batches:
            size += len(batch)
            yield batch

    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        make, run = steps(members, exact_copies, folder)[step]
        run(counted(make()))
    status = Path("/proc/self/status").read_text()  # not ru_maxrss, which a child inherits from its parent
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    written = int(Path("/proc/self/io").read_text().partition("wchar:")[2].split()[0])
    return {"seconds": time.process_time() - start, "peak": peak, "group": size, "written": written}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10_000_000, help="near copies of one page")
    parser.add_argument("--copies", type=int, default=10_000_000, help="exact copies of one text")
    parser.add_argument("--step", choices=list(steps(2, 2, "")), help="only this step, in this process; prints JSON")
    args = parser.parse_args()
    if min(args.members, args.copies) < 2:
        parser.error("--members and --copies: 2 or more are allowed")
    if args.step:
        print(json.dumps(measure(args.step, args.members, args.copies)))
        return
    print(describe_run())
    print(
        "\n| step | group | CPU seconds | peak memory | disk | 1.5 GB |\n| --- | --- | --- | --- | --- | --- |",
        flush=True,
    )
    for step in steps(2, 2, ""):
        command = [sys.executable, "-m", "benchmarks.scale_groups", "--step", step]
        command += ["--members", str(args.members), "--copies", str(args.copies)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"| {step} | ended with {done.returncode}: {done.stderr.strip()[-200:]} | | | | missed |", flush=True)
            continue
        found = json.loads(done.stdout)
        sizes = f"{found['group'] / 1e9:.2f} GB | {found['seconds']:.0f} | {found['peak'] / 1e9:.2f} GB"
        reached = "reached" if found["peak"] <= GOAL else "missed"
        print(f"| {step} | {sizes} | {found['written'] / 1e9:.1f} GB | {reached} |", flush=True)


if __name__ == "__main__":
    main()
