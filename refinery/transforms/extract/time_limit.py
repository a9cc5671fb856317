"""A time limit for Python code that runs in any thread, signals and processes not needed.

A watchdog thread raises `TimeUp` in the limited thread (PyThreadState_SetAsyncExc). Python delivers it between two
bytecodes, so a single long call into native code is interrupted only after it returns; keep such calls bounded by the
size of their input. `TimeUp` is a BaseException: no `except Exception` on its way swallows it, and it is raised again
each second in case something else does: a finalizer or a callback of the garbage collector, where Python can only
report an error and go on.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TICK = 0.1  # seconds between two looks at the watches
AGAIN = 1.0  # seconds between two attempts on one call
IDLE_TICKS = 100  # looks without a watch before the watchdog sleeps until it is called


class TimeUp(BaseException):
    """The time of `call_within` is over. Never leaves it."""


_report_unraisable = sys.unraisablehook


def _report_all_but_time_up(unraisable: "sys.UnraisableHookArgs") -> None:
    """What a finalizer swallowed comes again, so it is not reported."""
    if not issubclass(unraisable.exc_type, TimeUp):
        _report_unraisable(unraisable)


def _hide_time_up() -> None:
    """From the first limited call on: an import changes nothing, and comes before whoever else reports."""
    global _report_unraisable
    if sys.unraisablehook is not _report_all_but_time_up:
        _report_unraisable, sys.unraisablehook = sys.unraisablehook, _report_all_but_time_up


_set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_async_exc.argtypes = (ctypes.c_ulong, ctypes.py_object)
_set_async_exc.restype = ctypes.c_int


class _Watch:
    """One limited call."""

    def __init__(self, seconds: float) -> None:
        self.thread = threading.get_ident()
        self.deadline = time.monotonic() + seconds
        self.raised = False


class _Watchdog:
    """One daemon thread a process, started at the first call."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.watches: list[_Watch] = []
        self.started = False
        self.asleep = False

    def add(self, watch: _Watch) -> None:
        with self.changed:
            if not self.started:
                _hide_time_up()
                threading.Thread(target=self._run, name="time-limit", daemon=True).start()
                self.started = True
            self.watches.append(watch)
            if self.asleep:
                self.changed.notify()

    def remove(self, watch: _Watch) -> None:
        """Once this returns, nothing is raised for `watch` any more. May be called again when it was interrupted."""
        with self.changed:
            if watch in self.watches:
                self.watches.remove(watch)
            if watch.raised:
                _deliver(watch.thread)

    def _run(self) -> None:
        idle = 0
        with self.changed:
            while True:
                now = time.monotonic()
                for watch in self.watches:
                    if watch.deadline <= now:
                        _set_async_exc(watch.thread, TimeUp)
                        watch.deadline, watch.raised = now + AGAIN, True
                idle = 0 if self.watches else idle + 1
                self.asleep = idle > IDLE_TICKS
                self.changed.wait(None if self.asleep else TICK)
                self.asleep = False


def _deliver(thread: int) -> None:
    """Receive what is raised in this thread and has not arrived. Taking it back (NULL instead of an exception) leaves
    Python 3.11 looking for it, and from then on a call under a debugger, a profiler or a tracer never returns.
    """
    try:
        _set_async_exc(thread, TimeUp)
        while True:
            pass
    except TimeUp:
        pass


_watchdog = _Watchdog()


def _restart() -> None:
    global _watchdog
    _watchdog = _Watchdog()  # threads do not survive a fork


os.register_at_fork(after_in_child=_restart)


def call_within(seconds: float, function: Callable[[], T]) -> T | None:
    """`function()`, or None when it has not returned after `seconds` (0.1 s more at most, plus its last native call).

    An expired call leaves shared state as a KeyboardInterrupt would. Overhead: a few microseconds.
    """
    watch = _Watch(seconds)
    try:
        try:
            _watchdog.add(watch)
            return function()
        finally:
            _watchdog.remove(watch)
    except TimeUp:
        # It may have come in the midst of the removal. It comes at most once in AGAIN seconds, so not here again.
        _watchdog.remove(watch)
        return None
