"""Packed rows of a split in a local folder: row groups are decoded and checked when they are first needed, then kept.

The order reads whole row groups (PACKED_ORDER), so each is decoded about once an epoch; a corpus that fits the memory
given to decoded groups is decoded once.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.indexed import dtype_for
from refinery.loader.format.manifest import FileEntry, ShardEntry
from refinery.loader.format.packed import (
    STRUCTURE,
    UNKNOWN,
    PackedFormat,
    check_columns,
    parse_rows,
    row_columns,
)
from refinery.loader.native import rows as kernel
from refinery.loader.storage.store import Store, size_and_crc32c
from refinery.loader.stream.arrays import I64
from refinery.loader.stream.order import OrderParams

MEMORY = 1 << 30  # of decoded row groups
# 32 blocks of a row group each are shuffled together; a block touches two groups where files end inside one.
PACKED_ORDER = OrderParams(lanes=8, window=4)


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file of packed rows as a stream counts it. bin: its entry. tokens: places of its rows, padding included."""

    domain: str
    tokens: int
    bin: FileEntry


def row_files(shards: Sequence[ShardEntry], layout: PackedFormat) -> list[RowFile]:
    """The files of these shards in their order."""
    return [RowFile(s.domain, (file.rows or 0) * layout.length, file) for s in shards for file in s.packed]


@dataclass(frozen=True, slots=True)
class _Group:
    """A decoded row group: tokens [n, S + 1], documents' starts, row by row, from starts[bounds[i]] to bounds[i + 1],
    valid tokens [n]; loss [n, S] where it leaves out more than documents' ends, else None; columns: [n, S] by name."""

    tokens: npt.NDArray[Any]
    starts: I64
    bounds: I64
    valid: I64
    loss: npt.NDArray[np.bool_] | None
    columns: Mapping[str, npt.NDArray[Any]]

    @property
    def size(self) -> int:
        arrays = (self.tokens, self.starts, self.bounds, self.valid, *self.columns.values())
        return sum(array.nbytes for array in arrays) + (0 if self.loss is None else self.loss.nbytes)


