"""Rows of Parquet that stay: a file with the input's schema, metadata and row groups, and fewer rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet.pages import Column, Pages, measure_pages, read_footer
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.byte_source import ByteSource
from refinery.transforms.read.formats.parquet import ARROW_ERRORS, BATCH_BYTES, PAGES, column_of, hold_footer
from refinery.transforms.read.held_ranges import HeldRanges
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.write.rows.arrow_texts import take_rows, with_texts
from refinery.transforms.write.rows.parquet_form import (
    TYPES,
    form_of,
    notes_of,
    other_types,
    with_columns,
    with_readable_types,
)
from refinery.transforms.write.rows.rows import NO_ROW, Edit, Label, RowError, Rows, refuse_taken

BATCH_ROWS = 16_384
GROUP_BYTES = 64 << 20  # of a row group in memory; a larger one of the input becomes several


def copy_parquet(task: ReadTask, source: ByteSource, rows: Rows, limits: LimitParams, out: BinaryIO) -> list[str]:
    """The rows that stay, in the input's row groups; those without any are not read. Labels are columns behind.

    Types are Arrow's, from the `ARROW:schema` that the file keeps, or derived from Parquet's. Returns `other_types`.
    Raises RowError for a row that is not there, an edit that cannot be made, and a column that cannot be read, or that
    has a page above twice limits.max_decompressed_bytes. Memory: GROUP_BYTES, a batch of 8 MiB, and more only for
    values that are larger, as of the reader.
    """
    file: Any = HeldRanges(source.file) if is_remote(task.path) else source.file
    table, groups = opened(task, source, file)
    refuse_taken(task, 0, rows.columns, table.schema_arrow.names)
    readable = with_readable_types(table, file)
    schema = with_columns(readable.schema_arrow, rows.columns)
    edits = _Edits(task, rows)
    with pq.ParquetWriter(out, schema, **form_of(table, rows.columns)) as writer:
        if notes := notes_of(table, rows.columns):
            writer.add_key_value_metadata(notes)
        first = 0
        for number, columns in enumerate(groups):
            group = Group(task, source, readable, number, first)
            if edits.row < group.stop:
                if isinstance(file, HeldRanges):
                    file.hold((column.start, column.size) for column in columns)
                most = group.most_rows(file, columns, PAGES * limits.max_decompressed_bytes)
                for part in _joined(_edited(group.batches(most), group, edits, rows, schema)):
                    writer.write_table(part, row_group_size=len(part))
                if edits.row < group.stop:
                    raise RowError(task, edits.row, "its row group has fewer rows than the footer says")
            first = group.stop
    if edits.row != NO_ROW[0]:
        raise RowError(task, edits.row, "the file has no such row")
    return [f"{safe(task.path)}: {line}" for line in other_types(table, schema, rows.columns)]


def opened(task: ReadTask, source: ByteSource, file: Any) -> tuple[pq.ParquetFile, list[list[Column]]]:
    """The file, and the columns of its row groups. Raises RowError, and OSError where the storage fails."""
    try:
        if isinstance(file, HeldRanges):
            hold_footer(file, task.size)
        table = pq.ParquetFile(file, page_checksum_verification=True, arrow_extensions_enabled=True)
        groups = read_footer(file)
        if len(groups) != table.num_row_groups:
            raise FormatError("a damaged footer")
        return table, groups
    except (*ARROW_ERRORS, FormatError) as error:
        source.file.check()
        raise RowError(task, 0, f"not a readable Parquet file: {_said(error)}") from None


def check_schema(task: ReadTask, source: ByteSource, columns: Sequence[Label], limits: LimitParams) -> None:
    """Raise RowError where the file has a column of a label's name."""
    file: Any = HeldRanges(source.file) if is_remote(task.path) else source.file
    refuse_taken(task, 0, columns, opened(task, source, file)[0].schema_arrow.names)


