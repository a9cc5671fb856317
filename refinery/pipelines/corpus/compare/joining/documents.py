"""The documents of a corpus as rows of fixed size: id, hash of the origin, and what is compared of each."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.removals import ID_BYTES, column_ids
from refinery.pipelines.corpus.compare.joining.names import Names
from refinery.pipelines.corpus.compare.joining.partitions import Rows
from refinery.pipelines.corpus.compare.joining.side import Side
from refinery.pipelines.corpus.compare.joining.tables import read_groups

# A document: id; hash of its origin; where it is (shard of the manifest, row of its provenance); numbers of its input
# file and source; UTF-8 bytes of its text; tokens with BOS and EOS.
ROW = np.dtype(
    [
        ("id", f"S{ID_BYTES}"),
        ("origin", f"S{ID_BYTES}"),
        ("shard", "<u4"),
        ("row", "<u4"),
        ("path", "<u4"),
        ("source", "<u4"),
        ("text_bytes", "<i8"),
        ("tokens", "<i8"),
    ]
)
NEEDED = ("id", "source", "origin", "text_bytes", "token_count")


@dataclass
class Shared:
    """What both sides number alike. moved: path of an input of B -> the one of A with the same bytes."""

    sources: Names[str] = field(default_factory=Names)
    paths: Names[str] = field(default_factory=Names)
    places: Names[tuple[str, str]] = field(default_factory=Names)  # split, domain
    moved: Mapping[str, str] = field(default_factory=dict)

    def key(self, origin: str, side: Side) -> tuple[bytes, int]:
        """(hash, number of the path) of an origin `path@offset`, as A names it."""
        path, at, offset = origin.rpartition("@")
        if self.moved and side.label == "B" and path in self.moved:
            path = self.moved[path]
            origin = f"{path}{at}{offset}"
        digest = hashlib.blake2b(origin.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).digest()
        return digest, self.paths.number(path)

    def keys(self, column: pa.ChunkedArray, side: Side) -> tuple[Rows, npt.NDArray[np.uint32]]:
        """Hashes (S16 [n]) and numbers of paths [n] of a column of origins."""
        found = [self.key(origin or "", side) for origin in column.to_pylist()]
        hashes = np.frombuffer(b"".join(digest for digest, _ in found), f"S{ID_BYTES}")
        return hashes, np.array([path for _, path in found], np.uint32)

    @staticmethod
    def numbers(names: Names[str], column: pa.ChunkedArray) -> npt.NDArray[np.uint32]:
        """Numbers of the strings of a column that has few different ones. Shape [n]."""
        coded = column.combine_chunks().dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        known = np.array([names.number(str(value)) for value in coded.dictionary.to_pylist()], np.uint32)
        return known[coded.indices.to_numpy(zero_copy_only=False)] if len(column) else np.empty(0, np.uint32)


def ids_of(column: pa.ChunkedArray, what: str) -> Rows:
    """A column of ids as S16 [n]. Raises FormatError for anything but 16 bytes each."""
    if column.type != pa.binary(ID_BYTES) or column.null_count:
        raise FormatError(f"{what}: {column.type} found, {ID_BYTES} bytes each expected; see `refinery verify`")
    return column_ids(column).copy().view(f"S{ID_BYTES}").reshape(-1)


def document_rows(side: Side, shared: Shared, more: tuple[str, ...] = ()) -> Iterator[tuple[Rows, pa.Table]]:
    """(ROW [n], the columns read) of every row group of the provenance, in order. more: columns beside those needed.

    Cost: one pass over these columns, about two microseconds a document for the hash of its origin.
    """
    shards = side.manifest.shards
    next_row = [0] * len(shards)
    places = ((side.store, shard.provenance.path) for shard in shards)
    has_tokens = side.manifest.has_tokens
    needed = NEEDED if has_tokens else NEEDED[:-1]
    for number, table in read_groups(places, (*needed, *more), side.manifest.provenance_schema):
        what = side.store.url(shards[number].provenance.path)
        rows = np.zeros(table.num_rows, ROW)
        rows["id"] = ids_of(table["id"], what)
        rows["origin"], rows["path"] = shared.keys(table["origin"], side)
        rows["shard"] = number
        rows["row"] = next_row[number] + np.arange(table.num_rows)
        rows["source"] = Shared.numbers(shared.sources, table["source"])
        rows["text_bytes"] = _numbers(table["text_bytes"], what)
        if has_tokens:
            rows["tokens"] = _numbers(table["token_count"], what)
        next_row[number] += table.num_rows
        yield rows, table


def _numbers(column: pa.ChunkedArray, what: str) -> npt.NDArray[Any]:
    if column.type != pa.int64() or column.null_count:
        raise FormatError(f"{what}: {column.type} found, whole numbers expected; see `refinery verify`")
    return np.asarray(column.to_numpy())


def places_of(side: Side, shared: Shared) -> npt.NDArray[np.int64]:
    """Number of split and domain of each shard. Shape [shards]."""
    return np.array([shared.places.number((s.split, s.domain)) for s in side.manifest.shards], np.int64)
