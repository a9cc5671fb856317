"""The live display of a terminal: one block of lines at its bottom, everything else above it.

Only the launcher imports this: it loads rich.
"""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from refinery.pipelines.progress.measure import Snapshot
from refinery.pipelines.progress.screen import render
from refinery.pipelines.progress.words import for_terminal, short_line

REFRESH_SECONDS = 0.5  # a block takes 4 ms to draw


@dataclass(frozen=True)
class Block:
    """Lines that are drawn as they are."""

    lines: list[list[Segment]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, row in enumerate(self.lines):
            if number:
                yield Segment.line()
            yield from row


def stripped(row: list[Segment]) -> list[Segment]:
    """A line without the spaces at its end: in a terminal that becomes narrower these would wrap."""
    while row and not row[-1].text.strip():
        row = row[:-1]
    return [*row[:-1], Segment(row[-1].text.rstrip(), row[-1].style)] if row else []


class Terminal:
    """Shows snapshots until `stop`. Thread-safe; after `stop` the next snapshot begins a new block."""

    every = REFRESH_SECONDS

    def __init__(self, out: TextIO) -> None:
        # What is a terminal was decided by the caller; NO_COLOR and the width are rich's to find out.
        self.console = Console(file=out, force_terminal=True, markup=False, highlight=False, emoji=False)
        self.ended: dict[str, float] = {}
        self._live: Live | None = None
        self._moved: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []
        self._width = 0
        self._lines: list[int] = []  # cells of each line on the screen
        self._lock = threading.RLock()

    def show(self, snapshot: Snapshot) -> None:
        """Draw it in place of the last one."""
        with self._lock:
            if self._live is None:
                self._start()
            width, height = self._measure()
            lines = [stripped(row) for row in self.console.render_lines(render(snapshot, self.ended, width, height))]
            self._follow_resize(width)
            if self._live is not None:
                self._live.update(Block(lines), refresh=True)
            self._width = width
            self._lines = [Segment.get_line_length(row) for row in lines]

    def finish(self, snapshot: Snapshot) -> None:
        """The job has ended. At the end of a phase a line about it stays; after the last phase the block goes."""
        work = snapshot.work
        with self._lock:
            self.show(snapshot)
            if work.ends_phase:
                if work.phase:
                    self.ended[work.phase] = snapshot.seconds
                if not work.phases or work.phase == work.phases[-1]:
                    self.stop()
                self._line(short_line(snapshot))

    def leave(self, snapshot: Snapshot) -> None:
        """In place of the block a line about where it stood."""
        with self._lock:
            self.stop()
            self._line(short_line(snapshot))

    def print(self, text: str) -> bool:
        """A line above the block; False where there is none."""
        with self._lock:
            if self._live is None:
                return False
            self._line(text)
            return True

    def _line(self, text: str) -> None:
        """Nothing in it is obeyed, and it wraps as the terminal does."""
        self.console.print(Text(for_terminal(text)), soft_wrap=True)

    def stop(self) -> None:
        """Remove the block and give the terminal back as it was."""
        with self._lock:
            if self._live is None:
                return
            live, self._live = self._live, None
            self._follow_resize(self._measure()[0], live)
            for handler, stream in self._moved:
                handler.setStream(stream)
            self._moved.clear()
            live.stop()
            self._lines = []

    def _measure(self) -> tuple[int, int]:
        """Columns and rows of this terminal now: rich would ask that of standard input first, which may be another."""
        with contextlib.suppress(OSError, ValueError):
            columns, rows = os.get_terminal_size(self.console.file.fileno())
            if columns > 0 and rows > 0:
                self.console.size = ConsoleDimensions(columns, rows)
        return self.console.size

    def _start(self) -> None:
        shared = sys.stdout.isatty()  # otherwise what is printed goes to a file or a pipe, and stays there
        self._live = Live(
            console=self.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=shared,
            redirect_stderr=True,
            vertical_overflow="crop",
        )
        before = sys.stderr
        self._live.start()
        for handler in _stream_handlers():  # made earlier, they hold the stream itself
            if handler.stream is before:
                self._moved.append((handler, handler.stream))
                handler.setStream(sys.stderr)

    def _follow_resize(self, width: int, live: Live | None = None) -> None:
        """A terminal that has become narrower has wrapped the block's lines: it has more of them now than were
        drawn, and as many must be taken back."""
        live = live or self._live
        if live is None or not self._lines or width >= self._width:
            return
        shape = live._live_render._shape
        if shape is not None:
            rows = sum(max(1, -(-cells // max(1, width))) for cells in self._lines)
            live._live_render._shape = (width, rows)


def _stream_handlers() -> Iterator["logging.StreamHandler[TextIO]"]:
    yield from (handler for handler in logging.getLogger().handlers if isinstance(handler, logging.StreamHandler))
