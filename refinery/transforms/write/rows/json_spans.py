"""The bytes of one value in a line of JSON, to replace it and leave all other bytes as they are.

Parsing a line and writing it again changes it: 1e3 becomes 1000.0, an integer of 23 digits a float, and escapes, spaces
and repeated keys go. So the scanner only looks for the ends of values. It takes lines that a reader has parsed
(jsonl.py), with the reader's rules: the last value of a repeated key counts, and a field named `meta.text` goes before
field `text` of object `meta`. For other lines it may answer anything, or raise ValueError. Cost: a pass of regular
expressions, without recursion and without backtracking. Memory: the line.
"""

import json
import re
from collections.abc import Iterator, Sequence

import orjson

from refinery.transforms.core.document import Scalar
from refinery.transforms.read.formats.jsonl import mark
from refinery.transforms.read.lines import BOM
from refinery.transforms.write.rows.rows import Label

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
STRING = re.compile(_STRING, re.DOTALL)
SPACE = re.compile(rb"[ \t\r\n]*+")
LITERAL = re.compile(rb"[^\s,\]}\":{[]++")  # a number, true, NaN
BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)  # up to the next one, with it
ESCAPED = re.compile(rb"\\u00[2-7]")  # an ASCII character

Span = tuple[int, int]


def value_span(line: bytes, field: str) -> Span | None:
    """Begin and end of a field's value; None without such a field, or without an object."""
    if (start := object_start(line)) < 0:
        return None
    span = last_member(line, start, field)
    if span is not None or "." not in field:
        return span
    span = (start, len(line))
    for key in field.split("."):
        if not line.startswith(b"{", span[0]) or (span := last_member(line, span[0], key)) is None:
            return None
    return span


def last_member(line: bytes, start: int, name: str) -> Span | None:
    """The value of a key in the object that begins at `start`, the last one if it is repeated."""
    found = None
    for key, span in members(line, start):
        if key == name:
            found = span
    return found


def object_start(line: bytes) -> int:
    """Where the object in a line begins, -1 without one."""
    start = _skip(line, len(BOM) if line.startswith(BOM) else 0)
    return start if line.startswith(b"{", start) else -1


def members(line: bytes, start: int) -> Iterator[tuple[str, Span]]:
    """The keys of the object that begins at `start`, each with the span of its value. Raises ValueError."""
    at = _skip(line, start + 1)
    while not line.startswith(b"}", at):
        end = _end(STRING, line, at)
        key = line[at + 1 : end - 1]
        at = _skip(line, _after(line, _skip(line, end), b":"))
        stop = value_end(line, at)
        yield _name(key), (at, stop)
        at = _skip(line, stop)
        if not line.startswith(b"}", at):
            at = _skip(line, _after(line, at, b","))


def value_end(line: bytes, at: int) -> int:
    """Where the value that begins there ends. Raises ValueError."""
    first = line[at : at + 1]
    if first == b'"':
        return _end(STRING, line, at)
    if first not in (b"{", b"["):
        return _end(LITERAL, line, at)
    depth, at = 1, at + 1
    while depth:
        at = _end(BRACKET, line, at)
        depth += 1 if line[at - 1] in b"{[" else -1
    return at


def with_text(line: bytes, field: str, text: str) -> bytes:
    """The line with a new text in that field. Its spelling is the line's: with escapes if that is ASCII. Raises
    ValueError without such a field, and if it has neither text nor null."""
    span = value_span(line, field)
    if span is None or line[span[0]] not in b'"n':
        raise ValueError(f"the field {field!r} {'is missing' if span is None else 'has no text'}")
    return b"".join([line[: span[0]], spelt(text, line.isascii()), line[span[1] :]])


def with_labels(line: bytes, columns: Sequence[Label], values: Sequence[Scalar]) -> bytes:
    """The line with further keys before its last brace. Raises ValueError without an object."""
    body = line.rstrip(b" \t\r\n")
    if not body.endswith(b"}") or object_start(line) < 0:
        raise ValueError("a line without a JSON object cannot get labels")
    is_ascii = line.isascii()
    added = b",".join(
        b'"%b":%b' % (column.name.encode(), spelt(value, is_ascii))
        for column, value in zip(columns, values, strict=True)
    )
    end = len(body) - 1
    comma = b"" if line[:end].rstrip(b" \t\r\n").endswith(b"{") else b","
    return b"".join([line[:end], comma, added, line[end:]])


def known_names(line: bytes, columns: Sequence[Label]) -> set[str]:
    """Those names of labels that are keys of the line's object already. Raises ValueError.

    A label's name is ASCII. A key of that name is spelt so, or with an escape of an ASCII character. A line with
    neither is not scanned.
    """
    is_plain = not any(b'"%b"' % column.name.encode() in line for column in columns)
    if is_plain and (b"\\u00" not in line or not ESCAPED.search(line)):
        return set()
    start, names = object_start(line), {column.name for column in columns}
    return {key for key, _ in members(line, start) if key in names} if start >= 0 else set()


def spelt(value: Scalar, is_ascii: bool) -> bytes:
    """A value as JSON; text in UTF-8, or with escapes. A lone surrogate is an escape in any case."""
    if not is_ascii:
        try:
            return orjson.dumps(value)
        except (TypeError, ValueError):  # a lone surrogate
            pass
    return json.dumps(value).encode()


def _name(key: bytes) -> str:
    """A key, decoded as the reader does it."""
    try:
        return key.decode() if b"\\" not in key else str(json.loads(b'"' + key + b'"'))
    except UnicodeDecodeError:
        text = (b'"' + key + b'"').decode("utf-8", "surrogateescape")
        return str(mark(json.loads(text)))


def _skip(line: bytes, at: int) -> int:
    return _end(SPACE, line, at)


def _after(line: bytes, at: int, sign: bytes) -> int:
    if not line.startswith(sign, at):
        raise ValueError(f"byte {at} of the line: {sign.decode()!r} expected")
    return at + 1


def _end(pattern: re.Pattern[bytes], line: bytes, at: int) -> int:
    found = pattern.match(line, at)
    if found is None:
        raise ValueError(f"byte {at} of the line: JSON expected")
    return found.end()
