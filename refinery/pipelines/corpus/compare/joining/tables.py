"""Columns of the Parquet files of a corpus, a row group at a time."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from refinery.loader.format.parquet.guarded import listed_parquet
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.compare.joining.ahead import ahead

Place = tuple[Store, str]


def read_groups(
    places: Iterable[Place], columns: Sequence[str], schema: pa.Schema | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """(number of the file, its next row group), files and groups in order. Columns that a file does not have are left
    out. schema: all columns that each file must have. Memory: these columns of a few row groups. Raises FormatError for
    a damaged file."""
    listed = list(places)
    counts = ahead(partial(_groups, schema=schema), listed)
    tasks = (
        (number, place, group)
        for number, (place, count) in enumerate(zip(listed, counts, strict=True))
        for group in range(count)
    )
    return ahead(partial(_read, columns=columns), tasks)


def read_rows(place: Place, rows: Sequence[int], columns: Sequence[str]) -> dict[int, dict[str, Any]]:
    """Row number -> its values in these columns. Only the row groups that hold one are read."""
    found: dict[int, dict[str, Any]] = {}
    wanted = np.array(sorted(set(rows)), np.int64)
    with listed_parquet(*place) as file:
        there = [name for name in columns if name in file.schema_arrow.names]
        start = 0
        for group in range(file.metadata.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            here = wanted[(wanted >= start) & (wanted < end)]
            if len(here):
                table = file.read_row_group(group, columns=there, use_threads=False).take(here - start)
                found |= dict(zip(here.tolist(), table.to_pylist(), strict=True))
            start = end
    return found


def _groups(place: Place, schema: pa.Schema | None) -> int:
    with listed_parquet(*place, schema) as file:
        return int(file.metadata.num_row_groups)


def _read(task: tuple[int, Place, int], columns: Sequence[str]) -> tuple[int, pa.Table]:
    number, place, group = task
    with listed_parquet(*place) as file:
        there = [name for name in columns if name in file.schema_arrow.names]
        return number, file.read_row_group(group, columns=there, use_threads=False)
