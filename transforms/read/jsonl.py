"""JSON Lines, plain or compressed, whole or in parts.

A file is a row of blocks of 1 MiB (decompressed), and a line belongs to the block in which it starts. A part of an
uncompressed file owns neighbouring blocks and reads only those; part k of n of a compressed file inflates all of it
and owns every n-th block from the k-th on, which balances without an index. Parts together give what one reader gives.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from refinery.transforms.core.document import RawDocument, Scalar, text_bytes
from refinery.transforms.core.per_document import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.plan import LimitParams, ReadTask

BLOCK = 1 << 20
HASHED = 1 << 16  # bytes of a damaged line that make its hash
BOM = b"\xef\xbb\xbf"
FIELD = re.compile(r"\{([^{}]+)\}")  # in a url_field
PARSED = 4  # times limits.max_decompressed_bytes that a line's values may take, but
PARSED_LEAST = 16 << 20  # this much always
MAX_DEPTH = 64  # levels of lists and objects in a record


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its newline, at byte `offset` of the decompressed file. `data` is None if it is over the limit.

    `error` is set if the file breaks off in it: nothing follows.
    """

    offset: int
    data: bytes | None
    size: int
    error: str = ""


def read_jsonl(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every record of a JSONL file, up to `task.cap` documents. Blank lines are no records.

    origin and position use the line's byte offset in the decompressed file. Memory: two lines and a block.
    """
    taken = 0
    for line in read_lines(source, task, limits.max_decompressed_bytes):
        if taken == task.cap:
            return
        record = parse_line(line, task, limits)
        taken += isinstance(record, RawDocument)
        if record is not None:
            yield record


def parse_line(line: Line, task: ReadTask, limits: LimitParams) -> RawDocument | Skipped | Damaged | None:
    """What is in a line; None if it is blank."""
    origin = task.origin(line.offset)
    if line.error:
        return Damaged(line.error, origin, line.data or b"", line.size)
    if line.data is None:
        return Skipped("too-large", origin, line.size)
    data = line.data.removeprefix(BOM) if not line.offset else line.data
    if not data or data.isspace():
        return None
    if not task.samples(origin):
        return Skipped(NOT_SAMPLED, origin, line.size)
    if parsed_bytes(data) > max(PARSED * limits.max_decompressed_bytes, PARSED_LEAST):
        return Skipped("too-large", origin, line.size)
    record = parse_json(data)
    if not isinstance(record, dict):
        return Damaged("BadJson", origin, data[:HASHED], line.size)
    return document_of(record, task, limits, line.offset, data[:HASHED])


def parsed_bytes(data: bytes) -> int:
    """What the values in a line of JSON can take as Python's objects, at most, about: three bytes of it can be one of
    64. Commas and brackets in texts count, too. Cost: three passes of memchr.
    """
    return 2 * len(data) + 72 * (data.count(b",") + data.count(b"[")) + 240 * data.count(b"{")


def parse_json(data: bytes) -> Any:
    """The value in `data`, or None. What orjson refuses (NaN, lone surrogates, big integers) Python's reader takes, in
    UTF-8 alone: left to itself it guesses UTF-16, of which lines are cut in the middle of characters.

    Nesting beyond MAX_DEPTH is refused here, so that nothing later depends on how much of the stack is left. Raises
    MemoryError, which orjson reports as if it were damage.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "memory" in str(error):
            raise MemoryError(str(error)) from error
        try:
            value = json.loads(data.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            return None
    return value if is_shallow(value) else None


def is_shallow(value: Any) -> bool:
    """Whether lists and objects nest at most MAX_DEPTH deep. Linear, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [part for outer in level if isinstance(outer, dict) for part in outer.values()]
        inner += [part for outer in level if isinstance(outer, list) for part in outer]
        level = [part for part in inner if isinstance(part, dict | list)]
        if not level:
            return True
    return False


def document_of(
    record: Mapping[str, Any], task: ReadTask, limits: LimitParams, offset: int, raw: bytes
) -> RawDocument | Skipped | Damaged:
    """The document that the fields of a record make. raw: bytes of the record that are hashed if it is damaged."""
    origin = task.origin(offset)
    text = field_of(record, task.text_field)
    if text is None:
        return Damaged("MissingField", origin, raw)
    if not isinstance(text, str | bytes):
        return Damaged("BadField", origin, raw)
    fields = fields_of(record, task)
    url = address_of(record, fields.url)
    text = clean(text) if isinstance(text, str) else text
    size = len(text) if isinstance(text, bytes) else text_bytes(text)
    if size > limits.max_record_bytes:
        return Skipped("too-large", origin, size, url)
    if not text or text.isspace():
        return Skipped("empty", origin, size, url)
    meta: dict[str, Scalar] = {}
    kept = [("date", fields.date), ("record_id", fields.id), *((name, name) for name in task.meta_fields)]
    for key, name in kept:
        if name and (value := scalar_of(field_of(record, name))) is not None:
            meta[key] = value
    if meta_bytes(url, meta) > limits.max_meta_bytes:
        return Skipped("meta-too-large", origin, size)
    return RawDocument(text, task.content == "html", "", url, task.source, origin, task.position(offset), meta)


def address_of(record: Mapping[str, Any], form: str) -> str:
    """The record's address: the field `form`, or where fields stand in braces in it, `form` with them put in; "" where
    one is missing.

    >>> address_of({"repo": "madler/zlib", "path": "zlib.h"}, "{repo}/{path}")
    'madler/zlib/zlib.h'
    """
    names = FIELD.findall(form)
    if not names:
        return clean(scalar_of(field_of(record, form)))
    values = {name: clean(scalar_of(field_of(record, name))) for name in names}
    return FIELD.sub(lambda found: values[found[1]], form) if all(values.values()) else ""


def named_fields(task: ReadTask) -> list[str]:
    """Fields of a record that the source names, that of the text first; paths with dots as they are."""
    address = FIELD.findall(task.url_field) or [task.url_field]
    return [task.text_field, *address, task.date_field, task.id_field, *task.meta_fields]


@dataclass(frozen=True, slots=True)
class Fields:
    """Where a record has its address, date and identity."""

    url: str
    date: str
    id: str


def fields_of(record: Mapping[str, Any], task: ReadTask) -> Fields:
    """The fields that the source names. Where it leaves them at their defaults and the record has the form of Dolma
    (id, text, source, added, created, metadata) or of datatrove's writers (id, text, metadata), theirs.

    Dolma: docs/data-format.md of its toolkit; datatrove: `Document` and `DiskWriter._default_adapter`.
    """
    inside = record.get("metadata")
    if not isinstance(inside, Mapping) or not isinstance(record.get("id"), str):
        return Fields(task.url_field, task.date_field, task.id_field)
    dolma = "created" in record or "added" in record
    url, date, id_ = task.url_field, task.date_field, task.id_field
    if url == "url" and url not in record:
        url = "metadata.url"
    if date == "date" and date not in record:
        date = "created" if dolma and "created" in record else "metadata.date"
    return Fields(url, date, id_ or "id")


def meta_bytes(url: str, meta: Mapping[str, Scalar]) -> int:
    """About what a document's address and notes take, in characters."""
    return len(url) + sum(len(key) + (len(value) if isinstance(value, str) else 8) for key, value in meta.items())


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """The field `name`, or, if there is none, the one at the end of the dotted path `name`; None if missing."""
    if name in record or "." not in name:
        return record.get(name)
    value: Any = record
    for key in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def scalar_of(value: Any) -> Scalar | None:
    """`value` as it fits into meta: text, a 64-bit integer or a finite number; lists and objects as JSON text."""
    if value is None:
        return None
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int):
        return int(value) if -(1 << 63) <= value < 1 << 63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | dict):
        return clean(json.dumps(value, ensure_ascii=False, default=str))
    return str(value)


