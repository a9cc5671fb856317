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
from refinery.transforms.read.formats.jsonl import MAX_DEPTH, mark
from refinery.transforms.read.lines import BOM
from refinery.transforms.write.rows.rows import Label

_SPACE = rb"[ \t\r\n]*+"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_LITERAL = rb"[^\s,\]}\":{[]++"  # a number, true, NaN
_FLAT = rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+"  # up to a bracket
SPACE = re.compile(_SPACE)
MEMBER = re.compile(
    rb"(%b)%b:%b(?:(%b|%b)%b([,}]))?+" % (_STRING, _SPACE, _SPACE, _STRING, _LITERAL, _SPACE), re.DOTALL
)  # with its value and what follows it, unless that is a list or an object
BRACKET = re.compile(
    rb'(?:[^"\[\]{}]++|%b|\[%b\]|\{%b\})*+([\[\]{}])' % (_STRING, _FLAT, _FLAT), re.DOTALL
)  # the next one that is not of a list or object without others in it
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
    start = skip_space(line, len(BOM) if line.startswith(BOM) else 0)
    return start if line.startswith(b"{", start) else -1


def members(line: bytes, start: int) -> Iterator[tuple[str, Span]]:
    """The keys of the object that begins at `start`, each with the span of its value. Raises ValueError."""
    at = skip_space(line, start + 1)
    follows = line[at : at + 1]
    while follows != b"}":
        found = MEMBER.match(line, at)
        if found is None:
            raise ValueError(f"byte {at} of the line: a key of JSON expected")
        key = line[found.start(1) + 1 : found.end(1) - 1]
        if found[3]:
            yield _name(key), found.span(2)
            at, follows = found.end(), found[3]
        else:
            end = nested_end(line, found.end())
            yield _name(key), (found.end(), end)
            at = skip_space(line, end)
            at, follows = at + 1, line[at : at + 1]
        if follows not in (b",", b"}"):
            raise ValueError(f"byte {at - 1} of the line: ',' or '}}' expected")
        at = skip_space(line, at)


def nested_end(line: bytes, at: int) -> int:
    """The end of the list or object that begins there. Raises ValueError, also beyond MAX_DEPTH levels."""
    if line[at : at + 1] not in (b"{", b"["):
        raise ValueError(f"byte {at} of the line: a value of JSON expected")
    depth, at = 1, at + 1
    while 0 < depth <= MAX_DEPTH:
        found = BRACKET.match(line, at)
        if found is None:
            raise ValueError(f"byte {at} of the line: a bracket is not closed")
        depth += 1 if found[1] in b"{[" else -1
        at = found.end()
    if depth:
        raise ValueError(f"more than {MAX_DEPTH} levels of lists and objects")
    return at


def with_text(line: bytes, field: str, text: str) -> bytes:
    """The line with a new text in that field. Its spelling is the line's: with escapes if that is ASCII. Where the key
    is repeated, each of its values is replaced, since readers differ in which one they take. Raises ValueError without
    such a field, and if it has neither text nor null."""
    span = value_span(line, field)
    if span is None or line[span[0]] not in b'"n':
        raise ValueError(f"the field {field!r} {'is missing' if span is None else 'has no text'}")
    start, new = object_start(line), spelt(text, line.isascii())
    names = [field] if any(key == field for key, _ in members(line, start)) else field.split(".")
    pieces, at = [], 0
    for begin, end in all_members(line, start, names):
        pieces += [line[at:begin], new]
        at = end
    return b"".join([*pieces, line[at:]])


def all_members(line: bytes, start: int, names: Sequence[str]) -> Iterator[Span]:
    """The spans of all values under these keys, one inside the other, of the object that begins at `start`."""
    for key, span in members(line, start):
        if key == names[0] and len(names) == 1:
            yield span
        elif key == names[0] and line.startswith(b"{", span[0]):
            yield from all_members(line, span[0], names[1:])


class LabelKeys:
    """Labels as further keys of JSON objects."""

    def __init__(self, columns: Sequence[Label]) -> None:
        self.names = frozenset(column.name for column in columns)
        self.keys = [spelt(column.name) + b":" for column in columns]
        self.marks = [key[:-1] for key in self.keys]

    def may_be_in(self, data: bytes) -> bool:
        """Whether a line in these bytes may have such a key: one is spelt like the label, or with an escape of an ASCII
        character. Cost: a search for each label, at the speed of memory."""
        is_there = any(mark in data for mark in self.marks)
        return is_there or (b"\\u00" in data and ESCAPED.search(data) is not None)

    def known(self, line: bytes) -> set[str]:
        """The labels that are keys of the line's object already. Raises ValueError."""
        start = object_start(line) if self.may_be_in(line) else -1
        return {key for key, _ in members(line, start) if key in self.names} if start >= 0 else set()

    def added_to(self, line: bytes, values: Sequence[Scalar]) -> bytes:
        """The line with these keys before its last brace. Raises ValueError without an object."""
        body = line.rstrip(b" \t\r\n")
        if not body.endswith(b"}") or object_start(line) < 0:
            raise ValueError("a line without a JSON object cannot get labels")
        is_ascii = line.isascii()
        added = [key + spelt(value, is_ascii) for key, value in zip(self.keys, values, strict=True)]
        end = len(body) - 1
        is_empty = body[:end].rstrip(b" \t\r\n").endswith(b"{")
        return b"".join([line[:end], b"" if is_empty else b",", b",".join(added), line[end:]])


def spelt(value: Scalar, is_ascii: bool = True) -> bytes:
    """A value as JSON: text in UTF-8, or in ASCII with escapes. A lone surrogate is an escape in any case."""
    if not is_ascii or not isinstance(value, str) or value.isascii():
        try:
            return orjson.dumps(value)
        except (TypeError, ValueError):  # a lone surrogate
            pass
    return json.dumps(value).encode()


def skip_space(line: bytes, at: int) -> int:
    """The first byte from there on that is not space."""
    found = SPACE.match(line, at)
    return found.end() if found else at


def _name(key: bytes) -> str:
    """A key, decoded as the reader does it."""
    try:
        return key.decode() if b"\\" not in key else str(json.loads(b'"' + key + b'"'))
    except UnicodeDecodeError:
        text = (b'"' + key + b'"').decode("utf-8", "surrogateescape")
        return str(mark(json.loads(text)))
