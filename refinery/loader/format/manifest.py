"""THE CONTRACT between writers and readers of a corpus: files, names, manifest, schema version 2.

Written by the funnel, read by verify and by training; docs/format.md is the specification. This module re-exports the
public names of refinery.loader.format.sealed, .entries, .indexed (tokens and their index), .provenance and .funnel;
removals are in refinery.loader.format.removals.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import google_crc32c
import pyarrow as pa

from refinery.loader.errors import FormatError, NoTokens
from refinery.loader.format.entries import (
    SPLITS,
    FileEntry,
    ShardEntry,
    check_domain,
    file_entry,
    parse_shard,
    shard_name,
)
from refinery.loader.format.fields import MOST, Fields
from refinery.loader.format.funnel import check_funnel, funnel_entry
from refinery.loader.format.indexed import (
    DTYPE_CODES,
    Index,
    IndexedReader,
    IndexedWriter,
    dtype_for,
    read_index,
)
from refinery.loader.format.kept_columns import KeptColumn, parse_kept_columns
from refinery.loader.format.listed import parse_listings
from refinery.loader.format.packed import PackedFormat, parse_format
from refinery.loader.format.provenance import COLUMN_TYPES, TEXT_COLUMN, Column, provenance_schema, write_provenance
from refinery.loader.format.sealed import seal, unseal
from refinery.loader.format.shard_list import HeldListings, Listings, Shards, StoredListings, as_shards
from refinery.loader.format.takedown import Takedown, parse_takedowns
from refinery.loader.format.written import (
    MAX_ID,
    OF_TOKENS,
    SECTIONS,
    WRITER,
    TokenFacts,
    TokenizerEntry,
    WrittenFiles,
    parse_written,
)
from refinery.loader.storage.store import Store

KEPT = "kept_fields"  # section with the columns for fields of records
SCHEMA_VERSION = 1  # of views, runs, exports and the like
LISTED, INLINE = 2, 1  # versions of a corpus' manifest: its shards and files in listings; in manifest.json itself
NO_LISTINGS = HeldListings({})
KIND = "refinery-corpus"
VIEW_KIND = "refinery-view"  # a mixture of corpora, without tokens of its own: refinery.loader.format.view
MANIFEST = "manifest.json"
RUN = "_run.json"
SUFFIXES = dict(OF_TOKENS.endings)

MAX_MANIFEST = 1 << 30  # bytes: one of version 1 has 5.4 for each MiB of tokens


@dataclass(frozen=True, slots=True)
class StageEntry:
    """A stage of the funnel: its phase ("clean", "dedup", "shards") and version."""

    name: str
    phase: str
    version: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """manifest.json: describes a whole corpus. totals: documents, tokens of a corpus of tokens, and bytes (UTF-8 of its
    texts). written, token_facts: what its writer states of its files and, in a corpus of tokens, of these.

    lane, stages: those that built it, in the order of the funnel. columns: the stages' columns of provenance files.
    shards, files: what it lists, read when it is first needed; files: those that no shard has. listings: the files that
    say so, none in version 1. packed: of its packed rows, if it has them. takedowns: the steps that led from the first
    version to this one. kept: columns for fields of records, of a corpus of texts. further: sections that this version
    does not know, such as where the corpus was derived from.
    """

    name: str
    lane: str
    stages: tuple[StageEntry, ...]
    columns: tuple[Column, ...]
    fingerprint: str
    written: WrittenFiles
    token_facts: TokenFacts | None
    shards: Sequence[ShardEntry]
    files: Sequence[FileEntry]
    totals: Mapping[str, int]
    funnel: tuple[Mapping[str, Any], ...]
    recipe: Mapping[str, Any]
    versions: Mapping[str, Any]
    packed: PackedFormat | None = None
    takedowns: tuple[Takedown, ...] = ()
    listings: tuple[FileEntry, ...] = ()
    kept: tuple[KeptColumn, ...] = ()
    further: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_tokens(self) -> bool:
        """Whether its shards hold tokens; else texts."""
        return self.written.has_tokens

    @property
    def row_schema(self) -> pa.Schema:
        """The columns of its documents, which are those of its provenance without their texts."""
        return provenance_schema(self.columns, self.has_tokens, kept=self.kept)

    @property
    def provenance_schema(self) -> pa.Schema:
        """The columns of its provenance files, with `text` where the texts are in them."""
        return provenance_schema(self.columns, self.has_tokens, self.written.has_text_column, self.kept)

    @property
    def tokens(self) -> TokenFacts:
        """What its writer states of tokens. Raises NoTokens for a corpus of texts, as what is part of it here."""
        if self.token_facts is None:
            raise NoTokens(f"{MANIFEST} of {self.name!r:.100}")
        return self.token_facts

    @property
    def dtype(self) -> str:
        return self.tokens.dtype

    @property
    def dtype_code(self) -> int:
        return self.tokens.dtype_code

    @property
    def tokenizer(self) -> TokenizerEntry:
        return self.tokens.tokenizer

    def load(self) -> None:
        """Read every listing now, and raise FormatError for one that is missing or invalid."""
        if isinstance(self.shards, Shards):
            self.shards.load()
        list(self.files)

    @property
    def all_files(self) -> Iterator[FileEntry]:
        """Every file of the corpus except the manifest."""
        for shard in self.shards:
            yield from (*shard.files, *shard.packed)
        yield from self.files
        yield from self.listings

    @property
    def removals(self) -> tuple[FileEntry, ...]:
        """The removals files, in order of their ids."""
        return tuple(sorted((f for f in self.files if f.path.startswith("removals/")), key=lambda f: f.path))


# Sections of manifest.json, of either version.
OTHERS = {"schema_version", "kind", "domains", KEPT, *SECTIONS}  # than fields of `Manifest`
KNOWN = {each.name for each in fields(Manifest)} - {"further", "kept"} | OTHERS


class IsView(FormatError):
    """A view is where a corpus was expected."""


def parse_manifest(data: bytes, what: str = MANIFEST, listings: Listings = NO_LISTINGS) -> Manifest:
    """The manifest in sealed bytes. Raises FormatError for a broken seal, another kind or version, an invalid field;
    and where shards and files are first used, for a listing that is missing or invalid."""
    return _manifest(unseal(data, what), what, listings)


def _manifest(payload: Mapping[str, Any], what: str, source: Listings) -> Manifest:
    if payload.get("kind") == VIEW_KIND:
        raise IsView(
            f"{what}: a view, which has no tokens or documents of its own. TokenStream, `refinery verify` and "
            "`refinery inspect` read views; for anything else name one of its corpora, which `refinery inspect` lists"
        )
    if payload.get("kind") != KIND:
        raise FormatError(f"{what}: kind {payload.get('kind')!r:.80} found, {KIND!r} expected")
    check_version(payload, what, (INLINE, LISTED))
    top = Fields(payload, what)
    lane = top.text("lane")
    written, tokens_stated = parse_written(top, lane)
    shards: Shards
    files: Sequence[FileEntry]
    listings: tuple[FileEntry, ...]
    if payload["schema_version"] == LISTED:
        shards, files, listings = parse_listings(top, written, source)
    elif tokens_stated is None:
        raise FormatError(f"{what}: schema version {INLINE} found, {LISTED} expected of a corpus of texts")
    else:
        shards = as_shards([parse_shard(entry, lane) for entry in top.list("shards")])
        files, listings = tuple(file_entry(entry) for entry in top.list("files")), ()
    columns = tuple(_column(entry) for entry in top.list("columns"))
    if twice := sorted({c.name for i, c in enumerate(columns) if c.name in {other.name for other in columns[:i]}}):
        raise FormatError(f"{what}: columns: {twice[0]!r} found twice, once expected")
    row_schema = provenance_schema(columns)
    tokens = sum(run.tokens for run in shards.runs)
    if tokens >= MOST:
        raise FormatError(f"{what}: shards: {tokens} tokens in total, less than {MOST} expected")
    counted = () if tokens_stated is None else ("tokens",)
    return Manifest(
        name=top.text("name"),
        lane=lane,
        stages=tuple(StageEntry(e.text("name"), e.text("phase"), e.count("version")) for e in top.list("stages")),
        columns=columns,
        fingerprint=top.text("fingerprint"),
        written=written,
        token_facts=tokens_stated,
        shards=shards,
        files=files,
        listings=listings,
        totals={key: top.inner("totals").count(key) for key in ("documents", *counted, "bytes")},
        funnel=tuple(funnel_entry(entry) for entry in top.list("funnel")),
        recipe=top.inner("recipe").value,
        versions=top.inner("versions").value,
        packed=_packed(top, tokens_stated, written.is_masked),
        takedowns=parse_takedowns(top),
        kept=() if tokens_stated else parse_kept_columns(top, KEPT, (TEXT_COLUMN.name, *row_schema.names)),
        further={name: value for name, value in payload.items() if name not in KNOWN},
    )


def _packed(top: Fields, tokens: TokenFacts | None, masked: bool) -> PackedFormat | None:
    if tokens is None or "packed" not in top.value:
        return None
    return parse_format(top.inner("packed"), tokens.tokenizer.vocab_size, tokens.tokenizer.bos_id, masked)


def check_version(payload: Mapping[str, Any], what: str, known: Sequence[int] = (SCHEMA_VERSION,)) -> None:
    """Raise FormatError, with all of them, unless the payload has a schema version of this reader."""
    version = payload.get("schema_version")
    if version not in known or isinstance(version, bool):
        raise FormatError(
            f"{what}: schema version {version!r:.80} found, this reader supports version "
            f"{' and '.join(map(str, sorted(known)))}"
        )


def read_manifest(store: Store, whole: bool = False) -> Manifest:
    """The manifest of the corpus at `store`. Raises FormatError if it is missing or invalid; whole: or a listing."""
    manifest = load_manifest(store)[0]
    if whole:
        manifest.load()
    return manifest


def load_manifest(store: Store) -> tuple[Manifest, bytes]:
    """The manifest of the corpus at `store`, and its sealed bytes. Raises the same errors as `read_manifest`.

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
    return _manifest(payload, what, StoredListings(store)), data


