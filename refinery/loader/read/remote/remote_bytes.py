"""Bytes of a corpus' files behind a network, by number of the file and position."""

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.manifest import FileEntry
from refinery.loader.order.arrays import I64
from refinery.loader.read.remote.blocks import BlockReader, RemoteParams
from refinery.loader.read.remote.read_ahead import ReadAhead
from refinery.loader.read.remote.remote_file import RemoteFile
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.remote_store import PiecesStream, RemoteStore

ByteRange = tuple[int, int, int]  # number of the file, first byte, end


class RemoteBytes:
    """Files behind a network, read through a disk cache that the processes of a host share.

    Every byte is compared with a checksum before it is delivered. Threads start at the first use, so an object can be
    created before a fork, and one that was used before a fork still works in the child. corpus: the manifest's SHA-256,
    part of the cached files' names.
    """

    def __init__(
        self,
        store: RemoteStore,
        files: Sequence[FileEntry],
        *,
        corpus: str,
        params: RemoteParams | None = None,
        counters: ReadCounters | None = None,
    ) -> None:
        self.params = params or RemoteParams()
        self.counters = counters or ReadCounters()
        self._entries, self._corpus = files, corpus
        self._found: dict[int, RemoteFile] = {}  # those that were asked for
        self._store, self._own_store = store, False
        self._reader: BlockReader | None = None
        self._ahead: ReadAhead | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._covered: dict[tuple[int, int], int] = {}  # (file, block) -> bytes, of blocks that are partly done

    def _file(self, number: int) -> RemoteFile:
        found = self._found.get(number)
        if found is None:
            entry = self._entries[number]
            file = RemoteFile(self._corpus, entry.path, entry.size, entry.crc32c, entry.block_crc32c)
            found = self._found.setdefault(number, file)
        return found

    def read_bytes(self, number: int, start: int, stop: int) -> list[memoryview]:
        """Bytes [start, stop) of a file, in order, in pieces. Raises the same errors as BlockReader.read;
        RuntimeError when closed."""
        reader, _ = self._running()
        return reader.read(self._file(number), start, stop)

    def read_cached(self, pieces: I64, itemsize: int, row: int, out: I64) -> I64:
        """Tokens of `itemsize` bytes, as BlockReader.gather copies them; the pieces that are left."""
        reader, _ = self._running()
        return reader.gather(self._file, pieces, itemsize, row, out)

    def read_spans(self, spans: Sequence[ByteRange]) -> Iterator[list[memoryview]]:
        """`read_bytes` of each span, in order; what is missing of any of them is asked for at once."""
        reader, _ = self._running()
        return reader.read_several([(self._file(number), start, stop) for number, start, stop in spans])

    def expect_bytes(self, ranges: npt.ArrayLike) -> None:
        """A hint to prefetch these ranges (`ByteRange` each), in order of need. Never blocks."""
        _, ahead = self._running()
        array = np.asarray(ranges, np.int64).reshape(-1, 3)
        array = array[array[:, 1] < array[:, 2]]
        spans = np.stack([array[:, 0], array[:, 1] // CHECKSUM_BLOCK, -(-array[:, 2] // CHECKSUM_BLOCK)], axis=1)
        # The blocks of a range stay together, so samples announced before their windows are fetched alone, first.
        ahead.add(
            [
                (self._file(number), tuple(blocks))
                for number, begin, end in dict.fromkeys(map(tuple, spans.tolist()))
                for _, blocks in groupby(range(begin, end), lambda block: block // self.params.group)
            ]
        )

    def release_bytes(self, ranges: npt.ArrayLike) -> None:
        """These ranges will not be read again soon, so their blocks can be evicted first."""
        reader, ahead = self._running()
        for number, block, size in _covered(ranges):
            file = self._file(number)
            covered = self._covered.pop((number, block), 0) + size
            if covered >= file.length(block):
                ahead.discard(file, block)
                reader.done(file, block)
            else:
                self._covered[number, block] = covered

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


def bytes_of(ranges: npt.ArrayLike) -> int:
    """Bytes of the whole blocks that these ranges touch."""
    return CHECKSUM_BLOCK * len(_covered(ranges))


def _covered(ranges: npt.ArrayLike) -> list[tuple[int, int, int]]:
    """Number of the file, block, and how many of its bytes the ranges have together, of each block that they touch."""
    array = np.asarray(ranges, np.int64).reshape(-1, 3)
    array = array[array[:, 1] < array[:, 2]]
    first = array[:, 1] // CHECKSUM_BLOCK
    counts = -(-array[:, 2] // CHECKSUM_BLOCK) - first
    number, start, stop = np.repeat(array, counts, axis=0).T
    block = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    begin = block * CHECKSUM_BLOCK
    sizes = np.minimum(stop, begin + CHECKSUM_BLOCK) - np.maximum(start, begin)
    keys, which = np.unique(np.stack([number, block], axis=1), axis=0, return_inverse=True)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, which.ravel(), sizes)
    return [(n, b, size) for (n, b), size in zip(keys.tolist(), sums.tolist(), strict=True)]


def _stop_in(process: int, ahead: ReadAhead) -> None:
    if os.getpid() == process:  # a forked child does not have these threads
        ahead.stop()


class RemoteFileStream(PiecesStream):
    """A file as a seekable stream of verified bytes; wrap it in io.BufferedReader."""

    def __init__(self, source: RemoteBytes, number: int, size: int) -> None:
        super().__init__(size)
        self._source, self._number = source, number

    def piece(self, start: int, stop: int) -> bytes:
        return b"".join(self._source.read_bytes(self._number, start, stop))
