"""The one place that commands tell things to: lines, warnings, errors, results, and how far a job is.

How they are told is the user's choice: bars in a terminal, plain lines elsewhere, nothing but the end (--quiet), JSON
events (--log-json). What a command prints as its answer (`trace`, `inspect`) goes to standard output as it is.
"""

import contextlib
import datetime
import logging
import os
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, TextIO

from refinery.pipelines.progress.events import event, job_event
from refinery.pipelines.progress.measure import Phase, Snapshot
from refinery.pipelines.progress.memory import memory_bytes
from refinery.pipelines.progress.words import for_terminal, line
from refinery.pipelines.progress.work import Work

LINE_SECONDS = 10.0  # between lines and events about a job
MEMORY_SECONDS = 2.0  # between looks at the memory of processes, at least
MEMORY_SHARE = 100  # times as long as a look takes: 1 % of a core, however many processes there are
WARNING = "warning: "  # what a line for the user begins with that is one


class Display(Protocol):
    """Shows how far jobs are. every: seconds between two snapshots."""

    every: float

    def show(self, snapshot: Snapshot) -> None:
        """While the job runs."""

    def finish(self, snapshot: Snapshot) -> None:
        """At its end."""

    def leave(self, snapshot: Snapshot) -> None:
        """Where it stood when it was interrupted."""

    def print(self, text: str) -> bool:
        """Show a line beside the job; False if it needs no special place."""

    def stop(self) -> None:
        """Nothing more is to be seen."""


