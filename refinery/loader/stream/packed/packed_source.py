"""Packed rows of a split: row groups are decoded and checked when they are first needed, then kept.

The order reads whole row groups (PACKED_ORDER), so each is decoded about once an epoch; a corpus that fits the memory
given to decoded groups is decoded once.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
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
from refinery.loader.format.parquet.guarded import check_footer_size, check_row_group
from refinery.loader.format.parquet.parquet_file import parquet
from refinery.loader.native import rows as kernel
from refinery.loader.order.arrays import I64
from refinery.loader.order.order import OrderParams
from refinery.loader.read.damage import Damage
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.token_source import Lost, TokenRanges
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.store import Store
from refinery.loader.stream.packed.decoded_cache import DecodedCache, DecodedGroup, DecodedParams
from refinery.loader.stream.packed.packed_files import check_counts, group_spans, open_files

MOST_MAPPED = 4096  # row groups of the cache on disk: address space, not memory
FOOTER_EACH = 1 << 16  # bytes of a footer for each row group at most; ours have 2,000
FOOTERS = 8  # remote files whose footers are read at once
# 32 blocks of a row group each are shuffled together; a block touches two groups where files end inside one.
PACKED_ORDER = OrderParams(lanes=8, window=4)


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file of packed rows as a stream counts it. bin: its entry. documents: pieces of them. tokens: places of its
    rows, padding included."""

    split: str
    domain: str
    documents: int
    tokens: int
    bin: FileEntry


def row_files(shards: Sequence[ShardEntry], layout: PackedFormat) -> list[RowFile]:
    """The files of these shards in their order."""
    return [
        RowFile(s.split, s.domain, file.documents or 0, (file.rows or 0) * layout.length, file)
        for s in shards
        for file in s.packed
    ]


