"""How phase 2 grows: time, memory and shuffled bytes at 1, 2 and 4 times the input; what a terabyte of text costs.

    python -m benchmarks.dedup_growth [--documents 250000] [--scales 1 2 4] [--workers 2]
    python -m benchmarks.dedup_growth --scales 1 --members 1000000 [--input docs.jsonl.gz]

The input is generated signatures: of all documents 5 % are exact copies, 10 % near copies, 0.5 % copies of one and the
same document, and 1 % share one band and nothing else (a hot bucket that grows with the input). The whole of
`Deduplicate` runs on the local runner, verdicts written. Memory is PSS, sampled: the launcher, which holds the
shuffles, and all workers. Bytes are those of the batches that are sent into each exchange.

Then benchmarks/large_bucket.py runs with --members documents.

The cost of a terabyte of text on Dataflow follows from the largest scale, the prices and the assumptions printed.
"""

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.bands import Meter
from benchmarks.large_bucket import print_buckets
from benchmarks.made_signatures import PARAMS, SIGNATURE, SOURCE, Mixture, partitions_of, write_signatures
from benchmarks.signatures import describe_run, make_texts, read_texts
from refinery.pipelines.reports.plan.inputs import REFERENCE
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.exchange import exchange
from refinery.transforms.core.exchange.on_disk import through_files
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.signatures import compute_signatures

MIXTURE = Mixture(exact=0.05, copies=0.10, family=0.005, bucket=0.01)


# --- growth -----------------------------------------------------------------------------------------------------------


class _CountBytes(beam.DoFn):
    """Passes (key, batch) on; per bundle appends bytes and number of its batches to FOLDER/<process>."""

    def __init__(self, label: str, folder: str) -> None:
        self.label = label
        self.folder = folder

    def start_bundle(self) -> None:
        self.total = self.batches = 0

    def process(self, element: Any) -> Iterator[Any]:
        self.total += len(element[1] if isinstance(element, tuple) else element)
        self.batches += 1
        yield element

    def finish_bundle(self) -> None:
        if self.total:
            with open(f"{self.folder}/{os.getpid()}", "a") as lines:
                lines.write(json.dumps([self.label, self.total, self.batches]) + "\n")


def count_shuffles(folder: str) -> list[str]:
    """Make every exchange of this process' pipelines count what is sent into it. Returns their names."""
    labels: list[str] = []  # fills while pipelines are built

    def counted(disk: Any, name: str, inputs: tuple[beam.PCollection, ...], *more: Any) -> Any:
        labels.append(name)
        steps = (beam.ParDo(_CountBytes(name, folder)).with_output_types(each.element_type) for each in inputs)
        sent = tuple(each | f"count {i}" >> step for i, (each, step) in enumerate(zip(inputs, steps, strict=True)))
        return through_files(disk, name, sent, *more)

    vars(exchange)["through_files"] = counted
    return labels


def shuffled(folder: str, labels: Sequence[str]) -> dict[str, tuple[int, int]]:
    """(bytes, batches) by exchange, in the order of the labels; empties the folder."""
    total: Counter[str] = Counter()
    batches: Counter[str] = Counter()
    for path in Path(folder).iterdir():
        for line in path.read_text().splitlines():
            label, size, count = json.loads(line)
            total[label] += size
            batches[label] += count
        path.unlink()
    return {label: (total[label], batches[label]) for label in dict.fromkeys(labels) if label in total}


@dataclass(frozen=True)
class Growth:
    """One run of phase 2. Seconds, bytes; shuffles: bytes that entered each."""

    documents: int
    wall: float
    cpu: float
    peak: int
    largest_worker: int
    removed: int
    shuffles: dict[str, int]


def run_scale(documents: int, workers: int, counts: str, labels: Sequence[str]) -> Growth:
    """Phase 2 over that many generated documents, with new worker processes."""
    with TemporaryDirectory(prefix="growth-") as scratch, Runner(workers=workers, quiet=True).open() as runner:
        lists = list_parts(scratch, write_signatures(Path(scratch), documents, MIXTURE))

        def build(pipeline: Any) -> None:
            params = DedupParams(near=PARAMS)
            verdicts = pipeline | Deduplicate(params, SIGNATURE, (SOURCE,), lists, partitions_of(documents))
            verdicts | WriteVerdicts(scratch, (SOURCE,))
            take_side_outputs(pipeline)

        with Meter(runner.pool.pids if runner.pool else [], memory=True) as meter:
            runner.run("dedup", build)
        files = sorted(Path(scratch, "verdicts").glob("*.parquet"))
        tables = [pq.read_table(path, columns=["removed"], partitioning=None) for path in files]
    removed = sum(pc.sum(table["removed"]).as_py() for table in tables)
    sizes = {label: size for label, (size, _) in shuffled(counts, labels).items()}
    return Growth(documents, meter.wall, meter.cpu, meter.peak, meter.largest_worker, removed, sizes)


