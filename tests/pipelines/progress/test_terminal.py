"""Bars in a terminal, which is a pseudo terminal here: whole runs, other output, resizing, Ctrl-C."""

import contextlib
import fcntl
import logging
import os
import pty
import signal
import struct
import sys
import termios
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.progress.output import Output
from refinery.pipelines.progress.terminal import Terminal
from refinery.pipelines.progress.work import Step, Work
from tests.pipelines.progress.snapshots import clean_snapshot, clean_work
from tests.pipelines.small_runs import command

HIDE, SHOW, ERASE, UP = "\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A"


class Screen:
    """A pseudo terminal that is standard output and standard error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> None:
        self.main, self.inner = pty.openpty()
        self.written: list[bytes] = []
        self.resize(columns)
        self.out, self.err = (os.fdopen(os.dup(self.inner), "w", buffering=1) for _ in range(2))
        self.patch = monkeypatch
        monkeypatch.setenv("TERM", "xterm-256color")
        for name in ("CI", "NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "TTY_COMPATIBLE"):
            monkeypatch.delenv(name, raising=False)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self) -> "Screen":
        """In the test itself: pytest sets both streams anew for each of its steps."""
        self.patch.setattr(sys, "stdout", self.out)
        self.patch.setattr(sys, "stderr", self.err)
        return self

    def __exit__(self, *_: object) -> None:
        assert (sys.stdout, sys.stderr) == (self.out, self.err)
        self.patch.undo()

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other end was closed
            while data := os.read(self.main, 65_536):
                self.written.append(data)

    def end(self) -> str:
        """All that was written, with plain line ends."""
        for stream in (self.out, self.err):
            stream.close()
        os.close(self.inner)
        self.reader.join()
        os.close(self.main)
        return b"".join(self.written).decode().replace("\r\n", "\n")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    with monkeypatch.context() as patch:
        yield Screen(patch)


def kept(written: str) -> list[str]:
    """What is on the screen in the end, of output whose cursor goes up and erases lines alone."""
    lines, row, i = [""], 0, 0
    while i < len(written):
        if written.startswith("\x1b[", i):
            end = next(j for j in range(i + 2, len(written)) if written[j].isalpha())
            code, number = written[end], written[i + 2 : end]
            if code == "A":
                row -= int(number or 1)
            elif code == "K":
                lines[row] = ""
            else:
                assert code in "mhl", code
            i = end + 1
            continue
        if written[i] == "\n":
            row += 1
            lines += [""] * (row - len(lines) + 1)
        elif written[i] != "\r":
            lines[row] += written[i]
        i += 1
    return [line.rstrip() for line in lines]


def test_a_whole_run(screen: Screen, small: Path, tmp_path: Path) -> None:
    with screen:
        code = execute([str(word) for word in command(small, tmp_path / "out")])
    written = screen.end()
    assert code == 0 and written.count(HIDE) == written.count(SHOW) == 1
    lines = [line for line in kept(written) if line]
    assert [line.split("  ")[0] for line in lines[:3]] == ["1/3 clean", "2/3 dedup", "3/3 shards"]
    assert all("100 %" in line for line in lines[:3]) and "━" not in "".join(lines)
    assert "stage" in "".join(lines) and lines[-1].startswith("check it:   refinery verify")
    assert "━" in written and "1/3 clean" in written.split(SHOW)[0]


def test_other_output_stands_above_the_bars_and_nothing_in_it_is_obeyed(screen: Screen) -> None:
    logger = logging.getLogger("tests.terminal")
    handler = logging.StreamHandler(screen.err)  # as a library's that was set up before the run
    logging.getLogger().addHandler(handler)
    work = clean_work(wave=3, bytes_after=0)
    try:
        with screen, Output("refine") as output, output.watch("1/3 clean", Counter, work, every=60):
            display = output.display()
            display.show(clean_snapshot())
            output.say("said [bold]\x1b[2J\x07")
            print("printed")
            print("on standard error", file=sys.stderr)
            logger.error("logged")
            display.show(clean_snapshot())
            output.say("x" * 100)  # a line of the user's is not cut into words
    finally:
        logging.getLogger().removeHandler(handler)
    stream = handler.stream
    written = screen.end()
    assert [line for line in kept(written) if line][:5] == [
        *("said [bold]\\x1b[2J\\x07", "printed", "on standard error", "logged", "x" * 100)
    ]
    assert "\x1b[2J" not in written and "\x07" not in written and stream is screen.err


def test_ctrl_c_leaves_the_terminal_as_it_was(screen: Screen) -> None:
    totals: Counter[str] = Counter()
    with screen, pytest.raises(KeyboardInterrupt), Output("verify") as output:
        work = Work("verify", steps=[Step("bytes", 10)], bytes=10)
        with output.watch("verify", lambda: Counter(totals), work):
            totals["work bytes"] = 5
            output.display().show(clean_snapshot())
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(20)  # until the signal is here
    written = screen.end()
    assert written.count(HIDE) == written.count(SHOW) == 1
    (line,) = (line for line in kept(written) if line)
    assert line.startswith("verify  50 %  5 B of 10 B")


def test_a_narrower_terminal_takes_back_the_lines_that_it_wrapped(screen: Screen) -> None:
    with screen:
        display = Terminal(screen.err)
        display.show(clean_snapshot())
        screen.resize(40)
        display.show(clean_snapshot())
        display.stop()
    again = screen.end().split("1/3 clean")[1]  # the block at 80 columns, and the way back to its beginning
    rows = [2, 1, 1, 2, 1, 1, 2, 2, 2]  # of its nine lines at 40
    assert again.count(UP) == sum(rows) - 1


def test_no_color_leaves_the_bars(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with screen:
        display = Terminal(screen.err)
        display.show(clean_snapshot())
        display.stop()
    written = screen.end()
    assert "━" in written and "\x1b[3" not in written and "\x1b[38" not in written


def test_a_terminal_that_is_gone_ends_no_run(screen: Screen) -> None:
    with screen, Output("refine") as output, output.watch("x", Counter, every=60):
        output.display().show(clean_snapshot())
        screen.err.close()
    assert screen.end()
