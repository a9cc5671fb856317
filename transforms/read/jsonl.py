"""JSON Lines, plain or compressed, whole or in parts.

A file is a row of blocks of 1 MiB (decompressed), and a line belongs to the block in which it starts. A part of an
uncompressed file owns neighbouring blocks and reads only those; part k of n of a compressed file inflates all of it
and owns every n-th block from the k-th on, which balances without an index. Parts together give what one reader gives.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.fields import document_of, is_utf8
from refinery.transforms.read.plan import LimitParams, ReadTask
from refinery.transforms.read.values.inexact import Doubtful, Inexact, Literal, Written

BLOCK = 1 << 20
HASHED = 1 << 16  # bytes of a damaged line that make its hash
BOM = b"\xef\xbb\xbf"
PARSED = 4  # times limits.max_decompressed_bytes that a line's values may take, but
PARSED_LEAST = 16 << 20  # this much always
MAX_DEPTH = 64  # levels of lists and objects in a record
MAX_DIGITS = 4000  # of an integer: Python refuses to read, or to write, more than 4,300
_UNDECODED = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of a byte


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
    if isinstance(record, dict):
        return document_of(record, task, limits, line.offset, data[:HASHED], partial(as_written, data))
    if record is None and not is_utf8(data) and isinstance(record := parse_undecodable(data), dict):
        found = document_of(record, task, limits, line.offset, data[:HASHED])
        if not isinstance(found, Damaged):
            return found
    return Damaged("BadJson", origin, data[:HASHED], line.size)


def parsed_bytes(data: bytes) -> int:
    """What the values in a line of JSON can take as Python's objects, at most, about: three bytes of it can be one of
    64. Commas and brackets in texts count, too. Cost: three passes of memchr.
    """
    return 2 * len(data) + 72 * (data.count(b",") + data.count(b"[")) + 240 * data.count(b"{")


def parse_json(data: bytes) -> Any:
    """The value in `data`, or None. What orjson refuses (NaN, lone surrogates, 1e400) Python's reader takes, in UTF-8
    alone: left to itself it guesses UTF-16, of which lines are cut in the middle of characters.

    Nesting beyond MAX_DEPTH is refused here, so that nothing later depends on how much of the stack is left. Raises
    MemoryError, which orjson reports as if it were damage.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "memory" in str(error):
            raise MemoryError(str(error)) from error
        try:
            value = as_written(data)
        except (ValueError, RecursionError):
            return None
    return value if is_shallow(value) else None


def as_written(data: bytes) -> Any:
    """The value in `data` with integers of any size, where orjson makes floats of those from 2^64 up, and with the
    spelling of all other numbers. Six times slower. Raises ValueError, RecursionError."""
    return _read_exactly(data.decode("utf-8", "surrogatepass").removeprefix("\ufeff"))


def parse_undecodable(data: bytes) -> Any:
    """The value in `data`, some bytes of which are not UTF-8: strings that hold such are Inexact. None for no JSON."""
    try:
        value = _read_exactly(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None
    return mark(value) if is_shallow(value) else None


def _read_exactly(text: str) -> Any:
    return json.loads(text, parse_int=_integer, parse_float=_float)


def _integer(digits: str) -> int | Literal:
    return int(digits) if len(digits) <= MAX_DIGITS else Literal(digits)


def _float(digits: str) -> Written | Literal:
    number = Written(digits)
    return number if math.isfinite(number) else Literal(digits)


def mark(value: Any) -> Any:
    """A copy of a value that was decoded with "surrogateescape", in which U+FFFD stands for each byte that is not
    UTF-8: such strings are Inexact, such records Doubtful. Depth: MAX_DEPTH."""
    if isinstance(value, str):
        return Inexact(_UNDECODED.sub("\ufffd", value)) if _UNDECODED.search(value) else value
    if isinstance(value, list):
        return [mark(each) for each in value]
    if isinstance(value, dict):
        return Doubtful({_UNDECODED.sub("\ufffd", key): mark(each) for key, each in value.items()})
    return value


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
