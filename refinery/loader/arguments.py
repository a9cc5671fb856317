"""Checks of what callers give. Each raises ValueError with the argument's name, what was given and what is allowed."""

import contextlib
import ipaddress
import operator
from collections.abc import Callable, Sequence
from math import isfinite, nan
from numbers import Real
from typing import Any

import numpy as np

MOST = 2**31 - 1  # rows, places, ranks: what is counted in them stays within 64 bits


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number as Python's int, which can be written as JSON; numpy's integers are whole numbers, too.

    >>> whole("rank", 3, 0, 7)
    3
    """
    allowed = f"{least} or more" if most is None else f"{least} to {most}"
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise ValueError(f"{name}: {value!r:.80} given, a whole number, {allowed}, is allowed")
    if number < least or (most is not None and number > most):
        raise ValueError(f"{name}: {number} given, {allowed} is allowed")
    return number


def number(name: str, value: Any, allowed: str, fits: Callable[[float], bool]) -> float:
    """A finite number, `fits` of which is true. allowed: says which these are.

    >>> number("rate", 0.5, "0 to 1", lambda rate: 0 <= rate <= 1)
    0.5
    """
    found = nan
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        with contextlib.suppress(OverflowError):  # an integer beyond all numbers
            found = float(value)
    if not (isfinite(found) and fits(found)):
        raise ValueError(f"{name}: {value!r:.80} given, {allowed} is allowed")
    return found


def flag(name: str, value: Any) -> bool:
    """True or False, nothing that only counts as one of them, such as the word "False"."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}: {value!r:.80} given, True or False is allowed")
    return bool(value)


def texts(name: str, value: Any, what: str) -> tuple[str, ...]:
    """Texts in a list or tuple, not one text. what: "a list of `what`" is allowed."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{name}: {value!r:.80} given, a list of {what} is allowed")
    return tuple(value)


def of_kind(name: str, value: Any, *kinds: type) -> Any:
    """`value` itself, of one of these classes, or None."""
    if value is not None and not isinstance(value, kinds):
        raise ValueError(
            f"{name}: {value!r:.80} given, {', '.join(kind.__name__ for kind in kinds)} or None is allowed"
        )
    return value


def is_loopback(host: str) -> bool:
    """Whether a host's name is one of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
