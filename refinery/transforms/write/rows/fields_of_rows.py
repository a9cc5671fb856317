"""The bytes of each field in a row of CSV or TSV, in each dialect, to replace one and leave the others as they are."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from refinery.transforms.read.values.dialects import Dialect, Lines, rows_of

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
_ESCAPED = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")
_FIELDS: Mapping[Dialect, bytes] = {
    "plain": rb"[^%b]*+",
    "escaped": rb"(?:[^%b\\]++|\\.?)*+",
    "rfc4180": rb'"[^"]*+(?:""[^"]*+)*+"|[^%b]*+',
    "backslash": rb'"(?:[^"\\]++|\\["\\]|\\|"")*+"|[^%b]*+',
}
QUOTING = ("rfc4180", "backslash")

Span = tuple[int, int]


def edited_row(
    data: bytes, row: Sequence[str], dialect: Dialect, delimiter: str, changes: Mapping[int, str], added: Sequence[str]
) -> bytes:
    """The bytes of a row with other texts in the fields with those numbers, and with further fields behind.

    data, row: its bytes, and its fields as the reader gives them. dialect: how it is written, not "auto". Raises
    ValueError where a reader would find other fields in the result: a dialect without quotes cannot have a line break.
    """
    spans = field_spans(data, dialect, delimiter)
    if len(spans) != len(row):
        raise ValueError("the fields in its bytes are not those of the reader")
    pieces: list[bytes] = []
    at = 0
    for number, text in sorted(changes.items()):
        first, last = spans[number]
        is_quoted = data[first : first + 1] == b'"' or (not text and len(row) == 1)  # an empty line is no row
        pieces += data[at:first], spelt_field(text, dialect, delimiter, is_quoted).encode()
        at = last
    end = spans[-1][1]
    pieces += (data[at:end], *((delimiter + spelt_field(text, dialect, delimiter)).encode() for text in added))
    new = b"".join([*pieces, data[end:]])
    if fields_in(new, dialect, delimiter) != [*(changes.get(at, text) for at, text in enumerate(row)), *added]:
        raise ValueError(f"its new text cannot be written in the dialect {dialect}")
    return new


def field_spans(data: bytes, dialect: Dialect, delimiter: str) -> list[Span]:
    """Where the fields of a row begin and end, with their quotes. data: the row with its line end. Bytes that are 0,
    which are nothing to readers, belong to no field at its ends."""
    if b"\0" in data:
        places = np.append(np.flatnonzero(np.frombuffer(data, np.uint8)), len(data))
        spans = field_spans(data.replace(b"\0", b""), dialect, delimiter)
        return [(int(places[a]), int(places[b - 1]) + 1 if b > a else int(places[a])) for a, b in spans]
    end = len(data.removesuffix(b"\n").rstrip(b"\r"))
    spans, at, field = [], 0, _field(dialect, delimiter)
    while (found := field.match(data, at, end)) is not None:
        spans.append(found.span())
        if found.end() == end:
            break
        at = found.end() + 1
    return spans


@lru_cache(maxsize=64)
def _field(dialect: Dialect, delimiter: str) -> re.Pattern[bytes]:
    sign = re.escape(delimiter.encode())
    return re.compile(b"(?:" + _FIELDS[dialect] % sign + b")(?=" + sign + rb"|\Z)", re.DOTALL)


def spelt_field(text: str, dialect: Dialect, delimiter: str, is_quoted: bool = False) -> str:
    """A text as a field. is_quoted: in quotes, if the dialect has any, even where it needs none."""
    if dialect == "escaped":
        text = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], text)
        return text.replace(delimiter, f"\\{delimiter}")  # a tab is \t by now
    if dialect == "backslash":
        text = text.replace("\\", "\\\\")
    if dialect in QUOTING and (is_quoted or any(sign in text for sign in (delimiter, '"', "\r", "\n"))):
        return '"' + text.replace('"', '\\"' if dialect == "backslash" else '""') + '"'
    return text


def fields_in(data: bytes, dialect: Dialect, delimiter: str) -> list[str] | None:
    """The fields that the reader gives for a row; None where these bytes are not one row."""
    pieces = iter([data])
    lines = Lines(lambda: next(pieces, b""), len(data))
    lines.first = False  # a byte order mark is one of the file alone
    row, taken = rows_of(lines, dialect, delimiter).next()
    return row if taken == data else None
