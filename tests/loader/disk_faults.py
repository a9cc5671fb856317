"""System calls that fail as those of shared disks do."""

import os
from collections.abc import Callable
from typing import Any


def refused(code: int) -> Callable[..., Any]:
    """A system call that fails."""

    def call(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return call


def done_then(real: Callable[..., Any], code: int) -> Callable[..., Any]:
    """A call whose answer is lost: it is done, and done again, which fails."""

    def call(*arguments: Any) -> Any:
        real(*arguments)
        raise OSError(code, os.strerror(code), arguments[0], None, arguments[1])

    return call


def failing_first(real: Callable[..., Any], code: int, times: int) -> Callable[..., Any]:
    left = [times]

    def call(*arguments: Any, **named: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise OSError(code, os.strerror(code))
        return real(*arguments, **named)

    return call