class PackedSource:
    """Rows by number of file and place in it.

    Every file's size, columns, row groups and counts are checked when the source is made, the checksum of each MiB
    before it is parsed, each row by the contract when it is decoded, before any of its group is delivered. Raises
    FormatError, CorruptShard for a wrong checksum, FetchError for a network that fails. Memory:
    1 GiB of decoded groups (DecodedParams) and one more; what was fetched is in the cache on disk (RemoteParams).
    decoded: keep decoded groups on disk, too. damage: rows of a damaged group are left as they are in `out`, and this
    says which groups are; None for an error. columns: names of structure columns that `read_columns` gives.
    """

    def __init__(
        self,
        store: Store,
        files: Sequence[RowFile],
        layout: PackedFormat,
        *,
        columns: Sequence[str] = (),
        corpus: str = "",
        params: RemoteParams | None = None,
        counters: ReadCounters | None = None,
        decoded: DecodedParams | None = None,
        damage: Damage | None = None,
    ) -> None:
        self._damage = damage
        self._columns = tuple(columns)
        self._store, self._files, self._layout = store, list(files), layout
        self._memory = (decoded or DecodedParams()).memory_bytes
        counters = counters or ReadCounters()
        self.decode_ns = 0  # spent on turning bytes into rows so far, without waiting for the bytes
        self._cache = None if decoded is None else DecodedCache(decoded, corpus, counters)
        self._dtype = dtype_for(layout.vocab_size)
        self._groups: OrderedDict[tuple[int, int], DecodedGroup] = OrderedDict()
        self._held = 0
        self._mapped: OrderedDict[tuple[int, int], DecodedGroup] = OrderedDict()  # of the cache on disk
        self._done: dict[tuple[int, int], int] = {}  # (file, group) -> rows, of groups that are partly done
        self._closed = False
        self._open = open_files(store, [file.bin for file in self._files], corpus, params, counters)
        try:
            self._spans = self._check_footers()
        except BaseException:
            self.close()
            raise

    @property
    def is_remote(self) -> bool:
        """Whether announcing what will be read is worth its cost."""
        return self._open.is_remote

    def _check_footers(self) -> list[list[tuple[int, int]]]:
        numbers = range(len(self._files))
        if not self._open.is_remote:
            return [self._check_footer(number) for number in numbers]
        pool = ThreadPoolExecutor(FOOTERS, "refinery-footers")
        try:
            futures = [pool.submit(self._check_footer, number) for number in numbers]
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()  # the first error at once, whichever file it is of
            return [future.result() for future in futures]
        except BaseException:
            self._open.close()  # first: ends the reads that the threads wait for
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _check_footer(self, number: int) -> list[tuple[int, int]]:
        """Where its row groups are."""
        entry = self._files[number].bin
        url, source = self._store.url(entry.path), self._open.footer(number)
        groups = -(-(entry.rows or 0) // self._layout.group_rows)
        check_footer_size(source, entry.size, FOOTER_EACH * (1 + groups), url)
        with parquet(source, url) as file:
            check_columns(file.schema_arrow, self._layout, url)
            check_counts(file.metadata, self._layout, url)
            most, rows = self._layout.group_rows, file.metadata.num_rows
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            spans = group_spans(file.metadata, entry.size)
        if rows != entry.rows:
            raise FormatError(f"{url}: {rows} rows found, {entry.rows} expected")
        if sizes != [min(most, rows - first) for first in range(0, rows, most)]:
            raise FormatError(f"{url}: row groups of {sizes[:3]} … rows found, of {most} expected")
        return spans

    def will_need(self, ranges: TokenRanges) -> None:
        """A hint to prefetch the row groups of these places, in order of need, but those that are decoded already."""
        groups = dict.fromkeys(
            (number, row // self._layout.group_rows)
            for number, start, stop in np.asarray(ranges).tolist()
            for row in self._rows(start, stop)
        )
        self._open.expect_bytes(
            [(number, *self._spans[number][group]) for number, group in groups if not self._is_decoded(number, group)]
        )

    def _is_decoded(self, number: int, index: int) -> bool:
        if (number, index) in self._groups or (number, index) in self._mapped:
            return True
        return self._cache is not None and self._cache.has(self._name(number, index))

    def done_with(self, ranges: TokenRanges) -> None:
        """These places will not be read again soon: row groups of which that is true can leave the cache."""
        most = self._layout.group_rows
        for number, start, stop in np.asarray(ranges).tolist():
            for group, rows in Counter(row // most for row in self._rows(start, stop)).items():
                rows += self._done.pop((number, group), 0)
                if rows >= min(most, (self._files[number].bin.rows or 0) - group * most):
                    self._open.release_bytes([(number, *self._spans[number][group])])
                else:
                    self._done[number, group] = rows

    def _rows(self, start: int, stop: int) -> range:
        """Rows of places [start, stop), without one of which that is only the first: a label that rows do not need."""
        return range(start // self._layout.length, -(-(stop - 1) // self._layout.length))

    def read(self, files: Sequence[int], rows: Sequence[int], out: I64) -> tuple[I64, I64, I64, Any]:
        """Copy row `rows[i]` of file `files[i]` to out[i] ([B, S + 1], contiguous); a file of -1 is left as it is.

        Returns starts, counts and valid as masks.fill takes them, and loss bool [B, S], or None where only documents'
        ends have none.
        """
        if self._closed:
            raise RuntimeError("closed")
        per_group = self._layout.group_rows
        views: dict[int, tuple[npt.NDArray[Any], None]] = {}
        starts, loss = [], None
        counts, valid = np.zeros(len(out), np.int64), np.zeros(len(out), np.int64)
        for i, (number, row) in enumerate(zip(files, rows, strict=True)):
            if number < 0 or not self._is_sound(number, row // per_group):
                continue
            group, place = self._group(number, row // per_group), row % per_group
            views[i] = group.tokens[place], None
            found = group.starts[group.bounds[place] : group.bounds[place + 1]]
            starts.append(found)
            counts[i], valid[i] = len(found), group.valid[place]
            if group.loss is not None:
                loss = np.ones((len(out), self._layout.length), np.bool_) if loss is None else loss
                loss[i] = group.loss[place]
        pieces = np.zeros((len(views), 5), np.int64)
        pieces[:, 0] = pieces[:, 1] = list(views)
        pieces[:, 3] = out.shape[1]
        kernel.gather(views, 1, pieces, 0, out)
        return np.concatenate([np.empty(0, np.int64), *starts]), counts, valid, loss

    def lost(self, files: Sequence[int], rows: Sequence[int]) -> list[Lost]:
        """Which of the rows that were read are of damaged groups."""
        length, damaged = self._layout.length, () if self._damage is None else self._damage.blocks
        return [
            Lost(i, number, row * length, length, 0)
            for i, (number, row) in enumerate(zip(files, rows, strict=True))
            if damaged and (number, row // self._layout.group_rows) in damaged
        ]

    def _is_sound(self, number: int, index: int) -> bool:
        """Whether a row group can be read, or its error is to be raised."""
        if self._damage is None:
            return True
        if (number, index) not in self._damage.blocks:
            try:
                self._group(number, index)
            except FormatError as error:
                self._damage.add_block(number, index, error)
        return (number, index) not in self._damage.blocks

    def check_all(self) -> None:
        """Decode and check every row now. Raises the same errors as `read`."""
        for number, spans in enumerate(self._spans):
            for index in range(len(spans)):
                if self._is_sound(number, index):
                    self._group(number, index)

    def read_columns(self, files: Sequence[int], rows: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
        """The structure columns of the rows that `read` takes, [B, S] each; UNKNOWN where a file does not have one and
        in rows of file -1."""
        shape, per_group = (len(files), self._layout.length), self._layout.group_rows
        found = {name: np.full(shape, UNKNOWN, STRUCTURE[name]) for name in self._columns}
        for i, (number, row) in enumerate(zip(files, rows, strict=True)):
            if number >= 0 and found and self._is_sound(number, row // per_group):
                for name, values in self._group(number, row // per_group).columns.items():
                    found[name][i] = values[row % per_group]
        return found

    def close(self) -> None:
        """Free the decoded groups. Later reads raise RuntimeError."""
        self._closed = True
        self._open.close()  # first: ends a read that another thread waits for
        self._groups.clear()
        self._mapped.clear()
        self._held = 0

    def _group(self, number: int, index: int) -> DecodedGroup:
        key = number, index
        group = self._groups.get(key) or self._mapped.get(key)
        if group is None:
            return self._new_group(*key)
        (self._groups if key in self._groups else self._mapped).move_to_end(key)
        return group

    def _new_group(self, number: int, index: int) -> DecodedGroup:
        """Mapped from the cache on disk, where it is put if it fits; else decoded, and held in memory."""
        name, cache = self._name(number, index), self._cache
        group = None if cache is None else cache.load(name)
        if group is None:
            started, reading = time.perf_counter_ns(), self._open.read_ns
            decoded = self._decode(number, index)
            is_stored = cache is not None and cache.store(name, decoded)
            spent, reading = time.perf_counter_ns() - started, self._open.read_ns - reading
            self.decode_ns += max(spent - reading, 0)  # bytes may come in other threads meanwhile
            if cache is not None and is_stored:
                group = cache.load(name)
        if group is not None:
            self._mapped[number, index] = group
            if len(self._mapped) > MOST_MAPPED:
                self._mapped.popitem(last=False)
            return group
        group = self._groups[number, index] = decoded
        self._held += group.size
        while self._held > self._memory and len(self._groups) > 1:
            self._held -= self._groups.popitem(last=False)[1].size
        return group

    def _name(self, number: int, index: int) -> str:
        """Of a decoded group: everything that it depends on."""
        entry, layout = self._files[number].bin, self._layout
        shape = f"{layout.length} {layout.vocab_size} {layout.pad_id} {' '.join(self._columns)}"
        return f"{entry.path} {entry.sha256} {shape} {index}"

    def _decode(self, number: int, index: int) -> DecodedGroup:
        layout, url = self._layout, self._store.url(self._files[number].bin.path)
        source = self._open.rows(number, *self._spans[number][index])
        with parquet(source, url) as file:
            names = row_columns(file.schema_arrow)
            check_row_group(file.metadata, source, url, index, names)
            table = file.read_row_group(index, columns=names, use_threads=not self._open.is_remote)
        rows = parse_rows(table, layout, url, index * layout.group_rows)
        tokens = np.full((len(rows), layout.length + 1), layout.pad_id or 0, self._dtype)
        tokens[:, :-1] = rows.input_ids
        starting = rows.doc_ids >= 0
        starting[:, 1:] &= rows.doc_ids[:, 1:] != rows.doc_ids[:, :-1]
        row, starts = np.nonzero(starting)
        bounds = np.searchsorted(row, np.arange(len(rows) + 1)).astype(np.int64)
        valid = rows.valid_token_count.astype(np.int64)
        is_full = (rows.loss_mask.sum(axis=1) == valid - rows.num_docs).all()  # all but each document's last token
        columns = {name: rows.structure[name] for name in self._columns if name in rows.structure}
        loss = None if is_full else rows.loss_mask
        return DecodedGroup(tokens, starts.astype(np.int64), bounds, valid, loss, columns)
