"""The kept fields of a record, from JSON to the values of typed columns; what has no column, or fits none, stays as it
is."""

import base64
import datetime
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from refinery.loader.format.kept_columns import KeptColumn, parse_type
from refinery.loader.format.provenance import TEXT_COLUMN, provenance_schema
from refinery.transforms.core.data_text.json_members import apart, joined, raw_members
from refinery.transforms.core.stage import Note, Writer
from refinery.transforms.read.params import SourceParams

Convert = Callable[[Any], Any]
MISFITS = (ValueError, TypeError, ArithmeticError, KeyError)
NO_NUMBERS = ("nan", "inf", "-inf", "NaN", "Infinity", "-Infinity")  # which JSON has not: texts in kept fields
_ZONE = re.compile(r"(.*[0-9])(?:Z|([+-])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)")


def plan_columns(sources: Sequence[SourceParams], notes: Iterable[Note], writer: Writer) -> tuple[KeptColumn, ...]:
    """The columns for the `field_types` of sources, of a writer of texts: one for each field, whatever source it is of.
    notes: that are columns of the provenance. A name that another column has becomes `input_NAME`. Raises ValueError
    where sources disagree."""
    if writer.counts_tokens:
        return ()
    found: dict[str, tuple[Any, str]] = {}
    for source in sources:
        for field, plain in source.field_types.items() if source.enabled else ():
            known, first = found.setdefault(field, (plain, source.name))
            if parse_type(known) != parse_type(plain):
                raise ValueError(
                    f"source {source.name}: fields: {field!r:.80} is {plain}, {known} in source {first}; give both one "
                    "type (`field_types`), or list the other `fields`"
                )
    taken = {TEXT_COLUMN.name, *provenance_schema(()).names, *(note.name for note in notes)}
    columns: list[KeptColumn] = []
    for field, (plain, _) in sorted(found.items()):
        name = field if field not in taken else apart(f"input_{field}", {*taken, *found})
        columns.append(KeptColumn(name, field, parse_type(plain)))
    return tuple(columns)


class Fraction(str):
    """A number of JSON with a fraction or an exponent, as it is written."""

    __slots__ = ()


class KeptValues:
    """Splits the kept fields of records into typed columns and the rest."""

    def __init__(self, columns: Sequence[KeptColumn]) -> None:
        self.columns = [(column.name, column.field, value_reader(column.type)) for column in columns]

    def split(self, text: str) -> tuple[dict[str, Any], str]:
        """The values of all columns, null where there is none, and the rest as a JSON object; "" where there is none.
        text: of `kept_fields`, or ""."""
        values: dict[str, Any] = dict.fromkeys(name for name, _, _ in self.columns)
        if not text or not self.columns:
            return values, text
        members = raw_members(text)
        for name, field, convert in self.columns:
            if field in members:
                try:
                    values[name] = convert(json.loads(members[field], parse_float=Fraction))
                    del members[field]
                except MISFITS:
                    continue
        return values, joined(members) if members else ""


def value_reader(kind: pa.DataType) -> Convert:
    """What makes the value of a column from a value of JSON with `Fraction`s. It raises one of MISFITS for a value that
    the column cannot hold exactly."""
    read = _reader(kind)
    return lambda value: None if value is None else read(value)


def _reader(kind: pa.DataType) -> Convert:
    if pa.types.is_boolean(kind):
        return _of(bool)
    if pa.types.is_integer(kind):
        bits, low = kind.bit_width, 0 if pa.types.is_unsigned_integer(kind) else -(1 << kind.bit_width - 1)
        return lambda value: _within(_of(int)(value), low, low + (1 << bits))
    if pa.types.is_floating(kind):
        return lambda value: _float(value, kind.bit_width)
    if pa.types.is_string(kind):
        return _of(str)
    if pa.types.is_binary(kind):
        return lambda value: base64.b64decode(_of(str)(value), validate=True)
    if pa.types.is_date(kind):
        return lambda value: datetime.date.fromisoformat(_of(str)(value))
    if pa.types.is_timestamp(kind):
        return lambda value: _timestamp(_of(str)(value), kind.unit, bool(kind.tz))
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind)
    if pa.types.is_list(kind):
        item = value_reader(kind.value_type)
        return lambda value: [item(each) for each in _of(list)(value)]
    if pa.types.is_map(kind):
        key, inner = _reader(kind.key_type), value_reader(kind.item_type)
        return lambda value: [(key(name), inner(each)) for name, each in _of(list)(value)]
    parts = {kind.field(at).name: value_reader(kind.field(at).type) for at in range(kind.num_fields)}
    return lambda value: _struct(_of(dict)(value), parts)


def _of(wanted: type) -> Convert:
    def check(value: Any) -> Any:
        if type(value) is not wanted:
            raise ValueError(f"{type(value).__name__} given, {wanted.__name__} is needed")
        return value

    return check


def _within(value: int, low: int, end: int) -> int:
    if not low <= value < end:
        raise ValueError("an integer outside the type given")
    return value


def _float(value: Any, bits: int) -> float:
    number = float(value if value in NO_NUMBERS else _number(value))
    if isinstance(value, int) and int(number) != value:
        raise ValueError("an integer given that would be rounded")
    if bits == 32 and number == number and float(np.float32(number)) != number:
        raise ValueError("a number given that would be rounded")
    return number


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    number = Decimal(_number(value))
    return pa.scalar(number, kind).as_py()  # type: ignore[no-any-return]  # raises ArrowInvalid, a ValueError


def _number(value: Any) -> int | Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise ValueError("no number given")
    return value


def _timestamp(text: str, unit: str, is_instant: bool) -> int:
    """A time in ISO 8601 of any year, in units since 1970."""
    zone = _ZONE.fullmatch(text)
    if bool(zone) != is_instant:
        raise ValueError("a time with a zone given for one without, or the other way round")
    moment = np.datetime64(zone[1] if zone else text)
    found = moment.astype(f"datetime64[{unit}]")
    if found.astype(moment.dtype) != moment:
        raise ValueError("a time given that would be cut")
    count = int(found.astype(np.int64))
    if zone and zone[2]:
        seconds = (int(zone[3]) * 60 + int(zone[4])) * 60 + int(zone[5] or 0)
        count -= (seconds if zone[2] == "+" else -seconds) * {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return count


def _struct(value: Mapping[str, Any], parts: Mapping[str, Convert]) -> dict[str, Any]:
    if not value.keys() <= parts.keys():
        raise ValueError("a member given that the struct has not")
    return {name: read(value.get(name)) for name, read in parts.items()}
