"""Sealed JSON: canonical bytes with a digest of themselves, so every changed bit is detected."""

import hashlib
import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from refinery.loader.errors import FormatError

FIELD = b'\n "sha256": '  # of the top level, by its indent
PIECES = 10_000  # of JSON that are compared at once


def seal(payload: Mapping[str, Any]) -> bytes:
    """Canonical JSON of `payload` (UTF-8, sorted keys, one-space indent, trailing newline) with a digest of itself.

    The field "sha256" is the SHA-256 of the canonical bytes without that field. Raises ValueError for a payload that
    already has the field, for NaN and infinities, and for lone surrogates; TypeError for values JSON cannot represent.
    """
    if "sha256" in payload:
        raise ValueError("payload: the field 'sha256' given, seal adds it")
    before, after = ({key: payload[key] for key in payload if (key < "sha256") == first} for first in (True, False))
    parts = [_canonical(part)[2:-3] for part in (before, after) if part]
    digest = hashlib.sha256(b"{\n" + b",\n".join(parts) + b"\n}\n" if parts else b"{}\n").hexdigest()
    parts.insert(bool(before), b' "sha256": "%s"' % digest.encode())
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


def unseal(data: bytes, what: str) -> dict[str, Any]:
    """The payload of sealed bytes. Raises FormatError, naming `what`, unless they are exactly what `seal` writes."""
    try:
        payload = json.loads(data)
        expected = payload.pop("sha256")
        canonical = isinstance(expected, str) and _is_canonical({**payload, "sha256": expected}, data)
        found = _digest_without(data) if canonical else hashlib.sha256(_canonical(payload)).hexdigest()
        if found != expected:
            raise FormatError(
                f"{what}: the contents have sha256 {found}, {expected!r:.80} expected; the file was damaged or edited"
            )
        if not canonical:
            raise FormatError(f"{what}: not the canonical bytes; the file was damaged or edited")
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{what}: not a sealed JSON object ({type(error).__name__}: {error})") from None
    return dict(payload)


_JSON = json.JSONEncoder(sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)


def _canonical(payload: Mapping[str, Any]) -> bytes:
    return (_JSON.encode(payload) + "\n").encode()


def _is_canonical(payload: Mapping[str, Any], data: bytes) -> bool:
    """Whether `data` is `_canonical(payload)`, which is not built as a whole: it may be 100 MB."""
    pieces, position = _JSON.iterencode(payload), 0
    while piece := "".join(islice(pieces, PIECES)).encode():
        if not data.startswith(piece, position):
            return False
        position += len(piece)
    return data[position:] == b"\n"


def _digest_without(data: bytes) -> str:
    """The digest of canonical bytes as they are without the field of the digest. Other fields of that name are deeper,
    and no text has a line break."""
    begin = data.index(FIELD)
    end = data.index(b"\n", begin + 1)
    if data[end - 1 : end] != b",":  # the last field
        begin -= 1
    if data[begin : begin + 1] == b"{":  # the only one
        return hashlib.sha256(_canonical({})).hexdigest()
    digest, view = hashlib.sha256(memoryview(data)[:begin]), memoryview(data)[end:]
    digest.update(view)
    return digest.hexdigest()