def print_growth(runs: Sequence[Growth]) -> None:
    first = runs[0]
    print(
        "| documents | seconds | to the first | CPU µs a document | peak memory | largest worker | shuffled | removed |"
    )
    print("| --- " * 8 + "|")
    for run in runs:
        cells = f"{run.wall:.1f} | {run.wall / first.wall:.2f} | {run.cpu / run.documents * 1e6:.1f} | "
        cells += f"{run.peak / 1e6:,.0f} MB | {run.largest_worker / 1e6:,.0f} MB | "
        cells += f"{sum(run.shuffles.values()) / run.documents:.0f} B a document | {run.removed / run.documents:.2%}"
        print(f"| {run.documents:,} | {cells} |")
    print(f"\n| shuffle, bytes a document | {' | '.join(f'{run.documents:,}' for run in runs)} |")
    print("| --- " * (1 + len(runs)) + "|")
    for label in dict.fromkeys(label for run in runs for label in run.shuffles):
        print(f"| {label} | {' | '.join(f'{run.shuffles.get(label, 0) / run.documents:.2f}' for run in runs)} |")


# --- the cost of a terabyte -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prices:
    """Dataflow, US dollars: the planner's list prices, see there how old and how sure they are. No discount for volume,
    no disk, no idle time.
    """

    vcpu_hour: float = REFERENCE["core_hour_price"]
    gb_hour: float = REFERENCE["memory_hour_price"]
    gb_per_vcpu: float = REFERENCE["memory_per_core"]  # n1-standard machines
    shuffle_gb: float = REFERENCE["shuffle_price"]
    shuffle_passes: float = REFERENCE["shuffle_passes"]  # written and read bytes are both billed


def cost_of_terabyte(
    signature_speed: float, cpu_per_document: float, shuffle_per_document: float, document: float, prices: Prices
) -> dict[str, float]:
    """Cost of deduplicating 10^12 bytes of text: phase 1's signatures and the whole of phase 2.

    signature_speed: bytes a second and core. cpu_per_document: core seconds of phase 2. shuffle_per_document, document:
    bytes. A vCPU is taken to do what a core of this machine does.
    """
    documents = 1e12 / document
    hours = {"signature hours": 1e12 / signature_speed / 3600, "dedup hours": documents * cpu_per_document / 3600}
    hourly = prices.vcpu_hour + prices.gb_per_vcpu * prices.gb_hour
    shuffle = documents * shuffle_per_document * prices.shuffle_passes / 1e9
    dollars = {"workers $": sum(hours.values()) * hourly, "shuffle $": shuffle * prices.shuffle_gb}
    return {"documents": documents, **hours, "billed shuffle GB": shuffle, **dollars, "total $": sum(dollars.values())}


def print_cost(run: Growth, texts: Sequence[str], prices: Prices) -> None:
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    compute_signatures(texts[:10], SIGNATURE)
    rounds, start = 0, time.process_time()
    while (used := time.process_time() - start) < 0.5:
        compute_signatures(texts, SIGNATURE)
        rounds += 1
    speed, shuffle = size * rounds / used, sum(run.shuffles.values()) / run.documents
    cpu, document = run.cpu / run.documents, size / len(texts)
    print(f"\nA terabyte of text, from: {speed / 1e6:.0f} MB/s of signatures a core, {document:,.0f} bytes a document;")
    print(f"in phase 2 {cpu * 1e6:.1f} core µs and {shuffle:.0f} shuffled bytes a document; {prices}")
    found = cost_of_terabyte(speed, cpu, shuffle, document, prices)
    print("\n" + "\n".join(f"- {name}: {value:,.2f}" for name, value in found.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=250_000, help="documents at scale 1 (default 250,000)")
    parser.add_argument("--scales", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--members", type=int, default=1_000_000, help="members of the large bucket, 0: skip it")
    parser.add_argument("--input", type=Path, help="JSONL with a field text, for the size of a document and the speed")
    for name, value in asdict(Prices()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=value, help=f"default {value}")
    args = parser.parse_args()
    for name, value in (("documents", args.documents), ("workers", args.workers), ("scales", min(args.scales))):
        if value < 1:
            parser.error(f"--{name}: {value} given, 1 or more is allowed")
    print(describe_run())
    with TemporaryDirectory(prefix="shuffles-") as counts:
        labels = count_shuffles(counts)
        runs = [run_scale(args.documents * scale, args.workers, counts, labels) for scale in args.scales]
    print_growth(runs)
    if args.members > 0:
        print()
        print_buckets(args.members)
    texts = read_texts(args.input, 50_000_000) if args.input else make_texts(2000)
    print_cost(runs[-1], texts, Prices(*(getattr(args, name) for name in asdict(Prices()))))


if __name__ == "__main__":
    main()
