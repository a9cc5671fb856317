"""Objects of JSON as texts: the members of one as they are written, so numbers, spaces and the order of keys stay.

>>> raw_members('{"a": 1e3, "b": [2 , 3]}')
{'a': '1e3', 'b': '[2 , 3]'}
"""

import base64
import datetime
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any

import orjson

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WHITE = re.compile(r"[ \t\n\r]*")
_name_at: Any = json.decoder.scanstring  # type: ignore[attr-defined]  # text, where a name begins -> it, its end
_DECODER = json.JSONDecoder(parse_int=len, parse_float=len)  # only where values end is asked for


def raw_members(text: str) -> dict[str, str]:
    """Name -> value as it is written, of an object; the last one of a name counts. Raises ValueError for no object."""
    members: dict[str, str] = {}
    at = _behind(text, 0)
    mark = text[at : at + 1]
    if mark != "{":
        raise ValueError("no JSON object")
    at = _behind(text, at + 1)
    while text[at : at + 1] != "}":
        name, at = _name_at(text, at + 1)
        at = _behind(text, _behind(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        members.pop(name, None)
        members[name] = text[at:end]
        at = _behind(text, end)
        at = _behind(text, at + 1) if text[at : at + 1] == "," else at
    return members


def _behind(text: str, at: int) -> int:
    found = _WHITE.match(text, at)
    return found.end() if found else at


def joined(members: Mapping[str, str]) -> str:
    """The object that these members make, as text. Names have no lone surrogates."""
    return "{" + ",".join(f"{orjson.dumps(name).decode()}:{value}" for name, value in members.items()) + "}"


def is_readable(text: str) -> bool:
    """Whether every reader takes a text for JSON: not one with NaN, 1e400 or lone surrogates."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def without(members: Mapping[str, str], name: str) -> dict[str, str]:
    """The members but the one of a name, or, if there is none, the one at the end of a dotted path."""
    if name in members:
        return {other: value for other, value in members.items() if other != name}
    outer, dot, inner = name.partition(".")
    if not dot or not members.get(outer, "").lstrip().startswith("{"):
        return dict(members)
    return {**members, outer: joined(without(raw_members(members[outer]), inner))}


def map_texts(text: str, change: Callable[[str], str]) -> str:
    """A JSON text in which each string, names too, is what `change` makes of it; all else stays as it is written."""

    def changed(found: re.Match[str]) -> str:
        known = json.loads(found[0])
        new = change(known)
        return found[0] if new == known else orjson.dumps(new).decode()

    return _STRING.sub(changed, text)


def apart(name: str, taken: Collection[str]) -> str:
    """The name, or `input_NAME` where there is another thing of that name."""
    while name in taken:
        name = f"input_{name}"
    return name


def to_json(value: Any) -> tuple[str, bool]:
    """A value as JSON, and whether it is exactly that value. Bytes become base64, times ISO 8601, decimals numbers;
    numbers that JSON or 64-bit floats do not have become texts, and lone surrogates go."""
    if isinstance(value, str):
        try:
            return orjson.dumps(str(value)).decode(), type(value) is str
        except orjson.JSONEncodeError:
            return orjson.dumps(value.encode("utf-8", "ignore").decode()).decode(), False
    if value is None or isinstance(value, bool):
        return json.dumps(value), True
    if isinstance(value, int):
        return str(value), True
    if isinstance(value, float):
        return (getattr(value, "text", "") or repr(float(value)), True) if math.isfinite(value) else _text(value)
    if isinstance(value, Decimal):
        return (str(value), True) if value.is_finite() else _text(value)
    if isinstance(value, Mapping):
        return _object((str(name), to_json(inner)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        parts = [to_json(each) for each in value]
        return "[" + ",".join(part for part, _ in parts) + "]", all(is_exact for _, is_exact in parts)
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"', True
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return f'"{value.isoformat()}"', True
    return _text(value)


def _text(value: Any) -> tuple[str, bool]:
    return to_json(str(value))[0], False


def _object(members: Iterable[tuple[str, tuple[str, bool]]]) -> tuple[str, bool]:
    parts, exact = {}, True
    for name, (part, is_exact) in members:
        known = name.encode("utf-8", "ignore").decode()
        exact = exact and is_exact and known == name
        parts[known] = part
    return joined(parts), exact
