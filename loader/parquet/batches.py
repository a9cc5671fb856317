"""Parquet files that anybody may have written, in batches of bounded size.

A checksum says that a file is what its manifest lists, not that it is harmless: a page of a few bytes can stand for
gigabytes, and every row can repeat its longest value. So the sizes of pages are looked at first (pages.py), and
a batch has no more rows than would fit if each were as large as the largest page.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.parquet.pages import largest_page, read_footer

MAX_PAGE = 64 << 20  # inflated; our writers make pages of 1 MB, or of one value
MAX_VALUES = 1 << 24  # of a column in a row group: a list of a row counts with all its elements
MAX_BATCH = 256 << 20
BATCH_ROWS = 16_384


def check_pages(stream: BinaryIO, path: str) -> list[int]:
    """Bytes of the largest page of each row group, inflated. Raises FormatError for pages above MAX_PAGE, columns of
    too many values and damage. Cost: a read of 512 bytes a page."""
    try:
        pages = [largest_page(stream, columns, MAX_VALUES) for columns in read_footer(stream)]
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    stream.seek(0)
    for number, page in enumerate(pages):
        if page > MAX_PAGE:
            raise FormatError(f"{path}: row group {number} has a page of {page:,} bytes, {MAX_PAGE:,} or less expected")
    return pages


@contextmanager
def bounded_parquet(
    stream: BinaryIO, path: str, columns: Sequence[str] | None = None
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The schema of a file, and the batches of these columns (all) in order, of BATCH_ROWS rows at most.

    Raises FormatError as `check_pages` does, and what Arrow raises for damage. Memory: MAX_BATCH, and a page of each
    column.
    """
    pages = check_pages(stream, path)
    with pq.ParquetFile(stream, page_checksum_verification=True) as file:
        if file.num_row_groups != len(pages):
            raise FormatError(f"{path}: {file.num_row_groups} row groups found, {len(pages)} expected from its footer")

        def batches() -> Iterator[pa.RecordBatch]:
            for number, page in enumerate(pages):
                rows = max(1, min(BATCH_ROWS, MAX_BATCH // max(page, 1)))
                yield from file.iter_batches(rows, row_groups=[number], columns=columns, use_threads=False)

        yield file.schema_arrow, batches()
