"""Ctrl-C and SIGTERM before, during and after a command.

While Python still imports, or reads the arguments, they end the process at once with 130: nothing has begun that would
have to be tidied up. As an exception, an interrupt would end as a traceback there, or be taken for a library that is
missing. From `take_interrupts` on it is a KeyboardInterrupt, which every command handles.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130  # ExitCode.INTERRUPTED


def leave_at_once() -> None:
    """For the start of the process."""
    for number in SIGNALS:
        signal.signal(number, _leave)


def take_interrupts() -> None:
    """For the start of a command. Signals of which somebody else has decided stay as they are."""
    for number in SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.default_int_handler)
            sys.unraisablehook = _again


def ignore_interrupts() -> None:
    """For the end of the process: the command is over."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Processes that are started meanwhile never see Ctrl-C, which a terminal sends to all: who starts them ends them.
    One that comes meanwhile is delivered at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _again(unraisable: Any) -> None:
    """An interrupt that came in a callback which cannot raise, as those of import locks: it comes once more."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)


def _leave(*_: Any) -> None:
    os.write(2, b"\ninterrupted; nothing had begun\n")
    os._exit(INTERRUPTED)
