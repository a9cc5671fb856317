"""Which parts of which documents stand in which row, where, and in which order the rows come."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refinery.loader.packing.best_fit import pack_best_fit
from refinery.transforms.write.packing.split_documents import Pieces, split_documents

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """pieces: of split_documents. content: int64 [pieces], the pieces row by row, those of a row in the documents'
    order. bounds: int64 [rows + 1], where each row begins in `content`."""

    pieces: Pieces
    content: I64
    bounds: I64

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.bounds) - 1

    def files(self, documents: int) -> Iterator[tuple[int, int]]:
        """Ranges of consecutive rows that have at most so many documents each, or are a single row."""
        first = 0
        while first < self.rows:
            last = int(np.searchsorted(self.bounds, self.bounds[first] + documents, side="right")) - 1
            last = max(last, first + 1)
            yield first, last
            first = last


def plan_rows(
    lengths: npt.ArrayLike, orders: npt.ArrayLike, capacity: int, borders: Mapping[int, Sequence[int]] | None = None
) -> RowPlan:
    """Rows for documents of so many tokens, given in the corpus' order. orders: uint64 [documents], hashes that decide
    it. borders: see split_documents.

    A row's place is the hash of the piece that opened it, its longest: every row has one, so neither rows of long
    documents nor of short ones come first. Cost: as pack_best_fit.
    """
    pieces = split_documents(lengths, capacity, borders)
    packing = pack_best_fit(pieces.lengths, capacity)
    number = np.arange(len(pieces.documents)) - np.searchsorted(pieces.documents, pieces.documents)
    keys = _mix(np.asarray(orders, np.uint64)[pieces.documents] + number.astype(np.uint64) * np.uint64(_GOLDEN))
    places = np.empty(packing.count, np.int64)
    places[np.lexsort((packing.openers, keys[packing.openers]))] = np.arange(packing.count)
    rows = places[packing.rows]
    counts = np.bincount(rows, minlength=packing.count)
    return RowPlan(pieces, np.argsort(rows, kind="stable"), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x: U64) -> U64:
    """SplitMix64's finalizer (Steele et al. 2014), elementwise: a bijection of 64 bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
