"""Columns of the Parquet files of a corpus, a row group at a time."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.storage.store import Store
from refinery.pipelines.comparison.ahead import ahead

Place = tuple[Store, str]
DAMAGED = "cannot be read ({}); `refinery verify` says what is damaged"


def read_groups(places: Iterable[Place], columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """(number of the file, its next row group), files and groups in order. Columns that a file does not have are left
    out. Memory: these columns of a few row groups. Raises OSError that names a damaged file."""
    listed = list(places)
    counts = ahead(_groups, listed)
    tasks = (
        (number, place, group)
        for number, (place, count) in enumerate(zip(listed, counts, strict=True))
        for group in range(count)
    )
    return ahead(partial(_read, columns=columns), tasks)


def _groups(place: Place) -> int:
    store, path = place
    with _Named(store.url(path)), store.open(path) as stream, pq.ParquetFile(stream) as file:
        return int(file.metadata.num_row_groups)


def _read(task: tuple[int, Place, int], columns: Sequence[str]) -> tuple[int, pa.Table]:
    number, (store, path), group = task
    with (
        _Named(store.url(path)),
        store.open(path) as stream,
        pq.ParquetFile(stream, page_checksum_verification=True) as file,
    ):
        there = [name for name in columns if name in file.schema_arrow.names]
        return number, file.read_row_group(group, columns=there, use_threads=False)


class _Named:
    """Turns what pyarrow raises for a damaged file into an OSError that names it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise OSError(f"{self.url}: is not there; `refinery verify` says what else is missing") from None
        if isinstance(error, pa.ArrowException | UnicodeDecodeError):
            raise OSError(f"{self.url}: {DAMAGED.format(error)}") from None
