"""What a crawl of 1 to 1,000 TB takes, by arithmetic from the code's own limits and from measured rates: docs/scale.md.

    python -m benchmarks.scale [--workers 500] [--machine-type n2-standard-4]

A crawl is what 100 TB of .warc.gz are made of here: 5 billion pages in 90,000 files, of which 1.35 billion documents
of 4,000 bytes come through phase 1 and 0.9 billion through all. Rates are those of docs/operations.md and
docs/benchmarks/, each with its source below; nothing here was run on a cluster.
"""

import argparse
from collections.abc import Callable

from refinery.pipelines.corpus.verify.keyed_rows import TABLES
from refinery.pipelines.corpus.verify.processes import TASK_BYTES, TASK_DOCUMENTS
from refinery.pipelines.recipe.recipe import RunParams
from refinery.pipelines.run.refine import DOCUMENTS_PER_PARTITION
from refinery.pipelines.run.waves import cut_waves, wave_limits
from refinery.pipelines.runners.capacity import BYTES_PER_VCPU_HOUR, DATAFLOW, vcpus_asked_for
from refinery.transforms.read.sources import ReadTask
from refinery.transforms.write.lookup.tasks import files_for
from refinery.transforms.write.removals import count_files
from refinery.transforms.write.shuffle import ShardParams, shard_counts

TB = 10**12
SIZES = (1, 10, 100, 1000)
# Of a terabyte of .warc.gz.
PAGES, FILES, CLEANED, KEPT = 50_000_000, 900, 13_500_000, 9_000_000
TEXT = 4_000  # bytes of text in a document
FAMILY = 0.005  # of all documents, the largest family of near copies
PART = 256 << 20  # bytes of text in a part of phase 1

JOB_HOURS = 10 / 60  # to start and stop the workers of a job
SHUFFLED_DEDUP = 513  # bytes a document, docs/benchmarks/dedup-cost.md
SHUFFLED_SHARDS = 0.45  # of the text: tokens of 16 bits and provenance, zstd; benchmarks.scale_overhead
SIGNATURES, DOCUMENTS = 460, 0.35  # bytes a document in signatures/; of the text in documents/, zstd
BIN, PROVENANCE = 0.47, 80  # bytes of .bin for a byte of text, at 16 bits; of provenance for a document
LISTING = 380  # bytes of a shard in the listings of the manifest: benchmarks.scale_manifest
OPEN_SECONDS, OPEN_BYTES = 15.6e-6, 1.9e3  # CPU and memory of a shard whose domain is opened: benchmarks.scale_manifest
VERIFY_SECONDS = 11.6e-9  # CPU of a byte: `refinery verify` of 344 MB in 96,000 documents took 4.0 s, start included
ENTRY = 6.54  # bytes of an entry of the lookup index: benchmarks/scale_trace.py
MEMBER = 512  # bytes of a member of a component in its group, streamed through disk beyond 256 MB
BLOCK = 16 << 20  # bytes that a reader asks for at once


def crawl_tasks(terabytes: int) -> list[ReadTask]:
    """One a file, all of one size."""
    count = FILES * terabytes
    size = TB * terabytes // count
    return [ReadTask(f"gs://raw/crawl/{i:07d}.warc.gz", "warc", "web", i, size) for i in range(count)]


def jobs(terabytes: int, vcpus: int) -> int:
    """Waves of phase 1, dedup, shards, and the job of rejects, dead letters and the lookup index."""
    return len(cut_waves(crawl_tasks(terabytes), *wave_limits(RunParams(), vcpus))) + 3


def vcpu_hours(terabytes: int) -> float:
    return terabytes * TB / BYTES_PER_VCPU_HOUR


def shards(terabytes: int) -> int:
    documents = KEPT * terabytes
    params = ShardParams()
    return sum(shard_counts({"web": {"documents": documents, "bytes": documents * TEXT}}, params).values())


