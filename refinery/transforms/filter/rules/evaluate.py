"""What the parts of a rule compute for a row: each function takes the row last, so `partial` makes a `Run` of it.

None is a missing value, or a condition that one leaves unknown.
"""

import math
import sys
from collections.abc import Callable, Mapping
from ctypes import c_float
from typing import Any

Row = Mapping[str, Any]
Run = Callable[[Row], Any]
MOST = int(sys.float_info.max)  # an integer beyond it is missing, as is a result of arithmetic


def constant(value: Any, row: Row) -> Any:
    return value


def _read_text(name: str, row: Row) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name}: a value of type {type(value).__name__} found, text expected")
    return value


def _read_condition(name: str, row: Row) -> bool | None:
    value = row.get(name)
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{name}: a value of type {type(value).__name__} found, true or false expected")
    return value


def _read_texts(name: str, row: Row) -> Any:
    return row.get(name) or ()


def _read_integer(name: str, row: Row) -> int | None:
    value = row.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeError(f"{name}: a value of type {type(value).__name__} found, an integer expected")
    return None if value is not None and abs(value) > MOST else value


def _read_double(name: str, row: Row) -> float | None:
    value = row.get(name)
    if value is None or value != value:  # NaN
        return None
    if not isinstance(value, (float, int)) or isinstance(value, bool):
        raise TypeError(f"{name}: a value of type {type(value).__name__} found, a number expected")
    return float(value)


def _read_float(name: str, row: Row) -> float | None:
    value = _read_double(name, row)
    return None if value is None else c_float(value).value


READ: dict[str, Callable[[str, Row], Any]] = {
    "condition": _read_condition,
    "text": _read_text,
    "texts": _read_texts,
    "integer": _read_integer,
    "float": _read_float,
    "double": _read_double,
}


def single(run: Run, row: Row) -> float | None:
    value = run(row)
    return None if value is None else c_float(value).value


def apply_to(function: Callable[[Any, Any], Any], left: Run, right: Run, row: Row) -> Any:
    first = left(row)
    second = right(row)
    return None if first is None or second is None else function(first, second)


def calculate(function: Callable[[float, float], float], left: Run, right: Run, row: Row) -> float | None:
    first, second = left(row), right(row)
    if first is None or second is None:
        return None
    try:
        value = function(float(first), float(second))
    except ZeroDivisionError:
        return None
    return value if math.isfinite(value) else None


def negative(run: Run, row: Row) -> float | None:
    value = run(row)
    return None if value is None else -value


def apply_numbers(function: Callable[..., float | None], runs: tuple[Run, ...], row: Row) -> float | None:
    values = [run(row) for run in runs]
    return None if None in values else function(*map(float, values))


def choose(function: Callable[..., float], runs: tuple[Run, ...], row: Row) -> float | None:
    values = [run(row) for run in runs]
    return None if None in values else function(values)


def among(value: Any, choices: Any) -> bool:
    return value in choices


def is_missing(run: Run, row: Row) -> bool:
    value = run(row)
    return value is None or value == ""


def not_(run: Run, row: Row) -> bool | None:
    value = run(row)
    return None if value is None else not value


def all_of(runs: tuple[Run, ...], row: Row) -> bool | None:
    unknown = False
    for run in runs:
        value = run(row)
        if value is False:
            return False
        unknown = unknown or value is None
    return None if unknown else True


def any_of(runs: tuple[Run, ...], row: Row) -> bool | None:
    unknown = False
    for run in runs:
        value = run(row)
        if value is True:
            return True
        unknown = unknown or value is None
    return None if unknown else False
