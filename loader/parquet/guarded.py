"""Parquet files that anybody may have written, opened as pyarrow does: every read is bounded.

The tools that look at a finished corpus open its files here. Whole files in batches: batches.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.parquet.batches import (
    BATCH_ROWS,
    Batches,
    batches_of,
    check_columns,
    check_count,
    check_group,
    within_memory,
)
from refinery.loader.parquet.pages import Pages
from refinery.loader.parquet.parquet_file import footer_of, readable


class GuardedFile(pq.ParquetFile):
    """A Parquet file whose row groups are looked at before they are read, as in `bounded_parquet`.

    Methods raise FormatError, which names the file, for pages, values and tables beyond the limits of batches.py, for
    columns that are not there, and for damage. Cost: a read of 512 bytes for each page that is read.
    """

    def __init__(self, stream: BinaryIO, url: str) -> None:
        self._stream, self._url = stream, url
        self._columns = footer_of(stream, url)
        self._size = stream.seek(0, 2)
        self._pages: dict[tuple[int, frozenset[str] | None], Pages] = {}
        stream.seek(0)
        with readable(url):
            super().__init__(stream, page_checksum_verification=True)
        check_count(self, url, len(self._columns))

    def read_row_group(
        self, i: int, columns: Sequence[str] | None = None, use_threads: bool = False, **options: Any
    ) -> pa.Table:
        """A row group of these columns (all). Memory: at most as `bounded_table`."""
        return self._table([i], columns)

    def read_row_groups(
        self, row_groups: Sequence[int], columns: Sequence[str] | None = None, use_threads: bool = False, **options: Any
    ) -> pa.Table:
        """Row groups of these columns (all) together. Memory: at most as `bounded_table`."""
        return self._table(row_groups, columns)

    def read(self, columns: Sequence[str] | None = None, use_threads: bool = False, **options: Any) -> pa.Table:
        """All rows of these columns (all). Memory: at most as `bounded_table`."""
        return self._table(range(self.num_row_groups), columns)

    def iter_batches(
        self,
        batch_size: int = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        use_threads: bool = False,
        **options: Any,
    ) -> Batches:
        """Batches of a row group each, of `batch_size` rows and MAX_BATCH bytes at most."""
        check_columns(self.schema_arrow, self._url, columns)
        for group in range(self.num_row_groups) if row_groups is None else row_groups:
            pages = self._measured(group, columns)
            # The rows of pyarrow's own iterator, of one row group and with a batch size that fits.
            yield from batches_of(super().iter_batches, self.schema_arrow, self._url, group, pages, columns, batch_size)

    def _table(self, groups: Sequence[int], columns: Sequence[str] | None) -> pa.Table:
        held = list(within_memory(self.iter_batches(row_groups=groups, columns=columns), self._url, self._size))
        schema = self.schema_arrow
        table = pa.Table.from_batches(held).combine_chunks() if held else schema.empty_table()
        return table if columns is None else table.select(list(columns))

    def _measured(self, group: int, columns: Sequence[str] | None) -> Pages:
        key = group, None if columns is None else frozenset(columns)
        if key not in self._pages:
            self._pages[key] = check_group(self._stream, self._url, group, self._columns[group], columns)
        return self._pages[key]


@contextmanager
def guarded_parquet(stream: BinaryIO, url: str) -> Iterator[GuardedFile]:
    """A stored file as a GuardedFile; the stream is closed at the end. Raises as it does."""
    with stream, readable(url), GuardedFile(stream, url) as file:
        yield file
