"""A small corpus made by hand, for tests of whatever reads one.

Its tokenizer is a real tokenizer.json: byte-level BPE without merges, where the id of a byte is the byte itself.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loader.format import (
    DTYPE_CODES,
    KIND,
    MANIFEST,
    RUN,
    SCHEMA_VERSION,
    SUFFIXES,
    IndexedWriter,
    dtype_for,
    seal,
    shard_name,
    unseal,
    write_provenance,
)
from loader.storage import checksums, open_store

BOS, EOS, VOCABULARY = 256, 257, 258
FINGERPRINT = "5f" * 32
TOKENIZER = "tokenizer/tokenizer.json"

# (split, domain) -> shards -> texts
TEXTS: Mapping[tuple[str, str], Sequence[Sequence[str]]] = {
    ("train", "web"): [["one fine day", "zwei Bären – 🐻", "x"], ["", "line\nline\n", "a" * 1000], []],
    ("train", "code"): [["int main(void) { return 0; }"]],
    ("validation", "web"): [["held out", "kept aside"]],
}


def tokenizer_json() -> bytes:
    """GPT-2's byte alphabet as vocabulary, ids 0 to 255, then <s> and </s>."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    letters = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    added = [
        {
            "id": i,
            "content": s,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, s in ((BOS, "<s>"), (EOS, "</s>"))
    ]
    level: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model: dict[str, Any] = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None}
    model |= {"end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    model |= {"vocab": {letters[b]: b for b in range(256)} | {"<s>": BOS, "</s>": EOS}, "merges": []}
    spec: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
    }
    return json.dumps(
        spec | {"pre_tokenizer": level, "post_processor": None, "decoder": level, "model": model}
    ).encode()


def encode(text: str, bos: int | None = BOS, eos: int | None = EOS) -> np.ndarray:
    body = list(text.encode())
    return np.array([i for i in (bos, *body, eos) if i is not None], np.uint16)


class ByteTokenizer:
    """What the tokenizer.json above says, in three lines."""

    vocab_size = VOCABULARY
    lossless = True

    def encode(self, text: str) -> np.ndarray:
        return encode(text, None, None).astype(np.uint32)

    def decode(self, ids: Any) -> str:
        return bytes(int(i) for i in ids if i < 256).decode("utf-8", "replace")


def provenance_row(text: str, salt: str, offset: int, count: int) -> dict[str, Any]:
    return {
        "id": hashlib.blake2b(f"{salt} {text}".encode(), digest_size=16).digest(),
        "url": "https://example.org/",
        "source": "crawl",
        "origin": f"crawl.warc.gz@{offset}",
        "language": "en",
        "language_score": 0.9,
        "quality": None,
        "copies": 1,
        "sources": ["crawl"],
        "text_bytes": len(text.encode()),
        "token_offset": offset,
        "token_count": count,
        "meta": "{}",
    }


def file_entry(root: Path, path: str) -> dict[str, Any]:
    return {"path": path, **checksums(root / path)._asdict()}


def counts(documents: int, size: int = 0) -> dict[str, int]:
    return {"documents": documents, "bytes": size}


def build_corpus(
    root: Path,
    texts: Mapping[tuple[str, str], Sequence[Sequence[str]]] = TEXTS,
    *,
    bos: int | None = BOS,
    eos: int | None = EOS,
    vocab_size: int = VOCABULARY,
    fingerprint: str = FINGERPRINT,
) -> Path:
    """Write a whole corpus of `texts` under `root`, with rejects and one phase manifest; returns `root`."""
    store = open_store(root)
    store.create(RUN, seal({"schema_version": SCHEMA_VERSION, "fingerprint": fingerprint}))
    store.create(TOKENIZER, tokenizer_json())
    store.create("rejects/part-00000.parquet", b"rejects")
    store.create("work/documents/part-00000.parquet", b"documents")
    part = file_entry(root, "work/documents/part-00000.parquet") | {"path": "documents/part-00000.parquet"}
    store.create("work/clean.json", seal({"waves": [{"parts": {"documents": [part]}}]}))
    dtype = dtype_for(vocab_size)
    shards = []
    total = {"documents": 0, "tokens": 0, "bytes": 0}
    for (split, domain), contents in texts.items():
        for index, documents in enumerate(contents):
            name = shard_name(split, domain, index, len(contents))
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            rows = []
            offset = 0
            with IndexedWriter(root / f"{name}.bin", dtype) as writer:
                for text in documents:
                    tokens = encode(text, bos, eos)
                    writer.add(tokens)
                    rows.append(provenance_row(text, name, offset, len(tokens)))
                    offset += len(tokens)
            write_provenance(root / f"{name}.provenance.parquet", rows)
            files = {key: file_entry(root, name + suffix) for key, suffix in SUFFIXES.items()}
            entry = {"split": split, "domain": domain, "index": index, "count": len(contents)}
            shards.append(entry | {"documents": len(rows), "tokens": offset, "files": files})
            total["documents"] += len(rows)
            total["tokens"] += offset
            total["bytes"] += sum(row["text_bytes"] for row in rows)
    n = total["documents"]
    stages = [
        ("read", counts(n + 3), counts(n + 2), {}, {"BadRecord": counts(1)}),
        ("language", counts(n + 2), counts(n), {"not-allowed": counts(2)}, {}),
    ]
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "name": "tiny",
        "fingerprint": fingerprint,
        "dtype": dtype.name,
        "dtype_code": DTYPE_CODES[dtype],
        "tokenizer": {"path": TOKENIZER, "vocab_size": vocab_size, "bos_id": bos, "eos_id": eos},
        "shards": shards,
        "files": [file_entry(root, path) for path in (RUN, TOKENIZER, "rejects/part-00000.parquet")],
        "totals": total,
        "funnel": [
            {"stage": stage, "source": "crawl", "in": entered, "kept": kept, "dropped": dropped, "dead": dead}
            for stage, entered, kept, dropped, dead in stages
        ],
        "recipe": {"name": "tiny"},
        "versions": {"refinery": "0"},
    }
    store.create(MANIFEST, seal(manifest))
    return root


def edit_manifest(root: Path, edit: Callable[[dict[str, Any]], None] = lambda payload: None) -> None:
    """Seal the manifest again after `edit`, with the sizes and checksums that the files have now."""
    payload = unseal((root / MANIFEST).read_bytes(), MANIFEST)
    edit(payload)
    for entry in [*(file for shard in payload["shards"] for file in shard["files"].values()), *payload["files"]]:
        if (root / entry["path"]).is_file():
            entry.update(file_entry(root, entry["path"]))
    (root / MANIFEST).write_bytes(seal(payload))
