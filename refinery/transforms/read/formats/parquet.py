"""Parquet, whole or by ranges of row groups: tables with a text column, and the documents/ of an earlier run."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.format import document_fields
from refinery.loader.format.parquet.pages import footer_bytes, measure_pages, read_footer
from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument, Scalar, text_bytes
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.byte_source import ByteSource
from refinery.transforms.read.conversations import conversation_of
from refinery.transforms.read.explain import about_text_field, explain_other, listed, nearest_field
from refinery.transforms.read.fields import (
    clean,
    document_of,
    field_of,
    meta_bytes,
    named_fields,
    scalar_of,
)
from refinery.transforms.read.formats.jsonl import parse_json
from refinery.transforms.read.held_ranges import HeldRanges
from refinery.transforms.read.reader import NAMED, Reader, Split
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.read.task import COLUMN_CLASH, LimitParams, ReadTask
from refinery.transforms.read.values.arrow_values import values_of
from refinery.transforms.read.values.inexact import LOST, Doubtful, Inexact
from refinery.transforms.read.watched_file import WatchedFile

BATCH_BYTES = 8 << 20
MAX_BATCH_ROWS = 1024
FOOTER_BYTES = 1 << 16  # of a remote file, read first; most footers are shorter
PAGES = 2  # times limits.max_decompressed_bytes that a page may take, and the rows of a batch if each repeats it
DAMAGED = -1
ARROW_ERRORS = (OSError, ValueError, pa.ArrowException)
MAX_CARRIED = 128  # characters of a note that an earlier run's documents bring along: an expression of several licences
TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_null,
)
# Of an earlier run; its texts get their ids anew.
DOCUMENT_COLUMNS = tuple(name for name in document_fields.names_of(document_fields.DOCUMENTS) if name != "id")


def read_parquet(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every row of the task's row groups, up to `task.cap` documents.

    origin and position use the row's number in the file. Only the columns asked for are read, in batches of about
    8 MiB, and the checksums of their pages are verified, where there are any. Where the column that holds the text
    cannot be read on, that costs one Damaged for the rest of the row group; of any other column its values (LOST).
    Memory: five times limits.max_decompressed_bytes, however small the file is; a page above twice that counts as
    one that cannot be read. Of a remote file a row group's columns are read in one go, and held as they are stored.
    Format "documents" keeps url, origin and position of the run that wrote the file (so nothing depends on how rows
    fell into files), and its source as meta "source".
    """
    file = HeldRanges(source.file) if is_remote(task.path) else source.file
    try:
        if isinstance(file, HeldRanges):
            hold_footer(file, task.size)
        table = pq.ParquetFile(file, page_checksum_verification=True)
    except ARROW_ERRORS:
        source.file.check()
        if task.part == 0:  # the same for all parts of the file
            yield Damaged("BadParquet", task.origin(0), size=task.size)
        return
    columns = columns_of(table.schema_arrow, task)
    groups = table.metadata.num_row_groups
    low, high = (groups * part // task.parts for part in (task.part, task.part + 1))
    if columns is None:
        if task.part == 0:
            yield Damaged("MissingField", task.origin(0), size=task.size)
        return
    taken, clashes = 0, task.clashes(table.schema_arrow.names, COLUMN_CLASH)
    first = sum(table.metadata.row_group(group).num_rows for group in range(low))
    bound = PAGES * limits.max_decompressed_bytes
    largest = pages_by_size(file, columns)
    for group in range(low, high):
        pages = largest(group)
        lost = {name for name in columns if not 0 <= pages.get(name, 0) <= bound}
        if fatal := lost.intersection(needed_columns(table.schema_arrow, task)):
            error = "BadRowGroup" if any(pages[name] < 0 for name in fatal) else "PageTooLarge"
            yield Damaged(error, task.origin(first), size=max(table.metadata.row_group(group).total_byte_size, 0))
        else:
            page = max((size for name, size in pages.items() if name not in lost), default=0)
            rows = RowGroup(table, group, first, task, limits, source.file.check, max(1, bound // max(page, 1)))
            for record in rows.read(columns, lost):
                if taken == task.cap:
                    return
                if isinstance(record, RawDocument):
                    taken += 1
                    record = replace(record, found=record.found + clashes) if clashes else record
                yield record
        first += table.metadata.row_group(group).num_rows


def hold_footer(file: HeldRanges, size: int) -> None:
    """Keep the footer, which is read twice, in one request or two."""
    file.hold([(size - FOOTER_BYTES, FOOTER_BYTES)])
    file.seek(max(size - 8, 0))
    if (footer := footer_bytes(file.read(8))) > FOOTER_BYTES:
        file.hold([(size - footer, footer)])


def pages_by_size(file: WatchedFile | HeldRanges, names: Sequence[str]) -> Callable[[int], Mapping[str, int]]:
    """Row group -> bytes of the largest page of each of these columns, inflated; DAMAGED of one whose pages are.

    Of a remote file these columns are then held: each look at a page would be a request.
    """
    try:
        groups = read_footer(file)
    except FormatError:
        return lambda group: dict.fromkeys(names, DAMAGED)

    def largest(group: int) -> Mapping[str, int]:
        if group >= len(groups):
            return dict.fromkeys(names, DAMAGED)
        chosen = [column for column in groups[group] if column.name in names]
        if isinstance(file, HeldRanges):
            file.hold((column.start, column.size) for column in chosen)
        found = dict.fromkeys(names, 0)
        for column in chosen:
            try:
                size = measure_pages(file, [column]).largest
            except FormatError:
                size = DAMAGED
            known = found[column.name]
            found[column.name] = DAMAGED if DAMAGED in (size, known) else max(size, known)
        return found

    return largest


def columns_of(schema: pa.Schema, task: ReadTask) -> list[str] | None:
    """The columns to read; None if the one that holds the text is missing."""
    if task.format == "documents":
        return list(DOCUMENT_COLUMNS) if set(schema.names).issuperset(DOCUMENT_COLUMNS) else None
    found = {column_of(schema, name) for name in asked_fields(schema, task)}
    listed = dict.fromkeys(name for name in schema.names if name in found)
    return list(listed) if needed_columns(schema, task) else None


def asked_fields(schema: pa.Schema, task: ReadTask) -> list[str]:
    """The fields that the source names, that of the text first, and those that it keeps."""
    return [*named_fields(task), *(schema.names if task.fields == "keep" else task.fields)]


def column_of(schema: pa.Schema, name: str) -> str:
    """The column that holds a field; "" for none."""
    column = name if name in schema.names else name.partition(".")[0]
    return column if column in schema.names else ""


def needed_columns(schema: pa.Schema, task: ReadTask) -> tuple[str, ...]:
    """The columns without which there is no document."""
    if task.format == "documents":
        return DOCUMENT_COLUMNS
    return tuple(column for name in task.content_fields if (column := column_of(schema, name)))


@dataclass(frozen=True)
class RowGroup:
    """A row group, the first row of which is row `first` of the file. check: raises what the storage failed with: that
    is not damage of the file's. most_rows: of a batch; a row may be as large as the largest page, the same value again.
    """

    table: pq.ParquetFile
    group: int
    first: int
    task: ReadTask
    limits: LimitParams
    check: Callable[[], None] = lambda: None
    most_rows: int = MAX_BATCH_ROWS

    def read(self, columns: Sequence[str], lost: Collection[str]) -> Iterator[RawDocument | Skipped | Damaged]:
        """Its rows. lost: those of the columns that cannot be read."""
        gone = [name for name in self._fields() if column_of(self.table.schema_arrow, name) in lost]
        rows, row = self._rows([name for name in columns if name not in lost], gone), self.first
        while True:
            try:
                batch = next(rows, None)
            except ARROW_ERRORS:
                self.check()
                readable, unreadable = self._split()
                if not readable or unreadable == gone:
                    size = max(self.table.metadata.row_group(self.group).total_byte_size, 0)
                    yield Damaged("BadRowGroup", self.task.origin(row), size=size)
                    return
                rows, gone = self._rows(readable, unreadable, row - self.first), unreadable
                continue
            if batch is None:
                return
            for record in batch:
                yield read_row(record, row, self.task, self.limits)
                row += 1

    def _rows(self, columns: Sequence[str], gone: Sequence[str], skipped: int = 0) -> Iterator[list[Mapping[str, Any]]]:
        for batch in self._batches(columns):
            behind = batch.slice(min(skipped, batch.num_rows))
            skipped -= batch.num_rows - behind.num_rows
            yield rows_of(behind, gone)

    def _fields(self) -> list[str]:
        """What the source names of it, each once, the text first."""
        schema = self.table.schema_arrow
        fields = DOCUMENT_COLUMNS if self.task.format == "documents" else asked_fields(schema, self.task)
        return [name for name in dict.fromkeys(fields) if column_of(schema, name)]

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        info = self.table.metadata.row_group(self.group)
        rows = max(1, min(MAX_BATCH_ROWS, self.most_rows, BATCH_BYTES * info.num_rows // max(info.total_byte_size, 1)))
        return self.table.iter_batches(rows, [self.group], list(columns), use_threads=False)  # type: ignore[no-any-return]

    def _split(self) -> tuple[list[str], list[str]]:
        """The fields that can be read to the end, [] if the text is not among them, and the others. Cost: reads each of
        them by itself."""
        fields = self._fields()
        readable = []
        for name in fields:
            try:
                for _ in self._batches([name]):
                    pass
                readable.append(name)
            except ARROW_ERRORS:
                self.check()
        gone = [name for name in fields if name not in readable]
        is_text = fields[:1] == readable[:1] and (self.task.format != "documents" or not gone)
        return readable if is_text else [], gone


def rows_of(batch: pa.RecordBatch, lost: Sequence[str] = ()) -> list[Mapping[str, Any]]:
    """The rows of a batch, and LOST for each of the fields `lost`."""
    found = [values_of(column) for column in batch.columns]
    names, rows = list(batch.schema.names), zip(*(values for values, _ in found), strict=True)
    if lost or any(is_doubtful for _, is_doubtful in found):
        return [Doubtful(zip(names, row, strict=True), **dict.fromkeys(lost, LOST)) for row in rows]
    return [dict(zip(names, row, strict=True)) for row in rows]


def read_row(
    record: Mapping[str, Any], row: int, task: ReadTask, limits: LimitParams
) -> RawDocument | Skipped | Damaged:
    """What is in a row."""
    origin = task.origin(row)
    if task.format == "documents":
        return earlier_document(record, origin, task, limits)
    if not task.samples(origin):
        return Skipped(NOT_SAMPLED, origin, size_of(field_of(record, task.text_field)))
    if task.further_fields:
        return conversation_of(record, None, task, limits, row, b"")
    return document_of(record, task, limits, row, b"")


def earlier_document(
    record: Mapping[str, Any], origin: str, task: ReadTask, limits: LimitParams
) -> RawDocument | Skipped | Damaged:
    """A document of an earlier run, as it was: only the source is a new one.

    Notes that stages make before documents/ is written are kept. Other notes come later, so the funnel did not write
    them.
    """
    text, meta = record["text"], parse_json(str(record["meta"] or "{}").encode())
    if Inexact in (type(text), type(record["origin"])):
        return Damaged("BadValue", origin)
    text = "" if text is None else text
    if not isinstance(text, str) or not isinstance(record["origin"], str):
        return Damaged("MissingField", origin)
    if not isinstance(meta, dict):
        return Damaged("BadJson", origin, text.encode())
    origin, url, size = record["origin"], clean(record["url"]), text_bytes(text)
    if not task.samples(origin):
        return Skipped(NOT_SAMPLED, origin, size, url)
    if size > limits.max_record_bytes:
        return Skipped("too-large", origin, size, url)
    if not text or text.isspace():
        return Skipped("empty", origin, size, url)
    kept: dict[str, Scalar] = {
        clean(key): scalar
        for key, value in meta.items()
        if (scalar := scalar_of(value)) is not None and (key not in task.own_meta or is_carried(key, value, task))
    }
    kept.setdefault("source", clean(record["source"]))
    if meta_bytes(url, kept) > limits.max_meta_bytes:
        return Skipped("meta-too-large", origin, size)
    position = record["position"]
    if not isinstance(position, int) or not 0 <= position < 1 << 63:
        return Damaged("BadField", origin, text.encode("utf-8", "surrogatepass"))
    return RawDocument(text, False, "", url, task.source, origin, position, kept)


def is_carried(key: str, value: object, task: ReadTask) -> bool:
    """Whether this is a note that documents of an earlier run may bring along, of the size that stages make."""
    return key in task.carried_meta and (
        isinstance(value, int | float) or (isinstance(value, str) and len(value) < MAX_CARRIED)
    )


def size_of(text: Any) -> int:
    return len(text) if isinstance(text, bytes) else text_bytes(text) if isinstance(text, str) else 0


def explain_parquet(task: ReadTask, source: ByteSource) -> str:
    try:
        schema = pq.ParquetFile(source.file).schema_arrow
    except (OSError, ValueError):  # pyarrow's errors are subclasses of these
        return explain_other(task, source)
    columns = {field.name: f"{safe(field.name)} ({field.type})" for field in schema}
    texts = [field.name for field in schema if any(is_text(_values(field.type)) for is_text in TEXTS)]
    if task.format == "documents":
        lacks = [name for name in DOCUMENT_COLUMNS if name not in columns]
        return f"{task.path} is not documents/ of an earlier run: no column {lacks[0]}" if lacks else ""
    if task.text_field in columns:
        return "" if task.text_field in texts else f"{about_text_field(task)} holds no text: {columns[task.text_field]}"
    if task.text_field.partition(".")[0] in columns:
        return ""
    return (
        f"{about_text_field(task)} is not there, there are {listed(list(columns.values()))}{nearest_field(task, texts)}"
    )


def names_in_schema(task: ReadTask, source: ByteSource, limits: LimitParams) -> list[str]:
    """The columns; none of a file that cannot be read. Raises OSError where the storage fails."""
    return list(read_schema(task, source).names)


def read_schema(task: ReadTask, source: ByteSource) -> pa.Schema:
    """The schema; an empty one of a file that cannot be read. Raises OSError where the storage fails."""
    file = HeldRanges(source.file) if is_remote(task.path) else source.file
    try:
        if isinstance(file, HeldRanges):
            hold_footer(file, task.size)
        return pq.ParquetFile(file).schema_arrow
    except ARROW_ERRORS:
        source.file.check()
        return pa.schema([])


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def row_group_parts(task: ReadTask, split_bytes: int) -> int:
    """Parts of about `split_bytes` bytes. Those beyond the row groups are empty, which costs less than a look into
    thousands of files before each start."""
    return -(-task.size // split_bytes) if task.size > split_bytes else 1


def part_of_row(task: ReadTask, source: ByteSource, row: int) -> ReadTask:
    """The row group that holds a row. Raises OSError where the storage fails."""
    try:
        facts = pq.ParquetFile(source.file).metadata
    except (OSError, ValueError):  # no Parquet: the reader says what is wrong
        source.file.check()
        return task
    stop = 0
    for group in range(facts.num_row_groups):
        stop += facts.row_group(group).num_rows
        if row < stop:
            return replace(task, part=group, parts=facts.num_row_groups)
    return task


PARQUET = Reader(
    name="parquet",
    version=1,
    summary="a row",
    offset="row number",
    title="a Parquet file",
    endings=(".parquet",),
    magic=(b"PAR1",),
    compressed=False,
    read=read_parquet,
    split=Split(row_group_parts, part_of_row),
    in_pieces=True,
    named_fields=True,
    fields=NAMED,
    explain=explain_parquet,
    names=names_in_schema,
)
DOCUMENTS = Reader(
    name="documents",
    version=1,
    summary="a row of an earlier run's `work/documents/`",
    offset="as it was in that run, whose source becomes meta `source`",
    title="a Parquet file",
    magic=(b"PAR1",),
    compressed=False,
    read=read_parquet,
    split=Split(row_group_parts),
    in_pieces=True,
    named_fields=True,
    keeps_origins=True,
    explain=explain_parquet,
)
