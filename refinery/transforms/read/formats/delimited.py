"""CSV and TSV with a header: a row is a record, its fields are named by the header."""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.byte_source import ByteSource, MemberStream, open_source
from refinery.transforms.read.explain import (
    CARRIAGE_RETURNS,
    HEAD,
    RECORDS,
    about_text_field,
    first_bytes,
    kind_of,
    listed,
    nearest_field,
)
from refinery.transforms.read.fields import document_of
from refinery.transforms.read.formats.jsonl import mark
from refinery.transforms.read.lines import HASHED
from refinery.transforms.read.reader import COMPRESSION_LIBRARIES, NAMED, Reader
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.read.values.dialects import Lines, Rows, first_rows, propose_dialect, rows_of, settle_dialect

DELIMITERS = {"csv": ",", "tsv": "\t"}


def read_delimited(
    task: ReadTask, source: ByteSource, limits: LimitParams
) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every row below the header, up to `task.cap` documents; blank rows are none. UTF-8; written in `task.dialect`.

    origin and position use the row's number, from 0. A row of more or fewer fields than the header is damage, so is one
    with text behind a closing quote, and one whose text has bytes that are not UTF-8. Memory: a row, of at most
    limits.max_decompressed_bytes, and a MiB.
    """
    stream = MemberStream(source)
    lines = Lines(stream.read, limits.max_decompressed_bytes)
    rows = rows_of(lines, task.dialect, DELIMITERS[task.format])
    header: Sequence[str] | None = None
    taken = seen = 0
    zeros = False
    for number, row, data in numbered_rows(lines, rows):
        if row is not None and not row:
            zeros = zeros or bool(data.strip())
            continue
        seen = number + 1
        if header is None:
            if row is None or len(set(row)) < len(row) or task.text_field not in row:
                error = "BadHeader" if row is None or len(set(row)) < len(row) else "MissingField"
                yield Damaged(error, task.origin(0), data[:HASHED], task.size)
                return
            header = row
            continue
        origin = task.origin(number)
        if lines.too_long:
            yield Skipped("too-large", origin, len(data))
        elif row is None or len(row) != len(header):
            yield Damaged("BadRow", origin, data[:HASHED], len(data))
        elif not task.samples(origin):
            yield Skipped(NOT_SAMPLED, origin, len(data))
        else:
            fields: dict[str, Any] = dict(zip(header, row, strict=True))
            record = document_of(mark(fields) if lines.undecodable else fields, task, limits, number, data[:HASHED])
            taken += isinstance(record, RawDocument)
            is_text = not isinstance(record, Damaged)
            yield record if is_text else Damaged("BadRow", origin, data[:HASHED], len(data))
            if taken == task.cap:
                break
    if header is None and zeros:  # a block of zeros where a file was to be: not the same as one without a row
        yield Damaged("BadHeader", task.origin(0), size=task.size)
    if stream.broken:
        yield Damaged(stream.broken, task.origin(seen), size=max(task.size - stream.total, 0))


def numbered_rows(lines: Lines, rows: Rows) -> Iterator[tuple[int, list[str] | None, bytes]]:
    """Everything in a file as `Rows.next` gives it, each with its number: -1 is the header, rows below it count from 0.
    Blank lines have the number of what follows. What is not a row counts, too."""
    number = -1
    while True:
        row, data = rows.next()
        if row is None and not data and not lines.too_long:
            return
        yield number, row, data
        if row is None or row:
            rows.width = rows.width if number >= 0 else len(row or ())
            number += 1


def explain_delimited(task: ReadTask, source: ByteSource) -> str:
    head = first_bytes(source)
    if (kind := kind_of(source)) != "plain text":
        return f"{task.path} is not {find_reader(task.format).called}: it looks like {kind}"
    if b"\r" in head.strip() and b"\n" not in head:
        return f"{task.path}: {CARRIAGE_RETURNS}"
    delimiter, is_cut = DELIMITERS[task.format], len(head) >= HEAD
    dialect = settle_dialect(head, task.dialect, delimiter, is_cut)
    if dialect == "rfc4180" and (problem := _open_quote(head.decode("utf-8", "replace"), delimiter, is_cut)):
        return f"{task.path}: {problem}"
    rows = first_rows(head, dialect, delimiter, is_cut)
    header = next((row for row, _ in rows if row), [])
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        return f"{task.path}: the header has the column {safe(twice[0][:60])!r} twice"
    if task.text_field in header:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head, not is_cut)
        except UnicodeDecodeError:
            return f"{task.path} is not in UTF-8: `iconv -f LATIN1 -t UTF-8`, or from what it is in, makes that of it"
        wrong = next(
            ((row, line) for row, line in islice(rows, RECORDS) if row is None or len(row) != len(header)), None
        )
        if wrong is None:
            return ""
        row, line = wrong
        what = "is none: text stands behind a closing quote" if row is None else f"has {len(row)}"
        return f"{task.path}: the header has {len(header)} fields, the row that ends in line {line} {what}"
    other = next((d for d in (",", "\t", ";", "|") if d != delimiter and header and d in header[0]), "")
    between = f"; columns are parted by {delimiter!r}, these look like {other!r}" if other and len(header) == 1 else ""
    near = "" if between else nearest_field(task, header)
    return f"{about_text_field(task)} is not in the header, which has {listed(header)}{between}{near}"


def names_in_header(task: ReadTask, source: ByteSource, limits: LimitParams) -> Sequence[str]:
    """The columns of the header; none of one with a column twice, which no row can be read by."""
    head, delimiter = first_bytes(source), DELIMITERS[task.format]
    is_cut = len(head) >= HEAD
    rows = first_rows(head, settle_dialect(head, task.dialect, delimiter, is_cut), delimiter, is_cut)
    header = next((row for row, _ in rows if row), [])
    return header if len(set(header)) == len(header) else ()


def other_dialect(task: ReadTask) -> str:
    """That the file's first rows are all rows if they are read in another dialect, and not in that of such files."""
    if task.dialect != "auto":
        return ""
    with open_source(task.place, task.size, task.version, payer=task.payer) as source:
        head = first_bytes(source)
    dialect, faults = propose_dialect(head, DELIMITERS[task.format], len(head) >= HEAD)
    if dialect == "auto":
        return ""
    return (
        f"{task.path}: {faults:,} of the first rows cannot be read as {find_reader(task.format).called} is usually "
        f"written, and every one can with `dialect: {dialect}`; set it (or `dialect: rfc4180`, to lose them)"
    )


