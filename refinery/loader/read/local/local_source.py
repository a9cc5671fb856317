"""Tokens of a split's shards in a local folder, by shard number and position."""

import resource
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.shard_files import check_token_range, describe_size
from refinery.loader.format.shard_list import as_shards, check_bin_sizes
from refinery.loader.order.arrays import I64
from refinery.loader.read.local.mapped_file import MappedFile, VerifiedBlocks, gather
from refinery.loader.storage.store import Store


class LocalSource:
    """Shards in a local folder, memory-mapped: a read is one copy out of the page cache. drawn: the domains that will
    be read from, None for all. Files of other domains may be missing. tolerant: any may, until it is read.

    The first read that touches a MiB compares it with its published checksum (about 0.1 ms, once per process). At most
    half of the limit on open files is kept open; with more shards than that, reading costs about 30 us more per sample.

    A published corpus must not be changed. If it is, a read 1 ms or more after the last check of the file detects it:
    FormatError if the size changed, and a file that was written to is verified again. A file that is truncated between
    a check and the copy after it still kills the process (SIGBUS). Avoiding that takes reads without a memory map,
    which take twice as long (refinery.loader.read.local.mapped_file).
    """

    def __init__(
        self,
        store: Store,
        shards: Sequence[ShardEntry],
        dtype: npt.DTypeLike,
        drawn: Collection[str] | None = None,
        tolerant: bool = False,
    ) -> None:
        if store.local_path("x") is None:
            raise ValueError(f"store: {store.root} given, a local folder is allowed")
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._store, self._shards = store, as_shards(shards)
        for kind in () if tolerant else ("bin", "idx"):
            for path, size in self._shards.files(kind, drawn):
                if (found := store.size(path)) != size:
                    raise FormatError(f"{store.url(path)}: {describe_size(found)} found, {size} expected")
        check_bin_sizes(store, self._shards, self._dtype, drawn)
        # No lock: single dict operations are atomic, and a child forked while a lock is held would deadlock on it.
        self._open: OrderedDict[int, MappedFile] = OrderedDict()
        self._verified: dict[int, VerifiedBlocks] = {}
        self._most_open = max(16, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16) // 2)
        self._closed = False

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        out[...] = self.verified(shard, start, len(out), time.monotonic())

    def read_pieces(self, pieces: I64, row: int, out: I64) -> None:
        now = time.monotonic()
        gather({shard: self.opened(shard, now) for shard in set(pieces[:, 1].tolist())}, pieces, row, out)

    def read_with_labels(self, pieces: I64, row: int, out: I64, labels: I64) -> None:
        """As `read_pieces`, and every token also to labels, `out` without its first column: int64 [rows, S]."""
        now = time.monotonic()
        gather({shard: self.opened(shard, now) for shard in set(pieces[:, 1].tolist())}, pieces, row, out, labels)

    def opened(self, shard: int, now: float) -> MappedFile:
        """The map of a shard with tokens, unchanged, to be read at once. now: time.monotonic()."""
        opened = self._open.get(shard)
        if opened is None:
            if self._closed:
                raise RuntimeError("closed")
            opened = self._map(shard)
        return opened if now < opened.check_at else self._check_unchanged(shard, opened, now)

    def verified(self, shard: int, start: int, count: int, now: float) -> npt.NDArray[Any]:
        """Tokens [start, start + count) of a shard as a view of the map, to be copied at once. now: time.monotonic().

        Raises what `read_into` raises.
        """
        if not self._shards[shard].tokens and not self._closed:
            check_token_range(self._shards[shard], start, count)
            return np.empty(0, self._dtype)
        opened, stop = self.opened(shard, now), start + count
        if start < 0 or stop > len(opened.tokens):
            check_token_range(self._shards[shard], start, count)
        if stop > start:
            opened.verify(start, stop)
        return opened.tokens[start:stop]

    def will_need(self, ranges: npt.ArrayLike) -> None:
        return  # the kernel reads ahead

    def done_with(self, ranges: npt.ArrayLike) -> None:
        return

    def close(self) -> None:
        self._closed = True
        self._open.clear()  # a file is unmapped with the last view of it

    def _map(self, shard: int) -> MappedFile:
        file = self._shards[shard].bin
        path = self._store.local_path(file.path)
        assert path is not None  # noqa: S101 - it is a local folder
        try:
            opened = MappedFile(path, file, self._dtype, self._verified.get(shard))
        except FileNotFoundError:
            raise FormatError(f"{path}: {describe_size(None)} found, {file.size} expected") from None
        self._verified[shard] = opened.verified
        while len(self._open) >= self._most_open:
            self._open.popitem(last=False)
        self._open[shard] = opened
        return opened

    def _check_unchanged(self, shard: int, opened: MappedFile, now: float) -> MappedFile:
        """The same map, or a new one if the file was written to."""
        try:
            if opened.is_unchanged(now):
                return opened
        except FormatError:
            self._open.pop(shard, None)  # if its size is restored later, the file is mapped and verified again
            raise
        self._open.pop(shard, None)
        return self._map(shard)