def partitions(terabytes: int) -> int:
    return 1 << (CLEANED * terabytes // DOCUMENTS_PER_PARTITION).bit_length()


def files_of_corpus(terabytes: int) -> int:
    return 3 * shards(terabytes) + count_files((CLEANED - KEPT) * terabytes) + files_for(*lookup_rows(terabytes))


def lookup_rows(terabytes: int) -> tuple[int, int, int, int]:
    """Documents, removed ones, rejects and dead letters, at the default rate of rejects; all that phase 3 loses counts
    as removed."""
    return KEPT * terabytes, (CLEANED - KEPT) * terabytes, (PAGES - CLEANED) * terabytes // 100, 0


def parts(terabytes: int) -> int:
    """documents/ and signatures/ of phase 1, verdicts/ of phase 2."""
    return 3 * (CLEANED * terabytes * TEXT // PART + 1)


def requests(terabytes: int) -> float:
    """Reads of the crawl, of text twice (phases 2 and 3 read signatures and documents), and a write or two a file."""
    read = terabytes * TB + 2 * CLEANED * terabytes * TEXT * DOCUMENTS
    return read / BLOCK + 2 * (parts(terabytes) + files_of_corpus(terabytes))


def corpus_bytes(terabytes: int) -> float:
    return KEPT * terabytes * (TEXT * BIN + PROVENANCE)


def verify_shares(terabytes: int) -> int:
    """Of a corpus without work/."""
    return max(1, -(-int(corpus_bytes(terabytes)) // TASK_BYTES), -(-KEPT * terabytes // TASK_DOCUMENTS))


def verify_rows(terabytes: int) -> int:
    """Bytes of what is joined: a row a document, and two a removal."""
    removed = (CLEANED - KEPT) * terabytes
    return TABLES["ids"].itemsize * KEPT * terabytes + 2 * TABLES["removed"].itemsize * removed


def rows(vcpus: int) -> list[tuple[str, Callable[[int], str]]]:
    """Name of a line, and its cell for so many terabytes."""
    return [
        ("files of input", lambda tb: f"{FILES * tb:,}"),
        ("jobs", lambda tb: f"{jobs(tb, vcpus):,}"),
        ("vCPU hours", lambda tb: f"{vcpu_hours(tb):,.0f}"),
        ("hours", lambda tb: f"{vcpu_hours(tb) / vcpus + jobs(tb, vcpus) * JOB_HOURS:,.1f}"),
        ("shuffled, phase 2", lambda tb: f"{SHUFFLED_DEDUP * CLEANED * tb / 1e9:,.0f} GB"),
        ("shuffled, phase 3", lambda tb: f"{SHUFFLED_SHARDS * KEPT * tb * TEXT / 1e9:,.0f} GB"),
        ("work/", lambda tb: f"{CLEANED * tb * (SIGNATURES + TEXT * DOCUMENTS) / 1e12:,.2f} TB"),
        ("keys of a band in phase 2", lambda tb: f"{partitions(tb):,}"),
        ("largest family (0.5 %)", lambda tb: f"{FAMILY * CLEANED * tb:,.0f} documents"),
        ("its group, through a worker's disk", lambda tb: f"{FAMILY * CLEANED * tb * MEMBER / 1e9:,.1f} GB"),
        ("shards", lambda tb: f"{shards(tb):,}"),
        ("files of the corpus", lambda tb: f"{files_of_corpus(tb):,}"),
        ("parts in work/", lambda tb: f"{parts(tb):,}"),
        ("requests to storage", lambda tb: f"{requests(tb) / 1e6:,.2f} M"),
        ("the corpus", lambda tb: f"{corpus_bytes(tb) / 1e12:,.3f} TB"),
        ("listings of the manifest", lambda tb: f"{LISTING * shards(tb) / 1e6:,.1f} MB"),
        ("opening all of it, a rank, CPU", lambda tb: f"{OPEN_SECONDS * shards(tb):,.2f} s"),
        ("opening all of it, a rank, memory", lambda tb: f"{OPEN_BYTES * shards(tb) / 1e6:,.0f} MB and 76"),
        ("lookup index", lambda tb: f"{ENTRY * 2 * sum(lookup_rows(tb)) / 1e9:,.1f} GB"),
        ("verify, CPU", lambda tb: f"{VERIFY_SECONDS * corpus_bytes(tb) / 3600:,.1f} h"),
        ("its shares as a job", lambda tb: f"{verify_shares(tb):,}"),
        ("its rows, by way of storage", lambda tb: f"{verify_rows(tb) / 1e9:,.1f} GB"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=500, help="machines of a job at most")
    parser.add_argument("--machine-type", default="n2-standard-4", help="their type")
    args = parser.parse_args()
    flags = [f"--max_num_workers={args.workers}", f"--machine_type={args.machine_type}"]
    vcpus = vcpus_asked_for(DATAFLOW, flags)
    print(f"{args.workers} workers of {args.machine_type}, {vcpus:,} vCPUs\n")
    print("| .warc.gz | " + " | ".join(f"{size:,} TB" for size in SIZES) + " |")
    print("| --- " * (len(SIZES) + 1) + "|")
    for name, cell in rows(vcpus):
        print(f"| {name} | " + " | ".join(cell(size) for size in SIZES) + " |")


if __name__ == "__main__":
    main()
