"""Rules over whole columns: the same tree as for a row (evaluate.py), read a second time, with numpy and pyarrow.

Values that a column cannot hold exactly as Python does raise `OneByOne`, and the rows are judged one by one instead:
integers beyond 2^53 beside floats, results beyond 64 bits, texts searched for texts of another column, lists, functions
of a caller's own. So tables and single rows cannot disagree.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from refinery.transforms.filter.rules import evaluate
from refinery.transforms.filter.rules.evaluate import Run

Mask = npt.NDArray[np.bool_]
EXACT = 1 << 53  # integers below it are doubles exactly


class OneByOne(Exception):
    """These rows have to be judged one by one."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """int64 or float64 [n] or [1], and where there is a number."""

    values: npt.NDArray[Any]
    valid: Mask


@dataclass(frozen=True, slots=True)
class Truth:
    """Where a condition is true and where it is known, bool [n] or [1] each; true only where it is known."""

    true: Mask
    known: Mask


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts without nulls, as an array or one scalar."""

    values: Any


@dataclass(frozen=True, slots=True)
class Constant:
    """A tuple of literals."""

    values: tuple[Any, ...]


Value = Numbers | Truth | Texts | Constant


def judge_batch(run: Run, batch: pa.RecordBatch) -> Mask:
    """Whether each row meets the rule whose tree is `run`. Raises OneByOne."""
    found = _value(run, batch)
    if not isinstance(found, Truth):
        raise OneByOne
    return np.broadcast_to(found.true, batch.num_rows)


def _value(run: Run, batch: pa.RecordBatch) -> Value:
    if not isinstance(run, partial):
        raise OneByOne
    take = READERS.get(run.func)
    if take is None:
        raise OneByOne
    return take(batch, *run.args)


# --- columns and literals -------------------------------------------------------------------------------------------


def _text_column(batch: pa.RecordBatch, name: str) -> Texts:
    column = batch.column(name)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise OneByOne
    return Texts(pc.fill_null(column, "") if column.null_count else column)


def _condition_column(batch: pa.RecordBatch, name: str) -> Truth:
    column = batch.column(name)
    if not pa.types.is_boolean(column.type):
        raise OneByOne
    known = _valid(column)
    return Truth(pc.fill_null(column, False).to_numpy(zero_copy_only=False), known)


def _integer_column(batch: pa.RecordBatch, name: str) -> Numbers:
    column = batch.column(name)
    if not pa.types.is_integer(column.type):
        raise OneByOne
    try:
        values = pc.fill_null(column, 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise OneByOne from None
    return Numbers(values, _valid(column))


def _float_column(batch: pa.RecordBatch, name: str) -> Numbers:
    column = batch.column(name)
    if not pa.types.is_float32(column.type):
        raise OneByOne
    values = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False).astype(np.float64)
    return Numbers(values, _valid(column) & ~np.isnan(values))


def _double_column(batch: pa.RecordBatch, name: str) -> Numbers:
    column = batch.column(name)
    if not pa.types.is_float64(column.type):
        raise OneByOne
    values = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
    return Numbers(values, _valid(column) & ~np.isnan(values))


def _valid(column: pa.Array) -> Mask:
    found: Mask = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return found


def _constant(batch: pa.RecordBatch, value: Any) -> Value:
    if isinstance(value, tuple):
        return Constant(value)
    if isinstance(value, str):
        return Texts(pa.scalar(value))
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise OneByOne
    return Numbers(np.array([value], np.int64 if isinstance(value, int) else np.float64), np.ones(1, np.bool_))


# --- numbers --------------------------------------------------------------------------------------------------------


def _numbers(value: Value) -> Numbers:
    if not isinstance(value, Numbers):
        raise OneByOne
    return value


def _as_double(value: Numbers) -> npt.NDArray[np.float64]:
    """Raises OneByOne for integers that are not doubles."""
    if value.values.dtype == np.int64 and ((value.values >= EXACT) | (value.values <= -EXACT)).any():
        raise OneByOne
    return value.values.astype(np.float64)


def _together(values: list[Numbers]) -> list[npt.NDArray[Any]]:
    """Of one type: integers if all are."""
    if all(value.values.dtype == np.int64 for value in values):
        return [value.values for value in values]
    return [_as_double(value) for value in values]


def _single(batch: pa.RecordBatch, run: Run) -> Numbers:
    value = _numbers(_value(run, batch))
    with np.errstate(over="ignore"):
        return Numbers(_as_double(value).astype(np.float32).astype(np.float64), value.valid)


def _calculate(batch: pa.RecordBatch, function: Callable[..., Any], left: Run, right: Run) -> Numbers:
    first, second = _numbers(_value(left, batch)), _numbers(_value(right, batch))
    with np.errstate(all="ignore"):
        found = CALCULATIONS[function](_as_double(first), _as_double(second))
    return Numbers(found, first.valid & second.valid & np.isfinite(found))


def _negative(batch: pa.RecordBatch, run: Run) -> Numbers:
    value = _numbers(_value(run, batch))
    if value.values.dtype == np.int64 and (value.values == np.iinfo(np.int64).min).any():
        raise OneByOne
    return Numbers(-value.values, value.valid)


