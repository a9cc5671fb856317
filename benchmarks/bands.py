"""The shuffle of bands: record batches beside one element per document and band, on the local runner, in one run.

    python -m benchmarks.bands [--documents 500000] [--element-documents 50000] [--repeat 3]

Both sides read the same signatures/ parts (112 permutations, made by the script: 1 % of the documents are near copies),
make the same 14 band hashes of 8 values each, shuffle them, and keep the documents that share a band with another one.
Ours moves batches (transforms/dedup/record_batch.py); the other side is the form that Beam's own examples suggest:
elements ((band, hash), locator), GroupByKey, groups of two and more. The candidates of both are counted and must be
equal.

Speed per core is documents over the CPU seconds of all processes, the runner's own included; with 0 workers everything
runs in one process. A job runs once untimed, then --repeat times; medians are shown. The element form reads
only the first --element-documents of the documents, since its cost per document does not fall with their number.
"""

import argparse
import contextlib
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
import numpy as np

from benchmarks.made_signatures import PARAMS, PERMUTATIONS, SOURCE, Mixture, partitions_of, write_signatures
from benchmarks.signatures import describe_run
from refinery.pipelines.runners.runner import Build, Runner
from refinery.transforms.core.per_document import take_side_outputs
from refinery.transforms.dedup.near_duplicates import Scope, band_hashes, bucket_batches, hash_batches
from refinery.transforms.dedup.record_batch import CANDIDATE, CORPUS, NEAR, MapRecordBatches, header, read_header
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import fixed_width, read_signature_part

GOAL_SPEED = 100_000  # documents a second and core


# --- measuring --------------------------------------------------------------------------------------------------------


class Meter(contextlib.AbstractContextManager["Meter"]):
    """Wall and CPU seconds of these processes and this one, and their peak memory (PSS, sampled 5 times a second)."""

    def __init__(self, pids: Sequence[int], memory: bool = False) -> None:
        self.pids = [os.getpid(), *pids]
        self.memory = memory
        self.wall = self.cpu = 0.0
        self.peak = self.largest_worker = 0
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "Meter":
        self._start, self._used = time.perf_counter(), self._cpu()
        if self.memory:
            self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._start, self._cpu() - self._used
        self._done.set()
        if self.memory:
            self._sampler.join()

    def _cpu(self) -> float:
        ticks = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _sample(self) -> None:
        while not self._done.wait(0.2):
            held = []
            for pid in self.pids:
                with contextlib.suppress(OSError):  # gone
                    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                    held.append(int(rollup.partition("\nPss:")[2].split()[0]) * 1024)
            self.peak = max(self.peak, sum(held))
            self.largest_worker = max(self.largest_worker, *held[1:], 0)


# --- the two sides ----------------------------------------------------------------------------------------------------


def write_count(total: int, path: str) -> None:
    Path(path).write_text(str(total))


def count_into(counts: Any, path: str) -> None:
    """A PCollection of ints -> their sum, in a file."""
    total = counts | "sum" >> beam.CombineGlobally(sum)
    total | "write" >> beam.Map(write_count, path)


def candidates_in(batch: tuple[int, bytes]) -> int:
    return (len(batch[1]) - 1) // CANDIDATE.itemsize


def build_batches(pipeline: Any, parts: Sequence[tuple[str, int]], path: str) -> None:
    """Ours: the first two steps of RemoveNear."""
    partitions = partitions_of(sum(rows for _, rows in parts))
    own: dict[str, Any] = {"parts": Parts(own=len(parts)), "partitions": partitions}
    scope = Scope(NEAR, CORPUS, (0,), apart=False)
    make = partial(hash_batches, params=PARAMS, scope=scope, names=(SOURCE,), permutations=PERMUTATIONS, **own)
    elements = [header(number, url, rows) for number, (url, rows) in enumerate(parts)]
    headers = pipeline | beam.Create(elements).with_output_types(tuple[int, bytes])
    hashes = headers | "to hash" >> beam.GroupByKey() | MapRecordBatches("bands", "hashes", make)
    shared = (
        hashes | "by hash" >> beam.GroupByKey() | MapRecordBatches("bands", "buckets", partial(bucket_batches, **own))
    )
    count_into(shared | beam.Map(candidates_in).with_output_types(int), path)
    take_side_outputs(pipeline)


