"""Listings: the files of a corpus as Parquet, a row for each, in files that manifest.json names with their checksums.

A corpus has 100,000 shards or more, and what training needs of each is little: so the rows are typed columns, a domain
of a split has listings of its own, and a reader opens those that it reads from. docs/format.md is the specification.
"""

import io
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.entries import FileEntry
from refinery.loader.format.fields import MOST
from refinery.loader.format.parquet.batches import bounded_parquet, within_memory
from refinery.loader.format.provenance import PARQUET
from refinery.loader.format.written import OF_TOKENS, WrittenFiles
from refinery.loader.storage.publish_new import TEMPORARY

FOLDER = "manifests"
OTHER_FILES = f"{FOLDER}/files"  # listings of the files that no shard has
PACKED, NO_SHARD = "packed", ""  # kinds of files beside those of `WrittenFiles`
BLOCKED = ("bin", PACKED)  # kinds that are read block by block
SHARDS_EACH, ROWS_EACH, BLOCKS_EACH = 4096, 65_536, 16 << 20  # shards, rows and bytes of block_crc32c of a listing
MAX_ROWS, MAX_BYTES = 1 << 20, 1 << 28  # that a reader takes
CHUNK_ROWS = 4096  # that are Python objects at once while rows become columns

SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),  # its index in the domain; null for files of no shard
        pa.field("kind", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("crc32c", pa.uint32(), nullable=False),
        pa.field("sha256", pa.binary(32), nullable=False),
        pa.field("rows", pa.int64()),
        pa.field("documents", pa.int64()),
        pa.field("tokens", pa.int64()),
        pa.field("block_crc32c", pa.binary()),  # big-endian uint32 of each MiB
    ]
)
# What check_name refuses, and names that are longer than file systems take.
BAD_PATHS = rf"(^|/)(\.{{0,2}}|{TEMPORARY.replace('.', '[.]')}[^/]*)(/|$)|\x00|[^/]{{256}}"
MAX_PATH = 1024  # bytes; object stores take no more


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing as manifest.json names it: its file, and the rows, shards, documents and tokens in it."""

    file: FileEntry
    rows: int
    shards: int
    documents: int
    tokens: int


def shard_rows(shard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a shard. shard: as the job that wrote it reports it (docs/format.md, version 1)."""
    files, counts = shard["files"], {"documents": shard["documents"], "tokens": shard.get("tokens")}
    for kind in shard.get("kinds", OF_TOKENS.kinds):
        if kind in files:
            yield _row(files[kind], kind, shard["index"]) | counts
            counts = {}
    yield from (_row(file, PACKED, shard["index"]) for file in shard.get("packed", ()))


