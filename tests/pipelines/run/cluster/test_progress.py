"""The status of a run on a cluster, from files that were made by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from refinery.loader.errors import FormatError
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.run.cluster.progress import NoCut, Progress, ProgressReader, StepState
from refinery.pipelines.run.cluster.submission import write_submission
from refinery.pipelines.run.cluster.text import Asked, json_line, text_lines
from refinery.pipelines.run.cluster.watch import Watched
from tests.pipelines.run.cluster.cut_runs import MB, CutRun, submitted

NOT_ASKED = Asked({})


@pytest.fixture
def run(tmp_path: Path) -> CutRun:
    return CutRun(tmp_path)


def read(run: CutRun) -> Progress:
    return ProgressReader(str(run.prefix)).read()


def step(run: CutRun, name: str) -> StepState:
    return next(step for step in read(run).steps if step.name == name)


def text(run: CutRun, asked: Asked = NOT_ASKED) -> list[str]:
    return list(text_lines(read(run), asked))


def test_a_run_that_was_only_cut(run: CutRun) -> None:
    found = read(run)
    assert [(s.name, s.tasks, len(s.done)) for s in found.steps] == [
        ("clean", 3, 0),
        ("clean-end", 1, 0),
        ("dedup-0", 3, 0),
        ("dedup-1", 1, 0),
        ("shards-0", 3, 0),
        ("publish", 1, 0),
    ]
    assert not found.is_complete and found.slices == 3


def test_a_slice_of_clean_is_done_with_all_of_its_waves(run: CutRun) -> None:
    run.wave(0)
    run.wave(4, documents=7)
    clean = step(run, "clean")
    assert (clean.done, clean.missing) == ({2}, [0, 1])
    assert (clean.documents, clean.bytes) == (107, 80 * MB)  # what came into stage read, and nothing else
    run.wave(1)
    assert step(run, "clean").done == {0, 2}


def test_time_left_is_what_the_waves_took_so_far(run: CutRun) -> None:
    """20 s of work for 10 MB, 35 MB to go, one slice at work with two workers."""
    run.wave(0)
    assert step(run, "clean").seconds_left is None  # nobody is at work
    run.working("clean", 1)
    write_submission(run.store, 0, submitted(run.prefix))
    assert step(run, "clean").seconds_left == pytest.approx(35.0)


def test_slices_of_later_steps(run: CutRun) -> None:
    for number in range(5):
        run.wave(number)
    assert step(run, "clean-end").missing == [0]
    run.put("clean.json", {})
    assert step(run, "clean-end").done == {0}
    run.slice("dedup-0", 2)
    assert step(run, "dedup-0").missing == [0, 1]
    run.put("exchange/dedup-0/sealed.json", {})
    run.put("exchange/dedup-1/all.json", {})
    assert not step(run, "dedup-0").missing and not step(run, "dedup-1").missing


@pytest.mark.parametrize("name", ["dedup/report.json", "dedup.json"])
def test_a_phase_that_is_done_needs_no_exchanges(name: str, run: CutRun) -> None:
    run.put("clean.json", {})
    run.put(name, {})
    assert not step(run, "dedup-0").missing and not step(run, "dedup-1").missing
    assert step(run, "shards-0").missing == [0, 1, 2]


def test_a_complete_corpus_has_nothing_missing(run: CutRun) -> None:
    run.failed("clean", 1, "x")
    run.finish()
    found = read(run)
    assert found.is_complete and not found.failed and not any(step.missing for step in found.steps)
    assert text(run)[-1] == f"next: refinery verify {run.prefix}"


def test_who_is_at_work(run: CutRun) -> None:
    run.working("clean", 1)
    run.working("clean", 2, alive=False)
    run.elsewhere("clean", 0, seconds_ago=100.0)
    run.elsewhere("dedup-0", 0, seconds_ago=200.0)  # its machine is gone, it seems
    run.wave(4)
    assert step(run, "clean").running == {0, 1} and not step(run, "dedup-0").running
    run.working("", -1)
    assert step(run, "publish").running == {0}
    assert any(line.startswith("a command without --slice is at work") for line in text(run))


def test_a_failure_counts_until_the_slice_is_at_work_again_or_done(run: CutRun) -> None:
    run.failed("clean", 1, "first", ended=1.0)
    run.failed("clean", 1, "disk\x1b[2J full", ended=2.0)
    run.failed("clean", 2, "gone", ended=2.0)
    run.put("at_work/failed-clean-00000-ffffffffffffffff.json", {"step": "clean"})  # not as a run writes it
    assert [(f.slice, f.reason) for f in step(run, "clean").failed] == [(1, "disk\x1b[2J full"), (2, "gone")]
    line = next(line for line in text(run) if line.startswith("failed: clean, slice 1, on n7 at "))
    assert line.endswith(": disk\\x1b[2J full")
    run.wave(4)
    run.working("clean", 1)
    assert not step(run, "clean").failed


def test_text_names_what_is_missing_only_where_nobody_is_at_it(run: CutRun) -> None:
    run.wave(0)
    run.wave(1)
    lines = text(run)
    assert lines[0] == f"{run.prefix}: step clean (1 of 6), 3 slices"
    assert lines[2].split() == ["clean", "3", "1", "0", "0", "200", "80.0"]
    assert lines[3].split() == ["clean-end", "…", "publish", "9", "0", "0", "0"]
    assert lines[-2] == "missing: clean 1-2" and "resume" not in lines[-1]  # nothing was submitted
    assert text(run, Asked({}, logs="/x/logs"))[-3:] == [
        "missing: clean 1-2",
        "logs: /x/logs",
        f"next: refinery cluster resume {run.prefix}",
    ]
    waiting = text(run, Asked({"clean": {"PENDING": 2}}))
    assert "queue: 2 pending" in waiting and waiting[-1].startswith("next: wait")
    assert text(run, Asked({}, "squeue did not answer in 10 s"))[-1] == (
        "(the queue is not known: squeue did not answer in 10 s)"
    )


def test_json_has_all(run: CutRun) -> None:
    run.wave(0)
    run.failed("clean", 1, "x")
    found = json.loads(json_line(read(run), Asked({"clean": {"RUNNING": 1}}, "")))
    first = found["steps"][0]
    assert (first["step"], first["missing"], first["failed"][0]["reason"]) == ("clean", [0, 1, 2], "x")
    assert found["complete"] is False and found["queue"] == {"clean": {"RUNNING": 1}}


def test_a_rate_is_seen_by_looking_twice(run: CutRun) -> None:
    clock = iter([float(10 * (number // 6)) for number in range(12)])  # ten seconds between two readings of six steps
    watched = Watched(ProgressReader(str(run.prefix)), lambda: next(clock))
    run.put("clean.json", {})
    assert all(step.seconds_left is None for step in watched.read().steps)
    run.slice("dedup-0", 0)
    assert [step.seconds_left for step in watched.read().steps if step.name == "dedup-0"] == [20.0]


def test_a_report_that_no_run_writes_is_an_error(run: CutRun) -> None:
    run.put("clean/wave-00000.json", {"counters": [{"stage": "read", "outcome": "in"}], "seconds": {}})
    with pytest.raises(FormatError, match="wave-00000"):
        read(run)


# --- the command ---------------------------------------------------------------------------------------------------


def test_exit_codes(run: CutRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["cluster", "status", str(tmp_path / "none")]) == 2
    assert "no run on a cluster has begun here" in capsys.readouterr().err
    assert execute(["cluster", "status", str(run.prefix), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["slices"] == 3
    run.finish()
    assert execute(["cluster", "status", str(run.prefix), "--watch"]) == 0
    with pytest.raises(NoCut):
        ProgressReader(str(tmp_path / "none")).read()


def test_it_looks_without_beam(run: CutRun) -> None:
    script = (
        "import sys; from refinery.pipelines.cli.command_line import execute; "
        f"code = execute(['cluster', 'status', {str(run.prefix)!r}]); "
        "sys.exit('apache_beam' in sys.modules or code != 1)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0
