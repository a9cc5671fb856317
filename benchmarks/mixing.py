"""How fast `refinery mix` makes views, by rule and by processes.

    python -m benchmarks.mixing [--documents 1000000] [--shards 16] [--workers 0 2]

The corpus is made up: documents of 1 to 20 tokens with urls of 997 hosts and a quality of their own, evenly in shards,
on a local disk. A figure is documents of the corpus per second, of one view each, opened and published, processes
started and all, and the same per CPU second of this process; the bytes of a view are compared between numbers of
processes.
"""

import argparse
import dataclasses
import hashlib
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from benchmarks.comparison import provenance
from benchmarks.signatures import describe_run
from refinery.loader.format.manifest import (
    DTYPE_CODES,
    KIND,
    MANIFEST,
    SCHEMA_VERSION,
    SUFFIXES,
    WRITER,
    IndexedWriter,
    seal,
    shard_name,
)
from refinery.loader.format.provenance import Column, provenance_schema
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.mix.make_view import make_view
from refinery.pipelines.corpus.mix.recipe import load_mix
from refinery.pipelines.progress.work import Work

COLUMNS = (Column("quality", "float"),)
GROUP = 65_536
DOMAINS: dict[str, dict[str, Any]] = {
    "half of the documents": {"times": 0.5},
    "a rule": {"where": "quality > 0.3 and text_bytes > 200"},
    "a cap": {"per_host": {"documents": 300}},
    "a curve over vigintiles, a target": {
        "upsample": {"column": "quality", "quantiles": 20, "curve": "power(max(q - 0.4, 0), 1.5) * exp(2 * q)"},
        "most_times": 7,
    },
}


def make_corpus(root: Path, documents: int, shards: int) -> int:
    """Write it; how many tokens it has."""
    import pyarrow.parquet as pq

    entries, total = [], 0
    for index in range(shards):
        numbers = np.arange(index * documents // shards, (index + 1) * documents // shards)
        name = shard_name("train", "web", index, shards)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(root / (name + SUFFIXES["provenance"]), schema(), compression="zstd") as writer:
            for start in range(0, len(numbers), GROUP):
                writer.write_table(rows(numbers[start : start + GROUP]), row_group_size=GROUP)
        lengths = numbers * 7 % 20 + 1
        with IndexedWriter(root / (name + SUFFIXES["bin"]), np.dtype(np.uint16)) as out:
            for length in lengths.tolist():
                out.add(np.zeros(length, np.uint16))
        paths = {key: name + suffix for key, suffix in SUFFIXES.items()}
        files: dict[str, Any] = {key: {"path": path, **checksums(root / path)._asdict()} for key, path in paths.items()}
        files["bin"]["block_crc32c"] = ""
        place = {"split": "train", "domain": "web", "index": index, "count": shards}
        entries.append({**place, "documents": len(numbers), "tokens": int(lengths.sum()), "files": files})
        total += int(lengths.sum())
    payload = {"schema_version": SCHEMA_VERSION, "kind": KIND, "name": "c", "lane": "web", "writer": WRITER}
    payload |= {
        "fingerprint": "0" * 64,
        "stages": [],
        "columns": [dataclasses.asdict(each) for each in COLUMNS],
        "funnel": [],
        "recipe": {},
    }
    payload |= {"versions": {}, "dtype": "uint16", "dtype_code": DTYPE_CODES[np.dtype(np.uint16)], "files": []}
    payload |= {"shards": entries, "totals": {"documents": documents, "tokens": total, "bytes": 0}}
    payload["tokenizer"] = {"path": "none", "vocab_size": 100, "bos_id": None, "eos_id": None}
    (root / MANIFEST).write_bytes(seal(payload))
    return total


def schema() -> pa.Schema:
    return provenance_schema(COLUMNS)


def rows(numbers: Any) -> pa.Table:
    table = provenance("A", numbers)
    quality = np.random.default_rng(int(numbers[0])).random(len(numbers), np.float32)
    return pa.table({**{name: table[name] for name in table.column_names}, "quality": quality}).select(
        schema().names
    ).cast(schema())  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    args = parser.parse_args()
    print(describe_run())
    with tempfile.TemporaryDirectory(prefix="refinery-mixing-") as scratch:
        folder = Path(scratch)
        total = make_corpus(folder / "c", args.documents, args.shards)
        for number, (name, domain) in enumerate(DOMAINS.items()):
            target = {"tokens": total} if "most_times" in domain else {}
            recipe = folder / "r.yaml"
            whole = {"name": "d", "parts": ["c"], **domain, **target}
            recipe.write_text(yaml.safe_dump({"name": "v", "corpora": {"c": str(folder / "c")}, "domains": [whole]}))
            found, digests = [], set()
            for workers in args.workers:
                output = folder / f"view-{number}-{workers}"
                begin, cpu = time.perf_counter(), time.process_time()
                make_view(load_mix(str(recipe)), str(output), Work(), workers)
                speeds = (args.documents / s / 1e6 for s in (time.perf_counter() - begin, time.process_time() - cpu))
                found.append("{:.3f} ({:.3f} per CPU second) with {} workers".format(*speeds, workers))
                digests.add(hashlib.sha256((output / MANIFEST).read_bytes()).hexdigest())
            same = "the same bytes" if len(digests) == 1 else "OTHER BYTES"
            print(f"{name}: {', '.join(found)} M documents/s, {same}")


if __name__ == "__main__":
    main()