def file_row(file: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a file that no shard has."""
    return _row(file, NO_SHARD, None)


def _row(file: Mapping[str, Any], kind: str, shard: int | None) -> dict[str, Any]:
    blocks = file.get("block_crc32c")
    return {
        "shard": shard,
        "kind": kind,
        "path": file["path"],
        "size": file["size"],
        "crc32c": int(file["crc32c"], 16),
        "sha256": bytes.fromhex(file["sha256"]),
        **{name: file.get(name) for name in ("rows", "documents", "tokens")},
        "block_crc32c": None if blocks is None else b64decode(blocks),
    }


def cut_groups(rows: Sequence[int], block_bytes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, stop) of the groups of each listing, groups being rows that stay together (those of a shard): it ends
    before the group with which it would have more than SHARDS_EACH groups, ROWS_EACH rows or BLOCKS_EACH bytes of block
    checksums. rows, block_bytes: of each group."""
    first = held = blocks = 0
    for i, (count, size) in enumerate(zip(rows, block_bytes, strict=True)):
        if i > first and (i - first == SHARDS_EACH or held + count > ROWS_EACH or blocks + size > BLOCKS_EACH):
            yield first, i
            first, held, blocks = i, 0, 0
        held, blocks = held + count, blocks + size
    if len(rows):
        yield first, len(rows)


def rows_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows as columns. Memory: CHUNK_ROWS rows as they are given. Raises ValueError for a value that does not fit."""
    found, left = [], iter(rows)
    try:
        while some := list(islice(left, CHUNK_ROWS)):
            found.append(pa.RecordBatch.from_pylist(some, schema=schema))
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise ValueError(f"manifest: {error}") from None
    return pa.Table.from_batches(found, schema).combine_chunks()


def dump_listing(table: pa.Table) -> bytes:
    """Rows as Parquet: the same rows make the same bytes."""
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=MAX_ROWS, use_dictionary=["kind"], **PARQUET)
    return out.getvalue()


def read_listing(data: bytes, listing: Listing, what: str, written: WrittenFiles = OF_TOKENS) -> pa.Table:
    """The rows of a listing whose checksums were compared, every value checked. Raises FormatError, naming `what`."""
    try:
        with bounded_parquet(io.BytesIO(data), what) as (schema, batches):
            if not schema.equals(SCHEMA):
                raise FormatError(
                    f"{what}: columns {schema.names} found, {SCHEMA.names} of the documented types expected"
                )
            table = _collect(within_memory(batches, what, len(data)), listing.rows, what)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        said = (str(error) or repr(error)).splitlines()[0]
        raise FormatError(f"{what}: not a readable Parquet file: {said:.200}") from None
    _check_values(table, what, (*written.kinds, PACKED, NO_SHARD))
    return table


def _collect(batches: Iterable[pa.RecordBatch], rows: int, what: str) -> pa.Table:
    found, count = [], 0
    for batch in batches:
        found.append(batch)
        count += batch.num_rows
        if count > rows:
            break
    if count != rows:
        raise FormatError(f"{what}: {count if count < rows else 'more'} rows found, {rows} expected from the manifest")
    return pa.Table.from_batches(found, SCHEMA).combine_chunks()


def _check_values(table: pa.Table, what: str, kinds: Sequence[str]) -> None:
    """Raise FormatError for the first row with a value that is not allowed."""

    def refuse(wrong: Any, name: str, expected: str) -> None:
        at = pc.index(pc.fill_null(wrong, False), True).as_py()
        if at >= 0:
            value = table[name][at].as_py()
            raise FormatError(f"{what}: row {at}: {name} is {value!r:.80}, {expected} expected")

    refuse(pc.invert(pc.is_in(table["kind"], pa.array(kinds))), "kind", f"{', '.join(kinds[:-1])} or nothing")
    for name in ("shard", "size", "rows", "documents", "tokens"):
        refuse(pc.less(table[name], 0), name, "0 or more")
        refuse(pc.greater(table[name], min(MOST, 2**31 - 1 if name == "shard" else MOST)), name, f"{MOST} at most")
    path = table["path"].cast(pa.binary())  # so that lengths are bytes
    refuse(pc.match_substring_regex(path, BAD_PATHS), "path", "a relative path that stores take")
    refuse(pc.greater(pc.binary_length(path), MAX_PATH), "path", f"{MAX_PATH} bytes at most")
    blocked = pc.is_in(table["kind"], pa.array(BLOCKED))
    blocks, size = table["block_crc32c"], table["size"]
    refuse(pc.and_(blocked, pc.is_null(blocks)), "block_crc32c", "the CRC-32C of each MiB")
    length = pc.binary_length(blocks)
    whole = pc.multiply(pc.divide(pc.add(size, CHECKSUM_BLOCK - 1), CHECKSUM_BLOCK), 4)
    wrong = pc.and_(pc.not_equal(length, 0), pc.not_equal(pc.cast(length, pa.int64()), whole))
    refuse(wrong, "block_crc32c", "4 bytes for each MiB of the file")
    refuse(pc.and_(pc.equal(table["kind"], PACKED), _any_null(table)), "kind", "rows, documents and tokens of it")


def _any_null(table: pa.Table) -> Any:
    first, *others = (pc.is_null(table[name]) for name in ("rows", "documents", "tokens"))
    for other in others:
        first = pc.or_(first, other)
    return first


def file_entries(table: pa.Table) -> list[FileEntry]:
    """The files of rows, in order. The documents and tokens of a shard's first file are its shard's: FileEntry has
    none."""
    return [
        FileEntry(
            row["path"],
            row["size"],
            f"{row['crc32c']:08x}",
            row["sha256"].hex(),
            row["rows"],
            b64encode(row["block_crc32c"] or b"").decode(),
            *((row["documents"], row["tokens"]) if row["kind"] in (PACKED, NO_SHARD) else (None, None)),
        )
        for row in table.to_pylist()
    ]


def arrow(numbers: np.ndarray[Any, Any]) -> pa.Array:
    """int64 numbers as Arrow's. pa.array would import numpy.ma, which the first batch would wait for."""
    return pa.Array.from_buffers(
        pa.int64(), len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers, np.int64))]
    )


def first_rows(table: pa.Table, listing: Listing, written: WrittenFiles, what: str) -> np.ndarray[Any, Any]:
    """int64 [shards + 1]: the first row of each shard of a listing, and the end. Raises FormatError unless each shard
    has its writer's files, in order, and then packed rows only, shards ascend, and the sums are the manifest's."""
    own, numbers = written.kinds, table["shard"]
    places = pc.fill_null(pc.index_in(table["kind"], pa.array([*own, PACKED])), -1).to_numpy()
    starts = np.flatnonzero(places == 0)
    bounds = np.append(starts, len(places)).astype(np.int64)
    if len(starts) != listing.shards or numbers.null_count or (len(places) and (not len(starts) or starts[0])):
        raise FormatError(f"{what}: {len(starts)} shards found, {listing.shards} expected from the manifest")
    if (np.diff(bounds) < len(own)).any() or any((places[starts + i] != i).any() for i in range(len(own))):
        raise FormatError(f"{what}: a shard without {' or '.join(own[1:])} after its {own[0]} found, each expected")
    if (places != len(own)).sum() != len(own) * len(starts):
        raise FormatError(f"{what}: a shard with a file twice, or of another kind, found")
    mine = numbers.to_numpy()
    if (np.diff(mine[starts]) <= 0).any() or (np.repeat(mine[starts], np.diff(bounds)) != mine).any():
        raise FormatError(f"{what}: shards out of order, or a file of another shard between those of one, found")
    if not written.has_tokens and table["tokens"].null_count != len(table):
        raise FormatError(f"{what}: tokens found in a corpus of texts, none expected")
    expected = {"documents": listing.documents, **({"tokens": listing.tokens} if written.has_tokens else {})}
    for name, wanted in expected.items():
        values = table[name].take(arrow(starts))
        found = None if values.null_count else sum(values.to_pylist())
        if found != wanted:
            raise FormatError(f"{what}: {found} {name} found, {wanted} expected from the manifest")
    return bounds
