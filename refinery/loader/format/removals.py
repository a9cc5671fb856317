"""The removals files: the documents that deduplication removed, and which were kept instead. Part of the corpus format.

N files of about a million rows, each with a range of ids: `removals_file` computes the file of an id. docs/format.md
describes the format.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.format.document_fields import ID_BYTES, REMOVALS, schema_of
from refinery.loader.format.provenance import PARQUET, ROW_GROUP
from refinery.loader.format.row_groups import write_row_groups

FOLDER = REMOVALS
URL_DUPLICATE = "url-duplicate"  # comes first: a document kept instead may be removed for the others only
REASONS = (URL_DUPLICATE, "exact-duplicate", "near-duplicate-in-source", "near-duplicate", "copy-of-denied")
# Scopes: which documents were compared. With "reference:PREFIX" the kept document is in the corpus at PREFIX.
SOURCE, CORPUS, REFERENCE = "source", "corpus", "reference:"
WITHHELD = f"{REFERENCE}withheld"  # a file of the same run that was dropped for its licence, and is in no corpus

# A removed document and the id of the one kept instead. Sorted by all columns, in this order.
REMOVALS_SCHEMA = schema_of(FOLDER)


def removals_name(index: int, count: int) -> str:
    """Name of file `index` of `count`.

    >>> removals_name(0, 3)
    'removals/part-00000-of-00003.parquet'
    """
    return f"{FOLDER}/part-{index:05d}-of-{count:05d}.parquet"


def removals_file(ids: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.int64]:
    """Which of `count` files holds each of `ids` (uint8 [n, 16]): equal ranges of their first 32 bits. Shape [n]."""
    head = np.ascontiguousarray(ids[:, :4]).view(">u4").reshape(-1).astype(np.uint64)
    return (head * np.uint64(count) >> np.uint64(32)).astype(np.int64)


def column_ids(column: Any) -> npt.NDArray[np.uint8]:
    """The ids of an Arrow column of binary(16) without nulls, uint8 [n, 16]; copies only what is in several chunks."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8, len(array) * ID_BYTES, array.offset * ID_BYTES)
    return data.reshape(-1, ID_BYTES)


def write_removals(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write rows of REMOVALS_SCHEMA, sorted already, as Parquet: the same rows make the same bytes, however they are
    divided into tables. There is at least one. Memory: a table and a row group."""
    write_row_groups(path, tables, ROW_GROUP, **PARQUET, use_dictionary=["reason", "scope", "source"])


__all__ = [
    "CORPUS",
    "FOLDER",
    "ID_BYTES",
    "REASONS",
    "REFERENCE",
    "REMOVALS_SCHEMA",
    "SOURCE",
    "URL_DUPLICATE",
    "WITHHELD",
    "column_ids",
    "removals_file",
    "removals_name",
    "write_removals",
]