def band_elements(element: tuple[int, bytes]) -> Iterator[tuple[tuple[int, int], int]]:
    """A part's header -> ((band, hash), locator) for every document and band; hashes as signed 64-bit numbers."""
    part, batch = element
    url, rows = read_header([batch])
    for first, table in read_signature_part(url, rows, ("signature",)):
        signatures = fixed_width(table["signature"], 4 * PERMUTATIONS).view("<u4")
        hashes = band_hashes(signatures, *PARAMS.layout(PERMUTATIONS)).view(np.int64)
        for row, values in enumerate(hashes.tolist(), first):
            for band, value in enumerate(values):
                yield (band, value), part << 32 | row


def shared_by(group: tuple[tuple[int, int], Iterable[int]]) -> Iterator[int]:
    """The number of documents of a bucket, where there are two or more."""
    size = sum(1 for _ in group[1])
    if size > 1:
        yield size


def build_elements(pipeline: Any, parts: Sequence[tuple[str, int]], path: str) -> None:
    """One element per document and band."""
    elements = [header(number, url, rows) for number, (url, rows) in enumerate(parts)]
    headers = pipeline | beam.Create(elements).with_output_types(tuple[int, bytes])
    spread = headers | beam.Reshuffle()
    keyed = spread | beam.FlatMap(band_elements).with_output_types(tuple[tuple[int, int], int])
    sizes = keyed | beam.GroupByKey() | beam.FlatMap(shared_by).with_output_types(int)
    count_into(sizes, path)


def measure(workers: int, build: Build, repeat: int) -> tuple[float, float]:
    """Median wall and CPU seconds of a job on `workers` processes (0: in this one) that have run it once before."""
    meters = []
    with Runner(workers=workers, quiet=True).open() as runner:
        runner.run("bands", build)
        for _ in range(repeat):
            with Meter(runner.pool.pids if runner.pool else []) as meter:
                runner.run("bands", build)
            meters.append(meter)
    return statistics.median(meter.wall for meter in meters), statistics.median(meter.cpu for meter in meters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=500_000, help="signatures for ours (default 500,000)")
    parser.add_argument("--element-documents", type=int, default=50_000, help="for the other side (default 50,000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs; medians are shown (default 3)")
    args = parser.parse_args()
    for name in ("documents", "element_documents", "repeat"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: {getattr(args, name)} given, 1 or more is allowed")
    print(describe_run())
    with TemporaryDirectory(prefix="bands-") as scratch:
        parts = write_signatures(Path(scratch, "all"), args.documents, Mixture())
        few = write_signatures(Path(scratch, "few"), args.element_documents, Mixture())
        ours, theirs = f"{scratch}/batches", f"{scratch}/elements"
        sides = [
            ("record batches", 0, parts, partial(build_batches, parts=parts, path=ours)),
            ("record batches", 1, parts, partial(build_batches, parts=parts, path=ours)),
            ("record batches", 2, parts, partial(build_batches, parts=parts, path=ours)),
            ("record batches", 1, few, partial(build_batches, parts=few, path=ours)),
            ("one element per band", 1, few, partial(build_elements, parts=few, path=theirs)),
        ]
        speeds = []
        print("| | workers | documents | seconds | CPU seconds | documents/s | documents/s and core | candidates |")
        print("| --- " * 8 + "|")
        for name, workers, chosen, build in sides:
            wall, cpu = measure(workers, build, args.repeat)
            documents = sum(rows for _, rows in chosen)
            speeds.append(documents / cpu)
            found = int(Path(theirs if build.func is build_elements else ours).read_text())
            cells = f"{wall:.2f} | {cpu:.2f} | {documents / wall:,.0f} | {speeds[-1]:,.0f} | {found:,}"
            print(f"| {name} | {workers} | {documents:,} | {cells} |")
        if Path(ours).read_text() != Path(theirs).read_text():
            sys.exit("the two sides found different candidates")
    alike, few_alike = speeds[1] / speeds[-1], speeds[3] / speeds[-1]
    print(f"\nratio per core with 1 worker, all documents: {alike:.1f}; the same few: {few_alike:.1f}")
    print(
        f"goal {GOAL_SPEED:,} documents/s and core with 1 worker: {'reached' if speeds[1] >= GOAL_SPEED else 'missed'}"
    )


if __name__ == "__main__":
    main()
