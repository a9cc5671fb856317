"""Parquet files that anybody may have written, opened as pyarrow does: every read is bounded.

The tools that look at a finished corpus open its files here. Whole files in batches: batches.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError, missing_file
from refinery.loader.format.parquet.batches import (
    BATCH_ROWS,
    Batches,
    batches_of,
    check_columns,
    check_count,
    check_group,
    check_schema,
    within_memory,
)
from refinery.loader.format.parquet.pages import TAIL, Column, Pages, footer_bytes
from refinery.loader.format.parquet.parquet_file import Source, footer_of, opened, readable
from refinery.loader.storage.store import Store


class GuardedFile(pq.ParquetFile):
    """A Parquet file whose row groups are looked at before they are read, as in `bounded_parquet`.

    Methods raise FormatError, which names the file, for pages, values and tables beyond the limits of batches.py, for
    columns that are not there, and for damage. schema: all columns that the file must have. Cost: a read of 512 bytes
    for each page that is read.
    """

    def __init__(self, stream: BinaryIO, url: str, schema: pa.Schema | None = None) -> None:
        self._stream, self._url = stream, url
        self._columns = footer_of(stream, url)
        self._size = stream.seek(0, 2)
        self._pages: dict[tuple[int, frozenset[str] | None], Pages] = {}
        stream.seek(0)
        with readable(url):
            super().__init__(stream, page_checksum_verification=True)
        check_count(self, url, len(self._columns))
        check_schema(self.schema_arrow, url, schema)

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


def check_row_group(
    metadata: pq.FileMetaData, source: Source, url: str, index: int, columns: Sequence[str] | None = None
) -> None:
    """Raise FormatError for pages and columns of a row group beyond the limits of batches.py, before somebody reads it
    as pyarrow does: whose columns are numbers then takes no more than MAX_VALUES of them. metadata: of a footer that
    `check_footer_size` has passed. Cost: 512 bytes read of a page."""
    group = metadata.row_group(index)
    spans = []
    for chunk in (group.column(number) for number in range(group.num_columns)):
        start = min((each for each in (chunk.data_page_offset, chunk.dictionary_page_offset) if each), default=0)
        spans.append(Column(chunk.path_in_schema.partition(".")[0], start, chunk.total_compressed_size))
    with opened(source) as stream:
        check_group(stream, url, index, spans, columns)


def check_footer_size(source: Source, size: int, most: int, url: str) -> None:
    """Raise FormatError for a footer of more than `most` bytes, which takes a hundred times as much when it is parsed.
    size: of the file."""
    with opened(source) as stream:
        stream.seek(max(0, size - TAIL))
        found = footer_bytes(stream.read(TAIL))
        stream.seek(0)
    if found > most:
        raise FormatError(f"{url}: a footer of {found:,} bytes, {most:,} or less expected")


@contextmanager
def guarded_parquet(stream: BinaryIO, url: str, schema: pa.Schema | None = None) -> Iterator[GuardedFile]:
    """A stored file as a GuardedFile; the stream is closed at the end. Raises the same errors as it does, and
    FormatError for values that cannot be used, such as text that is not UTF-8."""
    with stream, readable(url), GuardedFile(stream, url, schema) as file:
        yield file


@contextmanager
def listed_parquet(store: Store, path: str, schema: pa.Schema | None = None) -> Iterator[GuardedFile]:
    """A file that a manifest lists, as `guarded_parquet`. Raises FormatError where it is missing."""
    url = store.url(path)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(guarded_parquet(store.open(path), url, schema))
        except FileNotFoundError:
            raise missing_file(url) from None
        yield file
