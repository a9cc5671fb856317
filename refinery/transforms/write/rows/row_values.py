"""The id and the text of every row of a file, as they are written there: also of rows that readers skip or refuse."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.fields import field_of
from refinery.transforms.read.formats.delimited import DELIMITERS, numbered_rows
from refinery.transforms.read.formats.jsonl import fits, parse_json, parse_undecodable
from refinery.transforms.read.formats.parquet import ARROW_ERRORS, PAGES, column_of
from refinery.transforms.read.held_ranges import HeldRanges
from refinery.transforms.read.lines import BOM, read_lines
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.read.values.dialects import Lines, rows_of
from refinery.transforms.write.rows.json_spans import spelt, value_span
from refinery.transforms.write.rows.parquet_rows import Group, opened
from refinery.transforms.write.rows.rows import RowError

SCALARS = (str, int, float, bool)


class RowValues(NamedTuple):
    """A row by its number, as in `Rows`. id: as JSON, b"" where it has none. text: None where it has none, or where the
    row is broken or exceeds the limits."""

    row: int
    id: bytes
    text: str | None


def read_row_values(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RowValues]:
    """Every row of the task's file, in order; blank lines are none. Raises RowError for a Parquet file that cannot be
    read. Memory: that of the format's reader."""
    yield from READS[task.format](replace(task, part=0, parts=1), source, limits)


def _of_lines(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RowValues]:
    for line in read_lines(source, task, limits.max_decompressed_bytes):
        if line.error:
            return
        data = line.data
        if data is not None and (not data.removeprefix(BOM) or data.removeprefix(BOM).isspace()):
            continue
        is_held = data is not None and fits(data, limits)
        yield RowValues(line.offset, *(_of_line(task, data) if data is not None and is_held else (b"", None)))


def _of_line(task: ReadTask, line: bytes) -> tuple[bytes, str | None]:
    """The id with the bytes that the line has for it."""
    record = parse_json(line.removeprefix(BOM))
    if record is None:
        record = parse_undecodable(line.removeprefix(BOM))
    if not isinstance(record, dict):
        return b"", None
    text = field_of(record, task.text_field)
    value = field_of(record, task.id_field) if task.id_field else None
    id_ = b""
    if isinstance(value, SCALARS):
        start, end = value_span(line, task.id_field) or (0, 0)
        id_ = line[start:end] if _is_json(line[start:end]) else spelt(str(value))
    return id_, text if isinstance(text, str) else None


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except ValueError:  # NaN, a lone surrogate, bytes that are not UTF-8
        return False
    return True


def _of_table(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RowValues]:
    lines = Lines(MemberStream(source).read, limits.max_decompressed_bytes)
    header: list[str] | None = None
    for number, row, _ in numbered_rows(lines, rows_of(lines, task.dialect, DELIMITERS[task.format])):
        if row is not None and not row:
            continue
        if header is None:
            header = row or []
            continue
        is_row = row is not None and len(row) == len(header) and not lines.too_long
        record = dict(zip(header, row or [], strict=True)) if is_row else {}
        id_ = record.get(task.id_field)
        yield RowValues(number, b"" if id_ is None else spelt(id_), record.get(task.text_field))


def _of_parquet(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RowValues]:
    file: Any = HeldRanges(source.file) if is_remote(task.path) else source.file
    table, groups = opened(task, source, file)
    fields = [name for name in (task.id_field, task.text_field) if name]
    names = {name for field in fields if (name := column_of(table.schema_arrow, field))}
    first = 0
    for number, columns in enumerate(groups):
        group = Group(task, source, table, number, first)
        wanted = [column for column in columns if column.name in names]
        if isinstance(file, HeldRanges):
            file.hold((column.start, column.size) for column in wanted)
        most = group.most_rows(file, wanted, PAGES * limits.max_decompressed_bytes)
        row = first
        try:
            for batch in table.iter_batches(most, [number], sorted(names), use_threads=False):
                for record in batch.to_pylist():
                    yield RowValues(row, *_of_record(task, record))
                    row += 1
        except ARROW_ERRORS as error:
            source.file.check()
            raise RowError(task, row, f"its id and its text cannot be read: {error}") from None
        first = group.stop


def _of_record(task: ReadTask, record: dict[str, Any]) -> tuple[bytes, str | None]:
    value = field_of(record, task.id_field) if task.id_field else None
    text = field_of(record, task.text_field)
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    id_ = b"" if value is None else spelt(value) if isinstance(value, SCALARS) else spelt(str(value))
    return id_, text if isinstance(text, str) else None


READS: dict[str, Callable[[ReadTask, ByteSource, LimitParams], Iterator[RowValues]]] = {
    "jsonl": _of_lines,
    "csv": _of_table,
    "tsv": _of_table,
    "parquet": _of_parquet,
}
