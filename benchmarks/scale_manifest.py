"""What a training process pays to open a corpus of very many shards: seconds, seconds of CPU, and peak memory.

    python benchmarks/scale_manifest.py [--shards 100000] [--domains 8] [--mib 64] [--version 1]

It makes the manifest of that many shards in a temporary folder, with checksums that no compression shortens, and their
.bin and .idx as sparse files; then it opens the corpus in processes of their own: its manifest alone, a stream of one
domain, a stream of all. --version 1: the manifest of earlier releases, one JSON file.
"""

import argparse
import base64
import random
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from refinery.loader.format.manifest import KIND, MANIFEST, SUFFIXES, WRITER, seal, shard_name
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.open_store import open_store

OPEN = """
import re, sys, time
import refinery.loader.stream.stream
from refinery.loader import TokenStream
from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
prefix, domains = sys.argv[1:]
began, used = time.perf_counter(), time.process_time()
if domains == "none":
    read_manifest(open_store(prefix))
else:
    TokenStream(prefix, weights={"domain-0": 1.0} if domains == "one" else None)
found = time.perf_counter() - began, time.process_time() - used
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
print(*found, peak)
"""


def made_payload(shards: int, domains: int, mib: int) -> dict[str, Any]:
    """A manifest's fields: `shards` of about `mib` MiB of tokens each, and 5,000 files of removals."""
    chance = random.Random(1)
    each = shards // domains
    entries: list[dict[str, Any]] = []

    def file(path: str, size: int) -> dict[str, Any]:
        return {"path": path, "size": size, "crc32c": chance.randbytes(4).hex(), "sha256": chance.randbytes(32).hex()}

    for domain in range(domains):
        for index in range(each):
            name = shard_name("train", f"domain-{domain}", index, each)
            tokens, documents = mib * 2**19 - chance.randrange(1000), 16_000 - chance.randrange(100)
            sizes = {"bin": 2 * tokens, "idx": 42 + 20 * documents, "provenance": 2_000_000}
            files = {kind: file(name + SUFFIXES[kind], size) for kind, size in sizes.items()}
            files["bin"]["block_crc32c"] = base64.b64encode(chance.randbytes(4 * mib)).decode()
            place = {"split": "train", "domain": f"domain-{domain}", "index": index, "count": each}
            entries.append({**place, "documents": documents, "tokens": tokens, "files": files})
    return {
        "kind": KIND,
        "name": "scale",
        "lane": "web",
        "stages": [],
        "columns": [],
        "writer": WRITER,
        "fingerprint": "5f" * 32,
        "dtype": "uint16",
        "dtype_code": 8,
        "tokenizer": {"path": "tokenizer/tokenizer.json", "vocab_size": 50_000, "bos_id": 1, "eos_id": 2},
        "shards": entries,
        "files": [file(f"removals/part-{i:05d}-of-05000.parquet", 10**8) | {"rows": 10**6} for i in range(5000)],
        "totals": {name: sum(entry[name] for entry in entries) for name in ("documents", "tokens")} | {"bytes": 0},
        "funnel": [],
        "recipe": {},
        "versions": {},
    }


def write(root: Path, payload: dict[str, Any], version: int) -> None:
    """The manifest of that version, and sparse files for what it lists."""
    for entry in payload["shards"]:
        for kind in ("bin", "idx"):
            path = root / entry["files"][kind]["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                out.truncate(entry["files"][kind]["size"])
    if version == 1:
        (root / MANIFEST).write_bytes(seal({**payload, "schema_version": 1}))
    else:
        make_manifest(payload).publish(open_store(str(root)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--domains", type=int, default=8)
    parser.add_argument("--mib", type=int, default=64, help="MiB of tokens in a shard")
    parser.add_argument("--version", type=int, choices=(1, 2), default=2)
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, made_payload(args.shards, args.domains, args.mib), args.version)
        sizes = [path.stat().st_size for path in (root / MANIFEST, *root.glob("manifests/**/*.parquet"))]
        print(f"version {args.version}: manifest.json {sizes[0]:,} bytes, {len(sizes) - 1} listings {sum(sizes[1:]):,}")
        for domains in ("none", "one", "all"):
            done = subprocess.run(
                [sys.executable, "-c", OPEN, folder, domains], check=True, capture_output=True, text=True
            )
            seconds, used, memory = done.stdout.split()
            print(f"domains opened: {domains:4}  {float(seconds):6.2f} s  {float(used):6.2f} s of CPU  {memory} MB")
        shutil.rmtree(root / "train")


if __name__ == "__main__":
    main()
