"""A time limit for Python code that runs in any thread, signals and processes not needed.

A watchdog thread raises `TimeUp` in the limited thread (PyThreadState_SetAsyncExc). Python delivers it between two
bytecodes, so a single long call into native code is interrupted only after it returns; keep such calls bounded by the
size of their input. `TimeUp` is a BaseException: no `except Exception` on its way swallows it, and it is raised again
each second in case something else does.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)
_raise_in.restype = ctypes.c_int
_NOTHING = ctypes.py_object()  # NULL: takes back an exception that is not delivered yet

AGAIN = 1.0  # seconds between two attempts


class TimeUp(BaseException):
    """The time of `call_within` is over. Never leaves it."""


class _Watch:
    """One limited call. `over` is set, under the lock, before the call's thread goes on; nothing is raised after that."""

    def __init__(self, seconds: float) -> None:
        self.thread = threading.get_ident()
        self.deadline = time.monotonic() + seconds
        self.over = False


class _Watchdog:
    """One daemon thread a process, started at the first call, asleep while nothing is watched."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.watches: list[_Watch] = []
        self.started = False

    def add(self, watch: _Watch) -> None:
        with self.changed:
            if not self.started:
                threading.Thread(target=self.run, name="time-limit", daemon=True).start()
                self.started = True
            self.watches.append(watch)
            if len(self.watches) == 1:
                self.changed.notify()

    def remove(self, watch: _Watch) -> None:
        with self.changed:
            if not watch.over:
                watch.over = True
                self.watches.remove(watch)
                _raise_in(watch.thread, _NOTHING)

    def run(self) -> None:
        with self.changed:
            while True:
                now = time.monotonic()
                for watch in self.watches:
                    if watch.deadline <= now:
                        _raise_in(watch.thread, TimeUp)
                        watch.deadline = now + AGAIN
                # Calls are far more frequent than expiries: nobody wakes this thread for a new watch among others, it
                # looks itself often enough to be at most a tenth of a second late.
                self.changed.wait(0.1 if self.watches else None)


_watchdog = _Watchdog()


def call_within(seconds: float, function: Callable[[], T]) -> T | None:
    """`function()`, or None when it has not returned after `seconds` (0.1 s more at most, plus its last native call).

    An expired call leaves shared state as a KeyboardInterrupt would. Overhead: about 5 microseconds.
    """
    watch = _Watch(seconds)
    result = None
    try:
        try:
            _watchdog.add(watch)
            result = function()
        finally:
            _watchdog.remove(watch)
    except TimeUp:
        _watchdog.remove(watch)  # it may have come in the midst of the first removal
        return None
    return result
