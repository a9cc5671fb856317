"""Sealed JSON: canonical bytes with a digest of themselves, so that every changed bit is detected."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring
from typing import Any

from refinery.loader.errors import FormatError


def seal(payload: Mapping[str, Any]) -> bytes:
    """Canonical JSON of `payload` (UTF-8, sorted keys, one-space indent, trailing newline) with a digest of itself.

    The field "sha256" is the SHA-256 of the canonical bytes without that field. Raises ValueError for a payload that
    already has the field, for NaN and infinities, and for lone surrogates; TypeError for values JSON cannot represent.
    """
    if "sha256" in payload:
        raise ValueError("payload: the field 'sha256' given, seal adds it")
    fields = _fields(payload)
    return _with_digest(fields, hashlib.sha256(_joined(fields.values())).hexdigest())


def unseal(data: bytes, what: str) -> dict[str, Any]:
    """The payload of sealed bytes. Raises FormatError, naming `what`, unless they are exactly what `seal` writes."""
    try:
        payload = json.loads(data)
        expected = payload.pop("sha256")
        fields = _fields(payload)
        found = hashlib.sha256(_joined(fields.values())).hexdigest()
        if found != expected:
            raise FormatError(f"{what}: the contents have sha256 {found}, {expected!r:.80} expected: damaged or edited")
        if _with_digest(fields, found) != data:
            raise FormatError(f"{what}: not the canonical bytes: damaged or edited")
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{what}: not a sealed JSON object ({type(error).__name__}: {error})") from None
    return dict(payload)


def _with_digest(fields: Mapping[str, str], digest: str) -> bytes:
    return _joined(text for _, text in sorted({**fields, "sha256": f'"sha256": "{digest}"'}.items()))


def _fields(payload: Mapping[str, Any]) -> dict[str, str]:
    """Name -> the canonical text of each field, in order."""
    return {name: f"{encode_basestring(name)}: {_text(payload[name], _LINE)}" for name in sorted(payload)}


def _joined(fields: Iterable[str]) -> bytes:
    """The object of these fields."""
    inside = f",{_LINE}".join(fields)
    return (f"{{{_LINE}{inside}\n}}\n" if inside else "{}\n").encode()


# json.dumps writes indented text several times more slowly: each piece passes through a generator for each level. The
# text is the same, to the byte.
_LINE = "\n "  # and one more space for each level


def _text(value: Any, line: str) -> str:
    """Canonical text of a value whose lines begin with `line`."""
    kind = type(value)
    scalar = _SCALARS.get(kind)
    if scalar:
        return scalar(value)
    inner = f"{line} "
    if kind is dict and set(map(type, value)) == {str}:
        inside = f",{inner}".join([f"{encode_basestring(key)}: {_text(value[key], inner)}" for key in sorted(value)])
        return f"{{{inner}{inside}{line}}}"
    if kind is list and value:
        inside = f",{inner}".join([_text(element, inner) for element in value])
        return f"[{inner}{inside}{line}]"
    whole = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return whole.replace("\n", line)  # no string holds a line's end


def _of_float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    return repr(value)


_SCALARS: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring,
    int: repr,
    float: _of_float,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
}
