"""A domain whose samples are rows of whole documents: what streams do with samples, done with the rows of a table."""

import numpy as np

from refinery.loader.order.arrays import I64
from refinery.loader.packing.row_table import RowTable
from refinery.loader.tokens.samples import DocumentStarts, Domain, places_in_rows

_CHUNK = 1 << 16  # rows that are counted at a time


class PieceStarts(DocumentStarts):
    """Documents of rows of BestFitDomain: every piece of such a row is one, or begins where a long one was cut."""

    def inside(self, pieces: I64, row: int, rows: int) -> tuple[I64, I64]:
        return np.ascontiguousarray(pieces[:, 4]), np.bincount(pieces[:, 0] - row, minlength=rows).astype(np.int64)


class BestFitDomain(Domain):
    """The rows of `table` over the tokens of `inner`; with `rows` only the first so many.

    `tokens` are those that are inputs of rows, without padding. Where Domain counts in tokens of one sequence
    (`ranges`, `ranges_of`), this counts in places of rows: those of row i are [i S, (i + 1) S).
    """

    def __init__(self, inner: Domain, table: RowTable, rows: int | None = None) -> None:
        self._inner, self._table, self.length = inner, table, inner.length
        self._last: tuple[I64, tuple[I64, I64, I64, I64]] | None = None
        self.samples = chosen = table.rows if rows is None else min(rows, table.rows)
        tokens = np.diff(inner.starts)
        if chosen < table.rows:
            tokens = np.zeros(len(inner.numbers), np.int64)
            for first in range(0, chosen, _CHUNK):
                tokens += self.inputs_per_shard(np.arange(first, min(first + _CHUNK, chosen)))
        arrays = inner.numbers, tokens, inner.labels
        self._begin(inner.name, inner.length, inner.shards, int(tokens.sum()), lambda: arrays)
        self.samples = chosen

    def valid(self, samples: I64) -> I64:
        rows, _, sizes, _ = self._rows(samples)
        return np.bincount(rows, weights=sizes, minlength=len(samples)).astype(np.int64)

    def first_shards(self, samples: I64) -> I64:
        first = self._table.bounds[np.maximum(samples, 0)]
        return np.searchsorted(self._inner.starts, self._table.starts[first], "right") - 1

    def pieces(self, samples: I64) -> I64:
        rows, starts, sizes, places = self._rows(samples)
        found = self._inner.cut(starts, starts + sizes)
        piece = found[:, 0]
        return np.stack([rows[piece], *found.T[1:4], found[:, 4] + places[piece]], axis=1)

    def ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        found, _ = self.ranges_of(np.array([first]), np.array([stop]))
        return [(number, begin, end) for number, begin, end in found.tolist()]

    def ranges_of(self, first: I64, stop: I64) -> tuple[I64, I64]:
        """Tokens of the rows of many spans of places, and how many ranges each has. A span ends with a row, or with the
        first place behind one, which counts as none."""
        begin = first // self.length
        end = np.clip(-(-(stop - 1) // self.length), begin, self.samples)
        counts = end - begin
        samples = np.repeat(end - np.cumsum(counts), counts) + np.arange(int(counts.sum()))
        rows, starts, sizes, _ = self._rows(samples)
        ends, of = starts + np.minimum(sizes, self.length), np.repeat(np.arange(len(counts)), counts)[rows]
        order = np.lexsort((starts, of))  # documents that were neighbours are again: rows of a block are most of it
        starts, ends, of = starts[order], ends[order], of[order]
        is_first = np.append(True, (starts[1:] != ends[:-1]) | (of[1:] != of[:-1]))[: len(of)]
        first = np.flatnonzero(is_first)
        found, each = self._inner.ranges_of(starts[first], ends[np.append(first[1:], len(of))[: len(first)] - 1])
        of = of[first]
        return found, np.bincount(of, weights=each, minlength=len(counts)).astype(np.int64)

    def inputs_per_shard(self, samples: I64) -> I64:
        _, starts, sizes, _ = self._rows(samples)
        index = np.searchsorted(self._inner.starts, starts, "right") - 1
        counts = np.zeros(len(self._inner.numbers), np.int64)
        np.add.at(counts, index, np.minimum(sizes, self.length))
        return counts

    def _rows(self, samples: I64) -> tuple[I64, I64, I64, I64]:
        """(row, first token of the domain, tokens read, place in the row) of each piece, row by row; a sample of -1 has
        none. Cost: 0.1 us a row."""
        if self._last is not None and np.array_equal(self._last[0], samples):
            return self._last[1]
        bounds, real = self._table.bounds, np.clip(samples, 0, max(self.samples - 1, 0))
        first = bounds[real]
        counts = np.where(samples < 0, 0, bounds[np.minimum(real + 1, self._table.rows)] - first)
        rows = np.repeat(np.arange(len(samples)), counts)
        which = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(rows))
        sizes = self._table.reads[which].astype(np.int64)
        found = rows, self._table.starts[which], sizes, places_in_rows(sizes, counts)
        self._last = samples.copy(), found
        return found
