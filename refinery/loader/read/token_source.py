"""Where a stream's tokens come from: the shards of a split, by shard number and position, on local disk or remote.

Every byte is compared with the manifest's checksums before it is delivered: local files once per process, after their
sizes (loader.local), remote ones whenever they come from the network or from the cache (loader.remote). Remote sources
also prefetch the ranges that are announced.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.order.arrays import I64
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.remote_source import RemoteSource
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Store

# Shard number, first token and end of each range, int64 [n, 3] or what makes one.
TokenRanges = npt.NDArray[np.int64] | Sequence[tuple[int, int, int]]


class Lost(NamedTuple):
    """Tokens of a row that could not be read: the row as of `read_pieces`, shard, first token there, how many (size),
    and their place in the row."""

    row: int
    shard: int
    start: int
    size: int
    place: int


class TokenSource(Protocol):
    """What LocalSource and RemoteSource have in common."""

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        """Copy tokens [start, start + len(out)) of shard number `shard` into `out` (any integer dtype).

        Raises ValueError for a range outside the shard, FormatError for wrong files, FetchError or OSError if they
        cannot be read.
        """

    def read_pieces(self, pieces: I64, row: int, out: I64) -> Sequence[Lost] | None:
        """`read_into` for each piece, int64 [n, 5], as Domain.pieces gives them, by row; `out`: rows from `row` on.

        Returns what could not be read and was filled, where a source does that (refinery.loader.read.damage)."""

    def will_need(self, ranges: TokenRanges) -> None:
        """A hint to prefetch these ranges, in order of need. Never blocks."""

    def done_with(self, ranges: TokenRanges) -> None:
        """These ranges will not be read again soon, so their blocks can be evicted first."""

    def close(self) -> None:
        """Free all resources. Later reads raise RuntimeError."""


def open_token_source(
    store: Store,
    shards: Sequence[ShardEntry],
    dtype: npt.DTypeLike,
    *,
    corpus: str,
    params: RemoteParams | None = None,
    counters: ReadCounters | None = None,
    drawn: Collection[str] | None = None,
    tolerant: bool = False,
) -> LocalSource | RemoteSource:
    """The source of `shards`, numbered from 0. corpus: the manifest's SHA-256, part of the cached files' names.
    drawn: the domains that will be read from, None for all. tolerant: local files that are missing or of another size
    are found when they are read, not now.

    Raises FormatError if a local file is missing or does not have the manifest's size.
    """
    if isinstance(store, RemoteStore):
        return RemoteSource(store, shards, dtype, corpus=corpus, params=params, counters=counters, drawn=drawn)
    return LocalSource(store, shards, dtype, drawn, tolerant)
