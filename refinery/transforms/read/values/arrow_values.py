"""What Python makes of the values of an Arrow column: the same on every machine, and something of every value.

pyarrow gives times with nanoseconds as pandas' own classes where pandas is installed, and refuses them where it is not;
it refuses years beyond 9999, time zones that nobody knows, and text that is not UTF-8. Here such values become text
(`Inexact`), and pandas is never asked.
"""

import datetime
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from refinery.transforms.read.values.inexact import LOST, Inexact

REFUSED = (ValueError, OverflowError, LookupError, NotImplementedError, pa.ArrowException)  # LookupError: a time zone
PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def values_of(column: pa.Array) -> tuple[list[Any], bool]:
    """The values, and whether any is Inexact, maybe inside a list or struct. Cost: that of `to_pylist`, except for
    columns that hold such values, which are read one by one (5 us each)."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        micros = _whole_micros(column, kind)
        column = column if micros is None else micros
    if _needs_no_pandas(column.type):
        try:
            return column.to_pylist(), False
        except REFUSED:
            pass
    values = [value_of(scalar) for scalar in column]
    return values, any(_holds_inexact(value) for value in values)


def _whole_micros(column: pa.Array, kind: Any) -> pa.Array | None:
    """The column in microseconds, None where that loses something."""
    try:
        return column.cast(pa.timestamp("us", kind.tz))
    except pa.ArrowInvalid:
        return None


@lru_cache(maxsize=1024)
def _needs_no_pandas(kind: pa.DataType) -> bool:
    """Whether no value in a column of this type is made by pandas where that is installed."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind):
        return bool(kind.unit != "ns")
    if isinstance(kind, pa.BaseExtensionType):
        return _needs_no_pandas(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _needs_no_pandas(kind.value_type)
    return all(_needs_no_pandas(kind.field(number).type) for number in range(kind.num_fields))


def value_of(scalar: pa.Scalar) -> Any:
    """One value, as `to_pylist` gives it, or as Inexact text."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if isinstance(kind, pa.BaseExtensionType):
        return _or_text(scalar, lambda: value_of(scalar.value))
    if pa.types.is_dictionary(kind):
        return value_of(scalar.value)
    if pa.types.is_struct(kind):
        return {kind.field(number).name: value_of(scalar[number]) for number in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [(value_of(pair[0]), value_of(pair[1])) for pair in scalar.values]
    if pa.types.is_nested(kind) and isinstance(scalar, pa.ListScalar):
        return [value_of(each) for each in scalar.values]
    if pa.types.is_timestamp(kind):
        return _timestamp(scalar.value, kind.unit, kind.tz)
    if pa.types.is_date(kind):
        days = scalar.value // (86_400_000 if pa.types.is_date64(kind) else 1)
        return _or_text(scalar, lambda: _calendar(days, "D"))
    if pa.types.is_time(kind):
        return _time_of_day(scalar.value, kind.unit)
    if pa.types.is_duration(kind):
        return _duration(scalar.value, kind.unit)
    return _or_text(scalar, lambda: _decoded(scalar))


def _or_text(scalar: pa.Scalar, text: Callable[[], Any]) -> Any:
    """Python's value, where there is one. An Arrow type may be registered by anybody, so anything may go wrong."""
    if _needs_no_pandas(scalar.type):
        try:
            return scalar.as_py()
        except REFUSED:
            pass
    return text()


def _decoded(scalar: pa.Scalar) -> Any:
    """Text that is not UTF-8, with U+FFFD in it; nothing of anything else (no type of Parquet's is left)."""
    try:
        return Inexact(scalar.as_buffer().to_pybytes().decode("utf-8", "replace"))
    except AttributeError:
        return LOST


def _timestamp(value: int, unit: str, zone: str | None) -> Any:
    """A datetime, where Python has it; else text like `str` of one, with nanoseconds, in UTC if its zone is unknown."""
    rest = 0
    if unit == "ns":
        value, rest, unit = value // 1000, value % 1000, "us"
    try:
        moment = pa.scalar(value, pa.timestamp(unit, zone)).as_py()
    except REFUSED:
        whole = _calendar(value * 1000 + rest if rest else value, "ns" if rest else unit)
        return Inexact(whole + ("+00:00" if zone else ""))
    if not rest:
        return moment
    text = moment.isoformat(sep=" ", timespec="microseconds")
    return Inexact(f"{text[:26]}{rest:03}{text[26:]}")


def _calendar(value: int, unit: Any) -> Inexact:
    """A point in time of any year (Gregorian, 0000 is 1 BC): 33658-09-27 01:46:40."""
    if value == -(1 << 63):  # which numpy keeps for no time at all
        return Inexact(f"{value} {unit}")
    text = str(np.datetime_as_string(np.datetime64(value, unit))).replace("T", " ")
    whole, point, fraction = text.partition(".")
    return Inexact(whole if not fraction.strip("0") else whole + point + fraction)


def _time_of_day(value: int, unit: str) -> Any:
    nanos = value * (1_000_000_000 // PER_SECOND[unit])
    if not 0 <= nanos < 86_400_000_000_000:
        return Inexact(f"{value} {unit}")
    seconds, rest = divmod(nanos, 1_000_000_000)
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    if rest % 1000:
        return Inexact(f"{hour:02}:{minute:02}:{second:02}.{rest:09}")
    return datetime.time(hour, minute, second, rest // 1000)


def _duration(value: int, unit: str) -> Any:
    seconds, rest = divmod(value, PER_SECOND[unit])
    if unit == "ns" and value % 1000:
        return Inexact(f"{value} ns")
    try:
        return datetime.timedelta(seconds=seconds, microseconds=rest * 1_000_000 // PER_SECOND[unit])
    except OverflowError:
        return Inexact(f"{value} {unit}")


def _holds_inexact(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_inexact, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_inexact, value))
    return type(value) is Inexact or value is LOST
