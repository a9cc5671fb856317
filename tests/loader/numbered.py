"""A corpus whose token ids are their positions: token t of the split, counted through all shards, has the id t.

So delivered tokens show where they come from, and an epoch can be checked without the loader's own arithmetic. Only
tokens, indexes and a manifest are written.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.manifest import (
    DTYPE_CODES,
    KIND,
    IndexedWriter,
    dtype_for,
    shard_name,
)
from tests.corpus_factory import LANE, file_entry, replace_manifest

# domain -> shards -> lengths of documents
Lengths = Mapping[str, Sequence[Sequence[int]]]


def build_numbered(root: Path, lengths: Lengths, vocab_size: int = 60_000, name: str = "numbered") -> Path:
    """Write the corpus, a train split of these documents, under `root`; returns it. EOS is vocab_size - 1."""
    dtype = dtype_for(vocab_size)
    shards: list[dict[str, Any]] = []
    first = 0
    for domain, contents in lengths.items():
        for index, documents in enumerate(contents):
            path = shard_name("train", domain, index, len(contents))
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            begin = first
            with IndexedWriter(root / f"{path}.bin", dtype) as writer:
                for length in documents:
                    writer.add(np.arange(first, first + length))
                    first += length
            files = {kind: file_entry(root, f"{path}.{kind}") for kind in ("bin", "idx")}
            files["bin"]["block_crc32c"] = block_checksums(root / f"{path}.bin")
            files["provenance"] = files["idx"] | {"path": f"{path}.provenance.parquet"}
            entry = {"split": "train", "domain": domain, "index": index, "count": len(contents), "files": files}
            shards.append(entry | {"documents": len(documents), "tokens": first - begin})
    manifest = {
        "kind": KIND,
        "name": name,
        **LANE,
        "fingerprint": "",
        "dtype": dtype.name,
        "dtype_code": DTYPE_CODES[dtype],
        "tokenizer": {"path": "tokenizer/none", "vocab_size": vocab_size, "bos_id": None, "eos_id": vocab_size - 1},
        "shards": shards,
        "files": [],
        "totals": {"documents": 0, "tokens": first, "bytes": 0},
        "funnel": [],
        "recipe": {},
        "versions": {},
    }
    replace_manifest(root, manifest)
    return root