def clean(value: Scalar | None) -> str:
    """`value` as text without lone surrogates, which no coder takes; "" for None."""
    text = "" if value is None else str(value)
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()


def read_lines(source: ByteSource, task: ReadTask, limit: int) -> Iterator[Line]:
    """The lines that belong to the task's part, in order."""
    stream = MemberStream(source)
    if task.parts == 1:
        return split_lines(read_blocks(stream), 0, lambda block: True, limit)
    if stream.magic:
        return split_lines(read_blocks(stream), 0, lambda block: block % task.parts == task.part, limit)
    blocks = -(-task.size // BLOCK)
    first, stop = (blocks * part // task.parts for part in (task.part, task.part + 1))
    source.file.sum_from(first * BLOCK, min(stop * BLOCK, task.size))
    if task.part == task.parts - 1:
        stop = 1 << 63  # whatever was appended since the planning
    return split_range(source, first, stop, limit)


def split_range(source: ByteSource, first: int, stop: int, limit: int) -> Iterator[Line]:
    """The lines that start in blocks `first` to `stop` of an uncompressed file."""
    at_line_start = first == 0 or source.head(first * BLOCK - 1, 1) == b"\n"
    offsets = iter(range(first * BLOCK, 1 << 63, BLOCK))
    blocks = iter(lambda: source.head(next(offsets), BLOCK), b"")
    return split_lines(
        ((block, "") for block in blocks), first, lambda block: first <= block < stop, limit, at_line_start, stop
    )


def read_blocks(stream: MemberStream) -> Iterator[tuple[bytes, str]]:
    """The decompressed file in blocks of 1 MiB, each with the error at its end, "" if none. Stops after an error."""
    buffer = bytearray()
    while data := stream.read():
        buffer += data
        while len(buffer) >= BLOCK:
            yield bytes(buffer[:BLOCK]), ""
            del buffer[:BLOCK]
    if buffer or stream.broken:
        yield bytes(buffer), stream.broken


def split_lines(
    blocks: Iterator[tuple[bytes, str]],
    first: int,
    owns: Callable[[int], bool],
    limit: int,
    at_line_start: bool = True,
    stop: int = 1 << 63,
) -> Iterator[Line]:
    """The lines that start in a block of which `owns(number)` is true.

    blocks: the file from block number `first` on. at_line_start: whether a line starts with the first byte. stop: the
    first block in which no line is owned any more; it is read only to end the last line.
    """
    open_line = None if at_line_start else _OpenLine(0, False)  # the line that the next block goes on with
    number = first - 1
    for number, (block, error) in enumerate(blocks, first):
        base = number * BLOCK
        at = 0
        if open_line:
            at = block.find(b"\n") + 1
            open_line.add(block[: at - 1] if at else block, limit)
            if at:
                if open_line.is_owned:
                    yield open_line.line()
                open_line = None
        if not open_line:
            if number >= stop:
                return
            is_owned = owns(number)
            if is_owned:
                lines = block[at:].split(b"\n") if at else block.split(b"\n")
                for data in lines[:-1]:
                    if data:
                        yield Line(base + at, data if len(data) <= limit else None, len(data))
                    at += len(data) + 1
            else:
                at = max(at, block.rfind(b"\n") + 1)
            if at < len(block) or error:
                open_line = _OpenLine(base + at, is_owned if at < BLOCK else owns(number + 1))
                open_line.add(block[at:], limit)
        if error:
            if open_line and open_line.is_owned:
                yield open_line.line(error)
            return
    if open_line and open_line.is_owned:
        yield open_line.line()


class _OpenLine:
    """A line that goes on beyond its block; over the limit only its length is kept."""

    def __init__(self, offset: int, is_owned: bool) -> None:
        self.offset = offset
        self.is_owned = is_owned
        self.size = 0
        self.pieces: list[bytes] = []

    def add(self, piece: bytes, limit: int) -> None:
        self.size += len(piece)
        if self.size > limit:
            self.pieces = []
        elif self.is_owned:
            self.pieces.append(piece)

    def line(self, error: str = "") -> Line:
        data = b"".join(self.pieces)
        return Line(self.offset, data if len(data) == self.size else None, self.size, error)
