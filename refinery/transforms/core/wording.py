"""How messages say a value that was given, and what was probably meant. Apart from `params`, which imports pydantic:
commands that only look say such things, too."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

_SCHEMES = ("gs", "s3", "https", "http", "hf")
_OTHERS = {"gcs": "gs", "gsutil": "gs", "s3a": "s3", "s3n": "s3"}
_SCHEME = re.compile(rf"({'|'.join((*_SCHEMES, *_OTHERS))})(://|:/|//|:)(?!/)(.+)", re.IGNORECASE)


def closest(key: Any, names: Iterable[str], cutoff: float = 0.6) -> str:
    """The name that was probably meant, "" where none is close: another case, a typing mistake, a beginning or an end.

    >>> closest("Parqet", ["jsonl", "parquet"]), closest("dataflow", ["local", "DataflowRunner"]), closest("x", ["y"])
    ('parquet', 'DataflowRunner', '')
    """
    if not is_short(key) or not key:
        return ""
    known = {name.lower(): name for name in names if is_short(name)}
    asked = key.lower()
    if asked in known:
        return known[asked]
    if near := difflib.get_close_matches(asked, list(known), 1, cutoff):
        return known[near[0]]
    parts = [name for name in known if len(asked) > 3 and (name.startswith(asked) or name.endswith(asked))]
    return known[parts[0]] if len(parts) == 1 else ""


def meant(key: Any, names: Iterable[str], before: str = "; ", cutoff: float = 0.6) -> str:
    """ "; did you mean …?" for the end of a message, or nothing."""
    near = closest(key, names, cutoff)
    return f"{before}did you mean {near}?" if near else ""


def meant_address(text: str) -> str:
    """The address that was meant by one whose scheme is mistyped, "" for all others.

    >>> [meant_address(text) for text in ("gs:/b/x", "s3//b/x", "gcs://b/x", "hf:/datasets/x", "gs://b/x", "gs/x")]
    ['gs://b/x', 's3://b/x', 'gs://b/x', 'hf://datasets/x', '', '']
    """
    found = _SCHEME.fullmatch(text)
    if not found or (found[2] == "://" and found[1].lower() in _SCHEMES):
        return ""
    return f"{_OTHERS.get(found[1].lower(), found[1].lower())}://{found[3]}"


def nearest(key: Any, names: Iterable[str]) -> str:
    """ "did you mean …?", or all names that are allowed."""
    known = list(names)
    if near := closest(key, known):
        return f"did you mean {near}?"
    return f"{', '.join(known)} {'is' if len(known) == 1 else 'are'} allowed"


def many(number: int, unit: str) -> str:
    """A number and what is counted.

    >>> many(1, "document"), many(2_000, "document"), many(0, "file")
    ('1 document', '2,000 documents', '0 files')
    """
    return f"{number:,} {unit}{'s' * (number != 1)}"


def is_short(value: Any) -> bool:
    """Whether a value is a text that other names are compared with: difflib is quadratic."""
    return isinstance(value, str) and len(value) <= 100


def given(value: Any) -> str:
    """A value and its type on one short line, whatever it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "on", False: "off"}[value]
    if isinstance(value, (int, float)):
        kind = "an integer" if isinstance(value, int) else "a number"
        return f"{value} ({kind})" if isinstance(value, float) or abs(value) < 10**20 else "a huge integer"
    if isinstance(value, str):
        return f"{value[:60]!a}{'…' * (len(value) > 60)} (text)" if value else "'' (empty text)"
    if isinstance(value, (Mapping, list, tuple)):
        kind, unit = ("a mapping", "key") if isinstance(value, Mapping) else ("a list", "value")
        return f"{kind} of {len(value)} {unit}{'s' * (len(value) != 1)}"
    return f"a value of type {type(value).__name__}"
