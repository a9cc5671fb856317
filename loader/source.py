"""Tokens of the shards of a split, by shard number and position, from a local folder or from afar.

`open_source` chooses. Both kinds compare every byte with the manifest's checksums before it is delivered; local files
once per process, with their sizes first, remote ones whenever they come from the network or the cache (loader.blocks).
Remote ones also read ahead what was announced.
"""

import mmap
import os
import resource
import threading
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import google_crc32c
import numpy as np
import numpy.typing as npt

from loader.block_checksums import BLOCK, parse_blocks
from loader.blocks import BlockReader, CorruptShard, RemoteFile, SourceParams
from loader.fetch import Counters
from loader.format import FileEntry, FormatError, ShardEntry
from loader.read_ahead import ReadAhead
from loader.remote import RemoteStore
from loader.storage import Store, open_store

Ranges = Sequence[tuple[int, int, int]]


class TokenSource(Protocol):
    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        """Copy tokens [start, start + len(out)) of shard number `shard` into `out` (any integer dtype).

        Raises ValueError for a range outside of the shard, FormatError for wrong files, FetchError or OSError where
        they cannot be read.
        """

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


def read_file(store: Store, entry: FileEntry) -> bytes:
    """A whole file of the manifest, such as an .idx, compared with its size and checksum; read again once when wrong.

    Raises FormatError (CorruptShard) with both values when it is wrong twice or missing.
    """
    url = store.url(entry.path)
    for _ in range(2):
        try:
            data = store.read(entry.path)
        except FileNotFoundError:
            raise FormatError(f"{url}: missing, {entry.size} bytes expected") from None
        found = (len(data), f"{google_crc32c.value(data):08x}")
        if found == (entry.size, entry.crc32c):
            return data
    raise CorruptShard(
        f"{url}: {found[0]} bytes, crc32c {found[1]} found, {entry.size} bytes, crc32c {entry.crc32c} expected"
    )


def _check_range(entry: ShardEntry, start: int, count: int) -> None:
    if start < 0 or start + count > entry.tokens:
        raise ValueError(
            f"tokens: {start} to {start + count} of {entry.bin.path} given, 0 to {entry.tokens} is allowed"
        )


class _Checked:
    """Which blocks of a local .bin were compared with their checksums; it outlives the memory map.

    Blocks are MiBs, or the whole file where the corpus publishes no others. Memory: 5 bytes per block.
    """

    def __init__(self, path: Path, file: FileEntry, identity: tuple[int, ...]) -> None:
        self.identity = identity  # of the file: another one in its place is checked again
        self.block = BLOCK if file.block_crc32c else max(1, file.size)
        values = parse_blocks(file.block_crc32c, file.size, file.crc32c, str(path)) if file.block_crc32c else None
        self.checksums = array("I", [int(file.crc32c, 16)] if values is None else values)
        self.done = bytearray(len(self.checksums))


class _Mapped:
    """A memory-mapped .bin, not empty."""

    def __init__(self, path: Path, file: FileEntry, dtype: np.dtype[Any], known: _Checked | None) -> None:
        self._path, self._size = path, file.size
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            if found.st_size != file.size:
                raise FormatError(f"{path}: its size has changed, {found.st_size} bytes found, {file.size} expected")
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        identity = found.st_dev, found.st_ino, found.st_mtime_ns
        self.checked = known if known and known.identity == identity else _Checked(path, file, identity)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self.tokens: npt.NDArray[Any] = np.frombuffer(self._map, dtype)
        self.per_block = self.checked.block // dtype.itemsize  # tokens
        self.done = self.checked.done

    def check(self, first: int, last: int) -> None:
        """Compare blocks `first` to `last`, each once; CorruptShard where one differs. Threads may repeat a check."""
        size, checksums = self.checked.block, self.checked.checksums
        for block in range(first, last + 1):
            if not self.done[block]:
                begin, end = block * size, min((block + 1) * size, self._size)
                found = 0
                for i in range(begin, end, BLOCK):
                    found = google_crc32c.extend(found, self._bytes[i : min(i + BLOCK, end)])
                if found != checksums[block]:
                    raise CorruptShard(
                        f"{self._path}: bytes {begin} to {end} have crc32c {found:08x}, {checksums[block]:08x} "
                        "expected: the file is damaged; copy or make it again"
                    )
                self.done[block] = 1


class LocalSource:
    """Shards in a local folder, memory-mapped: a read is one copy, the pages are the kernel's.

    The first read that touches a MiB compares it with its published checksum (about 0.1 ms, once per process); in
    corpora that publish none the first read compares the whole file. As many files stay open as half of the limit on
    open files allows; with more shards than that, reading slows down by some 30 us per sample. A file cut short while
    it is open ends the process (SIGBUS): a published corpus must not be changed.
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
        self._open: OrderedDict[int, _Mapped] = OrderedDict()
        self._checked: dict[int, _Checked] = {}
        self._most_open = max(16, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16) // 2)
        self._closed = False

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        stop = start + len(out)
        opened = self._open.get(shard)
        if opened is None:
            if self._closed:
                raise RuntimeError("closed")
            if not self._shards[shard].tokens:
                return _check_range(self._shards[shard], start, len(out))
            opened = self._map(shard)
        if start < 0 or stop > len(opened.tokens):
            _check_range(self._shards[shard], start, len(out))
        if stop > start:
            first, last = start // opened.per_block, (stop - 1) // opened.per_block
            if 0 in opened.done[first : last + 1]:
                opened.check(first, last)
        out[...] = opened.tokens[start:stop]

    def will_need(self, ranges: Ranges) -> None:
        return  # the kernel reads ahead

    def done_with(self, ranges: Ranges) -> None:
        return

    def close(self) -> None:
        self._closed = True
        self._open.clear()  # the maps end with the last view of them

    def _map(self, shard: int) -> _Mapped:
        opened = _Mapped(self._paths[shard], self._shards[shard].bin, self._dtype, self._checked.get(shard))
        self._checked[shard] = opened.checked
        while len(self._open) >= self._most_open:
            self._open.popitem(last=False)
        self._open[shard] = opened
        return opened


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

    Every token is compared with a checksum before it is delivered (for corpora without published block checksums see
    `SourceParams.verify`). The threads start at the first use, so a source may be made before a fork, and one that was
    used works on in the child.
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
