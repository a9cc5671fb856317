"""THE CONTRACT between writers and readers of a corpus: files, names, manifest, schema version 1.

Written by the funnel, read by verify and by training; docs/format.md is the specification. This module re-exports the
public names of refinery.loader.format.indexed (tokens and their index), .provenance and .funnel; removals are in
refinery.loader.format.removals.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import google_crc32c

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import MOST, Fields
from refinery.loader.format.funnel import check_funnel, funnel_entry
from refinery.loader.format.indexed import (
    DTYPE_CODES,
    DTYPES,
    WRITTEN,
    Index,
    IndexedReader,
    IndexedWriter,
    dtype_for,
    read_index,
)
from refinery.loader.format.packed import PackedFormat, parse_format
from refinery.loader.format.provenance import ADOPTED, COLUMN_TYPES, Column, provenance_schema, write_provenance
from refinery.loader.format.takedown import Takedown, parse_takedowns
from refinery.loader.storage.store import Store

SCHEMA_VERSION = 1
KIND = "refinery-corpus"
VIEW_KIND = "refinery-view"  # a mixture of corpora, without tokens of its own: refinery.loader.format.view
WRITER = "megatron"  # the writer whose files this module describes
MANIFEST = "manifest.json"
RUN = "_run.json"
SPLITS = ("train", "validation")
SUFFIXES = {"bin": ".bin", "idx": ".idx", "provenance": ".provenance.parquet"}

_DOMAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
MAX_MANIFEST = 1 << 30  # bytes: a manifest has 5.4 for each MiB of tokens
MAX_ID = 2**31 - 1  # of a token: int32 is the largest dtype


def seal(payload: Mapping[str, Any]) -> bytes:
    """Canonical JSON of `payload` (UTF-8, sorted keys, one-space indent, trailing newline) with a digest of itself.

    The field "sha256" is the SHA-256 of the canonical bytes without that field. Raises ValueError for a payload that
    already has the field, for NaN and infinities, and for lone surrogates; TypeError for values JSON cannot represent.
    """
    if "sha256" in payload:
        raise ValueError("payload: the field 'sha256' given, seal adds it")
    return _canonical({**payload, "sha256": hashlib.sha256(_canonical(payload)).hexdigest()})


def unseal(data: bytes, what: str) -> dict[str, Any]:
    """The payload of sealed bytes. Raises FormatError, naming `what`, unless they are exactly what `seal` writes."""
    try:
        payload = json.loads(data)
        expected = payload.pop("sha256")
        found = hashlib.sha256(_canonical(payload)).hexdigest()
        if found != expected:
            raise FormatError(f"{what}: the contents have sha256 {found}, {expected!r:.80} expected: damaged or edited")
        if _canonical({**payload, "sha256": found}) != data:
            raise FormatError(f"{what}: not the canonical bytes: damaged or edited")
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


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A published file: path below the prefix, bytes, CRC-32C and SHA-256 in hexadecimal. rows: of a removals file, and
    of one of packed rows, which also has `documents` (with parts of cut ones) and `tokens` (with the BOS before these).

    block_crc32c: of a .bin and of packed rows, the CRC-32C of each MiB as refinery.loader.format.block_checksums writes
    it; "" for other files.
    """

    path: str
    size: int
    crc32c: str
    sha256: str
    rows: int | None = None
    block_crc32c: str = ""
    documents: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """Shard `index` of `count` of a domain in a split, with its files. provenance_file: None in a corpus that was
    adopted. packed: its documents as packed rows."""

    split: str
    domain: str
    index: int
    count: int
    documents: int
    tokens: int
    bin: FileEntry
    idx: FileEntry
    provenance_file: FileEntry | None
    packed: tuple[FileEntry, ...] = ()

    @property
    def files(self) -> tuple[FileEntry, ...]:
        return tuple(file for file in (self.bin, self.idx, self.provenance_file) if file is not None)

    @property
    def provenance(self) -> FileEntry:
        """Where its documents come from. Raises FormatError in a corpus that was adopted: nobody knows."""
        if self.provenance_file is None:
            raise FormatError(f"{self.bin.path}: no provenance: it is another tool's file, and its corpus was adopted")
        return self.provenance_file


@dataclass(frozen=True, slots=True)
class TokenizerEntry:
    """path: the tokenizer's file below the prefix. bos_id, eos_id: None if documents have none."""

    path: str
    vocab_size: int
    bos_id: int | None
    eos_id: int | None


