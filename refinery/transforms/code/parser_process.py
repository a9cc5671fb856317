"""Syntax trees made in a process of their own, which may die without the worker that asks.

tree-sitter and its grammars are C code that reads what strangers wrote. Limits of a parse (parse.py) keep known texts
from exhausting it; for all others, whatever they do, there is this process. One text at a time is in it, so the text at
fault is known. When it ends, the text is tried again in a new process, since what went before may have been the cause;
when that ends, too, `ParserDied` says so, and the combinator makes one dead letter of it.

How the process is started: as a new program, never as a bare fork, since workers have threads whose locks a fork would
copy. A worker that forks later leaves its parser to the parent. How it ends: with the pipe to its standard input, which
the kernel closes however the worker died; a text that it is busy with is bounded.
"""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from array import array
from collections.abc import Sequence
from pathlib import Path

import refinery
from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.code.parser_frames import ANSWER, FAILED, NOT_PARSED, OVER, READY, REQUEST
from refinery.transforms.core.document import FailClosed

CHILD = "refinery.transforms.code.parser_child"
PASSED = ("LD_", "DYLD_", "PYTHON")  # beginnings of the variables that it gets: those by which Python and C are found
_PLACES = {name: place for place, name in enumerate(LANGUAGES)}


class ParserDied(Exception):
    """The text ended the parser's process, twice."""


class ParserTimedOut(Exception):
    """The text took the parser longer than any verdict by its counts allows: a fault of the parser, or of the machine.

    The one answer here that depends on a clock.
    """


class ParserFailed(Exception):
    """The parser's process reports an exception, whose class the message names."""


class NoParser(FailClosed):
    """The parser's process cannot be started, which says nothing about a text."""


class _Ended(Exception):
    """The process has ended. code: as of subprocess."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ParserProcess:
    """The parser of this process, started when it is first asked. Threads take turns.

    module: what it runs. Cost of a question: some 40 microseconds, and 0.1 s when the process is started.
    """

    def __init__(self, module: str = CHILD) -> None:
        self.module = module
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.end)

    def ask(self, question: int, language: str, data: bytes, numbers: Sequence[int] = ()) -> "array[int] | None":
        """The answer of parser_child.py; None for a text that is not parsed.

        Raises ParserDied, ParserTimedOut, ParserFailed; MemoryError where the machine killed it; NoParser.
        """
        given = array("q", numbers)
        head = REQUEST.pack(question, _PLACES[language], len(data), len(given))
        with self._lock:
            for attempt in range(2):
                was_new = self._process is None
                try:
                    return self._exchange(head, data, given.tobytes())
                except _Ended as end:
                    if end.code == OVER:
                        return None
                    if end.code == -signal.SIGXCPU:
                        raise ParserTimedOut(_said(end.code)) from None
                    if end.code == -signal.SIGKILL:  # by the kernel, for want of memory, or by a person
                        raise MemoryError("the parser's process was killed") from None
                    if was_new or attempt:
                        raise ParserDied(_said(end.code)) from None
        raise AssertionError("not reached")

    def _exchange(self, head: bytes, data: bytes, numbers: bytes) -> "array[int] | None":
        try:
            process = self._process = self._process or self._started()
            assert process.stdin is not None and process.stdout is not None  # noqa: S101 - as it was started
            for part in (head, data, numbers):
                process.stdin.write(part)
            process.stdin.flush()
            status, is_last, size = ANSWER.unpack(_whole(process.stdout.read(ANSWER.size), ANSWER.size))
            body = _whole(process.stdout.read(size), size)
        except (BrokenPipeError, EOFError):
            raise _Ended(self._reap()) from None
        except BaseException:
            self.end()  # an answer may be on its way, to nobody
            raise
        if is_last:
            self.end()
        if status == FAILED:
            raise ParserFailed(body.decode("ascii", "replace")[:80])
        return None if status == NOT_PARSED else array("q", body)

    def _started(self) -> "subprocess.Popen[bytes]":
        passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED)}
        places = [str(Path(refinery.__file__).parents[1]), *filter(None, sys.path)]
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and nothing of a document
                [sys.executable, "-P", "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=passed | {"PYTHONPATH": os.pathsep.join(places)},
                start_new_session=True,  # an interrupt at the terminal is for the worker
            )
        except OSError as error:
            raise NoParser(f"the parser's process cannot be started: {error}") from error
        if process.stdout is None or process.stdout.read(len(READY)) != READY:
            self._process = process
            raise NoParser(f"the parser's process does not start: {_said(self._reap())}")
        return process

    def _reap(self) -> int:
        """The code of a process that is ending; its pipes are closed."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return process.wait()

    def end(self) -> None:
        """End the process, whatever it does; the next question starts a new one."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def _forget(self) -> None:
        """In a fork: the process is the parent's. Its pipe must not stay open here when the parent ends."""
        process, self._process, self._lock = self._process, None, threading.Lock()
        if process is not None:
            process.returncode = 0  # not ours to wait for
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _whole(data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise EOFError
    return data


def _said(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


PARSER = ParserProcess()
