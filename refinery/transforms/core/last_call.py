"""A pure function that does not work twice for what it was asked last.

A rule is measured by asking its stage about one text again and again, with another threshold (measured_rules.py). What
the stage counts in the text depends on no threshold, so it is counted once.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LastCall(Generic[T]):
    """`function`, called only if the arguments differ from those of the last call. Memory: these arguments and the answer.

    The answer must not be changed by whoever gets it. Threads may share it.
    """

    __slots__ = ("_function", "_last")

    def __init__(self, function: Callable[..., T]) -> None:
        self._function = function
        self._last: tuple[tuple[Any, ...], T] | None = None

    def __call__(self, *arguments: Any) -> T:
        last = self._last
        if last is not None and last[0] == arguments:
            return last[1]
        answer = self._function(*arguments)
        self._last = arguments, answer
        return answer
