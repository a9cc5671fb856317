"""Parquet files that anybody may have written, in batches of bounded size.

A checksum says that a file is what its manifest lists, not that it is harmless: a page of a few bytes can stand for
gigabytes, and every row can repeat its longest value. So the sizes of pages are looked at first (pages.py), and
a batch has no more rows than would fit if each were as large as the largest page, unless its pages show that it is
little in any case.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from refinery.loader.errors import CorruptObject, FormatError
from refinery.loader.format.parquet.pages import Column, Pages, measure_pages
from refinery.loader.format.parquet.parquet_file import footer_of, readable
from refinery.loader.storage.store import Store

MAX_PAGE = 64 << 20  # inflated; our writers make pages of 1 MB, or of one value
MAX_VALUES = 1 << 24  # of a column in a row group: a list of a row counts with all its elements
MAX_BATCH = 256 << 20
BATCH_ROWS = 16_384
LITTLE = 8  # a batch that surely takes less than this part of MAX_BATCH may have BATCH_ROWS rows
EXPANSION = 64  # bytes in memory for a byte of a file that is held as a whole, beyond MAX_BATCH

Batches = Iterator[pa.RecordBatch]


def check_pages(
    stream: BinaryIO, path: str, columns: Sequence[str] | None = None, groups: Sequence[Sequence[Column]] | None = None
) -> list[Pages]:
    """The pages of each row group, of these columns (all), inflated. groups: of the footer, where it was read.

    Raises FormatError for pages above MAX_PAGE, columns of too many values and damage. Cost: 512 bytes read of a page.
    """
    groups = footer_of(stream, path) if groups is None else groups
    found = [check_group(stream, path, number, group, columns) for number, group in enumerate(groups)]
    stream.seek(0)
    return found


def check_group(
    stream: IO[bytes], path: str, number: int, group: Sequence[Column], columns: Sequence[str] | None
) -> Pages:
    """The pages of one row group, as `check_pages`."""
    try:
        pages = measure_pages(stream, [each for each in group if columns is None or each.name in columns], MAX_VALUES)
    except CorruptObject:  # of the bytes as they were read, which names the file
        raise
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    if (page := pages.largest) > MAX_PAGE:
        raise FormatError(f"{path}: row group {number} has a page of {page:,} bytes, {MAX_PAGE:,} or less expected")
    return pages


@contextmanager
def bounded_parquet(
    stream: BinaryIO,
    path: str,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    rows: NDArray[np.int64] | None = None,
    exactly: pa.Schema | None = None,
) -> Iterator[tuple[pa.Schema, Batches]]:
    """The schema of a file, and the batches of these columns (all) in order, of BATCH_ROWS rows at most.

    schema: types that columns must have which are read and are in it. rows: ascending numbers of the rows that are
    wanted alone; row groups without any are not read. exactly: all columns that the file must have.

    Raises FormatError for a column that is missing or of another type, as `check_pages` does, and for damage. Memory:
    MAX_BATCH, and a page of each column.
    """
    groups = footer_of(stream, path)
    stream.seek(0)
    with readable(path):
        file = pq.ParquetFile(stream, page_checksum_verification=True)
    with file:
        check_count(file, path, len(groups))
        check_schema(file.schema_arrow, path, exactly)
        check_columns(file.schema_arrow, path, columns, schema)
        pages = check_pages(stream, path, columns, groups)
        _rows_by_width(file.schema_arrow, path, columns)
        yield file.schema_arrow, _batches(file, path, pages, columns, rows)


def check_count(file: pq.ParquetFile, path: str, groups: int) -> None:
    """Raise FormatError where a file has another number of row groups than our own reader found in its footer."""
    if file.num_row_groups != groups:
        raise FormatError(f"{path}: {file.num_row_groups} row groups found, {groups} expected from its footer")


def check_columns(found: pa.Schema, path: str, columns: Sequence[str] | None, schema: pa.Schema | None = None) -> None:
    """Raise FormatError for a column that is missing, or whose type is not that of `schema`."""
    names = found.names if columns is None else columns
    if missing := [name for name in names if found.get_field_index(name) < 0]:
        raise FormatError(f"{path}: no column {missing[0]!r}, {found.names} found".replace("\n", " ")[:400])
    for name in names:
        if schema is not None and name in schema.names and found.field(name).type != schema.field(name).type:
            wanted = schema.field(name).type
            raise FormatError(f"{path}: column {name!r} of type {found.field(name).type} found, {wanted} expected")


def check_schema(found: pa.Schema, path: str, schema: pa.Schema | None) -> None:
    """Raise FormatError if columns differ from those of `schema` in name, type, order or whether they have nulls."""
    if schema is not None and not found.equals(schema):
        there, wanted = (
            {f"{each.name}: {each.type}{'' if each.nullable else ', no null'}" for each in fields}
            for fields in (found, schema)
        )
        told = (sorted(there - wanted), sorted(wanted - there)) if there != wanted else (found.names, schema.names)
        said = f"{path}: its columns are not those of the format: {told[0]} found, {told[1]} expected"
        raise FormatError(said.replace("\n", " ")[:1000])


def _rows_by_width(found: pa.Schema, path: str, columns: Sequence[str] | None) -> int:
    """Rows of a batch by columns whose values have one width each: a null, which no page holds, takes it, too."""
    widths: list[int] = [field.type.byte_width for field in found if pa.types.is_fixed_size_binary(field.type)
              and (columns is None or field.name in columns)]  # fmt: skip
    if sum(widths) > MAX_PAGE:
        raise FormatError(f"{path}: rows of {sum(widths):,} bytes, {MAX_PAGE:,} or less expected")
    return max(1, min(BATCH_ROWS, MAX_BATCH // max(sum(widths), 1)))


def batches_of(
    iter_batches: Callable[..., Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    path: str,
    group: int,
    pages: Pages,
    columns: Sequence[str] | None,
    most: int = BATCH_ROWS,
) -> Batches:
    """The batches of a row group, of MAX_BATCH bytes and `most` rows at most. iter_batches: of its pq.ParquetFile."""
    rows = min(most, _rows_by_width(schema, path, columns))
    safe = max(1, MAX_BATCH // max(pages.largest, 1), pages.rows_within(MAX_BATCH // LITTLE))
    read = iter_batches(min(rows, safe), row_groups=[group], columns=columns, use_threads=False)
    while True:
        with readable(path):
            batch = next(read, None)
        if batch is None:
            return
        yield batch


def _batches(
    file: pq.ParquetFile,
    path: str,
    groups: Sequence[Pages],
    columns: Sequence[str] | None,
    wanted: NDArray[np.int64] | None,
) -> Batches:
    start = 0
    for number, pages in enumerate(groups):
        size = file.metadata.row_group(number).num_rows
        if wanted is None or _between(wanted, start, size).size:
            at = start
            for batch in batches_of(file.iter_batches, file.schema_arrow, path, number, pages, columns):
                here = None if wanted is None else _between(wanted, at, len(batch))
                at += len(batch)
                if here is None or here.size:
                    yield batch if here is None else batch.take(pa.array(here))
        start += size


def _between(rows: NDArray[np.int64], start: int, size: int) -> NDArray[np.int64]:
    """Those of ascending rows that are in [start, start + size), counted from `start`."""
    first, last = np.searchsorted(rows, [start, start + size])
    return rows[first:last] - start


def bounded_table(
    stream: BinaryIO,
    path: str,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    rows: NDArray[np.int64] | None = None,
    exactly: pa.Schema | None = None,
) -> pa.Table:
    """Those columns and rows of a file as a table. Arguments and errors of `bounded_parquet`; FormatError, too, where
    they take more memory than MAX_BATCH and EXPANSION times the file's size, which is the bound."""
    size = stream.seek(0, io.SEEK_END)
    with bounded_parquet(stream, path, columns, schema, rows, exactly) as (found, batches):
        held = list(within_memory(batches, path, size))
        table = pa.Table.from_batches(held) if held else found.empty_table()
        return table if columns is None else table.select(list(columns))


def within_memory(batches: Batches, path: str, size: int) -> Batches:
    """Batches of a file of `size` bytes that are held together. Raises FormatError where they take more memory than
    MAX_BATCH and EXPANSION times `size`."""
    allowed, total = MAX_BATCH + EXPANSION * size, 0
    for batch in batches:
        total += batch.nbytes
        if total > allowed:
            raise FormatError(f"{path}: its rows take more than {allowed:,} bytes of memory, far beyond its size")
        yield batch


def stored_table(
    store: Store,
    path: str,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    rows: NDArray[np.int64] | None = None,
    exactly: pa.Schema | None = None,
) -> pa.Table:
    """`bounded_table` of a stored file."""
    with store.open(path) as stream:
        return bounded_table(stream, store.url(path), columns, schema, rows, exactly)


def stored_batches(
    store: Store,
    path: str,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    rows: NDArray[np.int64] | None = None,
    exactly: pa.Schema | None = None,
) -> Batches:
    """The batches of `bounded_parquet` of a stored file."""
    url = store.url(path)
    with store.open(path) as stream, bounded_parquet(stream, url, columns, schema, rows, exactly) as (_, batches):
        yield from batches
