"""Tokens of the shards of a split, by shard number and position, from a local folder or from afar.

`open_source` chooses. Both kinds compare every byte with the manifest's checksums before it is delivered; local files
once per process, with their sizes first, remote ones whenever they come from the network or the cache
(loader.remote.blocks). Remote ones also read ahead what was announced.
"""

import os
import resource
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import google_crc32c
import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import BLOCK
from refinery.loader.format.manifest import FileEntry, Index, ShardEntry, read_index
from refinery.loader.native import rows
from refinery.loader.remote.blocks import BlockReader, CorruptShard, RemoteFile, SourceParams
from refinery.loader.remote.mapped import Checked, Mapped
from refinery.loader.remote.read_ahead import ReadAhead
from refinery.loader.storage.fetch import Counters, Stop
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Store

Ranges = Sequence[tuple[int, int, int]]


class TokenSource(Protocol):
    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        """Copy tokens [start, start + len(out)) of shard number `shard` into `out` (any integer dtype).

        Raises ValueError for a range outside of the shard, FormatError for wrong files, FetchError or OSError where
        they cannot be read.
        """

    def read_rows(self, shards: Sequence[int], starts: Sequence[int], out: npt.NDArray[np.int64]) -> None:
        """`read_into` for each row of `out`, contiguous: as many tokens from `starts[i]` on of shard `shards[i]`."""

    def will_need(self, ranges: Ranges) -> None:
        """(shard, start, stop), in order of need: a hint for reading ahead. Never blocks."""

    def done_with(self, ranges: Ranges) -> None:
        """Last use of these ranges, for now: what they took may go first."""

    def close(self) -> None:
        """Free all resources. Nothing can be read afterwards."""


def open_source(
    store: Store,
    shards: Sequence[ShardEntry],
    dtype: npt.DTypeLike,
    *,
    corpus: str,
    params: SourceParams | None = None,
    counters: Counters | None = None,
) -> "LocalSource | CachedSource":
    """The source for `shards`, which it numbers from 0. corpus: the manifest's sha256; it names the cached files.

    Raises FormatError where a local file is missing or has another size than the manifest says.
    """
    if isinstance(store, RemoteStore):
        return CachedSource(store, shards, dtype, corpus=corpus, params=params, counters=counters)
    return LocalSource(store, shards, dtype)


def read_file(store: Store, entry: FileEntry, stop_by: Stop | None = None) -> bytes:
    """A whole file of the manifest, such as an .idx, compared with its size and checksum; read again once when wrong.

    stop_by: what may end a remote read from another thread. Raises FormatError (CorruptShard) with both values when it
    is wrong twice or missing.
    """
    url = store.url(entry.path)
    for _ in range(2):
        try:
            if isinstance(store, RemoteStore):
                # One byte more than there should be: what never ends is not read for ever.
                data = store.read(entry.path, 0, entry.size + 1, stop_by)
            else:
                data = store.read(entry.path)
        except FileNotFoundError:
            raise FormatError(f"{url}: missing, {entry.size} bytes expected") from None
        found = (len(data), f"{google_crc32c.value(data):08x}")
        if found == (entry.size, entry.crc32c):
            return data
    raise CorruptShard(
        f"{url}: {found[0]} bytes, crc32c {found[1]} found, {entry.size} bytes, crc32c {entry.crc32c} expected"
    )


def load_index(store: Store, entry: ShardEntry, stop_by: Stop | None = None) -> Index:
    """The index of a shard. Raises FormatError when it is wrong or disagrees with the manifest; as read_file."""
    url = store.url(entry.idx.path)
    index = read_index(read_file(store, entry.idx, stop_by), url)
    if (len(index), index.tokens) != (entry.documents, entry.tokens):
        raise FormatError(
            f"{url}: {len(index)} documents and {index.tokens} tokens found, "
            f"{entry.documents} and {entry.tokens} expected from the manifest"
        )
    return index


def _check_range(entry: ShardEntry, start: int, count: int) -> None:
    if start < 0 or start + count > entry.tokens:
        raise ValueError(
            f"tokens: {start} to {start + count} of {entry.bin.path} given, 0 to {entry.tokens} is allowed"
        )


