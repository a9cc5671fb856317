"""Rows of Arrow tables in order of all their columns, however many: in memory up to a bound, beyond it sorted on disk.

As sorted_rows.py does for rows of one width: what does not fit is sorted in lots, which wait in temporary files without
a name and are then merged.
"""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.errors import FormatError
from refinery.loader.storage.full_disk import naming_scratch

SORT_BYTES = 64 << 20  # rows held at once; sorting takes about twice as much again
WINDOW_BYTES = 2 << 20  # of each file, about, while they are merged
RUN = "refinery run"  # a column, while files are merged: which of them has the row


def sort_rows(tables: Iterable[pa.Table]) -> pa.Table:
    """All rows, sorted by all columns: the same in whatever order they came. Memory: about three times the rows."""
    table = pa.concat_tables(tables)
    return table.sort_by(_keys(table))


def sorted_tables(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of all tables, of which there is at least one, sorted by all columns, as one table where they fit
    SORT_BYTES, else as several. Tables are read once.

    Memory: about three times SORT_BYTES. Raises DiskFull, which names the place, where there is no room to sort them.
    """
    held: list[pa.Table] = []
    runs: list[_Run] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= SORT_BYTES:
            runs.append(_spill(held))
            held, size = [], 0
    if not runs:
        yield sort_rows(held)
        return
    if held:
        runs.append(_spill(held))
        held = []
    yield from _merge(runs)


def merged_tables(tables: Iterable[pa.Table], more: pa.Table) -> Iterator[pa.Table]:
    """Rows that are in order, with those of `more`, which may be in any, among them. Memory: some of the largest table,
    and three times `more`."""
    more = sort_rows([more])
    if not more.num_rows:
        yield from tables
        return
    window = max(1, more.num_rows * WINDOW_BYTES // max(1, more.nbytes))
    pieces = iter([more.slice(at, window) for at in range(0, more.num_rows, window)])
    yield from _merge([_Run(run, window, more.slice(0, 0)) for run in (iter(tables), pieces)])


def in_order(tables: Iterable[pa.Table], what: str) -> Iterator[pa.Table]:
    """The same tables. Raises FormatError, naming `what`, where rows are not in the order of all their columns."""
    last = None
    for table in tables:
        rows = table if last is None else pa.concat_tables([last, table])
        if not np.array_equal(pc.sort_indices(rows, _keys(rows)).to_numpy(), np.arange(rows.num_rows)):
            raise FormatError(f"{what}: rows are not in the order of their columns; run `refinery verify` for details")
        last = rows.slice(max(0, rows.num_rows - 1))
        yield table


def _keys(table: pa.Table) -> list[tuple[str, str]]:
    return [(name, "ascending") for name in table.column_names if name != RUN]


@dataclass
class _Run:
    """Rows in order, read window by window. waiting: those that were read and not yielded."""

    tables: Iterator[pa.Table]
    window: int
    waiting: pa.Table
    is_read: bool = False

    def fill(self, number: int) -> pa.Table:
        """The rows waiting, at least a window of them where there are as many, with the run's number."""
        while self.waiting.num_rows < self.window and not self.is_read:
            table = next(self.tables, None)
            if table is None:
                self.is_read = True
            else:
                self.waiting = pa.concat_tables([self.waiting, table])
        return self.waiting.append_column(RUN, pa.array(np.full(self.waiting.num_rows, number, np.int32)))


def _spill(tables: list[pa.Table]) -> _Run:
    """A lot of rows, sorted, in a file that has no name."""
    table = sort_rows(tables)
    window = max(1, table.num_rows * WINDOW_BYTES // max(1, table.nbytes))
    with naming_scratch(tempfile.gettempdir(), "sorted rows"):
        file = tempfile.TemporaryFile(prefix="refinery-")  # noqa: SIM115  closed once it is merged
        with pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table, max_chunksize=window)
        file.flush()
    file.seek(0)
    return _Run(_spilled(file), window, table.schema.empty_table())


def _spilled(file: IO[bytes]) -> Iterator[pa.Table]:
    with file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])


def _merge(runs: list[_Run]) -> Iterator[pa.Table]:
    while True:
        rows = pa.concat_tables([run.fill(number) for number, run in enumerate(runs)])
        if not rows.num_rows:
            break
        order = pc.sort_indices(rows, _keys(rows))
        of_run = rows[RUN].combine_chunks().take(order).to_numpy()
        # rows behind the last one of a run that has more in its file wait until these are here
        ends: list[Any] = [np.flatnonzero(of_run == number)[-1] for number, run in enumerate(runs) if not run.is_read]
        count = int(min(ends, default=rows.num_rows - 1)) + 1
        yield rows.take(order.slice(0, count)).drop_columns([RUN])
        for number, ready in enumerate(np.bincount(of_run[:count], minlength=len(runs)).tolist()):
            runs[number].waiting = runs[number].waiting.slice(ready)