def live_terminal(out: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether bars can be drawn there: a terminal that can move its cursor, and no log of a build server."""
    if not out.isatty() or environment.get("TERM", "") in ("", "dumb", "unknown"):
        return False
    return environment.get("CI", "").lower() in ("", "0", "false")


class Log:
    """Plain lines, or with --log-json events, on standard error, now and then: what is written stays.

    write: writes one snapshot, of an event "started", "progress" or "ended".
    """

    every = LINE_SECONDS

    def __init__(self, write: Callable[[str, Snapshot], None]) -> None:
        self.write = write

    def show(self, snapshot: Snapshot) -> None:
        self.write("progress", snapshot)

    leave = show

    def finish(self, snapshot: Snapshot) -> None:
        self.write("ended", snapshot)

    def print(self, text: str) -> bool:
        return False

    def stop(self) -> None:
        """Nothing to take away."""


def now() -> datetime.datetime:
    """The time of an event."""
    return datetime.datetime.now(datetime.UTC)


@dataclass
class Output:
    """What one command tells. quiet: errors, warnings and the result alone. log_json: as events on standard error.
    followers: get each snapshot that is shown, with "progress" or "ended", and neither raise nor wait.

    As a context manager it is what `current()` returns; leaving it gives the terminal back.
    """

    command: str = ""
    quiet: bool = False
    log_json: bool = False
    phases: dict[str, Phase] = field(default_factory=dict)
    followers: list[Callable[[str, Snapshot], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._display: Display | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> "Output":
        global _current
        self._before, _current = _current, self
        self._logs: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self.log_json:
            self._logs = logs_as_events(self)
        self._logs.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _current
        self.stop()
        self._logs.__exit__(None, None, None)
        _current = self._before

    # --- lines ----------------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """How a command gets on. Those that begin with "warning: " are warnings."""
        if text.startswith(WARNING):
            self.tell("warning", text.removeprefix(WARNING), sys.stdout, text)
        elif not self.quiet:
            self.tell("message", text, sys.stdout)

    def result(self, text: str) -> None:
        """What a command ends with."""
        self.stop()
        self.tell("result", text, sys.stdout)

    def error(self, text: str, shown: str = "") -> None:
        """What stops a command, and what to do next. shown: as a person reads it, where that differs."""
        self.stop()
        self.tell("error", text, sys.stderr, shown)

    def tell(self, kind: str, text: str, out: TextIO, shown: str = "") -> None:
        """A line of that kind of event."""
        if self.log_json:
            self.write(event(kind, text, self.command, now()))
        elif not (self._display is not None and out.isatty() and self._display.print(shown or text)):
            write_line(out, shown or text)

    def write(self, text: str) -> None:
        """A line on standard error; two threads never mix theirs."""
        with self._lock:
            write_line(sys.stderr, text)

    # --- jobs -----------------------------------------------------------------------------------------------------

    def display(self) -> Display:
        """What shows jobs: chosen when the first one begins."""
        if self._display is None:
            if not self.log_json and live_terminal(sys.stderr, os.environ):
                from refinery.pipelines.progress.terminal import Terminal

                self._display = Terminal(sys.stderr)
            else:
                self._display = Log(self._log)
        return self._display

    def _log(self, kind: str, snapshot: Snapshot) -> None:
        if self.log_json:
            self.write(job_event(kind, snapshot, self.command, now()))
        elif kind != "started":
            self.write(line(snapshot))

    def _followed(self, kind: str, snapshot: Snapshot) -> Snapshot:
        """The snapshot, once the followers have it."""
        for follow in self.followers:
            follow(kind, snapshot)
        return snapshot

    def stop(self) -> None:
        """Take the bars away."""
        if self._display is not None:
            self._display.stop()

    @contextlib.contextmanager
    def watch(
        self,
        label: str,
        totals: Callable[[], Counter[str]],
        work: Work | None = None,
        pids: Callable[[], Iterable[int]] = lambda: (os.getpid(),),
        every: float = LINE_SECONDS,
        elapsed: float = 0.0,
        state: Callable[[], str] = str,
        is_told: bool = True,
    ) -> Iterator[None]:
        """Show how far a job is while the context lasts, and at its end unless it failed.

        totals: running totals that only grow ("stage outcome" -> documents, "work unit" -> amount); their values at
        the start are subtracted. pids: the processes whose memory counts. every: seconds between plain lines and
        events. elapsed: seconds that the job has already run. state: what is said of the job beside its label.
        is_told: whether its end is; as an event it always is.
        """
        if self.quiet:
            yield
            return
        work, display = work or Work(), self.display()
        begun = time.monotonic() - elapsed
        phase = self.phases.setdefault(work.phase or label, Phase(begun, bytes_before=work.bytes_before))
        watcher = Watcher(label, work, phase, totals, pids, state)
        if isinstance(display, Log):
            display.write("started", watcher.snapshot())
        interval = min(display.every, every) if display.every < LINE_SECONDS else every
        stopped = threading.Event()

        def run() -> None:
            while not stopped.wait(interval):
                if not shown(display, lambda: display.show(self._followed("progress", watcher.snapshot()))):
                    return

        thread = threading.Thread(target=run, daemon=True, name="progress")
        thread.start()
        try:
            yield
        except KeyboardInterrupt:
            stopped.set()
            shown(display, lambda: display.leave(watcher.snapshot()))
            raise
        finally:
            stopped.set()
            thread.join()
        if is_told or self.log_json:
            shown(display, lambda: display.finish(self._followed("ended", watcher.snapshot(final=True))))
        else:
            display.stop()
        phase.documents = watcher.documents
        if work.ends_phase:
            self.phases.pop(work.phase or label, None)


def shown(display: Display, show: Callable[[], None]) -> bool:
    """Whether a display could show something. One that fails, as where its terminal is gone, ends; the work goes on."""
    try:
        show()
    except Exception:  # noqa: BLE001 - see above
        with contextlib.suppress(Exception):
            display.stop()
        return False
    return True


@dataclass
class Watcher:
    """One job while it runs: reads totals, the clock and memory."""

    label: str
    work: Work
    phase: Phase
    totals: Callable[[], Counter[str]]
    pids: Callable[[], Iterable[int]]
    state: Callable[[], str]
    documents: int = 0

    def __post_init__(self) -> None:
        self.base = self.totals()
        self.memory: int | None = None
        self.next_look = 0.0

    def snapshot(self, final: bool = False) -> Snapshot:
        """How far it is now."""
        clock = time.monotonic()
        if clock >= self.next_look:
            self.memory = memory_bytes(self.pids())
            self.next_look = clock + max(MEMORY_SECONDS, MEMORY_SHARE * (time.monotonic() - clock))
        totals = self.totals()
        totals.subtract(self.base)
        found = self.phase.snapshot(self.label, self.work, totals, clock, self.memory, self.state(), final)
        self.documents = found.documents
        return found


def write_line(out: TextIO, text: str) -> None:
    """A line; to a terminal nothing that it would obey. A closed pipe (`| head`) must not stop a run."""
    try:
        print(for_terminal(text) if out.isatty() else text, file=out, flush=True)
    except BrokenPipeError:
        closed = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        if out is sys.stdout:
            sys.stdout = closed
        else:
            sys.stderr = closed


@contextlib.contextmanager
def logs_as_events(output: Output) -> Iterator[None]:
    """Log records and warnings of all libraries as events, in place of lines."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kind = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "error"}.get(record.levelname, "message")
            if kind != "message" or not output.quiet:
                output.write(event(kind, record.getMessage(), output.command, now()))

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        output.write(event("warning", str(message), output.command, now()))

    root, handler = logging.getLogger(), Handler()
    before, root.handlers = root.handlers, [handler]
    show, warnings.showwarning = warnings.showwarning, show_warning
    try:
        yield
    finally:
        root.handlers, warnings.showwarning = before, show


_current = Output()


def current() -> Output:
    """The output of the command at work; outside of any, one by the defaults."""
    return _current
