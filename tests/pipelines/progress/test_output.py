"""How commands tell things: plain lines, events, quiet, a terminal; whatever is written to them."""

import datetime
import io
import json
import logging
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.cli.command_line import build_parser, execute
from refinery.pipelines.progress.events import COMMON, OF_JOBS, event, job_event
from refinery.pipelines.progress.memory import PAGE, memory_bytes, process_bytes
from refinery.pipelines.progress.output import Output, current, live_terminal
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.shell.help_text import all_commands
from tests.pipelines.progress.snapshots import clean_snapshot

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, datetime.UTC)
TYPES = {"string": (str,), "integer": (int,), "number": (int, float), "object": (dict,), "null": (type(None),)}


def check_event(text: str) -> dict[str, Any]:
    """An event has the keys of its schema, in order, of the types that it says."""
    found: dict[str, Any] = json.loads(text)
    keys = {**COMMON, **(OF_JOBS if found["event"] in ("started", "progress", "ended") else {})}
    assert list(found) == list(keys)
    for key, (kind, _) in keys.items():
        allowed = tuple(each for name in kind.split(" or ") for each in TYPES[name])
        assert type(found[key]) in allowed, key
    return found


def job() -> tuple[Counter[str], Work]:
    """A job of ten bytes."""
    return Counter(), Work("verify", steps=[Step("bytes", 10)], bytes=10)


def run_job(output: Output, fail: BaseException | None = None) -> None:
    totals, work = job()
    with output.watch("verify", lambda: Counter(totals), work, every=60):
        totals["work bytes"] += 5
        if fail:
            raise fail


# --- events -----------------------------------------------------------------------------------------------------------


def test_an_event_about_a_job() -> None:
    found = check_event(job_event("progress", clean_snapshot(), "refine", NOW))
    assert found["time"] == "2026-01-02T03:04:05.678Z" and found["message"].startswith("1/3 clean, wave 2 of 3  50 %")
    assert (found["phase"], found["phase_number"], found["phases"], found["wave"], found["waves"]) == (
        ("clean", 1, 3, 2, 3)
    )
    assert (found["bytes_done"], found["bytes_total"], found["fraction"]) == (150_000_000, 300_000_000, 0.5)
    assert (found["bytes_per_second"], found["eta_seconds"], found["memory_bytes"]) == (5e6, 30.0, 1_500_000_000)
    assert found["stages"]["read"] == {"in": 1952, "kept": 1700, "dropped": 250, "dead": 2}


@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "\ud800", "\u2028", '"\\'])
def test_an_event_is_one_line_of_ascii(text: str) -> None:
    line = event("message", text, "refine", NOW)
    assert line.isascii() and "\n" not in line and "\x1b" not in line and json.loads(line)["message"] == text


def test_all_that_is_told_is_an_event(capfd: pytest.CaptureFixture[str]) -> None:
    with Output("verify", log_json=True) as output:
        run_job(output)
        output.say("hello")
        output.say("warning: careful")
        logging.getLogger("some.library").warning("logged %s", 1)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("warned", stacklevel=1)
        output.error("failed; run it again", "refinery: failed; run it again")
        output.result("done")
    out, err = capfd.readouterr()
    found = [check_event(line) for line in err.splitlines()]
    assert out == "" and [(each["event"], each["level"]) for each in found] == [
        ("started", "info"),
        ("ended", "info"),
        ("message", "info"),
        *[("warning", "warning")] * 3,
        ("error", "error"),
        ("result", "info"),
    ]
    assert [each["message"] for each in found[2:]] == [
        *("hello", "careful", "logged 1", "warned", "failed; run it again", "done")
    ]
    assert (found[1]["fraction"], found[1]["bytes_done"]) == (1.0, 10)


def test_quiet_leaves_warnings_errors_and_the_result(capfd: pytest.CaptureFixture[str]) -> None:
    for log_json in (False, True):
        with Output("verify", quiet=True, log_json=log_json) as output:
            run_job(output)
            for told in (output.say, output.result, output.error):
                told(told.__name__)
            output.say("warning: careful")
        out, err = capfd.readouterr()
        events = [check_event(line)["event"] for line in err.splitlines()] if log_json else []
        assert (out, events) == (
            ("", ["result", "error", "warning"]) if log_json else ("result\nwarning: careful\n", [])
        )
        assert log_json or err == "error\n"


