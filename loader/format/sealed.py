"""Sealed JSON: canonical bytes with a digest of themselves, so that every changed bit is detected."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from refinery.loader.errors import FormatError


def seal(payload: Mapping[str, Any]) -> bytes:
    """Canonical JSON of `payload` (UTF-8, sorted keys, one-space indent, trailing newline) with a digest of itself.

    The field "sha256" is the SHA-256 of the canonical bytes without that field. Raises ValueError for a payload that
    already has the field, for NaN and infinities, and for lone surrogates; TypeError for values JSON cannot represent.
    """
    if "sha256" in payload:
        raise ValueError("payload: the field 'sha256' given, seal adds it")
    return _canonical({**payload, "sha256": hashlib.sha256(_canonical(payload)).hexdigest()})


def unseal(data: bytes, what: str) -> dict[str, Any]:
    """The payload of sealed bytes. Raises FormatError, naming `what`, unless they are exactly what `seal` writes."""
    try:
        payload = json.loads(data)
        expected = payload.pop("sha256")
        found = hashlib.sha256(_canonical(payload)).hexdigest()
        if found != expected:
            raise FormatError(f"{what}: the contents have sha256 {found}, {expected!r:.80} expected: damaged or edited")
        if _canonical({**payload, "sha256": found}) != data:
            raise FormatError(f"{what}: not the canonical bytes: damaged or edited")
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{what}: not a sealed JSON object ({type(error).__name__}: {error})") from None
    return dict(payload)


def _canonical(payload: Mapping[str, Any]) -> bytes:
    return (json.dumps(payload, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