def _open_quote(text: str, delimiter: str, is_cut: bool) -> str:
    """Where a quote opens that takes the rest of the file, or of its first MiB, into one field; "" for nowhere."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins, before = 1, csv.field_size_limit(2 * HEAD)
    try:
        for row in islice(rows, RECORDS):
            begins = rows.line_num + 1
            if is_cut and row and begins > 2:  # a row that goes on behind what was read is none of these
                return ""
    except csv.Error as error:
        if str(error) == "unexpected end of data":  # the reader accepts other misplaced quotes
            closed = "is not closed in its first MiB" if is_cut else "is never closed"
            return f"a quote that opens in the row of line {begins} {closed}"
    finally:
        csv.field_size_limit(before)
    return ""


_declared = partial(
    Reader,
    version=1,
    summary="a row below the header, in UTF-8, as [`dialect`](sources.md#csv-and-tsv) says",
    offset="row number",
    read=read_delimited,
    named_fields=True,
    fields=(*NAMED, "dialect"),
    libraries=COMPRESSION_LIBRARIES,
    check=other_dialect,
    explain=explain_delimited,
    names=names_in_header,
)
CSV = _declared(name="csv", title="a CSV file", endings=(".csv",))
TSV = _declared(name="tsv", title="a TSV file", endings=(".tsv",))