@dataclass(frozen=True)
class Group:
    """A row group, the first row of which is row `first` of the file."""

    task: ReadTask
    source: ByteSource
    table: pq.ParquetFile
    number: int
    first: int

    @property
    def stop(self) -> int:
        size: int = self.table.metadata.row_group(self.number).num_rows
        return self.first + size

    def most_rows(self, file: Any, columns: Sequence[Column], bound: int) -> int:
        """Rows of a batch: about 8 MiB on average, and no more than fit into the bound if each has the largest values
        that its pages allow. Raises RowError for a page above the bound, which names its column."""
        pages = Pages()
        for column in columns:
            try:
                found = measure_pages(file, [column])
            except FormatError as error:
                raise self.unreadable(column.name, error) from None
            if found.largest > bound:
                raise self.unreadable(column.name, f"a page of {found.largest:,} bytes, {bound:,} or less are allowed")
            pages = Pages(max(pages.largest, found.largest), pages.stored + found.stored,
                          pages.repeated + found.repeated)  # fmt: skip
        size = max(self.table.metadata.row_group(self.number).total_byte_size, 1)
        usual: int = BATCH_BYTES * (self.stop - self.first) // size
        return max(1, min(BATCH_ROWS, usual, max(bound // max(pages.largest, 1), pages.rows_within(bound))))

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """All of its columns. Raises RowError, which names the column that cannot be read."""
        try:
            yield from self.table.iter_batches(rows, [self.number], use_threads=False)
        except ARROW_ERRORS as error:
            self.source.file.check()
            raise self.unreadable(self._damaged(rows), error) from None

    def unreadable(self, column: str, error: object) -> RowError:
        problem = f"its row group cannot be copied: column {safe(column)!r}: {_said(error)}"
        return RowError(self.task, self.first, problem)

    def _damaged(self, rows: int) -> str:
        for name in self.table.schema_arrow.names:
            try:
                for _ in self.table.iter_batches(rows, [self.number], [name], use_threads=False):
                    pass
            except ARROW_ERRORS:
                self.source.file.check()
                return str(name)
        return "of all"


class _Edits:
    """The rows that stay, taken batch by batch. row: the next one."""

    def __init__(self, task: ReadTask, rows: Rows) -> None:
        self._edits = rows.edits(task)
        self.row, self._edit = next(self._edits, NO_ROW)

    def before(self, stop: int) -> list[tuple[int, Edit | None]]:
        """Those before row `stop`."""
        found = []
        while self.row < stop:
            found.append((self.row, self._edit))
            self.row, self._edit = next(self._edits, NO_ROW)
        return found


def _edited(
    batches: Iterator[pa.RecordBatch], group: Group, edits: _Edits, rows: Rows, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """What stays of each batch, as its edits say."""
    first = group.first
    for batch in batches:
        chosen = edits.before(first + len(batch))
        if chosen:
            numbers = [row - first for row, _ in chosen]
            columns = (
                batch.columns if len(chosen) == len(batch) else [take_rows(each, numbers) for each in batch.columns]
            )
            texts = {at: edit.text for at, (_, edit) in enumerate(chosen) if edit and edit.text is not None}
            if texts:
                columns = _with_texts(group.task, batch.schema, columns, texts, chosen[min(texts)][0])
            empty = rows.empty or Edit()
            values = [(edit or empty).labels for _, edit in chosen]
            for at, column in enumerate(rows.columns):
                columns = [*columns, pa.array([each[at] for each in values], TYPES[column.kind])]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
        first += len(batch)
        if edits.row >= group.stop:
            return


def _with_texts(
    task: ReadTask, schema: pa.Schema, columns: list[pa.Array], texts: Mapping[int, str], row: int
) -> list[pa.Array]:
    """The columns with other texts in the field of the text. row: the first of those that get one."""
    name = column_of(schema, task.text_field)
    path = [] if name == task.text_field else task.text_field.split(".")[1:]
    if not name:
        raise RowError(task, row, f"no column holds the field {safe(task.text_field)!r}")
    at = len(schema.names) - 1 - schema.names[::-1].index(name)  # of two of one name the last, as in a row's mapping
    try:
        return [*columns[:at], with_texts(columns[at], path, texts), *columns[at + 1 :]]
    except (ValueError, pa.ArrowException) as error:
        raise RowError(
            task, row, f"the text of this row, or of one soon after, is not replaced: {_said(error)}"
        ) from None


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of about GROUP_BYTES."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += sum(_bytes(column) for column in batch.columns)
        if size >= GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _bytes(column: pa.Array) -> int:
    """Of a column in memory, without a dictionary, which batches share."""
    values = column.indices if isinstance(column, pa.DictionaryArray) else column
    return int(values.nbytes)


def _said(error: object) -> str:
    lines = str(error).splitlines() or [repr(error)]
    return safe(lines[0])[:200]
