"""Packed rows as batches, beside the same corpus' tokens: M tokens (places) per CPU second of the process, by epoch.

    python -m benchmarks.packed_rows PREFIX [--epochs 5] [--batch 8]

PREFIX is a finished corpus with packed rows. The first epoch of packed rows decodes and checks Parquet; later ones read
decoded row groups from memory, as far as they fit, or, "on disk", from files that are mapped, whatever their size. "new
process": another stream that finds these files. "all arrays": with loss_mask, position_ids, doc_ids and cu_seqlens;
tokens then also have no loss across documents, as packed rows always have.
"""

import argparse
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.signatures import describe_run
from refinery.loader import DecodedParams, PackedStream, TokenStream
from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store

ARRAYS = {"loss_mask": True, "position_ids": True, "doc_ids": True, "cu_seqlens": True}


def speeds(kind: type[TokenStream], prefix: str, length: int, epochs: int, batch: int, **options: Any) -> list[float]:
    """M tokens per CPU second of each epoch."""
    found = []
    with closing(kind(prefix, length, batch_size=batch, **options)) as stream:
        steps = -(-sum(shard["tokens"] for shard in stream.receipt()["shards"]) // (length * batch))
        for _ in range(epochs):
            start = time.process_time()
            for _ in range(steps):
                next(stream)
            found.append(steps * batch * length / (time.process_time() - start) / 1e6)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()
    packed = read_manifest(open_store(args.prefix)).packed
    if packed is None:
        parser.error(f"{args.prefix} has no packed rows")
    print(describe_run())
    print("| | first epoch | later epochs |\n| --- | --- | --- |")
    with TemporaryDirectory() as folder:
        on_disk = {"decoded": DecodedParams(Path(folder), memory_bytes=0)}
        sides: dict[str, tuple[type[TokenStream], dict[str, Any]]] = {
            "packed rows": (PackedStream, {}),
            "packed rows, all arrays": (PackedStream, ARRAYS),
            "packed rows, on disk": (PackedStream, on_disk),
            "packed rows, on disk, new process": (PackedStream, on_disk),
            "packed rows, on disk, all arrays": (PackedStream, {**ARRAYS, **on_disk}),
            "tokens": (TokenStream, {}),
            "tokens, all arrays": (TokenStream, {**ARRAYS, "ignore_cross_document": True}),
        }
        for name, (kind, options) in sides.items():
            first, *later = speeds(kind, args.prefix, packed.length, args.epochs, args.batch, **options)
            print(f"| {name} | {first:.0f} | {' '.join(f'{value:.0f}' for value in later)} |")


if __name__ == "__main__":
    main()