class PackedSource:
    """Rows by number of file and place in it.

    Every file's size, columns and row groups are checked when the source is made, its checksum when it is first read,
    each row by the contract when it is decoded, before any of its group is delivered. Raises FormatError, CorruptShard
    for a wrong checksum; ValueError for a store that is not a local folder. Memory: `memory` bytes of decoded groups
    and one more. columns: names of structure columns that `read_columns` gives.
    """

    def __init__(
        self,
        store: Store,
        files: Sequence[RowFile],
        layout: PackedFormat,
        memory: int = MEMORY,
        columns: Sequence[str] = (),
    ) -> None:
        self._store, self._files, self._layout, self._memory = store, list(files), layout, memory
        self._columns = tuple(columns)
        self._dtype = dtype_for(layout.vocab_size)
        self._groups: OrderedDict[tuple[int, int], _Group] = OrderedDict()
        self._held = 0
        self._verified = [False] * len(self._files)
        self._closed = False
        for file in self._files:
            self._check_footer(file.bin)

    def _check_footer(self, entry: FileEntry) -> None:
        url, path = self._store.url(entry.path), self._store.local_path(entry.path)
        if path is None:
            raise ValueError(f"packed: rows at {self._store.root} given, those in a local folder can be read")
        found = self._store.size(entry.path)
        if found != entry.size:
            raise FormatError(f"{url}: {found} bytes found, {entry.size} expected")
        with pq.ParquetFile(path) as file:
            check_columns(file.schema_arrow, self._layout, url)
            most, rows = self._layout.group_rows, file.metadata.num_rows
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        if rows != entry.rows:
            raise FormatError(f"{url}: {rows} rows found, {entry.rows} expected")
        if sizes != [min(most, rows - first) for first in range(0, rows, most)]:
            raise FormatError(f"{url}: row groups of {sizes[:3]} … rows found, of {most} expected")

    def read(self, files: Sequence[int], rows: Sequence[int], out: I64) -> tuple[I64, I64, I64, Any]:
        """Copy row `rows[i]` of file `files[i]` to out[i] ([B, S + 1], contiguous); a file of -1 is left as it is.

        Returns starts, counts and valid as masks.fill takes them, and loss bool [B, S], or None where only documents'
        ends have none.
        """
        if self._closed:
            raise RuntimeError("closed")
        per_group = self._layout.group_rows
        views: list[npt.NDArray[Any]] = []
        places: list[int] = []
        starts, loss = [], None
        counts, valid = np.zeros(len(out), np.int64), np.zeros(len(out), np.int64)
        for i, (number, row) in enumerate(zip(files, rows, strict=True)):
            if number < 0:
                continue
            places.append(i)
            group, place = self._group(number, row // per_group), row % per_group
            views.append(group.tokens[place])
            found = group.starts[group.bounds[place] : group.bounds[place + 1]]
            starts.append(found)
            counts[i], valid[i] = len(found), group.valid[place]
            if group.loss is not None:
                loss = np.ones((len(out), self._layout.length), np.bool_) if loss is None else loss
                loss[i] = group.loss[place]
        if len(views) == len(out):
            kernel.copy(views, out)
        else:
            for i, view in zip(places, views, strict=True):
                out[i] = view
        return np.concatenate([np.empty(0, np.int64), *starts]), counts, valid, loss

    def read_columns(self, files: Sequence[int], rows: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
        """The structure columns of the rows that `read` takes, [B, S] each; UNKNOWN where a file does not have one and
        in rows of file -1."""
        shape, per_group = (len(files), self._layout.length), self._layout.group_rows
        found = {name: np.full(shape, UNKNOWN, STRUCTURE[name]) for name in self._columns}
        for i, (number, row) in enumerate(zip(files, rows, strict=True)):
            if number >= 0 and found:
                for name, values in self._group(number, row // per_group).columns.items():
                    found[name][i] = values[row % per_group]
        return found

    def close(self) -> None:
        """Free the decoded groups. Later reads raise RuntimeError."""
        self._closed = True
        self._groups.clear()
        self._held = 0

    def _group(self, number: int, index: int) -> _Group:
        group = self._groups.get((number, index))
        if group is not None:
            self._groups.move_to_end((number, index))
            return group
        group = self._groups[number, index] = self._decode(number, index)
        self._held += group.size
        while self._held > self._memory and len(self._groups) > 1:
            self._held -= self._groups.popitem(last=False)[1].size
        return group

    def _decode(self, number: int, index: int) -> _Group:
        layout, entry = self._layout, self._files[number].bin
        url, path = self._store.url(entry.path), self._store.local_path(entry.path)
        if not self._verified[number]:
            with self._store.open(entry.path) as stream:
                found = size_and_crc32c(stream)
            if found != (entry.size, entry.crc32c):
                raise CorruptShard(
                    f"{url}: {found[0]} bytes, crc32c {found[1]} found, {entry.size} bytes, crc32c {entry.crc32c} "
                    "expected"
                )
            self._verified[number] = True
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read_row_group(index, columns=row_columns(file.schema_arrow), use_threads=False)
        rows = parse_rows(table, layout, url, index * layout.group_rows)
        tokens = np.full((len(rows), layout.length + 1), layout.pad_id or 0, self._dtype)
        tokens[:, :-1] = rows.input_ids
        inside = rows.doc_ids >= 0
        first = np.diff(rows.doc_ids, axis=1, prepend=-1) > 0
        row, starts = np.nonzero(first & inside)
        bounds = np.searchsorted(row, np.arange(len(rows) + 1)).astype(np.int64)
        valid = rows.valid_token_count.astype(np.int64)
        is_full = (rows.loss_mask.sum(axis=1) == valid - rows.num_docs).all()  # all but each document's last token
        columns = {name: rows.structure[name] for name in self._columns if name in rows.structure}
        return _Group(tokens, starts.astype(np.int64), bounds, valid, None if is_full else rows.loss_mask, columns)
