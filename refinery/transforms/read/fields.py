"""From the fields of a record (a line of JSON, a row of a table) to a document: text, address, date, identity, notes.

Only the text decides whether there is a document. A value beside it that cannot be taken as it is becomes text or
nothing, and is counted under the name of what it was for: `value-as-text/date`, `value-lost/url`.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import FIELDS, RawDocument, Scalar, text_bytes
from refinery.transforms.native import textclean
from refinery.transforms.read.kept_fields import Members, kept_fields
from refinery.transforms.read.task import CLASH, COLUMN_CLASH, LimitParams, ReadTask
from refinery.transforms.read.values.inexact import LOST, Doubtful, Inexact, Written

TABLES = ("csv", "tsv")  # whose rows all have the same fields
AS_TEXT, NOTHING = "value-as-text", "value-lost"  # groups of findings
ROUNDED = 1 << 63  # from this size on a number that a fast reader gives as a float may have been an integer
_FIELD = re.compile(r"\{([^{}]+)\}")  # in a url_field


def document_of(
    record: Mapping[str, Any],
    task: ReadTask,
    limits: LimitParams,
    offset: int,
    raw: bytes,
    written: Callable[[], Mapping[str, Any]] | None = None,
    members: Members | None = None,
) -> RawDocument | Skipped | Damaged:
    """The document that the fields of a record make. raw: bytes of the record that are hashed if it is damaged.

    A text that is null is an empty one. written: the same record with numbers as they are written (`Written`, exact
    integers), asked for where a field that is needed holds a float that may be a rounded one. members: its fields as
    texts of JSON, for a source that keeps them.
    """
    origin = task.origin(offset)
    text = field_of(record, task.text_field)
    if text is None:
        if not task.may_lack_text and not has_field(record, task.text_field):
            return Damaged("MissingField", origin, raw)
        text = ""
    if type(text) is Inexact or text is LOST:
        return Damaged("BadValue", origin, raw)
    if not isinstance(text, str | bytes):
        return Damaged("BadField", origin, raw)
    fields = fields_of(record, task)
    parts = [field_of(record, name) for name in address_names(fields.url)]
    odd = [("url", part) for part in parts if type(part) is not str and part is not None]
    if written and any(type(part) is float for _, part in odd):
        return document_of(written(), task, limits, offset, raw, None, members)
    url = _address(fields.url, parts)
    text = clean(text) if isinstance(text, str) else text
    size = len(text) if isinstance(text, bytes) else text_bytes(text)
    if size > limits.max_record_bytes:
        return Skipped("too-large", origin, size, url)
    if not text or text.isspace():
        return Skipped("empty", origin, size, url)
    meta: dict[str, Scalar] = {}
    kept = (("date", fields.date), ("record_id", fields.id), *((name, name) for name in task.meta_fields))
    for key, name in kept:
        if not name or (value := field_of(record, name)) is None:
            continue
        if type(value) is str:
            meta[key] = clean(value)
            continue
        scalar = spelt(value) if key == "record_id" else scalar_of(value)
        if written and _may_be_rounded(value, scalar, key):
            return document_of(written(), task, limits, offset, raw, None, members)
        odd.append((key, value))
        if scalar is not None:
            meta[key] = scalar
    unsound: tuple[str, ...] = ()
    if task.fields:
        meta[FIELDS], is_exact, is_whole = kept_fields(record, task, members)
        unsound = tuple(f"{what}/{FIELDS}" for what, good in ((AS_TEXT, is_exact), (NOTHING, is_whole)) if not good)
    if meta_bytes(url, meta) > limits.max_meta_bytes:
        return Skipped("meta-too-large", origin, size)
    found = (*(_found(odd, isinstance(record, Doubtful)) if odd else ()), *unsound)
    if task.labels:
        found += task.clashes(record, COLUMN_CLASH if task.format in TABLES else CLASH)
    is_html = task.content == "html"
    return RawDocument(text, is_html, "", url, task.source, origin, task.position(offset), meta, found)


def _may_be_rounded(value: Any, scalar: Scalar | None, key: str) -> bool:
    """Whether a value, or one inside it, is a float that may have been written as another number."""
    kind = type(value)
    if kind is float:
        return key == "record_id" or not -ROUNDED < value < ROUNDED
    return kind in (dict, list) and "e+" in str(scalar)  # so are floats spelt from 1e16 on


def _found(odd: list[tuple[str, Any]], is_doubtful: bool) -> tuple[str, ...]:
    """What is to be counted of the values that are not plain text."""
    found = []
    for key, value in odd:
        kind = type(value)
        if value is LOST:
            found.append(f"{NOTHING}/{key}")
        elif kind is Inexact or (kind is bytes and not is_utf8(value)) or (is_doubtful and _holds_inexact(value)):
            found.append(f"{AS_TEXT}/{key}")
    return tuple(dict.fromkeys(found))


def _holds_inexact(value: Any) -> bool:
    level = [value]
    while level:
        if any(type(each) is Inexact or each is LOST for each in level):
            return True
        inner = [part for outer in level if isinstance(outer, dict) for part in outer.values()]
        level = inner + [part for outer in level if isinstance(outer, list | tuple) for part in outer]
    return False


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def address_of(record: Mapping[str, Any], form: str) -> str:
    """The record's address: the field `form`, or where fields stand in braces in it, `form` with them put in; "" where
    one is missing.

    >>> address_of({"repo": "madler/zlib", "path": "zlib.h"}, "{repo}/{path}")
    'madler/zlib/zlib.h'
    """
    return _address(form, [field_of(record, name) for name in address_names(form)])


def _address(form: str, parts: list[Any]) -> str:
    if len(parts) == 1 and "{" not in form:
        return clean(spelt(parts[0]))
    values = [clean(spelt(part)) for part in parts]
    filled = iter(values)
    return _FIELD.sub(lambda _: next(filled), form) if all(values) else ""


@lru_cache(maxsize=256)
def address_names(form: str) -> tuple[str, ...]:
    """The fields that a url_field names."""
    return tuple(_FIELD.findall(form)) or (form,)


def named_fields(task: ReadTask) -> list[str]:
    """Fields of a record that the source names, that of the text first; paths with dots as they are."""
    return [
        *task.content_fields,
        *task.further_fields,
        *address_names(task.url_field),
        task.date_field,
        task.id_field,
        *task.meta_fields,
    ]


@dataclass(frozen=True, slots=True)
class Fields:
    """Where a record has its address, date and identity."""

    url: str
    date: str
    id: str


_own_fields = lru_cache(maxsize=256)(Fields)


def fields_of(record: Mapping[str, Any], task: ReadTask) -> Fields:
    """The fields that the source names. Where it leaves them at their defaults and the record has the form of Dolma
    (id, text, source, added, created, metadata) or of datatrove's writers (id, text, metadata), theirs.

    Dolma: docs/data-format.md of its toolkit; datatrove: `Document` and `DiskWriter._default_adapter`.
    """
    inside = record.get("metadata")
    if inside is None or not isinstance(inside, Mapping) or not isinstance(record.get("id"), str):
        return _own_fields(task.url_field, task.date_field, task.id_field)
    dolma = "created" in record or "added" in record
    url, date, id_ = task.url_field, task.date_field, task.id_field
    if url == "url" and url not in record:
        url = "metadata.url"
    if date == "date" and date not in record:
        date = "created" if dolma and "created" in record else "metadata.date"
    return Fields(url, date, id_ or "id")


def meta_bytes(url: str, meta: Mapping[str, Scalar]) -> int:
    """About what a document's address and notes take, in characters."""
    return len(url) + sum(len(key) + (len(value) if isinstance(value, str) else 8) for key, value in meta.items())


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """The field `name`, or, if there is none, the one at the end of the dotted path `name`; None if missing."""
    if name in record or "." not in name:
        return record.get(name)
    value: Any = record
    for key in name.split("."):
        if not isinstance(value, Mapping):
            return LOST if value is LOST else None
        value = value.get(key)
    return value


def has_field(record: Mapping[str, Any], name: str) -> bool:
    """Whether the record has that field, be it null or inside an object that is null."""
    if name in record or "." not in name:
        return name in record
    value: Any = record
    for key in name.split("."):
        if value is None:
            return True
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True


def spelt(value: Any) -> Scalar | None:
    """`scalar_of`, but a number is as it is written, where that is known: 1.10 and 1.1 are two identities."""
    if type(value) is str:
        return value
    if isinstance(value, Written) and repr(float(value)) != value.text:
        return value.text
    return scalar_of(value)


def scalar_of(value: Any) -> Scalar | None:
    """`value` as it fits into meta: text, true or false, an integer of 64 bits (signed or not) or a finite number;
    larger ones as text, lists and objects as JSON text."""
    if value is None or value is LOST:
        return None
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | dict):
        return clean(json.dumps(value, ensure_ascii=False, default=str))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else clean(str(value))


def clean(value: Scalar | None) -> str:
    """`value` as text without lone surrogates, which no coder takes; "" for None."""
    if type(value) is str:
        text = value
    elif value is None:
        return ""
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.encode("utf-8", "ignore").decode() if textclean.has_surrogates(text) else text
