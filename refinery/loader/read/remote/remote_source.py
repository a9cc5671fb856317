"""Tokens of a split's shards behind a network, by shard number and position."""

from collections.abc import Collection, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.shard_files import check_token_range
from refinery.loader.format.shard_list import Bins, as_shards, check_bin_sizes
from refinery.loader.native import rows
from refinery.loader.order.arrays import I64
from refinery.loader.read.remote.block_file import PAGE
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.remote_bytes import ByteRange, RemoteBytes
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.remote_store import RemoteStore


class RemoteSource(RemoteBytes):
    """Shards behind a network. Every token is compared with a checksum before it is delivered. drawn: the domains that
    will be read from, None for all."""

    def __init__(
        self,
        store: RemoteStore,
        shards: Sequence[ShardEntry],
        dtype: npt.DTypeLike,
        *,
        corpus: str,
        params: RemoteParams | None = None,
        counters: ReadCounters | None = None,
        drawn: Collection[str] | None = None,
    ) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._shards = as_shards(shards)
        self._tokens = self._shards.counts("tokens", drawn)
        check_bin_sizes(store, self._shards, self._dtype, drawn)
        super().__init__(store, Bins(self._shards), corpus=corpus, params=params, counters=counters)

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        span = self._span(shard, start, len(out))
        if len(out):
            self._copy(self.read_bytes(*span), out)

    def read_pieces(self, pieces: I64, row: int, out: I64) -> None:
        """What is in the cache is read from there first, the others together: those less than a page of the cache apart
        at once, so no page is read or hashed for each."""
        pieces = self.read_cached(pieces, self._dtype.itemsize, row, out)
        if not len(pieces):
            return
        near, which = PAGE // self._dtype.itemsize, np.empty(len(pieces), np.int64)
        order = np.lexsort((pieces[:, 2], pieces[:, 1]))
        shards: list[tuple[int, int, int]] = []  # shard, first token and end of each span
        for i, (shard, start, count) in zip(order.tolist(), pieces[order, 1:4].tolist(), strict=True):
            if shards and shards[-1][0] == shard and start - shards[-1][2] < near:
                shards[-1] = shard, shards[-1][1], max(shards[-1][2], start + count)
            else:
                shards.append((shard, start, start + count))
            which[i] = len(shards) - 1
        spans = [self._span(shard, start, stop - start) for shard, start, stop in shards]
        found = {i: (self._joined(parts), None) for i, parts in enumerate(self.read_spans(spans))}
        moved = pieces.copy()
        moved[:, 1] = which
        moved[:, 2] -= np.array([start for _, start, _ in shards], np.int64)[which]
        rows.gather(found, 1, moved, row, out)

    def _joined(self, parts: Sequence[memoryview]) -> npt.NDArray[Any]:
        arrays = [np.frombuffer(part, self._dtype) for part in parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, self._dtype), *arrays])

    def _span(self, shard: int, start: int, count: int) -> ByteRange:
        if start < 0 or start + count > self._tokens[shard]:
            check_token_range(self._shards[shard], start, count)
        return shard, start * self._dtype.itemsize, (start + count) * self._dtype.itemsize

    def _copy(self, pieces: Sequence[memoryview], out: npt.NDArray[Any]) -> None:
        position = 0
        for piece in pieces:
            tokens = np.frombuffer(piece, self._dtype)
            out[position : position + len(tokens)] = tokens
            position += len(tokens)

    def will_need(self, ranges: npt.ArrayLike) -> None:
        self.expect_bytes(self._in_bytes(ranges))

    def done_with(self, ranges: npt.ArrayLike) -> None:
        self.release_bytes(self._in_bytes(ranges))

    def _in_bytes(self, ranges: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """int64 [n, 3]. Raises ValueError for a range outside its shard."""
        array = np.asarray(ranges, np.int64).reshape(-1, 3)
        number, start, stop = array.T
        wrong = (start < 0) | (stop < start) | (stop > self._tokens[number])
        for i in np.flatnonzero(wrong)[:1].tolist():
            check_token_range(self._shards[int(number[i])], int(start[i]), int(stop[i] - start[i]))
        return cast(npt.NDArray[np.int64], array * np.array([1, self._dtype.itemsize, self._dtype.itemsize]))
