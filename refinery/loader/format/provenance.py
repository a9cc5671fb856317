"""Provenance files: where each document of a shard comes from. docs/format.md describes the columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.document_fields import KEPT_FIELDS, PROVENANCE, columns_of, names_of
from refinery.loader.format.kept_columns import KeptColumn, kept_schema

ROW_GROUP = 65_536
GROUP_BYTES = 64 << 20  # of texts in UTF-8, where the file has them
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


TEXT_COLUMN = pa.field("text", pa.string(), nullable=False)  # of files that hold the documents, too
TOKENS = ("token_offset", "token_count")  # columns that corpora of texts have not


def stage_columns(columns: Sequence[Column]) -> list[pa.Field]:
    """The columns that stages fill, as Arrow fields."""
    return [pa.field(c.name, COLUMN_TYPES[c.type], nullable=c.type != "string") for c in columns]


def provenance_schema(
    columns: Sequence[Column], has_tokens: bool = True, has_text: bool = False, kept: Sequence[KeptColumn] = ()
) -> pa.Schema:
    """Schema of the provenance files of a corpus: row i describes document i of the shard of the same name. has_text:
    with the documents' texts, which come first. kept: columns for fields of records, which come last."""
    own = columns_of(PROVENANCE)
    behind = 1 + names_of(PROVENANCE).index("origin")
    fields = [TEXT_COLUMN, *own[:behind], *stage_columns(columns), *own[behind:]]
    left_out = (*(() if has_tokens else TOKENS), *(() if has_text else (TEXT_COLUMN.name,)))
    return pa.schema([*(field for field in fields if field.name not in left_out), *kept_schema(kept)])


def write_provenance(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    has_tokens: bool = True,
    kept: Sequence[KeptColumn] = (),
) -> None:
    """Write rows (exactly the fields of `provenance_schema`) as Parquet, as `write_rows` does."""
    write_rows(path, rows, provenance_schema(columns, has_tokens, kept=kept))


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> None:
    """Write rows of a `provenance_schema` as Parquet; the same rows give the same bytes.

    Raises ValueError for a row with other fields; pyarrow.ArrowException, TypeError or OverflowError for a value that
    does not fit its column, including null. Memory: one row group as columns, of 65,536 rows or, with texts, the first
    that reach GROUP_BYTES of these.
    """
    own, names = {*names_of(PROVENANCE), TEXT_COLUMN.name, KEPT_FIELDS}, set(schema.names)
    repeated = [
        field.name
        for field in schema
        if field.name == "source" or (field.name not in own and field.type == pa.string())
    ]
    # A page is cut behind such a batch of values: of texts behind any, since readers take none of many large ones.
    batch = {"write_batch_size": 1} if TEXT_COLUMN.name in names else {}
    with pq.ParquetWriter(path, schema, **PARQUET, **batch, use_dictionary=repeated) as writer:
        for group in _groups(rows):
            tables = []
            while some := list(islice(group, BATCH_ROWS)):
                for row in some:
                    if row.keys() != names:
                        raise ValueError(f"provenance: fields {sorted(row)} given, exactly {sorted(names)} are allowed")
                tables.append(pa.Table.from_pylist(some, schema=schema))
            writer.write_table(pa.concat_tables(tables).combine_chunks(), row_group_size=ROW_GROUP)


def _groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[Iterator[Mapping[str, Any]]]:
    """The rows of each row group, to be consumed before the next one is asked for."""
    remaining = iter(rows)

    def group(first: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        size = 0
        for row in chain([first], islice(remaining, ROW_GROUP - 1)):
            yield row
            size += len(row.get(TEXT_COLUMN.name, b"")) + len(row.get(KEPT_FIELDS, ""))
            if size >= GROUP_BYTES:
                return

    while (first := next(remaining, None)) is not None:
        yield group(first)
