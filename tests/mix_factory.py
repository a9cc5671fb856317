"""Corpora to mix, with hosts, qualities and copies that differ, and what a view of them is in plain Python."""

import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import yaml

from refinery.loader.format.manifest import write_provenance
from tests.corpus_factory import (
    BOS,
    COLUMNS,
    TOKENIZER,
    VOCABULARY,
    build_corpus,
    edit_manifest,
    file_entry,
    tokenizer_json,
)
from tests.loader.numbered import build_numbered
from tests.plain_manifest import manifest_of


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


def segments_of(view: Path) -> Iterator[tuple[str, str, Path, str, list[tuple[int, int]]]]:
    """(split, domain, corpus, .bin, runs) of each segment of a view's files, by the specification and nothing else."""
    payload = manifest_of(view)
    data = (view / "selection.bin").read_bytes()
    magic, version, per_block, segments, blocks, _ = struct.unpack_from("<8sIIQQQ", data)
    assert (magic, version, per_block) == (b"RFSELECT", 1, 64)
    tables = 64 + 40 * segments
    runs_at = tables + 24 * blocks
    block = 0
    for i in range(segments):
        split, domain, _, corpus, number, runs, _, tokens = struct.unpack_from("<HHIIIQQQ", data, 64 + 40 * i)
        root = (view / payload["corpora"][corpus]["location"]).resolve()
        shard = manifest_of(root)["shards"][number]
        found = [(0, tokens)] if not runs else []
        while runs:
            here = min(runs, 64)
            place = struct.unpack_from("<q", data, tables + 16 * blocks + 8 * block)[0]
            start = struct.unpack_from("<q", data, tables + 8 * blocks + 8 * block)[0]
            lengths = _bits(data, runs_at + (place >> 16), place & 255, here)
            gaps = _bits(data, runs_at + (place >> 16) + -(-here * (place & 255) // 8), place >> 8 & 255, here - 1)
            for length, gap in zip(lengths, [*gaps, 0], strict=True):
                found.append((start, start + length))
                start += length + gap
            runs, block = runs - here, block + 1
        name = payload["domains"][domain]["name"]
        yield ("train", "validation")[split], name, root, shard["files"]["bin"]["path"], found


def _bits(data: bytes, at: int, width: int, count: int) -> list[int]:
    number = int.from_bytes(data[at : at + -(-width * count // 8)], "little")
    return [number >> width * i & ((1 << width) - 1) for i in range(count)]


def documents_of(view: Path, split: str) -> Iterator[tuple[str, str, list[int]]]:
    """(domain, origin, tokens) of each document of a view in the order of its own tokens; origin: corpus, .bin, row."""
    for its, domain, root, path, runs in segments_of(view):
        if its == split:
            tokens = np.fromfile(root / path, "<u2")
            table = pq.read_table(
                (root / path).with_suffix(".provenance.parquet"), columns=["token_offset", "token_count"]
            )
            rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            for begin, end in runs:
                for row, (start, count) in enumerate(rows):
                    if begin <= start < end:
                        yield domain, f"{root.name}/{path}/{row}", tokens[start : start + count].tolist()


def write_out(view: Path, split: str, root: Path) -> Path:
    """The train split of a corpus that has the documents of a view's split in the view's order, a shard per domain."""
    found: dict[str, list[list[int]]] = {domain["name"]: [] for domain in manifest_of(view)["domains"]}
    for domain, _, tokens in documents_of(view, split):
        found[domain].append(tokens)
    build_numbered(root, {name: [[len(d) for d in documents]] for name, documents in found.items()}, VOCABULARY)
    for name, documents in found.items():
        flat = [token for tokens in documents for token in tokens]
        np.array(flat, "<u2").tofile(root / f"train/{name}/shard-00000-of-00001.bin")
    (root / TOKENIZER).parent.mkdir()
    (root / TOKENIZER).write_bytes(tokenizer_json())

    def with_tokenizer(payload: dict[str, Any]) -> None:
        payload["tokenizer"] |= {"path": TOKENIZER, "bos_id": BOS}
        payload["files"] = [file_entry(root, TOKENIZER)]

    edit_manifest(root, with_tokenizer)
    return root
