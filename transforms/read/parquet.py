"""Parquet, whole or by ranges of row groups: tables with a text column, and the documents/ of an earlier run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.parquet.pages import footer_bytes, measure_pages, read_footer
from refinery.transforms.core.document import RawDocument, Scalar, text_bytes
from refinery.transforms.core.per_document import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.read.byte_source import ByteSource
from refinery.transforms.read.held_ranges import HeldRanges
from refinery.transforms.read.jsonl import clean, document_of, field_of, meta_bytes, named_fields, parse_json, scalar_of
from refinery.transforms.read.plan import LimitParams, ReadTask
from refinery.transforms.read.watched_file import WatchedFile
from refinery.transforms.remote.files import is_remote

BATCH_BYTES = 8 << 20
MAX_BATCH_ROWS = 1024
FOOTER_BYTES = 1 << 16  # of a remote file, read first; most footers are shorter
PAGES = 2  # times limits.max_decompressed_bytes that a page may take, and the rows of a batch if each repeats it
ARROW_ERRORS = (OSError, ValueError, pa.ArrowException)
MAX_CARRIED = 128  # characters of a note that an earlier run's documents bring along: an expression of several licences
DOCUMENT_COLUMNS = ("text", "url", "source", "origin", "position", "meta")


def read_parquet(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every row of the task's row groups, up to `task.cap` documents.

    origin and position use the row's number in the file. Only the columns asked for are read, in batches of about
    8 MiB; a row group that cannot be read on costs one Damaged for the rest of it. Memory: five times
    limits.max_decompressed_bytes, however small the file is; a page above twice that costs its row group. Of a remote
    file a row group's columns are read in one go, and held as they are stored. Format "documents" keeps url, origin
    and position of the run that wrote the file (so nothing depends on how rows fell into files), and its source as
    meta "source".
    """
    file = HeldRanges(source.file) if is_remote(task.path) else source.file
    try:
        if isinstance(file, HeldRanges):
            hold_footer(file, task.size)
        table = pq.ParquetFile(file)
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
    taken = 0
    first = sum(table.metadata.row_group(group).num_rows for group in range(low))
    bound = PAGES * limits.max_decompressed_bytes
    largest = pages_by_size(file, columns)
    for group in range(low, high):
        page = largest(group)
        if page is None or page > bound:
            error = "BadRowGroup" if page is None else "PageTooLarge"
            yield Damaged(error, task.origin(first), size=max(table.metadata.row_group(group).total_byte_size, 0))
        else:
            rows = max(1, bound // max(page, 1))
            for record in read_group(table, group, first, columns, task, limits, source.file.check, rows):
                if taken == task.cap:
                    return
                taken += isinstance(record, RawDocument)
                yield record
        first += table.metadata.row_group(group).num_rows


def hold_footer(file: HeldRanges, size: int) -> None:
    """Keep the footer, which is read twice, in one request or two."""
    file.hold([(size - FOOTER_BYTES, FOOTER_BYTES)])
    file.seek(max(size - 8, 0))
    if (footer := footer_bytes(file.read(8))) > FOOTER_BYTES:
        file.hold([(size - footer, footer)])


def pages_by_size(file: WatchedFile | HeldRanges, names: Sequence[str]) -> Callable[[int], int | None]:
    """Row group -> bytes of the largest page that reading the columns `names` of it inflates; None if one is damaged.

    Of a remote file these columns are then held: each look at a page would be a request.
    """
    try:
        groups = read_footer(file)
    except FormatError:
        return lambda group: None

    def largest(group: int) -> int | None:
        try:
            chosen = [column for column in groups[group] if column.name in names]
            if isinstance(file, HeldRanges):
                file.hold((column.start, column.size) for column in chosen)
            return measure_pages(file, chosen).largest
        except (FormatError, IndexError):
            return None

    return largest


def columns_of(schema: pa.Schema, task: ReadTask) -> list[str] | None:
    """The columns to read; None if the one that holds the text is missing."""
    present = set(schema.names)
    if task.format == "documents":
        return list(DOCUMENT_COLUMNS) if present.issuperset(DOCUMENT_COLUMNS) else None
    names = named_fields(task)
    found = [name if name in present else name.partition(".")[0] for name in names]
    return sorted(present.intersection(found)) if found[0] in present else None


def read_group(
    table: pq.ParquetFile,
    group: int,
    first: int,
    columns: Sequence[str],
    task: ReadTask,
    limits: LimitParams,
    check: Callable[[], None] = lambda: None,
    most_rows: int = MAX_BATCH_ROWS,
) -> Iterator[RawDocument | Skipped | Damaged]:
    """The rows of one row group, the first of which is row `first` of the file. check: raises what the storage failed
    with: that is no damage of the file's. most_rows: of a batch; a row may be as large as the largest page, the same
    value again."""
    info = table.metadata.row_group(group)
    row = first
    rows = max(1, min(MAX_BATCH_ROWS, most_rows, BATCH_BYTES * info.num_rows // max(info.total_byte_size, 1)))
    batches = table.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns), use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except ARROW_ERRORS:
            check()
            yield Damaged("BadRowGroup", task.origin(row), size=max(info.total_byte_size, 0))
            return
        if batch is None:
            return
        for record in rows_of(batch):
            yield read_row(record, row, task, limits)
            row += 1


def rows_of(batch: pa.RecordBatch) -> list[Mapping[str, Any] | None]:
    """The rows of a batch, None for one with a value that Python cannot take (text that is not UTF-8, a year 10000)."""
    try:
        return list(batch.to_pylist())
    except (ValueError, OverflowError, LookupError, pa.ArrowException):  # LookupError: a time zone nobody knows
        if batch.num_rows == 1:
            return [None]
        return [row for at in range(batch.num_rows) for row in rows_of(batch.slice(at, 1))]


def read_row(
    record: Mapping[str, Any] | None, row: int, task: ReadTask, limits: LimitParams
) -> RawDocument | Skipped | Damaged:
    """What is in a row."""
    origin = task.origin(row)
    if record is None:
        return Damaged("BadValue", origin)
    if task.format == "documents":
        return earlier_document(record, origin, task, limits)
    if not task.samples(origin):
        return Skipped(NOT_SAMPLED, origin, size_of(field_of(record, task.text_field)))
    return document_of(record, task, limits, row, b"")


def earlier_document(
    record: Mapping[str, Any], origin: str, task: ReadTask, limits: LimitParams
) -> RawDocument | Skipped | Damaged:
    """A document of an earlier run, as it was: only the source is a new one.

    Of the notes that stages make, those that they make before documents/ is written are taken over; the others come
    later, so whoever put them there was not the funnel.
    """
    text, meta = record["text"], parse_json(str(record["meta"] or "{}").encode())
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
