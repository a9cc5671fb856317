"""What readers give. Ours are believed, as their tests hold them to it; of a user's own every record is checked."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from refinery.transforms.core.answers import NOT_SAMPLED, Damaged, Skipped
from refinery.transforms.core.document import RawDocument, is_writable, text_bytes
from refinery.transforms.core.wording import given
from refinery.transforms.read.byte_source import ByteSource
from refinery.transforms.read.fields import meta_bytes
from refinery.transforms.read.reader import ERROR, Reader, Records
from refinery.transforms.read.task import LimitParams, ReadTask

EVERYONES = frozenset({"too-large", "meta-too-large", "empty", NOT_SAMPLED})  # reasons that every reader may give
TEXTS = ("charset", "url", "source", "origin")


class BadRecord(TypeError):
    """A user's reader yielded something that is not a record of its file: a mistake in its code."""


def records_of(reader: Reader, task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    """The records of a file, in its order. Of a user's own reader each is checked, and documents are held to the
    task's `cap` and `sample` and to the limits, whatever the reader makes of them.

    Raises BadRecord for what is not a record of this file, and whatever the reader raises.
    """
    if not reader.module:
        return reader.read(task, source, limits)
    options: Any = reader.options(**task.options) if reader.options else {}
    return _checked(reader, replace(task, options=options), source, limits)


def _checked(reader: Reader, task: ReadTask, source: ByteSource, limits: LimitParams) -> Records:
    reasons = EVERYONES.union(reason.name for reason in reader.reasons)
    found: Any = reader.read(task, source, limits)
    if not isinstance(found, Iterable):
        raise BadRecord(f"{reader.module}: {given(found)} returned, an iterator of records is needed")
    taken, last = 0, -1
    for record in found:
        if taken == task.cap:
            return
        if isinstance(record, RawDocument):
            offset = check_document(reader, record, task)
            if offset <= last:
                raise BadRecord(
                    f"{reader.module}: {record.origin} behind {task.origin(last)}, documents are needed in the order "
                    "of the file, each with its own origin"
                )
            last = offset
            record = held(record, task, limits)
            taken += isinstance(record, RawDocument)
        elif isinstance(record, Skipped):
            _check(reader, "reason", record.reason in reasons, record.reason, f"one of {', '.join(sorted(reasons))}")
            _check(reader, "url", isinstance(record.url, str), record.url, "text")
            check_place(reader, record, task)
        elif isinstance(record, Damaged):
            is_error = isinstance(record.error, str) and ERROR.fullmatch(record.error)
            _check(reader, "error", bool(is_error), record.error, "a name such as BadHeader")
            _check(reader, "data", isinstance(record.data, bytes), record.data, "bytes")
            check_place(reader, record, task)
        else:
            raise BadRecord(f"{reader.module}: {given(record)} yielded, RawDocument, Skipped or Damaged is allowed")
        yield record


def check_document(reader: Reader, record: RawDocument, task: ReadTask) -> int:
    """The offset of a document. Raises BadRecord where it is not one of this file, or its types are not those
    declared."""
    _check(reader, "content", isinstance(record.content, str | bytes), record.content, "text or bytes")
    for name in TEXTS:
        value = getattr(record, name)
        _check(reader, name, isinstance(value, str), value, "text")
    _check(reader, "is_html", isinstance(record.is_html, bool), record.is_html, "True or False")
    _check(reader, "source", record.source == task.source, record.source, f"task.source, here {task.source!r},")
    offset = _offset(reader, record.origin, task)
    position = task.position(offset)
    _check(reader, "position", record.position == position, record.position, f"task.position({offset})")
    _check(reader, "meta", hasattr(record.meta, "items"), record.meta, "a mapping")
    for key, value in record.meta.items():
        _check(reader, "meta", isinstance(key, str) and key not in task.own_meta, key, "a name that no stage notes")
        _check(reader, f"meta[{key!r}]", isinstance(value, str | int | float), value, "text or a number")
    is_found = isinstance(record.found, tuple) and all(isinstance(name, str) for name in record.found)
    _check(reader, "found", is_found, record.found, "a tuple of texts")
    return offset


def check_place(reader: Reader, record: Skipped | Damaged, task: ReadTask) -> None:
    """Raises BadRecord where what is skipped or damaged is none of this file, or has no size."""
    _check(reader, "origin", isinstance(record.origin, str), record.origin, "text")
    _offset(reader, record.origin, task)
    is_size = isinstance(record.size, int) and record.size >= 0
    _check(reader, "size", is_size, record.size, "a number of bytes")


def _offset(reader: Reader, origin: str, task: ReadTask) -> int:
    digits = origin.removeprefix(task.origin(0)[:-1])
    is_here = digits != origin and digits.isascii() and digits.isdigit() and int(digits) < 1 << 40
    _check(reader, "origin", is_here, origin, "task.origin(OFFSET)")
    return int(digits)


def _check(reader: Reader, name: str, is_right: bool, value: Any, allowed: str) -> None:
    if not is_right:
        raise BadRecord(f"{reader.module or reader.name}: {name}: {given(value)} given, {allowed} is allowed")


def held(record: RawDocument, task: ReadTask, limits: LimitParams) -> RawDocument | Skipped | Damaged:
    """The document, or why it is none: the sample, the limits, no text, or a value that no coder takes."""
    content, origin = record.content, record.origin
    size = len(content) if isinstance(content, bytes) else text_bytes(content)
    texts = (content, record.url, record.charset, *record.meta, *record.meta.values())
    if not all(map(is_writable, texts)):
        return Damaged("BadValue", origin, size=size)
    if not task.samples(origin):
        return Skipped(NOT_SAMPLED, origin, size, record.url)
    if size > limits.max_record_bytes:
        return Skipped("too-large", origin, size, record.url)
    if not content or content.isspace():
        return Skipped("empty", origin, size, record.url)
    if meta_bytes(record.url, record.meta) > limits.max_meta_bytes:
        return Skipped("meta-too-large", origin, size)
    return record
