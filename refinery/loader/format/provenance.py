"""Provenance files: where each document of a shard comes from. docs/format.md describes the columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.document_fields import PROVENANCE, columns_of, names_of

ROW_GROUP = 65_536
BATCH_ROWS = 1024  # rows that are Python objects at once
ADOPTED = "adopted"  # the lane of files that another tool wrote: `refinery adopt`. They have no provenance
PARQUET: dict[str, Any] = {
    "write_page_checksum": True,
    "compression": "zstd",
    "compression_level": 3,
    "version": "2.6",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the provenance files that a stage of the lane fills. type: "string", "float" or "integer"."""

    name: str
    type: str


# If a stage did not run, its strings are "" and its numbers null.
COLUMN_TYPES = {"string": pa.string(), "float": pa.float32(), "integer": pa.int64()}


TOKENS = ("token_offset", "token_count")  # columns that corpora of texts have not


def stage_columns(columns: Sequence[Column]) -> list[pa.Field]:
    """The columns that stages fill, as Arrow fields."""
    return [pa.field(c.name, COLUMN_TYPES[c.type], nullable=c.type != "string") for c in columns]


def provenance_schema(columns: Sequence[Column], has_tokens: bool = True) -> pa.Schema:
    """Schema of the provenance files of a corpus: row i describes document i of the shard of the same name."""
    own = columns_of(PROVENANCE)
    behind = 1 + names_of(PROVENANCE).index("origin")
    schema = pa.schema([*own[:behind], *stage_columns(columns), *own[behind:]])
    return schema if has_tokens else pa.schema([field for field in schema if field.name not in TOKENS])


def write_provenance(
    path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], has_tokens: bool = True
) -> None:
    """Write rows (exactly the fields of `provenance_schema`) as Parquet; the same rows give the same bytes.

    Raises ValueError for a row with other fields; pyarrow.ArrowException, TypeError or OverflowError for a value that
    does not fit its column, including null. Memory: one row group of 65,536 rows, as columns.
    """
    schema = provenance_schema(columns, has_tokens)
    names = set(schema.names)
    repeated = ["source", *(column.name for column in columns if column.type == "string")]
    with pq.ParquetWriter(path, schema, **PARQUET, use_dictionary=repeated) as writer:
        remaining = iter(rows)
        while True:
            group = islice(remaining, ROW_GROUP)
            tables = []
            while batch := list(islice(group, BATCH_ROWS)):
                for row in batch:
                    if row.keys() != names:
                        raise ValueError(f"provenance: fields {sorted(row)} given, exactly {sorted(names)} are allowed")
                tables.append(pa.Table.from_pylist(batch, schema=schema))
            if not tables:
                break
            writer.write_table(pa.concat_tables(tables).combine_chunks(), row_group_size=ROW_GROUP)
