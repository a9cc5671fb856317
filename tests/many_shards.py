"""A corpus of very many small shards, made by hand, documents where their ids say. Not all need be written."""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.manifest import SUFFIXES, IndexedWriter, shard_name, write_provenance
from tests.corpus_factory import COLUMNS, build_corpus, edit_manifest, encode, file_entry, hash64, provenance_row

SEED, VALIDATION = 1, 0.25  # of corpus_factory's recipe


def text_of(number: int) -> str:
    """The text of document `number`."""
    return f"document {number}: " + "words of a small document. " * 8


def id_of(number: int) -> bytes:
    """The id of document `number`."""
    return hashlib.blake2b(f"document {number}".encode(), digest_size=16).digest()


def build_many(root: Path, shards: int, documents: int, write: Callable[[int], bool] = lambda shard: True) -> Path:
    """A corpus of so many shards of train/web, and those of `documents` documents that belong to train. write: whether
    a shard's files are written; the manifest lists all of them."""
    build_corpus(root, {})
    placed: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number in range(documents):
        id_ = id_of(number)
        if hash64("validation", id_) >= VALIDATION * 2**64:
            order = hash64("order", SEED, id_)
            placed[order * shards >> 64].append((order, number))
    entries = [entry(root, index, shards, sorted(placed[index]), write(index)) for index in range(shards)]

    def edit(manifest: dict[str, Any]) -> None:
        manifest["shards"] = entries
        for name in ("documents", "tokens"):
            manifest["totals"][name] = sum(each[name] for each in entries)

    edit_manifest(root, edit)
    return root


def entry(root: Path, index: int, count: int, placed: list[tuple[int, int]], written: bool) -> dict[str, Any]:
    """A shard of the manifest, and its files."""
    name = shard_name("train", "web", index, count)
    texts = [text_of(number) for _, number in placed]
    tokens = sum(len(encode(text)) for text in texts)
    found = {"split": "train", "domain": "web", "index": index, "count": count, "documents": len(texts)}
    if not written:
        nothing = {"size": 0, "crc32c": "0" * 8, "sha256": "0" * 64}
        files: dict[str, Any] = {key: {"path": name + suffix, **nothing} for key, suffix in SUFFIXES.items()}
        files["bin"]["block_crc32c"] = ""
        return found | {"tokens": tokens, "files": files}
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    rows, offset = [], 0
    with IndexedWriter(root / f"{name}.bin", "uint16") as writer:
        for (_, number), text in zip(placed, texts, strict=True):
            ids = encode(text)
            writer.add(ids)
            row = provenance_row(text, name, offset, len(ids), id_of(number))
            rows.append(row | {"url": f"https://e.org/{number}", "origin": f"in/a@{number}"})
            offset += len(ids)
    write_provenance(root / f"{name}.provenance.parquet", rows, COLUMNS)
    files = {key: file_entry(root, name + suffix) for key, suffix in SUFFIXES.items()}
    files["bin"]["block_crc32c"] = block_checksums(root / f"{name}.bin")
    return found | {"tokens": tokens, "files": files}
