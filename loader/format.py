"""THE CONTRACT between what writes a corpus and what reads it: files, names, manifest, schema version 1.

Written by the funnel, read by verify and by training. docs/format.md describes the same for people. Tokens and their
index are in loader/indexed.py and belong to this module's names; what deduplication removed is in loader/removals.py.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from loader.indexed import DTYPE_CODES, FormatError, Index, IndexedReader, IndexedWriter, dtype_for, read_index
from loader.storage import Store, check_name

SCHEMA_VERSION = 1
KIND = "refinery-corpus"
MANIFEST = "manifest.json"
RUN = "_run.json"
SPLITS = ("train", "validation")
SUFFIXES = {"bin": ".bin", "idx": ".idx", "provenance": ".provenance.parquet"}

_DOMAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


def seal(payload: Mapping[str, Any]) -> bytes:
    """Canonical JSON of `payload` (UTF-8, sorted keys, one-space indent, trailing newline) with its own digest.

    The field "sha256" holds the SHA-256 of the canonical bytes without that field. Raises ValueError for a payload that
    has the field already, for NaN and infinities, and for lone surrogates; TypeError for what JSON cannot say.
    """
    if "sha256" in payload:
        raise ValueError("payload: the field 'sha256' given, seal adds it")
    return _canonical({**payload, "sha256": hashlib.sha256(_canonical(payload)).hexdigest()})


def unseal(data: bytes, what: str) -> dict[str, Any]:
    """The payload of sealed bytes. Raises FormatError, naming `what`, unless they are exactly what `seal` makes."""
    try:
        payload = json.loads(data)
        digest = payload.pop("sha256")
        if not isinstance(digest, str) or seal(payload) != data:
            raise FormatError(f"{what}: the contents do not match their sha256 {digest!r}: damaged or edited")
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{what}: not a sealed JSON object ({type(error).__name__}: {error})") from None
    return dict(payload)


def _canonical(payload: Mapping[str, Any]) -> bytes:
    return (json.dumps(payload, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def check_domain(domain: str) -> str:
    """`domain` itself if it is 1 to 64 of a-z 0-9 _ . - and starts with a letter or digit; else ValueError."""
    if not _DOMAIN.fullmatch(domain):
        raise ValueError(f"domain: {domain!r} given, up to 64 of a-z 0-9 _ . - after a letter or digit are allowed")
    return domain


def shard_name(split: str, domain: str, index: int, count: int) -> str:
    """Name of shard `index` of `count`, without suffix.

    >>> shard_name("train", "web", 0, 16)
    'train/web/shard-00000-of-00016'
    """
    if split not in SPLITS:
        raise ValueError(f"split: {split!r} given, {' or '.join(SPLITS)} is allowed")
    if not 0 <= index < count:
        raise ValueError(f"index: {index} of {count} given, 0 to count - 1 is allowed")
    return f"{split}/{check_domain(domain)}/shard-{index:05d}-of-{count:05d}"


# Row i describes document i of the shard of the same name.
PROVENANCE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),  # input file @ record offset
        pa.field("language", pa.string(), nullable=False),  # "" where no stage told
        pa.field("language_score", pa.float32()),
        pa.field("quality", pa.float32()),
        pa.field("copies", pa.uint32(), nullable=False),
        pa.field("sources", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("text_bytes", pa.int64(), nullable=False),  # UTF-8 size of the text that was encoded
        pa.field("token_offset", pa.int64(), nullable=False),  # of the first token, in tokens from the shard's start
        pa.field("token_count", pa.int64(), nullable=False),  # with BOS and EOS
        pa.field("meta", pa.string(), nullable=False),  # a JSON object with the rest
    ]
)
ROW_GROUP = 65_536
PARQUET: dict[str, Any] = {
    "write_page_checksum": True,
    "compression": "zstd",
    "compression_level": 3,
    "version": "2.6",
    "use_dictionary": ["source", "language"],
}


def write_provenance(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows (every field of PROVENANCE_SCHEMA, no other) as Parquet: the same rows make the same bytes.

    Raises ValueError for a row with other fields; pyarrow.ArrowException, TypeError or OverflowError for a value that
    does not fit its column, null included. Memory: one row group of 65,536 rows.
    """
    names = set(PROVENANCE_SCHEMA.names)
    with pq.ParquetWriter(path, PROVENANCE_SCHEMA, **PARQUET) as writer:
        remaining = iter(rows)
        while group := list(islice(remaining, ROW_GROUP)):
            for row in group:
                if row.keys() != names:
                    raise ValueError(f"provenance: fields {sorted(row)} given, exactly {sorted(names)} are allowed")
            writer.write_table(pa.Table.from_pylist(group, schema=PROVENANCE_SCHEMA), row_group_size=ROW_GROUP)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A published file: name below the prefix, bytes, CRC-32C and SHA-256 in hexadecimal; rows of a removals file.

    block_crc32c: of a .bin, the CRC-32C of each MiB as loader.block_checksums writes it; "" in corpora from before it.
    """

    path: str
    size: int
    crc32c: str
    sha256: str
    rows: int | None = None
    block_crc32c: str = ""


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """Shard `index` of `count` of a domain in a split, and its three files."""

    split: str
    domain: str
    index: int
    count: int
    documents: int
    tokens: int
    bin: FileEntry
    idx: FileEntry
    provenance: FileEntry

    @property
    def files(self) -> tuple[FileEntry, FileEntry, FileEntry]:
        return self.bin, self.idx, self.provenance


@dataclass(frozen=True, slots=True)
class TokenizerEntry:
    """path: the tokenizer's file below the prefix. bos_id, eos_id: None where documents carry none."""

    path: str
    vocab_size: int
    bos_id: int | None
    eos_id: int | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """manifest.json: all of a corpus. `totals`: documents, tokens, and bytes (UTF-8 of the texts that were encoded)."""

    name: str
    fingerprint: str
    dtype: str
    dtype_code: int
    tokenizer: TokenizerEntry
    shards: tuple[ShardEntry, ...]
    files: tuple[FileEntry, ...]
    totals: Mapping[str, int]
    funnel: tuple[Mapping[str, Any], ...]
    recipe: Mapping[str, Any]
    versions: Mapping[str, Any]

    @property
    def all_files(self) -> Iterator[FileEntry]:
        """Every file of the corpus but the manifest itself."""
        for shard in self.shards:
            yield from shard.files
        yield from self.files

    @property
    def removals(self) -> tuple[FileEntry, ...]:
        """The removals files, in order of the ids that they hold."""
        return tuple(sorted((f for f in self.files if f.path.startswith("removals/")), key=lambda f: f.path))


