"""A small corpus made by hand, for tests of whatever reads one.

Its tokenizer is a real tokenizer.json: byte-level BPE without merges, where the id of a byte is the byte itself.
"""

import hashlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.listing import FOLDER as LISTINGS
from refinery.loader.format.manifest import (
    DTYPE_CODES,
    KIND,
    MANIFEST,
    RUN,
    SCHEMA_VERSION,
    SUFFIXES,
    WRITER,
    Column,
    IndexedWriter,
    dtype_for,
    seal,
    shard_name,
    write_provenance,
)
from refinery.loader.format.publish_manifest import make_manifest, seal_listed
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums

BOS, EOS, VOCABULARY = 256, 257, 258
FINGERPRINT = "5f" * 32
TOKENIZER = "tokenizer/tokenizer.json"
REJECTS, DEAD = "rejects/part-00000.parquet", "dead_letters/part-00000.parquet"
SEED, VALIDATION = 1, 0.25
SOURCES = {"web": "crawl", "code": "code"}  # domain -> its source
COLUMNS = (
    Column("license", "string"),
    Column("license_from", "string"),
    Column("language", "string"),
    Column("language_score", "float"),
    Column("quality", "float"),
)
SHARDS = (
    "opt-out",
    "page-license",
    "substrings",
    "lines",
    "perplexity",
    "quality",
    "labels",
    "toxicity",
    "decontaminate",
    "pii",
    "keep",
    "encode",
)
STAGES = (
    *(("clean", name) for name in ("read", "extract", "secrets", "url", "language", "heuristics")),
    *(
        ("dedup", name)
        for name in ("url-duplicates", "exact-duplicates", "near-duplicates-in-source", "near-duplicates")
    ),
    *(("shards", name) for name in SHARDS),
)
# What every manifest says of the lane that made it.
LANE: Mapping[str, Any] = {
    "lane": "web",
    "stages": [{"name": name, "phase": phase, "version": 1} for phase, name in STAGES],
    "columns": [{"name": column.name, "type": column.type} for column in COLUMNS],
    "writer": WRITER,
}
RECIPE: Mapping[str, Any] = {
    "name": "tiny",
    "shards": {"seed": SEED, "target_bytes": 1 << 20, "validation": VALIDATION},
    "sources": [{"name": "crawl", "domain": "web", "paths": ["in/*"]}, {"name": "code", "domain": "", "paths": ["c"]}],
}

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