@dataclass(frozen=True, slots=True)
class StageEntry:
    """A stage of the funnel: its phase ("clean", "dedup", "shards") and version."""

    name: str
    phase: str
    version: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """manifest.json: describes a whole corpus. totals: documents, tokens, and bytes (UTF-8 of the encoded texts).

    lane, stages: those that built it, in the order of the funnel. columns: the stages' columns of provenance files.
    packed: of its packed rows, if it has them. takedowns: the steps that led from the first version to this one.
    """

    name: str
    lane: str
    stages: tuple[StageEntry, ...]
    columns: tuple[Column, ...]
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
    packed: PackedFormat | None = None
    takedowns: tuple[Takedown, ...] = ()

    @property
    def all_files(self) -> Iterator[FileEntry]:
        """Every file of the corpus except the manifest."""
        for shard in self.shards:
            yield from (*shard.files, *shard.packed)
        yield from self.files

    @property
    def removals(self) -> tuple[FileEntry, ...]:
        """The removals files, in order of their ids."""
        return tuple(sorted((f for f in self.files if f.path.startswith("removals/")), key=lambda f: f.path))


class IsView(FormatError):
    """A view is where a corpus was expected."""


def parse_manifest(data: bytes, what: str = MANIFEST) -> Manifest:
    """The manifest in sealed bytes. Raises FormatError for a broken seal, another kind or version, an invalid field."""
    return _manifest(unseal(data, what), what)


def _manifest(payload: Mapping[str, Any], what: str) -> Manifest:
    if payload.get("kind") == VIEW_KIND:
        raise IsView(
            f"{what}: a view, which has no tokens or documents of its own. TokenStream, `refinery verify` and "
            "`refinery inspect` read views; for anything else name one of its corpora, which `refinery inspect` lists"
        )
    if payload.get("kind") != KIND:
        raise FormatError(f"{what}: kind {payload.get('kind')!r:.80} found, {KIND!r} expected")
    check_version(payload, what)
    top = Fields(payload, what)
    tokenizer = top.inner("tokenizer")
    lane = top.text("lane")
    shards = tuple(parse_shard(entry, lane) for entry in top.list("shards"))
    columns = tuple(_column(entry) for entry in top.list("columns"))
    if twice := sorted({c.name for i, c in enumerate(columns) if c.name in {other.name for other in columns[:i]}}):
        raise FormatError(f"{what}: columns: {twice[0]!r} found twice, once expected")
    tokens = sum(shard.tokens for shard in shards)
    if tokens >= MOST:
        raise FormatError(f"{what}: shards: {tokens} tokens in total, less than {MOST} expected")
    if top.text("writer") != WRITER:
        raise FormatError(f"{what}: writer is {top.text('writer')!r:.80}, this reader supports {WRITER!r}")
    code = top.count("dtype_code")
    allowed = DTYPES if lane == ADOPTED else WRITTEN
    if code not in allowed or top.text("dtype") != DTYPES[code].name:
        known = " or ".join(f"{DTYPES[each].name} and {each}" for each in allowed)
        raise FormatError(f"{what}: dtype is {top.text('dtype')!r:.80} and dtype_code {code}, {known} expected")
    special = TokenizerEntry(
        tokenizer.path("path"),
        tokenizer.count("vocab_size"),
        tokenizer.optional_count("bos_id", MAX_ID),
        tokenizer.optional_count("eos_id", MAX_ID),
    )
    return Manifest(
        name=top.text("name"),
        lane=lane,
        stages=tuple(StageEntry(e.text("name"), e.text("phase"), e.count("version")) for e in top.list("stages")),
        columns=columns,
        fingerprint=top.text("fingerprint"),
        dtype=top.text("dtype"),
        dtype_code=code,
        tokenizer=special,
        shards=shards,
        files=tuple(file_entry(entry) for entry in top.list("files")),
        totals={key: top.inner("totals").count(key) for key in ("documents", "tokens", "bytes")},
        funnel=tuple(funnel_entry(entry) for entry in top.list("funnel")),
        recipe=top.inner("recipe").value,
        versions=top.inner("versions").value,
        packed=parse_format(top.inner("packed"), special.vocab_size, special.bos_id) if "packed" in payload else None,
        takedowns=parse_takedowns(top),
    )


def check_version(payload: Mapping[str, Any], what: str) -> None:
    """Raise FormatError, with both versions, unless the payload has this reader's schema version."""
    version = payload.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise FormatError(
            f"{what}: schema version {version!r:.80} found, this reader supports version {SCHEMA_VERSION}"
        )


def read_manifest(store: Store) -> Manifest:
    """The manifest of the corpus at `store`. Raises FormatError if it is missing or invalid."""
    return load_manifest(store)[0]


