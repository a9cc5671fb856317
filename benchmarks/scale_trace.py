"""What `refinery trace` reads for an address or an origin in a corpus of 100 TB of crawl, with its lookup index.

    python benchmarks/scale_trace.py [--entries 120000000] [--shards 13412] [--documents 67000]

It makes the index of so many entries (those of a few documents, random ones beside them) as a job writes it, a manifest
of so many shards, and of the shards those that are asked for, with so many documents each. Then a process of its own
asks, reading the manifest again each time, and prints files opened, reads, bytes, seconds and its memory.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pyarrow as pa

from benchmarks.trace_shards import counting
from refinery.pipelines.corpus.trace.answers import Missing, Query
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.published.published import PublishedCorpus
from refinery.transforms.core.spill.sorted_tables import sort_rows
from refinery.transforms.write.lookup.entries import (
    ROWS_PER_FILE,
    SCHEMA,
    count_lookup_files,
    key_hash,
    lookup_name,
    write_entries,
)
from tests.corpus_factory import build_corpus, edit_manifest, file_entry
from tests.many_shards import entry

ASKED = 3  # shards that are written, and documents of each that are asked for
PLACES = np.array(["train/web"] * 60 + ["removals"] * 39 + ["rejects"])


NOWHERE = "https://nowhere.example"


def url_of(number: int) -> str:
    return f"https://e.org/{number}"


def origin_of(number: int) -> str:
    return f"in/a@{number}"


def write_index(root: Path, entries: int, shards: int, known: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """The files of the index as the manifest lists them. known: (hash, shard) of documents that can be found."""
    count, random = count_lookup_files(entries), np.random.default_rng(1)
    files = []
    for number in range(count):
        first, last = (number << 32) // count << 32, ((number + 1) << 32) // count << 32
        here = [(hash_, shard) for hash_, shard in known if (hash_ >> 32) * count >> 32 == number]
        rows = min(ROWS_PER_FILE, -(-entries // count))
        hashes = np.r_[random.integers(first, last, rows, np.uint64), np.array([h for h, _ in here], np.uint64)]
        places = np.r_[PLACES[random.integers(0, len(PLACES), rows)], ["train/web"] * len(here)]
        numbers = np.r_[random.integers(0, shards, rows, np.int32), np.array([s for _, s in here], np.int32)]
        columns = [pa.array(hashes.astype(np.uint64)), pa.array(places), pa.array(numbers.astype(np.int32))]
        name = lookup_name(number, count)
        (root / name).parent.mkdir(exist_ok=True)
        write_entries(root / name, [sort_rows([pa.table(columns, schema=SCHEMA)])])
        files.append(file_entry(root, name))
    return files


def make(root: Path, entries: int, shards: int, documents: int) -> list[int]:
    """The corpus; numbers of documents in it, one of each shard that is written."""
    build_corpus(root, {})
    written = [shards * (k + 1) // (ASKED + 1) for k in range(ASKED)]
    placed = {shard: [(0, k * documents + n) for n in range(documents)] for k, shard in enumerate(written)}
    listed = [entry(root, index, shards, placed.get(index, []), index in placed) for index in range(shards)]
    asked = {shard: numbers[documents // 2][1] for shard, numbers in placed.items()}
    known = [(key_hash("url", url_of(number)), shard) for shard, number in asked.items()]
    known += [(key_hash("origin", origin_of(number)), shard) for shard, number in asked.items()]
    began = time.process_time()
    files = write_index(root, entries, shards, known)
    size = sum(file["size"] for file in files)
    seconds = time.process_time() - began
    print(f"index: {entries:,} entries in {len(files)} files, {size / 1e6:,.0f} MB, {size / entries:.2f} bytes each;")
    print(f"       made, sorted and written in {seconds:,.0f} s of CPU, {seconds / entries * 1e6:.2f} µs each")
    provenance = root / f"train/web/shard-{written[0]:05d}-of-{shards:05d}.provenance.parquet"
    print(f"shards: {shards:,}, a provenance of {provenance.stat().st_size:,} bytes")

    def edit(manifest: dict[str, Any]) -> None:
        manifest["shards"] = listed
        manifest["files"] += files
        for name in ("documents", "tokens"):
            manifest["totals"][name] = sum(each[name] for each in listed)

    edit_manifest(root, edit)
    return list(asked.values())


def ask(root: str, numbers: list[int]) -> None:
    """Print a row of a table for each question."""
    questions = [
        ("`--url`, in the corpus", [Query("url", url_of(numbers[0]))]),
        ("`--origin`, in the corpus", [Query("origin", origin_of(numbers[1]))]),
        ("`--url`, nowhere", [Query("url", f"{NOWHERE}/0")]),
        ("`--urls`, 3 in the corpus and 97 nowhere", [Query("url", url_of(n)) for n in numbers]),
    ]
    questions[-1][1].extend(Query("url", f"{NOWHERE}/{n}") for n in range(97))
    print("\n| question | files | reads | bytes | of the index | of shards | seconds | of them the manifest |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, queries in questions:
        with counting() as counted:
            began = time.perf_counter()
            corpus = PublishedCorpus(root)
            corpus.manifest.load()
            opened = time.perf_counter()
            answers = trace(root, queries, corpus=corpus).answers
            done = time.perf_counter()
        for query, answer in answers:
            if isinstance(answer, Missing) != query.value.startswith(NOWHERE):
                raise ValueError(f"{query.value}: a wrong answer")
        parts = [sum(n for path, n in counted.sizes.items() if path.startswith(f)) for f in ("", "lookup/", "train/")]
        sizes = " | ".join(f"{size:,}" for size in parts)
        seconds = f"{done - began:.2f} | {opened - began:.2f}"
        print(f"| {name} | {len(counted.files)} | {counted.requests} | {sizes} | {seconds} |")
    print(f"\npeak memory: {peak_memory() / 1e6:,.0f} MB")


def peak_memory() -> int:
    """Bytes. Not of getrusage, which counts the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=120_000_000, help="of the index")
    parser.add_argument("--shards", type=int, default=13_412, help="of the train split")
    parser.add_argument("--documents", type=int, default=67_000, help="of a shard")
    parser.add_argument("--ask", nargs="+", help="a corpus that was made, and documents of it")
    args = parser.parse_args()
    if args.ask:
        ask(args.ask[0], [int(number) for number in args.ask[1:]])
        return
    with TemporaryDirectory() as folder:
        root = Path(folder, "corpus")
        numbers = make(root, args.entries, args.shards, args.documents)
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "--ask", root, *map(str, numbers)], check=True)


if __name__ == "__main__":
    main()
