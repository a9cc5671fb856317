"""Tokens of several corpora's shards under one numbering."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.read.local.mapped_file import gather
from refinery.loader.read.token_source import TokenRanges, TokenSource


class JoinedSource:
    """A TokenSource over others. places: of each number, which source, and the number there."""

    def __init__(self, sources: Sequence[TokenSource], places: Sequence[tuple[int, int]]) -> None:
        self._sources, self._places = list(sources), list(places)
        self._numbers = np.array(self._places, np.int64).reshape(-1, 2)
        self._local = [source for source in sources if isinstance(source, LocalSource)]

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        which, number = self._places[shard]
        self._sources[which].read_into(number, start, out)

    def read_pieces(self, pieces: I64, row: int, out: I64) -> None:
        if len(self._local) == len(self._sources):
            self._gather(pieces, row, out)
            return
        sources, numbers = self._numbers[pieces[:, 1]].T
        for which in np.unique(sources).tolist():
            mine = pieces[sources == which]
            mine[:, 1] = numbers[sources == which]
            self._sources[which].read_pieces(mine, row, out)

    @property
    def read_with_labels(self) -> Callable[[I64, int, I64, I64], None] | None:
        """As that of LocalSource; None where a source is not local."""
        return self._gather if len(self._local) == len(self._sources) else None

    def _gather(self, pieces: I64, row: int, out: I64, labels: I64 | None = None) -> None:
        now, files = time.monotonic(), {}
        for shard in set(pieces[:, 1].tolist()):
            which, number = self._places[shard]
            files[shard] = self._local[which].opened(number, now)
        gather(files, pieces, row, out, labels)

    def will_need(self, ranges: TokenRanges) -> None:
        for which, some in enumerate(self._split(ranges)):
            self._sources[which].will_need(some)

    def done_with(self, ranges: TokenRanges) -> None:
        for which, some in enumerate(self._split(ranges)):
            self._sources[which].done_with(some)

    def close(self) -> None:
        for source in self._sources:
            source.close()

    def _split(self, ranges: TokenRanges) -> list[I64]:
        """Ranges by source, in order; those of local files are of no use."""
        array = np.asarray(ranges, np.int64).reshape(-1, 3)
        which = self._numbers[array[:, 0], 0]
        array = np.stack([self._numbers[array[:, 0], 1], array[:, 1], array[:, 2]], axis=1)
        return [array[which == source] for source in range(len(self._sources))]
