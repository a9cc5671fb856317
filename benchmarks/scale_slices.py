"""What 1 to 1,000 TB take as slices on a cluster, by arithmetic from the code's own limits and measured rates.

    python -m benchmarks.scale_slices [--nodes 100] [--cores 32] [--workers 8]

The crawl, the rates and the bytes that cross are those of benchmarks.scale; a slice has --workers cores, and there are
as many slices as fit on the nodes at once. What slices add: each command starts (START_SECONDS of processor time), and
each reads a section of every slice of the step before. Nothing here was run on a cluster.
"""

import argparse
from collections.abc import Callable

from benchmarks.scale import (
    CLEANED,
    FILES,
    KEPT,
    SHUFFLED_DEDUP,
    SHUFFLED_SHARDS,
    SIZES,
    TEXT,
    corpus_bytes,
    files_of_corpus,
    parts,
    requests,
    vcpu_hours,
)
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.slices.known_steps import dedup_steps

START_SECONDS = 3.0  # processor time of a command that does nothing: benchmarks.slices
START_WALL = 6.0  # until its first element
DEDUP_SECONDS = 31e-6  # processor time of a document in phase 2: docs/scale.md
FEW = 100_000_000  # documents that one task deduplicates: run.spread_documents
FILES_OF_SLICE = 3  # of a slice of a step: its sections, its record, its lease
READS = 2  # of each sender's file: a row of its table, and the section


def steps(terabytes: int) -> int:
    """Arrays of phase 2; 0 where one task does it."""
    documents = CLEANED * terabytes
    if documents < FEW:
        return 0
    recipe = parse_recipe({"name": "n", "sources": [{"name": "s", "paths": ["x"]}], "tokenizer": {"path": "t"}})
    return sum(not whole for whole in dedup_steps(recipe, documents))


class Cluster:
    """So many nodes, cores of each, and workers of a slice."""

    def __init__(self, nodes: int, cores: int, workers: int) -> None:
        self.cores, self.workers = nodes * cores, workers
        self.slices = nodes * cores // workers

    def arrays(self, terabytes: int) -> int:
        return 1 + steps(terabytes) + 2

    def commands(self, terabytes: int) -> int:
        return self.slices * self.arrays(terabytes)

    def start_hours(self, terabytes: int) -> float:
        """vCPU hours in which commands start."""
        return self.commands(terabytes) * START_SECONDS / 3600

    def hours(self, terabytes: int) -> float:
        """Wall: the work on all cores, phase 2 in one slice where it is one task, and a start of each array."""
        dedup = CLEANED * terabytes * DEDUP_SECONDS / 3600
        alone = 0.0 if steps(terabytes) else dedup / self.workers
        starts = self.arrays(terabytes) * START_WALL / 3600
        return (vcpu_hours(terabytes) - (dedup if alone else 0.0)) / self.cores + alone + starts

    def exchange_files(self, terabytes: int) -> int:
        return FILES_OF_SLICE * self.slices * (steps(terabytes) + 2)

    def section_reads(self, terabytes: int) -> int:
        """Every slice of a step reads from every slice of the one before."""
        return READS * self.slices**2 * (max(0, steps(terabytes) - 1) + 1)

    def operations(self, terabytes: int) -> float:
        """Of the file system: reads and writes of any run, and what slices add."""
        return requests(terabytes) + self.section_reads(terabytes) + 2 * self.exchange_files(terabytes)

    def gigabytes_a_second(self, terabytes: int) -> float:
        """Read and written, on average: the crawl, what crosses twice, parts twice, the corpus."""
        crossed = SHUFFLED_SHARDS * KEPT * terabytes * TEXT + (
            SHUFFLED_DEDUP * CLEANED * terabytes if steps(terabytes) else 0
        )
        moved = terabytes * 1e12 + 2 * crossed + 2 * CLEANED * terabytes * TEXT * 0.35 + corpus_bytes(terabytes)
        return moved / (self.hours(terabytes) * 3600) / 1e9


def rows(cluster: Cluster) -> list[tuple[str, Callable[[int], str]]]:
    """Name of a line, and its cell for so many terabytes."""
    return [
        ("documents after phase 1", lambda tb: f"{CLEANED * tb / 1e6:,.0f} M"),
        ("files of input", lambda tb: f"{FILES * tb:,}"),
        ("slices", lambda tb: f"{cluster.slices:,}"),
        ("arrays", lambda tb: f"{cluster.arrays(tb)}"),
        ("commands", lambda tb: f"{cluster.commands(tb):,}"),
        ("vCPU hours", lambda tb: f"{vcpu_hours(tb):,.0f}"),
        ("and in starts", lambda tb: f"{cluster.start_hours(tb):,.1f}"),
        ("hours", lambda tb: f"{cluster.hours(tb):,.1f}"),
        ("files in work/exchange", lambda tb: f"{cluster.exchange_files(tb):,}"),
        ("parts and files of the corpus", lambda tb: f"{parts(tb) + files_of_corpus(tb):,}"),
        ("reads of sections", lambda tb: f"{cluster.section_reads(tb) / 1e6:,.1f} M"),
        ("operations of the file system", lambda tb: f"{cluster.operations(tb) / 1e6:,.1f} M"),
        ("a second, on average", lambda tb: f"{cluster.operations(tb) / (cluster.hours(tb) * 3600):,.0f}"),
        ("GB/s read and written, on average", lambda tb: f"{cluster.gigabytes_a_second(tb):,.1f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--cores", type=int, default=32, help="of a node")
    parser.add_argument("--workers", type=int, default=8, help="of a slice")
    args = parser.parse_args()
    cluster = Cluster(args.nodes, args.cores, args.workers)
    print("| .warc.gz |", " | ".join(f"{size:,} TB" for size in SIZES), "|")
    print("| --- |", " | ".join("---" for _ in SIZES), "|")
    for name, cell in rows(cluster):
        print(f"| {name} |", " | ".join(cell(size) for size in SIZES), "|")


if __name__ == "__main__":
    main()
