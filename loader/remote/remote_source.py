"""Tokens of a split's shards behind a network, by shard number and position."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.shard_files import check_bin_size, check_token_range
from refinery.loader.remote.blocks import RemoteParams
from refinery.loader.remote.remote_bytes import ByteRange, RemoteBytes
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.remote_store import RemoteStore


class RemoteSource(RemoteBytes):
    """Shards behind a network. Every token is compared with a checksum before it is delivered."""

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
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._shards = list(shards)
        for entry in shards:
            check_bin_size(store, entry, self._dtype)
        super().__init__(store, [entry.bin for entry in shards], corpus=corpus, params=params, counters=counters)

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        check_token_range(self._shards[shard], start, len(out))
        if not len(out):
            return
        size = self._dtype.itemsize
        position = 0
        for piece in self.read_bytes(shard, start * size, (start + len(out)) * size):
            tokens = np.frombuffer(piece, self._dtype)
            out[position : position + len(tokens)] = tokens
            position += len(tokens)

    def read_rows(self, shards: Sequence[int], starts: Sequence[int], out: npt.NDArray[np.int64]) -> None:
        for shard, start, row in zip(shards, starts, out, strict=True):
            self.read_into(shard, start, row)

    def will_need(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        self.expect_bytes(self._in_bytes(ranges))

    def done_with(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        self.release_bytes(self._in_bytes(ranges))

    def _in_bytes(self, ranges: Sequence[tuple[int, int, int]]) -> list[ByteRange]:
        for shard, start, stop in ranges:
            check_token_range(self._shards[shard], start, stop - start)
        size = self._dtype.itemsize
        return [(shard, start * size, stop * size) for shard, start, stop in ranges]
