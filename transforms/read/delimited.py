"""CSV and TSV with a header: a row is a record, its fields are named by the header."""

from collections.abc import Iterator, Sequence
from typing import Any

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.fields import document_of
from refinery.transforms.read.jsonl import HASHED, mark
from refinery.transforms.read.plan import LimitParams, ReadTask
from refinery.transforms.read.values.dialects import Lines, rows_of

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
    number = taken = 0
    while taken != task.cap:
        row, data = rows.next()
        if row is None and not data and not lines.too_long:
            break
        if row is not None and not row:
            continue
        if header is None:
            if row is None or len(set(row)) < len(row) or task.text_field not in row:
                error = "BadHeader" if row is None or len(set(row)) < len(row) else "MissingField"
                yield Damaged(error, task.origin(0), data[:HASHED], task.size)
                return
            header, rows.width = row, len(row)
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
        number += 1
    if stream.broken:
        yield Damaged(stream.broken, task.origin(number), size=max(task.size - stream.total, 0))
