"""Corpora to mix, with hosts, qualities and copies that differ, and what a view of them is in plain Python."""

import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from refinery.loader.format.manifest import MANIFEST, unseal, write_provenance
from tests.corpus_factory import COLUMNS, build_corpus, edit_manifest, file_entry

MASK = 2**64 - 1


def mix_corpus(root: Path, seed: int, shape: Mapping[tuple[str, str], Sequence[int]]) -> Path:
    """A corpus with so many documents in each shard of (split, domain); texts, hosts and scores by chance."""
    chance = random.Random(seed)
    texts = {
        key: [
            [f"{seed}-{key[1]}-{i}-{k} " + "x" * chance.choice((0, 3, 9, 40)) for k in range(n)]
            for i, n in enumerate(counts)
        ]
        for key, counts in shape.items()
    }
    build_corpus(root, texts)
    edit_manifest(root, partial(_vary, root, chance))
    return root


def _vary(root: Path, chance: random.Random, payload: dict[str, Any]) -> None:
    """Other values in the columns of every provenance file."""
    for shard in payload["shards"]:
        path = shard["files"]["provenance"]["path"]
        rows = pq.read_table(root / path).to_pylist()
        for row in rows:
            row["url"] = f"https://host{chance.choice((0, 0, 0, 1, 1, 2, 3, 4))}.org/{chance.random()}"
            row["quality"] = chance.choice((None, 0.1, 0.3, 0.5, 0.7, 0.9))
            row["copies"] = chance.choice((1, 1, 1, 2, 5, 20))
            row["language"] = chance.choice(("en", "en", "de"))
        (root / path).unlink()
        write_provenance(root / path, rows, COLUMNS)
        shard["files"]["provenance"] = file_entry(root, path)


def write_recipe(path: Path, corpora: Mapping[str, Path], domains: Sequence[Mapping[str, Any]], **more: Any) -> Path:
    data = {"name": "a view", "corpora": {k: str(v) for k, v in corpora.items()}, "domains": list(domains), **more}
    path.write_text(yaml.safe_dump(data))
    return path


def manifest_of(root: Path) -> dict[str, Any]:
    return unseal((root / MANIFEST).read_bytes(), "manifest")
