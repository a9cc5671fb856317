"""Whether this process is ours alone: a command, in which no thread runs. Only such a process may be forked."""

import os

_is_command = False


def begin_command() -> None:
    """For the start of a process that runs one command and ends."""
    global _is_command
    _is_command = True


def is_ours_alone() -> bool:
    """Not in a notebook, not in a program that uses this package, and not where the system does not count threads."""
    return _is_command and _threads() == 1


def _threads() -> int:
    """Of this process, those of libraries included; 0 where the system does not say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0
