"""A domain whose samples are rows of whole documents: what streams do with samples, done with the rows of a table."""

import numpy as np

from refinery.loader.order.arrays import I64, distinct
from refinery.loader.packing.layouts import Layouts
from refinery.loader.packing.row_table import RowTable
from refinery.loader.read.samples import DocumentStarts, Domain

PERIODS = 1 << 16  # epochs until rows come again
_CHUNK = 1 << 16  # rows that are counted at a time


class PieceStarts(DocumentStarts):
    """Documents of rows of BestFitDomain: every piece of such a row is one, or begins where a long one was cut."""

    def inside(self, pieces: I64, row: int, rows: int) -> tuple[I64, I64]:
        return np.ascontiguousarray(pieces[:, 4]), np.bincount(pieces[:, 0] - row, minlength=rows).astype(np.int64)


class BestFitDomain(Domain):
    """The rows of `table` over the tokens of `inner`; with `rows` only the first so many. noise: as of Layouts.
    with_empty: the rows of a block that have no piece are samples, too, and empty.

    With noise a sample is a row of an epoch: number epoch x rows + row (`first_of`). With `rows` each epoch has those
    of the first, since others would have other documents.

    `tokens` are those that are inputs of rows, without padding. Where Domain counts in tokens of one sequence
    (`ranges`, `ranges_of`), this counts in places of rows: those of row i are [i S, (i + 1) S).
    """

    def __init__(
        self, inner: Domain, table: RowTable, rows: int | None = None, noise: int = 0, with_empty: bool = False
    ) -> None:
        self._inner, self.length = inner, inner.length
        self.table = trimmed = table.trimmed()
        self._layouts = Layouts(trimmed, inner.starts, inner.length, noise)
        # Where each block's rows begin among samples and in the layouts, if these differ.
        self._bounds = (table.row_bounds, trimmed.row_bounds) if with_empty and trimmed is not table else None
        table = table if with_empty else trimmed
        self._last: tuple[I64, I64] | None = None
        self.samples = chosen = table.rows if rows is None else min(rows, table.rows)
        if noise and chosen == table.rows:
            self.periods = max(1, min(PERIODS, 2**62 // max(chosen * self.length, 1)))
        tokens = np.diff(inner.starts)
        if chosen < table.rows:
            tokens = np.zeros(len(inner.numbers), np.int64)
            for first in range(0, chosen, _CHUNK):
                tokens += self.inputs_per_shard(np.arange(first, min(first + _CHUNK, chosen)))
        arrays = inner.numbers, tokens, inner.labels
        self._begin(inner.name, inner.length, inner.shards, int(tokens.sum()), lambda: arrays)
        self.samples = self.first = chosen

    @property
    def sequence(self) -> Domain:
        return self._inner

    def inputs_of(self, samples: I64) -> tuple[I64, I64]:
        _, part, start, sizes, places = self._pieces(samples).T
        starts = self._inner.starts[part] + start
        return starts, starts + np.minimum(sizes, self.length - places)

    def valid(self, samples: I64) -> I64:
        found = self._pieces(samples)
        return np.bincount(found[:, 0], weights=found[:, 3], minlength=len(samples)).astype(np.int64)

    def first_shards(self, samples: I64) -> I64:
        found = self._pieces(np.maximum(samples, 0))
        at = np.searchsorted(found[:, 0], np.arange(len(samples)))
        first: I64 = np.append(found[:, 1], 0)[at]  # an empty row has any
        return first

    def pieces(self, samples: I64) -> I64:
        found = self._pieces(samples)
        if self._inner.is_concatenated:
            return np.stack([found[:, 0], self._inner.numbers[found[:, 1]], *found.T[2:]], axis=1)
        starts = self._inner.starts[found[:, 1]] + found[:, 2]
        inside = self._inner.cut(starts, starts + found[:, 3])
        piece = inside[:, 0]
        return np.stack([found[piece, 0], *inside.T[1:4], inside[:, 4] + found[piece, 4]], axis=1)

    def ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        found, _ = self.ranges_of(np.array([first]), np.array([stop]))
        return [(number, begin, end) for number, begin, end in found.tolist()]

    def ranges_of(self, first: I64, stop: I64) -> tuple[I64, I64]:
        """Tokens of the rows of many spans of places, and how many ranges each has. A span ends with a row, or with the
        first place behind one, which counts as none; it is in one epoch."""
        begin = first // self.length
        behind = (begin // max(self.samples, 1) + 1) * self.samples if self.periods > 1 else self.samples
        end = np.clip(-(-(stop - 1) // self.length), begin, np.maximum(begin, behind))
        counts = end - begin
        samples = np.repeat(end - np.cumsum(counts), counts) + np.arange(int(counts.sum()))
        rows, part, start, sizes, places = self._pieces(samples).T
        starts = self._inner.starts[part] + start
        ends, of = starts + np.minimum(sizes, self.length - places), np.repeat(np.arange(len(counts)), counts)[rows]
        order = np.lexsort((starts, of))  # documents that were neighbours are again: rows of a block are most of it
        starts, ends, of = starts[order], ends[order], of[order]
        is_first = np.append(True, (starts[1:] != ends[:-1]) | (of[1:] != of[:-1]))[: len(of)]
        first = np.flatnonzero(is_first)
        found, each = self._inner.ranges_of(starts[first], ends[np.append(first[1:], len(of))[: len(first)] - 1])
        of = of[first]
        return found, np.bincount(of, weights=each, minlength=len(counts)).astype(np.int64)

    def inputs_per_shard(self, samples: I64) -> I64:
        _, part, _, sizes, places = self._pieces(samples).T
        inputs = np.minimum(sizes, self.length - places)
        return np.bincount(part, weights=inputs, minlength=len(self._inner.numbers)).astype(np.int64)

    def _pieces(self, samples: I64) -> I64:
        """As Layouts.find, of samples."""
        last = self._last  # once: another thread may replace it
        if last is not None and np.array_equal(last[0], samples):
            return last[1]
        samples = np.array(samples)
        epochs = (
            np.maximum(samples, 0) // max(self.samples, 1) if self.periods > 1 else np.zeros(len(samples), np.int64)
        )
        rows = np.where(samples < 0, -1, samples - epochs * self.samples)
        parts = []
        rows = self._with_pieces(rows)
        for epoch in distinct(epochs[rows >= 0]).tolist() or [0]:
            parts.append(self._layouts.find(np.where(epochs == epoch, rows, -1), epoch))
        found = np.concatenate(parts) if len(parts) > 1 else parts[0]
        if len(parts) > 1:
            found = found[np.argsort(found[:, 0], kind="stable")]
        found.flags.writeable = False
        self._last = samples, found
        return found

    def _with_pieces(self, rows: I64) -> I64:
        """The rows of the layouts; -1 where one has no piece."""
        if self._bounds is None:
            return rows
        samples, layouts = self._bounds
        block = np.maximum(np.searchsorted(samples, rows, "right") - 1, 0)
        row = layouts[block] + rows - samples[block]
        return np.where((rows >= 0) & (row < layouts[np.minimum(block + 1, len(layouts) - 1)]), row, -1)
