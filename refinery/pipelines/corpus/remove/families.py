"""Families: the documents that phase 2 may decide otherwise once some are gone, and their parts, as phase 1 wrote them.

Deduplication compares documents that share an address, an id, or a band of their signatures, and what it decides of one
reaches others through such pairs alone. So the documents that a chain of such pairs joins to one that goes are decided
again, by the code of phase 2 itself; all others are decided as they were.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet.batches import stored_batches
from refinery.loader.format.removals import ID_BYTES, column_ids
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.remove.request import KEY
from refinery.pipelines.corpus.remove.rows import Key, among, sorted_keys
from refinery.transforms.core.address.normalise import ADDRESS_BYTES
from refinery.transforms.core.document import hash64
from refinery.transforms.dedup.near_duplicates import NearParams, band_hashes
from refinery.transforms.dedup.signatures import signature_values
from refinery.transforms.write.documents import DOCUMENTS_SCHEMA

IDS = pa.schema([("id", pa.binary(ID_BYTES)), ("address", pa.binary(ADDRESS_BYTES)), ("bytes", pa.int64())])
RECORD = ["id", "source", "origin"]
FACTS = ["id", "rank", "source", "domain", "bytes", "signature"]  # of signatures/, what phase 2 reads
CAPTURED = ["address", "date"]  # where captures of one address are compared
NO_ADDRESS = bytes(ADDRESS_BYTES)

Rows = NDArray[np.int64]
Shape = tuple[int, int]  # bands, values in each


@dataclass(frozen=True)
class PartFiles:
    """A part of documents/ and the one of signatures/ beside it, below the root of a work location."""

    root: str
    documents: str
    signatures: str

    @property
    def store(self) -> Store:
        return open_store(self.root)


@dataclass(frozen=True)
class Compared:
    """What phase 2 compares. near: parameters of all passes over near duplicates; permutations: values of a signature.
    urls: captures of one address, too."""

    near: tuple[NearParams, ...]
    permutations: int
    urls: bool

    @property
    def shapes(self) -> list[Shape]:
        """The layouts of bands, each once."""
        return sorted({params.layout(params.compared(self.permutations)) for params in self.near})

    @property
    def columns(self) -> list[str]:
        return [*FACTS, *(CAPTURED if self.urls else ())]


@dataclass
class Sought:
    """Keys by which documents belong together, sorted: ids, addresses, hashes of bands by layout."""

    ids: NDArray[np.bytes_]
    addresses: NDArray[np.bytes_]
    bands: dict[Shape, NDArray[np.uint64]]

    @classmethod
    def of(cls, found: Iterable["RowKeys"], shapes: Sequence[Shape]) -> "Sought":
        """The keys of rows."""
        every = list(found)
        ids, addresses = (
            np.sort(np.concatenate([np.empty(0, KEY), *(getattr(each, name) for each in every)]))
            for name in ("ids", "addresses")
        )
        bands = {
            shape: np.sort(np.concatenate([np.empty(0, np.uint64), *(each.bands[shape].ravel() for each in every)]))
            for shape in shapes
        }
        return cls(ids, addresses[addresses != NO_ADDRESS], bands)

    def hits(self, rows: "RowKeys") -> NDArray[np.bool_]:
        """Which rows share a key."""
        found = _known(rows.ids, self.ids) | _known(rows.addresses, self.addresses)
        for shape, known in self.bands.items():
            if len(known):
                keyed = rows.bands[shape]
                place = np.minimum(np.searchsorted(known, keyed), len(known) - 1)
                found |= (known[place] == keyed).any(axis=1)
        return found

    def __bool__(self) -> bool:
        return bool(len(self.ids))


@dataclass
class RowKeys:
    """The keys of some rows of a part, aligned. addresses: zeros where there is none, or none is compared."""

    ids: NDArray[np.bytes_]
    addresses: NDArray[np.bytes_]
    bands: dict[Shape, NDArray[np.uint64]]

    def take(self, rows: NDArray[np.bool_]) -> "RowKeys":
        return RowKeys(self.ids[rows], self.addresses[rows], {s: keyed[rows] for s, keyed in self.bands.items()})


@dataclass
class Found:
    """rows: of each part the rows of the families, ascending, without those that are gone. sizes: bytes of the text of
    the documents that were asked for (`seeds`), as far as they are in the parts."""

    parts: Sequence[PartFiles]
    rows: dict[int, Rows] = field(default_factory=dict)
    sizes: dict[Key, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))


def find_families(
    parts: Sequence[PartFiles], compared: Compared, gone: Collection[Key], absent: "Absent", seeds: Collection[Key]
) -> Found:
    """The families of what goes and of `seeds`. gone: what goes; absent: what goes and what went before. Neither is
    part of a family, but what goes holds one together.

    Cost: the signatures of all documents are read, once for each step of the longest chain that leads away from what
    goes, and once more. Memory: 128 bytes for each document that goes, eight for each of a family.
    """
    shapes, found = compared.shapes, Found(parts)
    starts = {*gone, *seeds}
    wanted = sorted_keys({*(key[0] for key in starts), *absent.ids})
    known: dict[int, Rows] = {}  # rows that are in a family already, or never
    begin: list[RowKeys] = []
    for number, part in enumerate(parts):
        hits = _rows_of(part, wanted)
        if not len(hits):
            continue
        records, sizes = records_of(part, hits), _sizes(part, hits)
        away = np.array([absent.has(key) for key in records], np.bool_)
        start = np.array([key in starts for key in records], np.bool_)
        found.sizes |= {key: size for key, size, on in zip(records, sizes, start, strict=True) if on}
        known[number], found.rows[number] = hits[away | start], hits[start & ~away]
        if start.any():
            begin += [each for _, each in row_keys(part, compared, hits[start])]
    sought = Sought.of(begin, shapes)
    while sought:
        more: list[RowKeys] = []
        for number, part in enumerate(parts):
            mine = known.get(number, np.empty(0, np.int64))
            joined = [np.empty(0, np.int64)]
            for first, keys in row_keys(part, compared):
                new = sought.hits(keys)
                new[mine[slice(*np.searchsorted(mine, [first, first + len(new)]))] - first] = False
                if new.any():
                    joined.append(first + np.flatnonzero(new))
                    more.append(keys.take(new))
            rows = np.concatenate(joined)
            if len(rows):
                known[number] = np.sort(np.concatenate([mine, rows]))
                found.rows[number] = np.sort(np.concatenate([found.rows.get(number, rows[:0]), rows]))
        sought = Sought.of(more, shapes)
    found.rows = {number: rows for number, rows in found.rows.items() if len(rows)}
    return found


@dataclass(frozen=True)
class Absent:
    """Records that are not part of the corpus: by a hash of id, source and origin, and their ids."""

    ids: frozenset[bytes]
    records: frozenset[int]

    @classmethod
    def of(cls, keys: Iterable[Key]) -> "Absent":
        every = list(keys)
        return cls(frozenset(key[0] for key in every), frozenset(hash64(*key) for key in every))

    def has(self, key: Key) -> bool:
        return key[0] in self.ids and hash64(*key) in self.records

    def __or__(self, other: "Absent") -> "Absent":
        return Absent(self.ids | other.ids, self.records | other.records)


def records_of(part: PartFiles, rows: Rows) -> list[Key]:
    """The records of rows of a part. Raises FormatError where its two files are not of the same rows."""
    found: list[Key] = []
    for batch in stored_batches(part.store, part.documents, RECORD, DOCUMENTS_SCHEMA, rows):
        found += zip(*(batch.column(name).to_pylist() for name in RECORD), strict=True)
    if len(found) != len(rows):
        raise FormatError(f"{part.store.url(part.documents)}: its rows are not those of its signatures")
    return found


def row_keys(part: PartFiles, compared: Compared, rows: Rows | None = None) -> Iterator[tuple[int, RowKeys]]:
    """(number of the first, keys) of rows of a part, bounded: of all, or of `rows`, which are then numbered among
    themselves. Cost: about two microseconds a row and layout."""
    start = 0
    columns = ["id", *(("signature",) if compared.near else ()), *(("address",) if compared.urls else ())]
    for batch in stored_batches(part.store, part.signatures, columns, IDS, rows):
        table = pa.Table.from_batches([batch])
        ids = _strings(table["id"])
        bands: dict[Shape, NDArray[np.uint64]] = {}
        if compared.near:
            signatures = signature_values(table["signature"], compared.permutations)
            for shape in compared.shapes:
                salt = np.arange(1, shape[0] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                bands[shape] = band_hashes(signatures, *shape) ^ salt
        addresses = _strings(table["address"]) if compared.urls else np.full(len(ids), NO_ADDRESS, KEY)
        yield start, RowKeys(ids, addresses, bands)
        start += len(ids)


def write_families(found: Found, compared: Compared, store: Store, folder: str) -> list[PartFiles]:
    """Publish the rows of the families as parts of their own, in the order of theirs; the same rows make the same
    bytes. Memory: a batch."""
    written = []
    for number in sorted(found.rows):
        part, rows, name = found.parts[number], found.rows[number], f"part-{number:05d}.parquet"
        files = PartFiles(store.root, f"{folder}/documents/{name}", f"{folder}/signatures/{name}")
        _copy_rows(part.store, part.documents, DOCUMENTS_SCHEMA, DOCUMENTS_SCHEMA.names, rows, store, files.documents)
        _copy_rows(part.store, part.signatures, IDS, compared.columns, rows, store, files.signatures)
        written.append(files)
    return written


def _copy_rows(
    old: Store, path: str, schema: pa.Schema, columns: Sequence[str], rows: Rows, new: Store, name: str
) -> None:
    copied = 0
    with scratch_folder(name) as scratch, ExitStack() as files:
        writer: pq.ParquetWriter | None = None
        for batch in stored_batches(old, path, columns, schema, rows):
            table = _plain(pa.Table.from_batches([batch]).select(list(columns)))
            if writer is None:
                made = pq.ParquetWriter(scratch / "part", table.schema, compression="zstd", write_page_checksum=True)
                writer = files.enter_context(made)
            writer.write_table(table)
            copied += len(batch)
        if copied != len(rows):
            raise FormatError(f"{old.url(path)}: {copied} of {len(rows)} rows found that its other file has")
        files.close()
        new.create(name, scratch / "part")


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, which may hold names that no row has."""
    types = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(zip(table.column_names, types, strict=True)))


def _rows_of(part: PartFiles, ids: NDArray[np.bytes_]) -> Rows:
    """Rows of a part with one of these ids."""
    start, hits = 0, [np.empty(0, np.int64)]
    for batch in stored_batches(part.store, part.signatures, ["id"], IDS) if len(ids) else ():
        hits.append(start + np.flatnonzero(among(column_ids(batch.column(0)), ids)))
        start += len(batch)
    return np.concatenate(hits)


def _sizes(part: PartFiles, rows: Rows) -> list[int]:
    return [
        size
        for batch in stored_batches(part.store, part.signatures, ["bytes"], IDS, rows)
        for size in batch.column(0).to_pylist()
    ]


def _strings(column: pa.ChunkedArray) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(column_ids(column)).view(KEY).reshape(-1)


def _known(keys: NDArray[np.bytes_], known: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    if not len(known):
        return np.zeros(len(keys), np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys)
