"""The process of the workers as a fork of the launcher: what both need is imported once.

Only a command may be forked: a process of ours in which nothing but the command has run, and no thread yet. In a
notebook, a program that uses this package, or where there is no Linux, the process is a new interpreter
(local_runner.py). A fork is made to look like that one: its environment, search path, pipes and memory settings.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import NoReturn

from refinery.pipelines.runners.beam_parts import import_beam
from refinery.pipelines.shell.own_process import is_ours_alone

# What a worker frees goes back to the system. Otherwise glibc raises its threshold for that with every large block, and
# both it and Arrow's own pool keep an arena a thread: 700 MB a worker after 20 GB of text, instead of 250. No slower.
ARROW_POOL = {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # read when Arrow is imported
MALLOC = {  # read when a process starts; the names are of the environment, the numbers of mallopt
    "MALLOC_MMAP_THRESHOLD_": (262144, -3),
    "MALLOC_TRIM_THRESHOLD_": (262144, -1),
    "MALLOC_ARENA_MAX": (1, -8),
}
GIVE_BACK = {name: str(value) for name, (value, _) in MALLOC.items()} | ARROW_POOL

_may_fork = False


def prepare_to_fork(runner: str = "local") -> None:
    """For a command that is about to import what its workers need, and then to start them on this machine: what it
    imports from now on is theirs, too, and Beam as far as such a run needs it. Elsewhere this does nothing. runner: as
    the command was given it."""
    global _may_fork
    if runner == "local" and is_ours_alone() and "pyarrow" not in sys.modules:
        for name, value in ARROW_POOL.items():
            os.environ.setdefault(name, value)
        import_beam()
        _may_fork = True


def take_fork() -> bool:
    """Whether the next process may be a fork; asked once. A thread of Python's forbids it. Those that numpy and Arrow
    start when they are imported do not: each library ends and renews its own at a fork."""
    global _may_fork
    may, _may_fork = _may_fork, False
    return may and threading.active_count() == 1


class ForkedProcess:
    """What subprocess.Popen is for a program, for a fork that runs `run`, with this environment: pipes to its standard
    input and from its standard output, and its end."""

    def __init__(self, run: Callable[[], object], environment: Mapping[str, str]) -> None:
        commands, feed = _pipe()
        reports, out = _pipe()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError):
                stream.flush()  # or it may be written twice
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that are the libraries' own: see above
            self.pid = os.fork()
        if not self.pid:
            _be_forked(run, environment, (commands, out), (feed, reports))
        os.close(commands)
        os.close(out)
        self.stdin, self.stdout = os.fdopen(feed, "w"), os.fdopen(reports)
        self._code: int | None = None
        self._lock = threading.Lock()

    def kill(self) -> None:
        with self._lock:  # once it has been waited for, its number may be another process' one
            if self._code is None:
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, or minus the signal that ended it; any number of threads may wait."""
        with contextlib.suppress(ChildProcessError):  # another thread waited, too, and was first
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            if self._code is None:
                self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the standard descriptors, which the launcher may have been started without."""
    ends = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in ends:
        os.close(end)
    return read, write


def _be_forked(
    run: Callable[[], object], environment: Mapping[str, str], pipes: tuple[int, int], others: tuple[int, int]
) -> NoReturn:
    """Run it in the fork, as in a new interpreter."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.unraisablehook = sys.__unraisablehook__
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
        for descriptor in (*pipes, *others, *_inherited()):
            os.close(descriptor)
        for name, (value, number) in MALLOC.items():
            if name not in os.environ:  # what the user has set there holds already
                with contextlib.suppress(AttributeError):  # no glibc
                    ctypes.CDLL(None).mallopt(number, value)
        os.environ.update(environment)
        _leave_out_working_directory(environment["PYTHONPATH"].split(os.pathsep))
        run()
    except BaseException:  # noqa: BLE001 - a fork must never go on as the launcher
        traceback.print_exc()
    finally:
        os._exit(1)


def _inherited() -> list[int]:
    """Descriptors of whoever started the launcher, beside the standard ones: a new interpreter has none of them."""
    with contextlib.suppress(OSError):
        return [number for number in map(int, os.listdir("/proc/self/fd")) if number > 2 and _is_inherited(number)]
    return []


def _is_inherited(descriptor: int) -> bool:
    with contextlib.suppress(OSError):  # that of the listing itself, which is closed by now
        return os.get_inheritable(descriptor)
    return False


def _leave_out_working_directory(first: list[str]) -> None:
    """The search path as `python -P` has it, with PYTHONPATH first: no code from the working directory."""
    if not sys.flags.safe_path:
        del sys.path[0]
    sys.path[:] = [*first, *(folder for folder in sys.path if folder not in first)]
