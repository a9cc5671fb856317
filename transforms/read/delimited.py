"""CSV and TSV with a header: a row is a record, its fields are named by the header."""

import csv
import io
from collections.abc import Iterator, Sequence

from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.per_document import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.fields import document_of
from refinery.transforms.read.jsonl import HASHED
from refinery.transforms.read.plan import LimitParams, ReadTask

DELIMITERS = {"csv": ",", "tsv": "\t"}


def read_delimited(
    task: ReadTask, source: ByteSource, limits: LimitParams
) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every row below the header, up to `task.cap` documents; blank rows are none. UTF-8; quotes as in RFC 4180.

    origin and position use the row's number, from 0. A row of more or fewer fields than the header is damage, so is one
    with bytes that are not UTF-8. Memory: a row, of at most limits.max_decompressed_bytes.
    """
    stream = MemberStream(source)
    lines = _Lines(stream, limits.max_decompressed_bytes)
    rows = csv.reader(lines, delimiter=DELIMITERS[task.format])
    header: Sequence[str] | None = None
    number = taken = 0
    while taken != task.cap:
        row, data = next_row(rows, lines, limits.max_decompressed_bytes)
        if row is None and not data and not lines.too_long:
            break
        if row is not None and not row:
            continue
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
        elif row is None or len(row) != len(header) or lines.undecodable:
            yield Damaged("BadRow", origin, data[:HASHED], len(data))
        elif not task.samples(origin):
            yield Skipped(NOT_SAMPLED, origin, len(data))
        else:
            record = document_of(dict(zip(header, row, strict=True)), task, limits, number, data[:HASHED])
            taken += isinstance(record, RawDocument)
            yield record
        number += 1
    if stream.broken:
        yield Damaged(stream.broken, task.origin(number), size=max(task.size - stream.total, 0))


def next_row(rows: "Iterator[list[str]]", lines: "_Lines", limit: int) -> tuple[list[str] | None, bytes]:
    """The next row and its bytes; None for a row that is none, None and b"" at the end of the file."""
    lines.begin_row()
    before = csv.field_size_limit(limit)  # of the whole process, so it is put back
    try:
        return next(rows, None), bytes(lines.taken)
    except csv.Error:
        return None, bytes(lines.taken)
    finally:
        csv.field_size_limit(before)


class _Lines(Iterator[str]):
    """The lines of a stream as text, with the bytes of those that the row at hand took."""

    def __init__(self, stream: MemberStream, limit: int) -> None:
        self.stream, self.limit = stream, limit
        self.buffer = io.BytesIO()
        self.first = True
        self.taken = bytearray()
        self.undecodable = self.too_long = False

    def begin_row(self) -> None:
        self.taken = bytearray()
        self.undecodable = self.too_long = False

    def __next__(self) -> str:
        data = self._line()
        if not data:
            raise StopIteration
        if self.first:
            data, self.first = data.removeprefix(b"\xef\xbb\xbf"), False
        self.taken += data
        if len(self.taken) > self.limit:  # an open quote: the row is given up here
            self.too_long = True
            raise csv.Error("row too long")
        try:
            return data.decode().replace("\0", "")
        except UnicodeDecodeError:
            self.undecodable = True
            return data.decode("utf-8", "replace").replace("\0", "")

    def _line(self) -> bytes:
        line = bytearray()
        while True:
            piece = self.buffer.readline()
            if len(line) <= self.limit:
                line += piece
            if piece.endswith(b"\n"):
                return bytes(line)
            more = self.stream.read()
            if not more:
                return bytes(line)
            self.buffer = io.BytesIO(more)