def _manifest_bytes(store: Store) -> bytes:
    near = store.local_path(MANIFEST)
    try:
        data = store.read(MANIFEST) if near is not None else store.read(MANIFEST, 0, MAX_MANIFEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        if near is not None and not near.parent.is_dir():
            what = "a file" if near.parent.exists() else "not there; a location is the folder of manifest.json"
            raise FormatError(f"{store.root} is not a corpus: {MANIFEST} is missing; {store.root} is {what}") from None
        if store.size(RUN) is None:
            raise FormatError(
                f"{store.root} is not a corpus: {MANIFEST} is missing; it is written last, and {RUN}, which is written "
                "first, is not there either; name the folder that holds them"
            ) from None
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
        raise FormatError(f"{entry.where}: name is {column.name!r:.80}, a unique lower-case name expected")
    return column


__all__ = [
    "DTYPE_CODES",
    "KIND",
    "MANIFEST",
    "MAX_ID",
    "RUN",
    "SCHEMA_VERSION",
    "SPLITS",
    "SUFFIXES",
    "WRITER",
    "Column",
    "FileEntry",
    "Index",
    "IndexedReader",
    "IndexedWriter",
    "Manifest",
    "ShardEntry",
    "TokenFacts",
    "TokenizerEntry",
    "WrittenFiles",
    "check_domain",
    "check_funnel",
    "check_version",
    "dtype_for",
    "file_entry",
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