def test_plain_lines_of_a_job(capfd: pytest.CaptureFixture[str]) -> None:
    with Output() as output:
        run_job(output)
        with pytest.raises(OSError, match="no"):
            run_job(output, OSError("no"))
        with pytest.raises(KeyboardInterrupt):
            run_job(output, KeyboardInterrupt())
    ended, interrupted = capfd.readouterr().err.splitlines()  # one that failed has its error
    assert ended.startswith("verify  100 %  10 B") and interrupted.startswith("verify  50 %  5 B of 10 B")


# --- who decides ------------------------------------------------------------------------------------------------------


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "live"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True),  # bars without colours
        ({"TERM": "dumb"}, False),
        ({}, False),
        ({"TERM": "xterm", "CI": "true"}, False),
        ({"TERM": "xterm", "CI": "false"}, True),
    ],
)
def test_where_bars_are_drawn(environment: dict[str, str], live: bool) -> None:
    assert live_terminal(Tty(), environment) is live
    assert not live_terminal(io.StringIO(), environment)


def test_every_command_that_runs_jobs_takes_both_flags() -> None:
    taken = {
        name
        for name, parser in all_commands(build_parser())
        if {"--quiet", "--log-json"} <= {text for action in parser._actions for text in action.option_strings}
    }
    assert {"refine", "verify", "export", "adopt", "retokenize", "acquire git", "acquire commoncrawl"} <= taken
    assert {name for name, _ in all_commands(build_parser()) if name.startswith("train-")} <= taken


def test_the_output_is_the_commands_own_and_ends_with_it() -> None:
    before = current()
    with Output("refine") as output:
        assert current() is output
    assert current() is before


def test_a_display_that_fails_stops_and_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("the terminal is gone")

    monkeypatch.setattr(sys, "stderr", Gone())
    with Output() as output:
        run_job(output)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_of_processes(tmp_path: Path) -> None:
    for pid, name, text in (
        (1, "smaps_rollup", "Rss: 9 kB\nPss:    5 kB\n"),
        (2, "statm", "100 7 3\n"),
        (3, "statm", ""),
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / name).write_text(text)
    assert [process_bytes(pid, str(tmp_path)) for pid in (1, 2, 3, 4)] == [5 << 10, 7 * PAGE, None, None]
    assert memory_bytes([1, 2, 3, 4], str(tmp_path)) == (5 << 10) + 7 * PAGE
    assert memory_bytes([3, 4], str(tmp_path)) is None and memory_bytes([], str(tmp_path)) is None
    assert (memory_bytes([os.getpid()]) is not None) == Path("/proc/self/statm").exists()


# --- whole runs -------------------------------------------------------------------------------------------------------


def test_a_run_as_events(small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["refine", str(small / "recipe.yaml"), "--workers", "0", "--output", str(tmp_path / "out"), "--log-json"]
    assert execute([*command, "--set", "run.wave_files=1"]) == 0
    out, err = capfd.readouterr()
    found = [check_event(line) for line in err.splitlines()]
    ended = [each for each in found if each["event"] == "ended"]
    assert [(each["phase"], each["wave"], each["waves"]) for each in ended] == [
        *(("clean", 1, 2), ("clean", 2, 2), ("dedup", 0, 0), ("shards", 0, 0))
    ]
    size = sum(path.stat().st_size for path in small.glob("?.jsonl"))
    assert ended[1]["bytes_done"] == ended[1]["bytes_total"] == size > ended[0]["bytes_done"] > 0
    assert ended[1]["stages"]["read"] == {"in": 15, "kept": 13, "dropped": 1, "dead": 1}
    assert ended[2]["stages"]["exact-duplicates"] == {"in": 13, "kept": 10, "dropped": 3, "dead": 0}
    assert out == "" and [each["event"] for each in found][-2:] == ["result", "result"]
    assert execute([*command, "--set", "shards.seed=7"]) == 1  # the prefix is another run's
    last = check_event(capfd.readouterr().err.splitlines()[-1])
    assert (last["event"], last["level"], last["command"]) == ("error", "error", "refine")
