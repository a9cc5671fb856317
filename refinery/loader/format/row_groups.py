"""Parquet files of row groups of equal size, written from tables of any size."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_row_groups(path: Path, tables: Iterable[pa.Table], rows: int, **options: Any) -> None:
    """Write tables of one schema, at least one, as row groups of `rows` rows each: byte for byte what
    `pyarrow.parquet.write_table` makes of all of them at once. Memory: a table and a row group.
    """
    writer = held = None
    is_written = False
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(path, table.schema, **options)
            held = table if held is None else pa.concat_tables([held, table])
            full = held.num_rows // rows * rows
            if full:
                writer.write_table(held.slice(0, full).combine_chunks(), rows)  # pages end where chunks do
                held = held.slice(full)
                is_written = True
        if writer is None or held is None:
            raise ValueError("tables: none given, at least one is needed")
        if held.num_rows or not is_written:
            writer.write_table(held.combine_chunks(), rows)
    finally:
        if writer is not None:
            writer.close()
