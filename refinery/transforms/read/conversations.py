"""Records that are conversations, or texts with spans: the whole record goes on as JSON, for the stage `chat` to read.

A line of JSON goes on as it is written: keys in their order, numbers as they are spelt, and a key that is there twice
is seen by the stage. A row of a table becomes JSON without its nulls: a column of structs gives each of them the keys
of all others.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.data_text.json_members import to_json
from refinery.transforms.core.document import RawDocument
from refinery.transforms.native import textclean
from refinery.transforms.read.fields import document_of, field_of, has_field
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.read.values.inexact import LOST

_WHOLE = "\0record"  # the name under which the record stands beside its own fields


@lru_cache(maxsize=64)
def _as_text(task: ReadTask) -> ReadTask:
    return replace(task, text_field=_WHOLE, content="text")


def conversation_of(
    record: Mapping[str, Any],
    line: str | None,
    task: ReadTask,
    limits: LimitParams,
    offset: int,
    raw: bytes,
    *more: Any,
) -> RawDocument | Skipped | Damaged:
    """As `document_of`, of a record whose content is all of it. line: the record as it is written, None of a row."""
    names = task.content_fields
    if not any(has_field(record, name) for name in names):
        return Damaged("MissingField", task.origin(offset), raw)
    if any(field_of(record, name) is LOST for name in (*names, *task.further_fields)):
        return Damaged("BadValue", task.origin(offset), raw)
    if line is None:
        given = {name: _no_nulls(field_of(record, name)) for name in (*names, *task.further_fields)}
        line, is_exact = to_json({name: value for name, value in given.items() if value is not None})
        if not is_exact:
            return Damaged("BadValue", task.origin(offset), raw)
    if textclean.has_surrogates(line):
        return Damaged("BadValue", task.origin(offset), raw)
    return document_of({**record, _WHOLE: line}, _as_text(task), limits, offset, raw, *more)


def _no_nulls(value: Any) -> Any:
    """The value without keys that are null, in structs at any depth."""
    if isinstance(value, Mapping):
        return {name: _no_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_no_nulls(inner) for inner in value] if isinstance(value, list | tuple) else value