def parse_manifest(data: bytes, what: str = MANIFEST) -> Manifest:
    """The manifest in sealed bytes. Raises FormatError for a broken seal, another kind or version, a wrong field."""
    payload = unseal(data, what)
    if payload.get("kind") != KIND:
        raise FormatError(f"{what}: kind {payload.get('kind')!r} found, {KIND!r} expected")
    check_version(payload, what)
    top = _Fields(payload, what)
    tokenizer = top.inner("tokenizer")
    return Manifest(
        name=top.text("name"),
        fingerprint=top.text("fingerprint"),
        dtype=top.text("dtype"),
        dtype_code=top.count("dtype_code"),
        tokenizer=TokenizerEntry(
            tokenizer.path("path"),
            tokenizer.count("vocab_size"),
            tokenizer.optional_count("bos_id"),
            tokenizer.optional_count("eos_id"),
        ),
        shards=tuple(_shard(entry) for entry in top.list("shards")),
        files=tuple(_file(entry) for entry in top.list("files")),
        totals={key: top.inner("totals").count(key) for key in ("documents", "tokens", "bytes")},
        funnel=tuple(_funnel_entry(entry) for entry in top.list("funnel")),
        recipe=top.inner("recipe").value,
        versions=top.inner("versions").value,
    )


def check_version(payload: Mapping[str, Any], what: str) -> None:
    """Raise FormatError, with both numbers, unless the payload has this reader's schema version."""
    version = payload.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise FormatError(f"{what}: schema version {version!r} found, this reader knows version {SCHEMA_VERSION}")


def read_manifest(store: Store) -> Manifest:
    """The manifest of the corpus at `store`. Raises FormatError where there is none or none that can be trusted."""
    return parse_manifest(read_manifest_bytes(store), store.url(MANIFEST))


