"""Rows on their way to published files: held per file until a batch is worth its shuffle, then packed.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from refinery.transforms.dedup.record_batch import places_by_key
from refinery.transforms.write.shuffle import deserialize_batch, serialize_batch

BATCH_BYTES = 1 << 20  # of the rows of one batch, before compression
HELD_BYTES = 64 << 20  # of all open batches of a worker


class BatchByFile(beam.DoFn):
    """A base of what reads parts and deals their rows out to files: -> (number of the file, batch of rows).

    At the limit all that is held goes, not the largest batch alone: looking for that one again and again would cost a
    pass over all files each time.
    """

    def start_bundle(self) -> None:
        self.batches: dict[int, list[pa.Table]] = {}
        self.sizes: dict[int, int] = {}
        self.held = 0

    def hold(self, table: pa.Table, files: npt.NDArray[np.int64]) -> Iterator[tuple[int, bytes]]:
        """Take in the rows of `table`, of which row i belongs to file `files[i]`; yields the batches that are full."""
        if not table.num_rows:
            return
        for file, places in places_by_key(files):
            rows = table.take(places)
            self.batches.setdefault(file, []).append(rows)
            self.sizes[file] = self.sizes.get(file, 0) + rows.nbytes
            self.held += rows.nbytes
            if self.sizes[file] >= BATCH_BYTES:
                yield from self._take(file)
        if self.held >= HELD_BYTES:
            yield from self._take_all()

    def finish_bundle(self) -> Iterator[Any]:
        for element in self._take_all():
            yield GlobalWindows.windowed_value_at_end_of_window(element)

    def _take_all(self) -> Iterator[tuple[int, bytes]]:
        for file in sorted(self.batches):
            yield from self._take(file)

    def _take(self, file: int) -> Iterator[tuple[int, bytes]]:
        """The rows held for a file as one batch, or as several where there are many for it."""
        table = pa.concat_tables(self.batches.pop(file))
        size = self.sizes.pop(file)
        self.held -= size
        pieces = -(-size // (2 * BATCH_BYTES))
        step = -(-table.num_rows // max(1, pieces))
        for start in range(0, table.num_rows, step):
            yield file, serialize_batch(table.slice(start, step))


def gather(batches: Iterable[bytes]) -> pa.Table:
    """The rows of all batches of a file, sorted as `sort_rows` does."""
    return sort_rows(deserialize_batch(batch) for batch in batches)


def sort_rows(tables: Iterable[pa.Table]) -> pa.Table:
    """All rows, sorted by all columns: the same in whatever order they came. Memory: about three times the rows."""
    table = pa.concat_tables(tables)
    return table.sort_by([(name, "ascending") for name in table.column_names])
