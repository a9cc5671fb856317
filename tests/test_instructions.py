"""What `make bench-check` says of counts; the counts themselves need valgrind."""

import sys

import pytest

from benchmarks import instructions
from benchmarks.instructions import CALIBRATION, compare, main

BEFORE = {"python": sys.version, "instructions": {CALIBRATION: 100.0, "web: read": 200.0}}


@pytest.mark.parametrize(
    ("now", "fails"),
    [(200.0, False), (229.9, False), (230.1, True), (100.0, False)],
)
def test_a_stage_may_take_fifteen_per_cent_more(now, fails):
    failures = compare({CALIBRATION: 100.0, "web: read": now}, BEFORE)
    assert bool(failures) == fails
    assert all(line.startswith("web: read: ") and line.endswith(" times") for line in failures)


def test_a_new_stage_must_be_in_the_file():
    assert compare({CALIBRATION: 100.0, "web: other": 1.0}, BEFORE) == [
        "web: other: 1.0 instructions per byte; not in instructions.json, --write puts it there"
    ]


@pytest.mark.parametrize(("now", "fails"), [(440.0, False), (470.0, True)])
def test_another_build_of_python_is_scaled(now, fails, capsys):
    assert bool(compare({CALIBRATION: 200.0, "web: read": now}, {**BEFORE, "python": "other"})) == fails
    assert "times 2.00" in capsys.readouterr().out


def test_without_valgrind_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["instructions"])
    main()
    assert "NOTHING IS COUNTED: valgrind is not installed" in capsys.readouterr().out