def read_manifest_bytes(store: Store) -> bytes:
    """The sealed bytes of the manifest, unread. Raises FormatError where there are none."""
    try:
        return store.read(MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(
            f"{store.root} is not a corpus: {MANIFEST} is missing; it is written last, so the run has not finished"
        ) from None


class _Fields:
    """Typed access to a JSON object; every error says where and what."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"{where}: {value!r:.80} found, an object expected")
        self.value = value
        self.where = where

    def _get(self, key: str, kind: type, expected: str) -> Any:
        value = self.value.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise FormatError(f"{self.where}: {key} is {value!r:.80}, {expected} expected")
        return value

    def text(self, key: str) -> str:
        return str(self._get(key, str, "a string"))

    def count(self, key: str) -> int:
        value = int(self._get(key, int, "an integer"))
        if not 0 <= value < 2**63:
            raise FormatError(f"{self.where}: {key} is {value}, 0 or more expected")
        return value

    def optional_count(self, key: str) -> int | None:
        return None if key in self.value and self.value[key] is None else self.count(key)

    def path(self, key: str) -> str:
        try:
            return check_name(self.text(key))
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(f"{self.where}: {key}: {error}") from None

    def inner(self, key: str) -> "_Fields":
        return _Fields(self._get(key, dict, "an object"), f"{self.where}: {key}")

    def list(self, key: str) -> "Iterator[_Fields]":
        values = self._get(key, list, "a list")
        return (_Fields(value, f"{self.where}: {key}[{i}]") for i, value in enumerate(values))


def _file(entry: _Fields) -> FileEntry:
    rows = entry.count("rows") if "rows" in entry.value else None
    blocks = entry.text("block_crc32c") if "block_crc32c" in entry.value else ""
    return FileEntry(entry.path("path"), entry.count("size"), entry.text("crc32c"), entry.text("sha256"), rows, blocks)


def _shard(entry: _Fields) -> ShardEntry:
    files = entry.inner("files")
    return ShardEntry(
        split=entry.text("split"),
        domain=entry.text("domain"),
        index=entry.count("index"),
        count=entry.count("count"),
        documents=entry.count("documents"),
        tokens=entry.count("tokens"),
        bin=_file(files.inner("bin")),
        idx=_file(files.inner("idx")),
        provenance=_file(files.inner("provenance")),
    )


def _funnel_entry(entry: _Fields) -> dict[str, Any]:
    outcomes = [entry.inner("in"), entry.inner("kept")]
    for group in (entry.inner("dropped"), entry.inner("dead")):
        outcomes += [group.inner(reason) for reason in group.value]
    for outcome in outcomes:
        outcome.count("documents")
        outcome.count("bytes")
    entry.text("stage")
    entry.text("source")
    return entry.value


def check_funnel(funnel: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about documents that got lost or came from nowhere; empty when every count reconciles.

    Per stage and source: in = kept + sum(dropped) + sum(dead). Per source: what a stage kept enters that source's next
    stage, and only the last stage of the funnel may keep documents that enter none. Stages are ordered by their first
    appearance; a stage is absent for a source that never reached it.
    """
    problems = []
    order: dict[str, int] = {}
    by_source: dict[str, dict[str, Mapping[str, Any]]] = {}
    for entry in funnel:
        stage, source = entry["stage"], entry["source"]
        order.setdefault(stage, len(order))
        if stage in by_source.setdefault(source, {}):
            problems.append(f"stage {stage!r}, source {source!r}: listed twice")
            continue
        by_source[source][stage] = entry
        dropped, dead = (sum(outcome["documents"] for outcome in entry[key].values()) for key in ("dropped", "dead"))
        entered, kept = entry["in"]["documents"], entry["kept"]["documents"]
        if entered != kept + dropped + dead:
            problems.append(
                f"stage {stage!r}, source {source!r}: {entered} documents entered, "
                f"but {kept} kept + {dropped} dropped + {dead} dead = {kept + dropped + dead}"
            )
    for source, stages in by_source.items():
        path = sorted(stages, key=order.__getitem__)
        for before, after in pairwise(path):
            kept, entered = stages[before]["kept"]["documents"], stages[after]["in"]["documents"]
            if kept != entered:
                problems.append(f"source {source!r}: {before!r} kept {kept} documents, {entered} entered {after!r}")
        kept = stages[path[-1]]["kept"]["documents"]
        if kept and order[path[-1]] != len(order) - 1:
            problems.append(f"source {source!r}: {path[-1]!r} kept {kept} documents, which entered no later stage")
    return problems


__all__ = [
    "DTYPE_CODES",
    "KIND",
    "MANIFEST",
    "PROVENANCE_SCHEMA",
    "RUN",
    "SCHEMA_VERSION",
    "SPLITS",
    "SUFFIXES",
    "FileEntry",
    "FormatError",
    "Index",
    "IndexedReader",
    "IndexedWriter",
    "Manifest",
    "ShardEntry",
    "TokenizerEntry",
    "check_domain",
    "check_funnel",
    "check_version",
    "dtype_for",
    "parse_manifest",
    "read_index",
    "read_manifest",
    "read_manifest_bytes",
    "seal",
    "shard_name",
    "unseal",
    "write_provenance",
]