def hash64(*parts: str | bytes | int) -> int:
    """The funnel's hash (refinery.transforms.core.document), again, so that the loader's tests need no funnel.

    The tests of verify would notice a difference: they find the factory's documents in their order and place.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(4, "little") + data)
    return int.from_bytes(digest.digest(), "big")


def fitting_ids(split: str, index: int, count: int, salt: str) -> Iterator[bytes]:
    """Ids that belong into a shard, whatever their texts, so that tests choose which text stands where."""
    for k in itertools.count():
        id_ = hashlib.blake2b(f"{salt} {k}".encode(), digest_size=16).digest()
        held_out = hash64("validation", id_) < VALIDATION * 2**64
        if held_out == (split == "validation") and hash64("order", SEED, id_) * count >> 64 == index:
            yield id_


def provenance_row(
    text: str, salt: str, offset: int, count: int, id_: bytes = b"", source: str = "crawl"
) -> dict[str, Any]:
    return {
        "id": id_ or hashlib.blake2b(f"{salt} {text}".encode(), digest_size=16).digest(),
        "url": "https://example.org/",
        "source": source,
        "origin": f"crawl.warc.gz@{offset}",
        "license": "",
        "license_from": "",
        "language": "en",
        "language_score": 0.9,
        "quality": None,
        "copies": 1,
        "sources": [source],
        "text_bytes": len(text.encode()),
        "token_offset": offset,
        "token_count": count,
        "meta": "{}",
    }


def file_entry(root: Path, path: str) -> dict[str, Any]:
    return {"path": path, **checksums(root / path)._asdict()}


def counts(documents: int, size: int = 0) -> dict[str, int]:
    return {"documents": documents, "bytes": size}


def reject_row(stage: str, reason: str, source: str = "crawl") -> dict[str, Any]:
    return {
        "stage": stage,
        "reason": reason,
        "source": source,
        "url": "",
        "origin": "in/a@7",
        "excerpt": "",
        "found": "",
    }


def dead_row(stage: str, error: str, source: str = "crawl") -> dict[str, Any]:
    return {"stage": stage, "error": error, "source": source, "origin": "in/a@9", "sha256": "00" * 32, "size": 3}


def write_records(root: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), root / name)


def funnel(entered: Mapping[str, dict[str, int]]) -> list[dict[str, Any]]:
    """One record of the crawl is dead, and two documents of it are dropped."""
    rows = []
    for stage in ("read", "language", "encode"):
        for source, kept in entered.items():
            n, lost = kept["documents"], source == "crawl"
            row: dict[str, Any] = {
                "stage": stage,
                "source": source,
                "in": kept,
                "kept": kept,
                "dropped": {},
                "dead": {},
            }
            if lost and stage == "read":
                row |= {"in": counts(n + 3), "kept": counts(n + 2), "dead": {"BadRecord": counts(1)}}
            elif lost and stage == "language":
                row |= {"in": counts(n + 2), "dropped": {"not-allowed": counts(2)}}
            rows.append(row)
    return rows


_BUILT: dict[tuple[Any, ...], dict[str, bytes]] = {}  # of TEXTS: options of `write_corpus` -> the corpus' files


def build_corpus(
    root: Path, texts: Mapping[tuple[str, str], Sequence[Sequence[str]]] = TEXTS, **options: int | str | None
) -> Path:
    """A whole corpus of `texts` under `root`; returns it. options: those of `write_corpus`.

    That of TEXTS is made once in a process, and copied: it does not depend on where it is.
    """
    if texts is not TEXTS:
        return write_corpus(root, texts, **options)  # type: ignore[arg-type]
    key = tuple(sorted(options.items()))
    if key not in _BUILT:
        with TemporaryDirectory() as folder:
            _BUILT[key] = read_files(write_corpus(Path(folder), **options))  # type: ignore[arg-type]
    write_files(root, _BUILT[key])
    return root


def read_files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """Files below `root` that are not there yet."""
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        with (root / name).open("xb") as file:
            file.write(data)


def write_corpus(
    root: Path,
    texts: Mapping[tuple[str, str], Sequence[Sequence[str]]] = TEXTS,
    *,
    bos: int | None = BOS,
    eos: int | None = EOS,
    vocab_size: int = VOCABULARY,
    fingerprint: str = FINGERPRINT,
) -> Path:
    """Write a whole corpus of `texts` under `root`, with rejects, dead letters and one phase manifest; returns it."""
    store = open_store(root)
    phases = {"clean": "c1" * 32, "dedup": "de" * 32, "shards": fingerprint}
    run = {"schema_version": SCHEMA_VERSION, "kind": "refinery-run", "name": "tiny", "fingerprint": fingerprint}
    store.create(RUN, seal({**run, "phases": phases, "recipe": RECIPE, "inputs": [], "stages": {}}))
    store.create(TOKENIZER, tokenizer_json())
    write_records(root, REJECTS, [reject_row("language", "not-allowed")])
    write_records(root, DEAD, [dead_row("read", "BadRecord")])
    store.create("work/documents/part-00000.parquet", b"documents")
    part = file_entry(root, "work/documents/part-00000.parquet") | {"path": "documents/part-00000.parquet"}
    store.create("work/clean.json", seal({"waves": [{"parts": {"documents": [part]}}]}))
    dtype = dtype_for(vocab_size)
    shards = []
    total = {"documents": 0, "tokens": 0, "bytes": 0}
    entered = {source: counts(0) for source in SOURCES.values()}
    for (split, domain), contents in texts.items():
        for index, documents in enumerate(contents):
            name = shard_name(split, domain, index, len(contents))
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            source = SOURCES[domain]
            ids = itertools.islice(fitting_ids(split, index, len(contents), name), len(documents))
            ordered = sorted(ids, key=lambda id_: hash64("order", SEED, id_))
            rows = []
            offset = 0
            with IndexedWriter(root / f"{name}.bin", dtype) as writer:
                for text, id_ in zip(documents, ordered, strict=True):
                    tokens = encode(text, bos, eos)
                    writer.add(tokens)
                    rows.append(provenance_row(text, name, offset, len(tokens), id_, source))
                    offset += len(tokens)
            write_provenance(root / f"{name}.provenance.parquet", rows, COLUMNS)
            files = {key: file_entry(root, name + suffix) for key, suffix in SUFFIXES.items()}
            files["bin"]["block_crc32c"] = block_checksums(root / f"{name}.bin")
            entry = {"split": split, "domain": domain, "index": index, "count": len(contents)}
            shards.append(entry | {"documents": len(rows), "tokens": offset, "files": files})
            total["documents"] += len(rows)
            total["tokens"] += offset
            total["bytes"] += sum(row["text_bytes"] for row in rows)
            entered[source]["documents"] += len(rows)
            entered[source]["bytes"] += sum(row["text_bytes"] for row in rows)
    manifest = {
        "kind": KIND,
        "name": "tiny",
        **LANE,
        "fingerprint": fingerprint,
        "dtype": dtype.name,
        "dtype_code": DTYPE_CODES[dtype],
        "tokenizer": {"path": TOKENIZER, "vocab_size": vocab_size, "bos_id": bos, "eos_id": eos},
        "shards": shards,
        "files": [file_entry(root, path) for path in (RUN, TOKENIZER, REJECTS, DEAD)],
        "totals": total,
        "funnel": funnel(entered),
        "recipe": RECIPE,
        "versions": {"refinery": "0"},
    }
    make_manifest(manifest).publish(store)
    return root


def replace_manifest(root: Path, payload: Mapping[str, Any]) -> None:
    """Write a manifest and its listings in place of those there, without a look at them."""
    shutil.rmtree(root / LISTINGS, ignore_errors=True)
    sealed, listings = seal_listed(payload)
    for path, data in listings.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / MANIFEST).write_bytes(sealed)


def edit_manifest(root: Path, edit: Callable[[dict[str, Any]], None] = lambda payload: None) -> None:
    """Seal the manifest again after `edit`, with the sizes and checksums that the files have now."""
    from tests.plain_manifest import manifest_of  # not above: tests/try_wheel.py imports this file as no package's

    payload = manifest_of(root)
    edit(payload)
    shards = [file for shard in payload["shards"] for file in (*shard["files"].values(), *shard.get("packed", ()))]
    for entry in [*shards, *payload["files"]]:
        if (root / entry["path"]).is_file():
            entry.update(file_entry(root, entry["path"]))
            if "block_crc32c" in entry:
                entry["block_crc32c"] = block_checksums(root / entry["path"])
    replace_manifest(root, payload)
