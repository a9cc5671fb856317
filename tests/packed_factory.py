"""Packed rows for a corpus made by hand (tests/corpus_factory.py), as the funnel writes them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.packed import describe_format
from refinery.loader.format.removals import column_ids
from refinery.loader.storage.open_store import open_store
from refinery.transforms.write.packing.build_rows import PackedDocuments
from refinery.transforms.write.packing.write_packed import PackedParams, packed_format, publish_packed
from tests.corpus_factory import edit_manifest


def add_packed_rows(root: Path, length: int) -> Path:
    """Publish the documents of every shard as packed rows, and seal the manifest again."""
    store = open_store(root)
    manifest = read_manifest(store)
    special = manifest.tokenizer
    layout = packed_format(PackedParams(length=length), special.vocab_size, special.bos_id, special.eos_id)
    packed = {}
    for shard in manifest.shards:
        table = pq.read_table(root / shard.provenance.path)
        tokens = np.fromfile(root / shard.bin.path, manifest.dtype)
        ids = pa.array(table["id"].to_pylist(), pa.binary(16))
        lengths = table["token_count"].to_numpy()
        documents = PackedDocuments(tokens, lengths, ids, pa.array(table["source"].to_pylist(), pa.string()))
        orders = np.sort(column_ids(ids)[:, :8].copy().view(np.uint64).reshape(-1))
        place = (shard.split, shard.domain, shard.index, shard.count)
        packed[shard.bin.path] = list(publish_packed(store, place, documents, orders, layout))

    def edit(payload: dict[str, Any]) -> None:
        payload["packed"] = describe_format(layout)
        for entry in payload["shards"]:
            entry["packed"] = packed[entry["files"]["bin"]["path"]]

    edit_manifest(root, edit)
    return root


def rewrite_packed(root: Path, path: str, edit: Any, **options: Any) -> None:
    """Write a file of packed rows anew, as `edit` changes its table; the manifest keeps its counts."""
    table = edit(pq.read_table(root / path))
    pq.write_table(table, root / path, row_group_size=options.pop("row_group_size", 1024), **options)
    edit_manifest(root)
