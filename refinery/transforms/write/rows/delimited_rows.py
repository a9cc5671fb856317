"""Rows of CSV and TSV that stay, byte for byte, below their header.

A new text is quoted as the file's dialect needs, and in quotes where the old one was. Labels are further fields. A TSV
file of dialect "auto" is read as plain or quoted by what is in it, so a copy may be read in the other way, where the
rows that decided are gone; a `dialect` in the source says it for both.
"""

from collections.abc import Sequence

from refinery.transforms.core.document import Scalar
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.formats.delimited import DELIMITERS, names_in_header, numbered_rows
from refinery.transforms.read.lines import BOM
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.read.values.dialects import Lines, rows_of
from refinery.transforms.write.rows.compressed import Write
from refinery.transforms.write.rows.fields_of_rows import edited_row
from refinery.transforms.write.rows.rows import NO_ROW, Label, RowError, Rows, refuse_taken


def copy_delimited(
    task: ReadTask, source: ByteSource, stream: MemberStream, rows: Rows, limits: LimitParams, write: Write
) -> None:
    """The header, with a byte order mark if there is one, and the rows that stay, each with its line end. Blank lines
    go.

    Raises RowError for a row that is not there or exceeds limits.max_decompressed_bytes, and for an edit that cannot be
    made. Memory: a row and a MiB.
    """
    delimiter = DELIMITERS[task.format]
    lines = Lines(stream.read, limits.max_decompressed_bytes)
    mark = BOM if lines.peek(len(BOM)) == BOM else b""  # which Lines leaves out
    found = rows_of(lines, task.dialect, delimiter)
    edits = rows.edits(task)
    wanted, edit = next(edits, NO_ROW)
    header: Sequence[str] | None = None
    text_at = -1
    for number, row, data in numbered_rows(lines, found):
        if row is not None and not row:
            continue
        if header is None:
            if row is None:
                break
            header = row
            text_at = header.index(task.text_field) if task.text_field in header else -1
            refuse_taken(task, 0, rows.columns, row)
            names = [column.name for column in rows.columns]
            write(mark + (edited_row(data, row, found.dialect, delimiter, {}, names) if names else data))
            continue
        if number == wanted:
            if lines.too_long:
                raise RowError(task, number, "more bytes than `limits.max_decompressed_bytes`")
            is_row = row is not None and len(row) == len(header)
            if edit is None and is_row:
                edit = rows.empty
            if edit is not None:
                if row is None or not is_row or (edit.text is not None and text_at < 0):
                    raise RowError(task, number, "it has no field for a new text or labels")
                changes = {} if edit.text is None else {text_at: edit.text}
                try:
                    data = edited_row(data, row, found.dialect, delimiter, changes, [*map(in_text, edit.labels)])
                except ValueError as error:
                    raise RowError(task, number, str(error)) from None
            write(data)
            wanted, edit = next(edits, NO_ROW)
        if wanted == NO_ROW[0]:
            return
    if wanted != NO_ROW[0]:
        why = f"; the file breaks off ({stream.broken})" if stream.broken else ""
        raise RowError(task, wanted, f"the file has no such row{why}")


def in_text(value: Scalar) -> str:
    """A label in a table of texts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_header(task: ReadTask, source: ByteSource, columns: Sequence[Label], limits: LimitParams) -> None:
    """Raise RowError where the header has a label's name."""
    refuse_taken(task, 0, columns, names_in_header(task, source, limits))
