"""The last answer of a pure function, kept for the next call with the same arguments.

To measure a rule, its stage is asked about one text again and again, each time with another threshold
(measured_rules.py). What the stage counts in the text depends on no threshold, so it is counted once.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LastCall(Generic[T]):
    """Calls `function` only if the arguments differ from those of the last call. Memory: these and the answer.

    The answer must be immutable. Threads may share an object of this class.
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