class LocalSource:
    """Shards in a local folder, memory-mapped: a read is one copy, the pages are the kernel's.

    The first read that touches a MiB compares it with its published checksum (about 0.1 ms, once per process). As many
    files stay open as half of the limit on open files allows; with more shards than that, reading slows down by some
    30 us per sample.

    A published corpus must not be changed. If it is, a read that comes 1 ms or more after the last look at the file
    finds out: FormatError for another size; what was written to is verified again. Between a look and the copy that
    follows it, a file that is cut short still ends the process (SIGBUS). Only reads without a map could prevent that,
    and they take twice as long (refinery.loader.remote.mapped).
    """

    def __init__(self, store: Store, shards: Sequence[ShardEntry], dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._shards = list(shards)
        self._paths: list[Path] = []
        for entry in shards:
            for file in (entry.bin, entry.idx):
                found = store.size(file.path)
                if found != file.size:
                    raise FormatError(f"{store.url(file.path)}: {size_found(found)} found, {file.size} expected")
            _check_tokens(store, entry, self._dtype)
            path = store.local_path(entry.bin.path)
            if path is None:
                raise ValueError(f"store: {store.root} given, a local folder is allowed")
            self._paths.append(path)
        # No lock: single operations on dicts are atomic, and a child forked meanwhile could wait for one for ever.
        self._open: OrderedDict[int, Mapped] = OrderedDict()
        self._checked: dict[int, Checked] = {}
        self._most_open = max(16, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16) // 2)
        self._closed = False

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        out[...] = self.verified(shard, start, len(out), time.monotonic())

    def read_rows(self, shards: Sequence[int], starts: Sequence[int], out: npt.NDArray[np.int64]) -> None:
        now, count = time.monotonic(), out.shape[1]
        rows.copy([self.verified(shard, start, count, now) for shard, start in zip(shards, starts, strict=True)], out)

    def verified(self, shard: int, start: int, count: int, now: float) -> npt.NDArray[Any]:
        """Tokens [start, start + count) of a shard where they are mapped, to be copied at once. now: time.monotonic().

        Raises what read_into does.
        """
        opened = self._open.get(shard)
        if opened is None:
            if self._closed:
                raise RuntimeError("closed")
            if not self._shards[shard].tokens:
                _check_range(self._shards[shard], start, count)
                return np.empty(0, self._dtype)
            opened = self._map(shard)
        if now >= opened.look_at:
            opened = self._look(shard, opened, now)
        stop = start + count
        if start < 0 or stop > len(opened.tokens):
            _check_range(self._shards[shard], start, count)
        if stop > start:
            first, last = start // opened.per_block, (stop - 1) // opened.per_block
            if 0 in opened.done[first : last + 1]:
                opened.check(first, last)
        return opened.tokens[start:stop]

    def will_need(self, ranges: Ranges) -> None:
        return  # the kernel reads ahead

    def done_with(self, ranges: Ranges) -> None:
        return

    def close(self) -> None:
        self._closed = True
        self._open.clear()  # the maps end with the last view of them

    def _map(self, shard: int) -> Mapped:
        opened = Mapped(self._paths[shard], self._shards[shard].bin, self._dtype, self._checked.get(shard))
        self._checked[shard] = opened.checked
        while len(self._open) >= self._most_open:
            self._open.popitem(last=False)
        self._open[shard] = opened
        return opened

    def _look(self, shard: int, opened: Mapped, now: float) -> Mapped:
        """The map, or another one where the file was written to."""
        try:
            if opened.look(now):
                return opened
        except FormatError:
            self._open.pop(shard, None)  # a file that has its size again is mapped and verified anew
            raise
        self._open.pop(shard, None)
        return self._map(shard)


def size_found(size: int | None) -> str:
    """For messages about a file that may be missing."""
    return "no file" if size is None else f"{size} bytes"


def _check_tokens(store: Store, entry: ShardEntry, dtype: np.dtype[Any]) -> None:
    if entry.bin.size != entry.tokens * dtype.itemsize:
        raise FormatError(
            f"{store.url(entry.bin.path)}: {entry.bin.size} bytes found in the manifest, "
            f"{entry.tokens * dtype.itemsize} expected for {entry.tokens} tokens"
        )


class CachedSource:
    """Shards behind a network, through the cache that the processes of a host share.

    Every token is compared with a checksum before it is delivered. The threads start at the first use, so a source may
    be made before a fork, and one that was used still works in the child.
    """

    def __init__(
        self,
        store: RemoteStore,
        shards: Sequence[ShardEntry],
        dtype: npt.DTypeLike,
        *,
        corpus: str,
        params: SourceParams | None = None,
        counters: Counters | None = None,
    ) -> None:
        self.params = params or SourceParams()
        self.counters = counters or Counters()
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._shards = list(shards)
        for entry in shards:
            _check_tokens(store, entry, self._dtype)
        self._files = [_remote_file(corpus, entry.bin) for entry in shards]
        self._store, self._own_store = store, False
        self._reader: BlockReader | None = None
        self._ahead: ReadAhead | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._covered: dict[tuple[int, int], int] = {}  # bytes done of blocks that are done in part

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        _check_range(self._shards[shard], start, len(out))
        if not len(out):
            return
        size = self._dtype.itemsize
        reader, _ = self._running()
        position = 0
        for piece in reader.read(self._files[shard], start * size, (start + len(out)) * size):
            tokens = np.frombuffer(piece, self._dtype)
            out[position : position + len(tokens)] = tokens
            position += len(tokens)

    def read_rows(self, shards: Sequence[int], starts: Sequence[int], out: npt.NDArray[np.int64]) -> None:
        for shard, start, row in zip(shards, starts, out, strict=True):
            self.read_into(shard, start, row)

    def will_need(self, ranges: Ranges) -> None:
        _, ahead = self._running()
        # A range stays together, so that samples announced before their windows come alone, and first.
        ahead.add(
            [
                (self._files[shard], tuple(blocks))
                for shard, start, stop in ranges
                for _, blocks in groupby(self._blocks(shard, start, stop), lambda block: block // self.params.group)
            ]
        )

    def done_with(self, ranges: Ranges) -> None:
        reader, ahead = self._running()
        size = self._dtype.itemsize
        for shard, start, stop in ranges:
            file = self._files[shard]
            for block in self._blocks(shard, start, stop):
                begin = block * BLOCK
                covered = min(stop * size - begin, file.length(block)) - max(start * size - begin, 0)
                covered += self._covered.pop((shard, block), 0)
                if covered >= file.length(block):
                    ahead.discard(file, block)
                    reader.done(file, block)
                else:
                    self._covered[shard, block] = covered

    def close(self) -> None:
        with self._lock:
            self._closed = True
            reader, ahead, self._reader, self._ahead = self._reader, self._ahead, None, None
        if os.getpid() == self._process:
            if ahead is not None:
                ahead.stop()
            if reader is not None:
                reader.close()
            if ahead is not None:
                ahead.join()
            if self._own_store:
                self._store.close()

    def _blocks(self, shard: int, start: int, stop: int) -> range:
        size = self._dtype.itemsize
        _check_range(self._shards[shard], start, stop - start)
        return range(start * size // BLOCK, -(-stop * size // BLOCK)) if stop > start else range(0)

    def _running(self) -> "tuple[BlockReader, ReadAhead]":
        if os.getpid() != self._process:
            self._after_fork()
        with self._lock:
            if self._closed:
                raise RuntimeError("closed")
            if self._reader is None or self._ahead is None:
                self._reader = BlockReader(self._store, self.params, self.counters)
                self._ahead = ReadAhead(self._reader, self.params, self.counters)
                # Dropped without `close`, its threads end too: these refer to the reader alone, and go first.
                weakref.finalize(self, _stop_in, os.getpid(), self._ahead)
            return self._reader, self._ahead

    def _after_fork(self) -> None:
        """Threads, locks and connections are the parent's: begin again."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.counters.after_fork()
        params = self._store.params
        again = open_store(self._store.root)
        assert isinstance(again, RemoteStore)  # noqa: S101 - of the same kind as the one before
        again.params = params
        self._store, self._own_store = again, True
        if self._reader is not None:
            self._reader.abandon()
        self._reader = self._ahead = None


def _stop_in(process: int, ahead: ReadAhead) -> None:
    if os.getpid() == process:  # a child forked meanwhile has no such threads
        ahead.stop()


def _remote_file(corpus: str, entry: FileEntry) -> RemoteFile:
    return RemoteFile(corpus, entry.path, entry.size, entry.crc32c, entry.block_crc32c)