def _choose(batch: pa.RecordBatch, function: Callable[..., Any], runs: tuple[Run, ...]) -> Numbers:
    values = [_numbers(_value(run, batch)) for run in runs]
    ufunc = np.minimum if function is min else np.maximum
    found, valid = None, np.ones(1, np.bool_)
    for value, one in zip(values, _together(values), strict=True):
        found = one if found is None else ufunc(found, one)
        valid = valid & value.valid
    assert found is not None  # noqa: S101 - two or more are given
    return Numbers(found, valid)


# --- conditions -----------------------------------------------------------------------------------------------------


def _apply_to(batch: pa.RecordBatch, function: Callable[..., Any], left: Run, right: Run) -> Truth:
    first, second = _value(left, batch), _value(right, batch)
    if function is evaluate.among:
        return _among(first, second)
    if isinstance(first, Texts) and isinstance(second, Texts):
        return _compare_texts(function, first.values, second.values)
    one, other = _numbers(first), _numbers(second)
    compare = NUMPY.get(function)
    if compare is None:
        raise OneByOne
    known = one.valid & other.valid
    return Truth(compare(*_together([one, other])) & known, known)


def _compare_texts(function: Callable[..., Any], first: Any, second: Any) -> Truth:
    if function in SEARCHES:
        if not isinstance(second, pa.Scalar) or isinstance(first, pa.Scalar):
            raise OneByOne
        found = SEARCHES[function](first, second.as_py())
    elif isinstance(first, pa.Scalar) and isinstance(second, pa.Scalar):
        raise OneByOne
    else:
        found = ARROW[function](first, second)  # texts compare by their bytes in UTF-8: by code point
    true: Mask = found.to_numpy(zero_copy_only=False)
    return Truth(true, np.ones(len(true), np.bool_))


def _among(value: Value, choices: Value) -> Truth:
    if not isinstance(choices, Constant):
        raise OneByOne
    if isinstance(value, Texts):
        if isinstance(value.values, pa.Scalar):
            raise OneByOne
        true: Mask = pc.is_in(value.values, value_set=pa.array(choices.values, value.values.type)).to_numpy(
            zero_copy_only=False
        )
        return Truth(true, np.ones(len(true), np.bool_))
    one, found = _numbers(value), np.zeros(1, np.bool_)
    for choice in choices.values:
        other = Numbers(np.array([choice], np.int64 if isinstance(choice, int) else np.float64), np.ones(1, np.bool_))
        found = found | np.equal(*_together([one, other]))
    return Truth(found & one.valid, one.valid)


def _is_missing(batch: pa.RecordBatch, run: Run) -> Truth:
    value = _value(run, batch)
    if isinstance(value, Numbers):
        return Truth(~value.valid, np.ones(len(value.valid), np.bool_))
    if isinstance(value, Texts) and not isinstance(value.values, pa.Scalar):
        return _compare_texts(operator.eq, value.values, pa.scalar(""))
    raise OneByOne


def _truth(run: Run, batch: pa.RecordBatch) -> Truth:
    value = _value(run, batch)
    if not isinstance(value, Truth):
        raise OneByOne
    return value


def _not(batch: pa.RecordBatch, run: Run) -> Truth:
    value = _truth(run, batch)
    return Truth(~value.true & value.known, value.known)


def _all_of(batch: pa.RecordBatch, runs: tuple[Run, ...]) -> Truth:
    values = [_truth(run, batch) for run in runs]
    true, false = np.ones(1, np.bool_), np.zeros(1, np.bool_)
    for value in values:
        true, false = true & value.true, false | (value.known & ~value.true)
    return Truth(true, true | false)


def _any_of(batch: pa.RecordBatch, runs: tuple[Run, ...]) -> Truth:
    values = [_truth(run, batch) for run in runs]
    true, false = np.zeros(1, np.bool_), np.ones(1, np.bool_)
    for value in values:
        true, false = true | value.true, false & value.known & ~value.true
    return Truth(true, true | false)


NUMPY: Mapping[Callable[..., Any], Callable[..., Mask]] = {
    operator.eq: np.equal,
    operator.ne: np.not_equal,
    operator.le: np.less_equal,
    operator.ge: np.greater_equal,
    operator.lt: np.less,
    operator.gt: np.greater,
}
ARROW: Mapping[Callable[..., Any], Callable[..., pa.Array]] = {
    operator.eq: pc.equal,
    operator.ne: pc.not_equal,
    operator.le: pc.less_equal,
    operator.ge: pc.greater_equal,
    operator.lt: pc.less,
    operator.gt: pc.greater,
}
CALCULATIONS: Mapping[Callable[..., Any], Callable[..., npt.NDArray[np.float64]]] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
}
SEARCHES: Mapping[Callable[..., Any], Callable[..., pa.Array]] = {
    str.startswith: pc.starts_with,
    str.endswith: pc.ends_with,
    str.__contains__: pc.match_substring,
}
READERS: Mapping[Callable[..., Any], Callable[..., Value]] = {
    evaluate.constant: _constant,
    evaluate.READ["text"]: _text_column,
    evaluate.READ["condition"]: _condition_column,
    evaluate.READ["integer"]: _integer_column,
    evaluate.READ["float"]: _float_column,
    evaluate.READ["double"]: _double_column,
    evaluate.single: _single,
    evaluate.calculate: _calculate,
    evaluate.negative: _negative,
    evaluate.choose: _choose,
    evaluate.apply_to: _apply_to,
    evaluate.is_missing: _is_missing,
    evaluate.not_: _not,
    evaluate.all_of: _all_of,
    evaluate.any_of: _any_of,
}
