"""0.1 % of a corpus of 1 TB taken down by host: which files are read and written, how long it takes, how much memory.

    python -m benchmarks.takedown --shards 1000 --shard-mb 1000 --documents 10 --folder out/bench

The shards have their full size and are sparse, with holes of zeros, so a terabyte fits on any disk; those that are
rewritten are written in full. Documents are as many as `--documents` a shard, equally long, at the places that the
hashes of their ids give them; one in a thousand is of the host that is asked for.
"""

import argparse
import base64
import hashlib
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.indexed import index_bytes
from refinery.loader.format.manifest import KIND, RUN, WRITER, seal, write_provenance
from refinery.loader.format.publish_manifest import make_manifest
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.remove.request import HOSTS, Request, read_list
from refinery.pipelines.corpus.remove.takedown import Options, TakedownRun
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.write.shuffle import order_key

HOST = "gone.example"
SHARE = 1000  # one document in so many is of HOST
SEED = 1
KINDS = ("idx", "provenance.parquet")


def file_of(root: Path, name: str, data: bytes) -> dict[str, Any]:
    """Write a file; its entry."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"path": name, **checksums(data)._asdict()}


def sparse(root: Path, name: str, size: int, known: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """A file of zeros without any block on the disk. known: checksums by size."""
    if size not in known:
        blocks, crc, sha = [], 0, hashlib.sha256()
        for start in range(0, size, CHECKSUM_BLOCK):
            block = bytes(min(CHECKSUM_BLOCK, size - start))
            blocks.append(google_crc32c.value(block))
            crc = google_crc32c.extend(crc, block)
            sha.update(block)
        told = base64.b64encode(np.array(blocks, ">u4").tobytes()).decode()
        known[size] = {"size": size, "crc32c": f"{crc:08x}", "sha256": sha.hexdigest(), "block_crc32c": told}
    with (root / name).open("wb") as out:
        out.truncate(size)
    return {"path": name, **known[size]}


def build(root: Path, shards: int, size: int, documents: int) -> tuple[int, set[int]]:
    """The corpus; (documents of HOST, shards that hold any)."""
    placed: list[list[tuple[int, bytes, int]]] = [[] for _ in range(shards)]
    for number in range(shards * documents):
        id_ = hashlib.blake2b(str(number).encode(), digest_size=16).digest()
        order = order_key(SEED, id_)
        placed[order * shards >> 64].append((order, id_, number))
    tokens, known, entries, holding, asked = (
        size // documents // 2,
        dict[int, Any](),
        list[dict[str, Any]](),
        set[int](),
        0,
    )
    for index, members in enumerate(placed):
        name = f"train/web/shard-{index:05d}-of-{shards:05d}"
        lengths = np.full(len(members), tokens, np.int32)
        rows = []
        for row, (_, id_, number) in enumerate(sorted(members)):
            host = HOST if number % SHARE == 0 else f"site{number % 977}.example"
            if host == HOST:
                asked += 1
                holding.add(index)
            facts = {"id": id_, "url": f"https://{host}/{number}", "source": "web", "origin": f"a@{number}"}
            counts = {"copies": 1, "sources": ["web"], "text_bytes": 4 * tokens}
            rows.append({**facts, **counts, "token_offset": row * tokens, "token_count": tokens, "meta": "{}"})
        idx = file_of(root, f"{name}.idx", index_bytes(lengths, np.dtype("<u2")))
        write_provenance(root / f"{name}.provenance.parquet", rows, ())
        provenance = {"path": f"{name}.provenance.parquet", **checksums(root / f"{name}.provenance.parquet")._asdict()}
        bin_ = sparse(root, f"{name}.bin", len(members) * tokens * 2, known)
        place = {"split": "train", "domain": "web", "index": index, "count": shards}
        files = {"bin": bin_, "idx": idx, "provenance": provenance}
        entries.append({**place, "documents": len(members), "tokens": len(members) * tokens, "files": files})
    total = {name: sum(int(e[name]) for e in entries) for name in ("documents", "tokens")}
    count = {"documents": total["documents"], "bytes": 4 * total["tokens"]}
    recipe = {
        "name": "simulated",
        "sources": [{"name": "web"}],
        "shards": {"seed": SEED, "validation": 0.0, "target_bytes": 2 * size},
    }
    manifest = {
        "kind": KIND, "name": "simulated", "lane": "web", "writer": WRITER,
        "stages": [{"name": "encode", "phase": "shards", "version": 1}], "columns": [], "fingerprint": "0" * 64,
        "dtype": "uint16", "dtype_code": 8,
        "tokenizer": {"path": "tokenizer/tokenizer.json", "vocab_size": 1000, "bos_id": None, "eos_id": None},
        "shards": entries, "totals": {**total, "bytes": count["bytes"]},
        "files": [file_of(root, RUN, seal({"kind": "simulated"})), file_of(root, "tokenizer/tokenizer.json", b"{}")],
        "funnel": [{"stage": "encode", "source": "web", "in": count, "kept": count, "dropped": {}, "dead": {}}],
        "recipe": recipe, "versions": {},
    }  # fmt: skip
    make_manifest(manifest).publish(open_store(str(root)))
    return asked, holding


def watch(root: str, found: Counter[str]) -> None:
    """Count what is opened below `root`, and what is linked into it, by what it is."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(root):
            writes = arguments[2] & (os.O_WRONLY | os.O_RDWR)
            ending = arguments[0].rpartition("/")[2].partition(".")[2]
            what = "files written" if writes else f".{ending} read" if ending in ("bin", *KINDS) else "others read"
            found[what] += 1
        elif event == "os.link" and str(arguments[1]).startswith(root):
            found["linked"] += 1

    sys.addaudithook(audit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=1000)
    parser.add_argument("--shard-mb", type=int, default=1000, help="bytes of a shard's tokens, in millions")
    parser.add_argument("--documents", type=int, default=10, help="of a shard, on average")
    parser.add_argument("--folder", type=Path, required=True, help="a new folder; what is rewritten is written here")
    args = parser.parse_args()
    old, new = args.folder / "old", args.folder / "new"
    old.mkdir(parents=True)
    began = time.perf_counter()
    asked, holding = build(old, args.shards, args.shard_mb * 10**6, args.documents)
    size = sum(path.stat().st_size for path in old.rglob("*.bin"))
    print(f"{size / 1e12:.3f} TB in {args.shards:,} shards, made in {time.perf_counter() - began:.0f} s")
    (args.folder / "hosts.txt").write_text(f"{HOST}\n")
    request = Request({HOSTS: read_list(HOSTS, str(args.folder / "hosts.txt"))})
    opened: dict[str, Counter[str]] = {"old": Counter(), "new": Counter()}
    for name, place in (("old", old), ("new", new)):
        watch(str(place), opened[name])
    began = time.perf_counter()
    manifest = TakedownRun(
        str(old), str(new), request, Options("remove"), Runner("local", workers=0, quiet=True), say=lambda _: None
    ).run()
    seconds = time.perf_counter() - began
    last = manifest.takedowns[-1]
    own = {path.name for path in new.rglob("*.bin") if path.stat().st_nlink == 1}
    print(f"asked for {asked} documents in {len(holding)} shards; {last.documents} went with {last.tokens:,} tokens")
    print(f"rewritten: {len(own)} shards; the others are links to the same files")
    for name, counts in opened.items():
        print(f"{name}: {', '.join(f'{count:,} {what}' for what, count in sorted(counts.items()))}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{seconds:.0f} s, peak memory {peak:.2f} GB")
    if len(own) != len(holding):
        sys.exit("more or fewer shards were rewritten than hold what was asked for")


if __name__ == "__main__":
    main()
