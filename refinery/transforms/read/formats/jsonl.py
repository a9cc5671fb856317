"""JSON Lines: a line with a JSON object is a record. How files are cut into parts: lines.py."""

import json
import math
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.conversations import conversation_of
from refinery.transforms.read.explain import (
    CARRIAGE_RETURNS,
    HEAD,
    NO_DOCUMENT,
    RECORDS,
    about_text_field,
    explain_other,
    first_bytes,
    is_utf16,
    json_kind,
    listed,
    nearest_field,
)
from refinery.transforms.read.fields import document_of, is_utf8
from refinery.transforms.read.kept_fields import members_of_line
from refinery.transforms.read.lines import BOM, HASHED, LINES, Line, read_lines
from refinery.transforms.read.reader import COMPRESSION_LIBRARIES, NAMED, Reader
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.read.values.inexact import MAX_DIGITS, Doubtful, Inexact, Literal, Written

PARSED = 4  # times limits.max_decompressed_bytes that a line's values may take, but
PARSED_LEAST = 16 << 20  # this much always
PLAIN, PART, OBJECT = 2, 72, 240  # bytes that a byte of JSON may take: any one; besides, a comma or bracket; a brace
MAX_DEPTH = 64  # levels of lists and objects in a record
NESTED = (dict, list)
_UNDECODED = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of a byte


def read_jsonl(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[RawDocument | Skipped | Damaged]:
    """Every record of a JSONL file, up to `task.cap` documents. Blank lines are not records.

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
    if not fits(data, limits):
        return Skipped("too-large", origin, line.size)
    record = parse_json(data)
    if isinstance(record, dict):
        forms = partial(as_written, data), partial(members_of_line, data)
        if task.further_fields:
            line_text = data.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
            return conversation_of(record, line_text, task, limits, line.offset, data[:HASHED], *forms)
        return document_of(record, task, limits, line.offset, data[:HASHED], *forms)
    if (
        record is None
        and not task.further_fields
        and not is_utf8(data)
        and isinstance(record := parse_undecodable(data), dict)
    ):
        members = partial(members_of_line, data)
        found = document_of(record, task, limits, line.offset, data[:HASHED], members=members)
        if not isinstance(found, Damaged):
            return found
    return Damaged("BadJson", origin, data[:HASHED], line.size)


def fits(data: bytes, limits: LimitParams) -> bool:
    """Whether the values in a line of JSON may be held as Python's objects. A line that fits whatever its bytes are is
    not looked at."""
    most = max(PARSED * limits.max_decompressed_bytes, PARSED_LEAST)
    return (PLAIN + OBJECT) * len(data) <= most or parsed_bytes(data) <= most


def parsed_bytes(data: bytes) -> int:
    """What the values in a line of JSON can take as Python's objects, at most, about: three bytes of it can be one of
    64. Commas and brackets in texts count, too. Cost: three passes of memchr.
    """
    return PLAIN * len(data) + PART * (data.count(b",") + data.count(b"[")) + OBJECT * data.count(b"{")


def parse_json(data: bytes) -> Any:
    """The value in `data`, or None. What orjson refuses (NaN, lone surrogates, 1e400) Python's reader takes, in UTF-8
    alone: left to itself it guesses UTF-16, of which lines are cut in the middle of characters.

    Nesting beyond MAX_DEPTH is refused here, so nothing later depends on how much of the stack is left. Raises
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
    level = [value] if isinstance(value, NESTED) else []
    for _ in range(MAX_DEPTH):
        parts = (part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer))
        level = [part for part in parts if isinstance(part, NESTED)]
        if not level:
            return True
    return False


def explain_json(task: ReadTask, source: ByteSource) -> str:
    head = first_bytes(source)
    if is_utf16(head):
        return explain_other(task, source)
    lines = head.split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    if b"\r" in first.strip() and parse_json(first.strip().split(b"\r")[0]) is not None:
        return f"{task.path}: {CARRIAGE_RETURNS}"
    value = parse_json(first)
    if isinstance(value, dict):
        if task.text_field in value or "." in task.text_field:
            kind = type(value.get(task.text_field)).__name__ if task.text_field in value else ""
            return (
                ""
                if kind in ("", "str", "NoneType")
                else f"{about_text_field(task)} is {json_kind(kind)}, text is needed"
            )
        return f"{about_text_field(task)} is not there, there are {listed(list(value))}{nearest_field(task, value)}"
    if head.lstrip().startswith(b"["):
        return (
            f"{task.path} is a JSON array, one JSON object a line is needed (JSON Lines): "
            "`jq -c '.[]' FILE > FILE.jsonl` makes that of it"
        )
    if first.startswith(b"{"):
        several = first.rstrip().endswith((b"{", b",", b"["))
        if several:
            return f"{task.path}: a JSON object over several lines, one object a line is needed"
        is_whole = len(lines) > 1 or len(head) < HEAD
        return f"{NO_DOCUMENT}; the first line is not JSON: {_json_problem(first)}" if is_whole else NO_DOCUMENT
    if value is not None:
        return f"{task.path}: its first line is {json_kind(type(value).__name__)}, one JSON object a line is needed"
    return explain_other(task, source)


def names_in_json(task: ReadTask, source: ByteSource, limits: LimitParams) -> Iterator[str]:
    """The fields of the first objects: of those in the first MiB, or of the first one where it is longer."""
    stream, data, has_line = MemberStream(source), bytearray(), False
    while len(data) < HEAD or not (has_line or len(data) > limits.max_decompressed_bytes):
        if not (piece := stream.read()):
            break
        has_line = has_line or b"\n" in piece
        data += piece
    *lines, last = bytes(data).removeprefix(BOM).split(b"\n", RECORDS)
    found: dict[str, None] = {}
    for line in [*lines, last]:  # the last one is often cut off, and then no JSON
        record = parse_json(line) if line.strip() and fits(line, limits) else None
        found |= dict.fromkeys(record) if isinstance(record, dict) else {}
    return iter(found)


def _json_problem(line: bytes) -> str:
    """What Python's reader says of a line that is not JSON, and where."""
    try:
        json.loads(line.decode())
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} is not UTF-8"
    except json.JSONDecodeError as error:
        return f"column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):  # of enormous numbers and depths
        pass
    return "nested too deep, or with a number too long"


JSONL = Reader(
    name="jsonl",
    version=1,
    summary="a line with a JSON object, in UTF-8; blank lines are none",
    offset="byte in the decompressed file",
    title="JSON Lines",
    endings=(".jsonl", ".ndjson", ".json"),
    read=read_jsonl,
    split=LINES,
    named_fields=True,
    fields=NAMED,
    libraries=("orjson", *COMPRESSION_LIBRARIES),
    explain=explain_json,
    names=names_in_json,
)
