"""What `refinery compare` costs: seconds, memory and temporary files for two made corpora of many documents.

    python -m benchmarks.comparison --documents 1000000 --shards 20

The corpora are provenance and manifests alone, which is what a comparison reads. Of each hundred documents 90 are in
both, 5 have another text, 5 are in one alone; those of A alone are in B's removals.
"""

import argparse
import hashlib
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from refinery.loader.format.manifest import KIND, WRITER, shard_name
from refinery.loader.format.provenance import provenance_schema
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.format.removals import REMOVALS_SCHEMA, removals_name, write_removals
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.compare.compare import compare

BATCH = 100_000


def file_entry(path: str, **more: Any) -> dict[str, Any]:
    """A file of the manifest, whose checksums nobody asks for."""
    return {"path": path, "size": 0, "crc32c": "0" * 8, "sha256": hashlib.sha256(path.encode()).hexdigest(), **more}


def made_ids(side: str, numbers: Any) -> list[bytes]:
    """Ids: those of numbers that end in 90 to 99 are of one side alone."""
    return [
        hashlib.blake2b(f"{side if n % 100 >= 90 else ''}{n}".encode(), digest_size=16).digest()
        for n in numbers.tolist()
    ]


def origins(side: str, numbers: Any) -> list[str]:
    """Records of 100 files; those of numbers that end in 95 to 99 are of one side alone."""
    return [f"crawl/{n % 100:05d}.warc.gz@{n}{side if n % 100 >= 95 else ''}" for n in numbers.tolist()]


def make(root: Path, side: str, documents: int, shards: int) -> Path:
    """A corpus of so many documents."""
    import pyarrow.parquet as pq

    entries = []
    for index in range(shards):
        numbers = np.arange(index * documents // shards, (index + 1) * documents // shards)
        name = shard_name("train", "web", index, shards)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(root / f"{name}.provenance.parquet", provenance_schema(()), compression="zstd") as writer:
            for start in range(0, len(numbers), BATCH):
                part = numbers[start : start + BATCH]
                writer.write_table(provenance(side, part), row_group_size=65_536)
        files = {kind: file_entry(f"{name}{end}") for kind, end in (("bin", ".bin"), ("idx", ".idx"))}
        files["bin"]["block_crc32c"] = ""
        files["provenance"] = file_entry(f"{name}.provenance.parquet")
        place = {"split": "train", "domain": "web", "index": index, "count": shards}
        entries.append({**place, "documents": len(numbers), "tokens": 500 * len(numbers), "files": files})
    removals = made_removals(root, side, documents)
    total = {"documents": documents, "tokens": 500 * documents, "bytes": 2_000 * documents}
    payload: dict[str, Any] = {"kind": KIND, "name": side, "lane": "web", "writer": WRITER}
    payload |= {"fingerprint": side, "stages": [], "columns": [], "funnel": [], "recipe": {}, "versions": {}}
    payload |= {"dtype": "uint16", "dtype_code": 8, "shards": entries, "files": removals, "totals": total}
    payload["tokenizer"] = {"path": "tokenizer/t.json", "vocab_size": 100, "bos_id": None, "eos_id": None}
    make_manifest(payload).publish(open_store(str(root)))
    return root


def provenance(side: str, numbers: Any) -> pa.Table:
    """Rows of these documents."""
    count = len(numbers)
    columns = {
        "id": made_ids(side, numbers),
        "url": [f"https://site{n % 997}.example/page/{n}" for n in numbers.tolist()],
        "source": ["crawl"] * count,
        "origin": origins(side, numbers),
        "copies": [1] * count,
        "sources": [["crawl"]] * count,
        "text_bytes": (numbers % 4_000 + 100).tolist(),
        "token_offset": [0] * count,
        "token_count": (numbers % 1_000 + 25).tolist(),
        "meta": ["{}"] * count,
    }
    schema = provenance_schema(())
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def made_removals(root: Path, side: str, documents: int) -> list[dict[str, Any]]:
    """The other side's documents that this one lacks, as near duplicates."""
    other = {"A": "B", "B": "A"}[side]
    numbers = np.arange(documents)
    numbers = numbers[numbers % 100 >= 95]
    columns: dict[str, Any] = {"id": made_ids(other, numbers), "kept_id": made_ids(side, numbers - 95)}
    columns |= {"similarity": np.full(len(numbers), 0.9, np.float32), "origin": origins(other, numbers)}
    words = {"reason": "near-duplicate", "scope": "corpus", "url": "", "source": "crawl"}
    columns |= {name: [value] * len(numbers) for name, value in words.items()}
    (root / "removals").mkdir()
    write_removals(
        root / removals_name(0, 1),
        [pa.table([pa.array(columns[f.name], f.type) for f in REMOVALS_SCHEMA], schema=REMOVALS_SCHEMA)],
    )
    return [file_entry(removals_name(0, 1), rows=len(numbers))]


def watch(folder: Path, most: list[int], ended: threading.Event) -> None:
    """The most bytes that are in the temporary folder at once."""
    while not ended.wait(0.2):
        sizes = []
        for path in folder.rglob("*"):
            try:
                sizes.append(path.stat().st_size)
            except FileNotFoundError:
                continue
        most[0] = max(most[0], sum(sizes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pair = [str(make(Path(folder) / side, side, args.documents, args.shards)) for side in "AB"]
        print(f"made; peak memory so far {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        tempfile.tempdir = str(scratch)
        most, ended = [0], threading.Event()
        watcher = threading.Thread(target=watch, args=(scratch, most, ended))
        watcher.start()
        start, cpu = time.perf_counter(), time.process_time()
        found = compare((pair[0], pair[1]))
        seconds, spent = time.perf_counter() - start, time.process_time() - cpu
        ended.set()
        watcher.join()
    if found.documents:
        counts = [found.documents.same[0], found.documents.changed[0], found.documents.lost("A")]
        print(f"{', '.join(f'{count.documents:,}' for count in counts)} documents: same, changed, only in A")
    print(f"{seconds:.1f} s, {spent:.1f} s of a core: {1e6 * spent / (2 * args.documents):.1f} µs a document of either")
    print(f"temporary files {most[0] / 1e6:,.0f} MB: {most[0] / (2 * args.documents):.0f} bytes a document of either")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")


if __name__ == "__main__":
    main()