def load_manifest(store: Store) -> tuple[Manifest, bytes]:
    """The manifest of the corpus at `store`, and its sealed bytes. Raises as `read_manifest`.

    From a remote store it is read once more if the seal is broken: the bytes may have been corrupted in transit.
    """
    data, what = _manifest_bytes(store), store.url(MANIFEST)
    try:
        payload = unseal(data, what)
    except FormatError:
        if store.local_path(MANIFEST) is not None:
            raise
        first, data = data, _manifest_bytes(store)
        try:
            payload = unseal(data, what)
        except FormatError as error:
            sums = [f"{len(each)} bytes with crc32c {google_crc32c.value(each):08x}" for each in (first, data)]
            raise FormatError(f"{error} (read twice: {sums[0]}, then {sums[1]})") from None
    return _manifest(payload, what), data


def _manifest_bytes(store: Store) -> bytes:
    near = store.local_path(MANIFEST) is not None
    try:
        data = store.read(MANIFEST) if near else store.read(MANIFEST, 0, MAX_MANIFEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(
            f"{store.root} is not a corpus: {MANIFEST} is missing; it is written last, so the run has not finished "
            f"(`refinery inspect {store.root}` says what to do next)"
        ) from None
    if len(data) > MAX_MANIFEST:
        raise FormatError(
            f"{store.url(MANIFEST)}: more than {MAX_MANIFEST} bytes found, {MAX_MANIFEST} at most expected"
        )
    return data


def _column(entry: Fields) -> Column:
    column = Column(entry.text("name"), entry.text("type"))
    if column.type not in COLUMN_TYPES:
        raise FormatError(f"{entry.where}: type is {column.type!r:.80}, {', '.join(COLUMN_TYPES)} expected")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", column.name) or column.name in provenance_schema(()).names:
        raise FormatError(f"{entry.where}: name is {column.name!r:.80}, a lower-case name of its own expected")
    return column


def file_entry(entry: Fields) -> FileEntry:
    crc32c, sha256 = entry.checksum("crc32c", 8), entry.checksum("sha256", 64)
    rows, documents, tokens = (
        entry.count(key) if key in entry.value else None for key in ("rows", "documents", "tokens")
    )
    path, size = entry.path("path"), entry.count("size")
    return FileEntry(path, size, crc32c, sha256, rows, documents=documents, tokens=tokens)


def _read_in_blocks(entry: Fields) -> FileEntry:
    """A .bin or packed rows, which are read block by block: block checksums are required."""
    file = file_entry(entry)
    if "block_crc32c" not in entry.value:
        raise FormatError(f"{entry.where}: {file.path}: block_crc32c is missing, the CRC-32C of each MiB expected")
    return replace(file, block_crc32c=entry.block_checksums("block_crc32c", file.size))


def parse_shard(entry: Fields, lane: str) -> ShardEntry:
    """A shard as a manifest of that lane lists it. Raises FormatError for a field that is missing or wrong."""
    files = entry.inner("files")
    split, domain = entry.text("split"), entry.text("domain")
    if split not in SPLITS:
        raise FormatError(f"{entry.where}: split is {split!r:.80}, {' or '.join(SPLITS)} expected")
    if not _DOMAIN.fullmatch(domain):
        raise FormatError(f"{entry.where}: domain is {domain!r:.80}, up to 64 of a-z 0-9 _ . - expected")
    return ShardEntry(
        split=split,
        domain=domain,
        index=entry.count("index"),
        count=entry.count("count"),
        documents=entry.count("documents"),
        tokens=entry.count("tokens"),
        bin=_read_in_blocks(files.inner("bin")),
        idx=file_entry(files.inner("idx")),
        provenance_file=None if lane == ADOPTED else file_entry(files.inner("provenance")),
        packed=tuple(_packed_file(file) for file in entry.list("packed")) if "packed" in entry.value else (),
    )


def _packed_file(entry: Fields) -> FileEntry:
    for key in ("rows", "documents", "tokens"):
        entry.count(key)
    return _read_in_blocks(entry)


__all__ = [
    "DTYPE_CODES",
    "KIND",
    "MANIFEST",
    "RUN",
    "SCHEMA_VERSION",
    "SPLITS",
    "SUFFIXES",
    "Column",
    "FileEntry",
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
    "load_manifest",
    "parse_manifest",
    "parse_shard",
    "provenance_schema",
    "read_index",
    "read_manifest",
    "seal",
    "shard_name",
    "unseal",
    "write_provenance",
]
