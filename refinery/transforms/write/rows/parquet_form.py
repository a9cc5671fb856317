"""How a Parquet file was written, as far as its footer says so: settings that make another one like it."""

import base64
import io
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.parquet.pages import TAIL, footer_bytes
from refinery.transforms.core.safe_text import safe
from refinery.transforms.write.rows.rows import Label

ARROW_SCHEMA = b"ARROW:schema"  # the key under which Arrow keeps its schema, in Base64
TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
DICTIONARIES = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
OTHER_ELEMENT = re.compile(r"\.list\.(?!element(?:\.|$))")
CODECS = {"UNCOMPRESSED": "NONE", "LZ4_HADOOP": "LZ4"}  # pyarrow's own names, where they differ


def with_readable_types(table: pq.ParquetFile, file: Any) -> pq.ParquetFile:
    """The same file with types that can be read. pyarrow 25 cannot read lists of one size with nulls among them, and
    can read them as lists, which Parquet stores them as: a file that has such is read without its `ARROW:schema`."""
    if not any(_has_fixed_lists(field.type) for field in table.schema_arrow):
        return table
    return pq.ParquetFile(WithoutArrow(file), page_checksum_verification=True, arrow_extensions_enabled=True)


def _has_fixed_lists(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_fixed_lists(kind.storage_type)
    inner = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_fixed_size_list(kind) or any(_has_fixed_lists(each) for each in inner)


class WithoutArrow(io.RawIOBase):
    """A Parquet file in whose footer the key of Arrow's schema is another one of that length. Memory: the footer."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        size = file.seek(0, io.SEEK_END)
        file.seek(size - TAIL)
        self._start = size - footer_bytes(file.read(TAIL))
        file.seek(self._start)
        self._footer = file.read(size - self._start).replace(ARROW_SCHEMA, ARROW_SCHEMA.replace(b":", b"-"))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def read(self, size: int = -1) -> bytes:
        at = self.tell()
        data: bytes = self._file.read(size)
        before = max(self._start - at, 0)
        if before >= len(data):
            return data
        first = max(at - self._start, 0)
        return data[:before] + bytes(self._footer[first : first + len(data) - before])


def with_columns(schema: pa.Schema, columns: Sequence[Label]) -> pa.Schema:
    """The schema with labels behind."""
    for column in columns:
        schema = schema.append(pa.field(column.name, TYPES[column.kind]))
    return schema


def notes_of(table: pq.ParquetFile, columns: Sequence[Label]) -> dict[bytes, bytes]:
    """The file's keys and values, byte for byte; with labels in Arrow's schema, where there is one."""
    notes = dict(table.metadata.metadata or {})
    if columns and ARROW_SCHEMA in notes:
        stored = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(notes[ARROW_SCHEMA])))
        notes[ARROW_SCHEMA] = base64.b64encode(with_columns(stored, columns).serialize().to_pybytes())
    return notes


def form_of(table: pq.ParquetFile, columns: Sequence[Label]) -> dict[str, Any]:
    """Arguments of a `pq.ParquetWriter`: version, and of each column compression, dictionary and statistics as in the
    first row group; the physical types of times and decimals; the names in lists; the order of rows that is claimed.
    Pages get checksums. Labels are compressed as the first column, and texts among them get dictionaries."""
    facts = table.metadata
    parts = [table.schema.column(number) for number in range(len(table.schema))]
    first = facts.row_group(0) if facts.num_row_groups else None
    chunks = [first.column(number) for number in range(first.num_columns)] if first else []
    labels = [column.name for column in columns]
    codecs = {chunk.path_in_schema: CODECS.get(chunk.compression, chunk.compression) for chunk in chunks}
    sorted_by = [facts.row_group(number).sorting_columns for number in range(facts.num_row_groups)]
    return {
        "version": facts.format_version,
        "store_schema": False,
        "compression": codecs | dict.fromkeys(labels, next(iter(codecs.values()))) if codecs else "NONE",
        "use_dictionary": [chunk.path_in_schema for chunk in chunks if DICTIONARIES & {*chunk.encodings}] + labels,
        "write_statistics": [chunk.path_in_schema for chunk in chunks if chunk.is_stats_set] + labels,
        "write_page_index": any(chunk.has_column_index for chunk in chunks),
        "write_page_checksum": True,
        "use_deprecated_int96_timestamps": any(part.physical_type == "INT96" for part in parts),
        "store_decimal_as_integer": any(
            part.logical_type.type == "DECIMAL" and part.physical_type in ("INT32", "INT64") for part in parts
        ),
        "use_compliant_nested_type": not any(OTHER_ELEMENT.search(part.path) for part in parts),
        "sorting_columns": sorted_by[0] if sorted_by and all(each == sorted_by[0] for each in sorted_by) else None,
    }


def other_types(table: pq.ParquetFile, schema: pa.Schema, columns: Sequence[Label]) -> list[str]:
    """A line for each column that Parquet stores in another type in a copy, though it is the same to Arrow: one that
    Arrow has no type for (an Enum is binary), or one of two kinds of times or decimals in a file that has both."""
    empty = io.BytesIO()
    pq.ParquetWriter(empty, schema, **form_of(table, columns)).close()
    copy = pq.ParquetFile(empty).schema
    found = []
    for number in range(len(table.schema)):
        old, new = (
            f"{each.path} {each.physical_type} {each.logical_type}".lower()
            for each in (table.schema.column(number), copy.column(number))
        )
        if old != new:
            found.append(f"a column is stored as {safe(old)}, in the copy as {safe(new)}")
    return found
