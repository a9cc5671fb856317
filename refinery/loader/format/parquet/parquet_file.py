"""A Parquet file opened for reading, whose damage is a FormatError like that of any other file."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import CorruptObject, FormatError
from refinery.loader.format.parquet.pages import Column, read_footer
from refinery.loader.storage.fetch import FetchError
from refinery.loader.storage.store import StorageError

Source = IO[bytes] | Path


@contextmanager
def readable(url: str) -> Iterator[None]:
    """What pyarrow raises for wrong bytes, as a FormatError that names the file.

    Errors of reading the bytes pass: those of stores, and those of the system, which have a number.
    """
    try:
        yield
    except (FetchError, StorageError, FormatError):
        raise
    except (OSError, pa.ArrowException, UnicodeDecodeError, KeyError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        said = (str(error) or repr(error)).splitlines()[0]
        raise FormatError(f"{url}: not a readable Parquet file: {said:.200}") from None


def footer_of(stream: IO[bytes], url: str) -> list[list[Column]]:
    """The columns of each row group. Raises FormatError, which names the file."""
    try:
        return read_footer(stream)
    except CorruptObject:  # of the bytes as they were read, which names the file
        raise
    except FormatError as error:
        raise FormatError(f"{url}: not a readable Parquet file: {error}") from error


def opened(source: Source) -> AbstractContextManager[IO[bytes]]:
    """The bytes of a source; one that is a stream stays open."""
    return source.open("rb") if isinstance(source, Path) else nullcontext(source)


@contextmanager
def parquet(source: Source, url: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file; a stream is closed at the end. Raises the same errors as `readable`."""
    with (
        readable(url),
        nullcontext() if isinstance(source, Path) else source,
        pq.ParquetFile(source, page_checksum_verification=True) as file,
    ):
        yield file
