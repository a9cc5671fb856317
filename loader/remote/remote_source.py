"""Tokens of a split's shards behind a network, by shard number and position."""

import os
import threading
import weakref
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.manifest import FileEntry, ShardEntry
from refinery.loader.format.shard_files import check_bin_size, check_token_range
from refinery.loader.remote.blocks import BlockReader, RemoteFile, RemoteParams
from refinery.loader.remote.read_ahead import ReadAhead
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.remote_store import RemoteStore


class RemoteSource:
    """Shards behind a network, read through a disk cache that the processes of a host share.

    Every token is compared with a checksum before it is delivered. Threads start at the first use, so a source can be
    created before a fork, and one that was used before a fork still works in the child.
    """

    def __init__(
        self,
        store: RemoteStore,
        shards: Sequence[ShardEntry],
        dtype: npt.DTypeLike,
        *,
        corpus: str,
        params: RemoteParams | None = None,
        counters: ReadCounters | None = None,
    ) -> None:
        self.params = params or RemoteParams()
        self.counters = counters or ReadCounters()
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._shards = list(shards)
        for entry in shards:
            check_bin_size(store, entry, self._dtype)
        self._files = [_remote_file(corpus, entry.bin) for entry in shards]
        self._store, self._own_store = store, False
        self._reader: BlockReader | None = None
        self._ahead: ReadAhead | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._covered: dict[tuple[int, int], int] = {}  # (shard, block) -> bytes, of blocks that are partly done

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        check_token_range(self._shards[shard], start, len(out))
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

    def will_need(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        _, ahead = self._running()
        # The blocks of a range stay together, so that samples announced before their windows are fetched alone, first.
        ahead.add(
            [
                (self._files[shard], tuple(blocks))
                for shard, start, stop in ranges
                for _, blocks in groupby(self._blocks(shard, start, stop), lambda block: block // self.params.group)
            ]
        )

    def done_with(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        reader, ahead = self._running()
        size = self._dtype.itemsize
        for shard, start, stop in ranges:
            file = self._files[shard]
            for block in self._blocks(shard, start, stop):
                begin = block * CHECKSUM_BLOCK
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
        check_token_range(self._shards[shard], start, stop - start)
        return range(start * size // CHECKSUM_BLOCK, -(-stop * size // CHECKSUM_BLOCK)) if stop > start else range(0)

    def _running(self) -> tuple[BlockReader, ReadAhead]:
        if os.getpid() != self._process:
            self._after_fork()
        with self._lock:
            if self._closed:
                raise RuntimeError("closed")
            if self._reader is None or self._ahead is None:
                self._reader = BlockReader(self._store, self.params, self.counters)
                self._ahead = ReadAhead(self._reader, self.params, self.counters)
                # A source that is dropped without `close` stops its threads too. They refer to the reader, not to self.
                weakref.finalize(self, _stop_in, os.getpid(), self._ahead)
            return self._reader, self._ahead

    def _after_fork(self) -> None:
        """Threads, locks and connections belong to the parent: start over in the child."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.counters.after_fork()
        params = self._store.params
        again = open_store(self._store.root)
        assert isinstance(again, RemoteStore)  # noqa: S101 - the same kind of store as before
        again.params = params
        self._store, self._own_store = again, True
        if self._reader is not None:
            self._reader.abandon()
        self._reader = self._ahead = None


def _stop_in(process: int, ahead: ReadAhead) -> None:
    if os.getpid() == process:  # a forked child does not have these threads
        ahead.stop()


def _remote_file(corpus: str, entry: FileEntry) -> RemoteFile:
    return RemoteFile(corpus, entry.path, entry.size, entry.crc32c, entry.block_crc32c)
