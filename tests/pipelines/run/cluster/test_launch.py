"""What is submitted: all at first, later the missing slices; the record of it; and commands of Slurm that hang."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from refinery.loader.errors import FormatError
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.run.cluster.launch import Launch, make_submission, resumed
from refinery.pipelines.run.cluster.progress import ProgressReader
from refinery.pipelines.run.cluster.submission import (
    all_jobs,
    last_submission,
    next_number,
    write_jobs,
    write_submission,
)
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.slices.cut import read_cut
from refinery.pipelines.runners.cluster import slurm
from refinery.pipelines.runners.cluster.slurm import SlurmTrouble
from tests.pipelines.run.cluster.cut_runs import CutRun, submitted

Tool = Callable[[str, str], None]


@pytest.fixture
def run(tmp_path: Path) -> CutRun:
    return CutRun(tmp_path)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Makes stand-ins for commands of Slurm, found before any other; each writes down its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name: str, script: str) -> None:
        (folder / name).write_text(f'#!/bin/bash\nprintf "%s\\n" "$*" >> {tmp_path}/{name}-calls\n{script}\n')
        (folder / name).chmod(0o755)

    make("scontrol", "echo 'MaxArraySize            = 1001'")
    make("squeue", "")
    make("scancel", "")
    make("sbatch", f"echo $((100 + $(wc -l < {tmp_path}/sbatch-calls)))")
    return make


def calls(tmp_path: Path, name: str) -> list[str]:
    path = tmp_path / f"{name}-calls"
    return path.read_text().splitlines() if path.exists() else []


def launch(run: CutRun, scripts: Path, submit: bool = True) -> Launch:
    return Launch(ProgressReader(str(run.prefix)), submitted(scripts), lambda line: None, submit)


def test_all_is_submitted_and_recorded(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    launch(run, tmp_path / "scripts").first()
    assert [call.split()[-2:] for call in calls(tmp_path, "sbatch")] == [
        ["--array=0-2%50", "clean.sbatch"],
        ["--array=0%50", "clean-end.sbatch"],
        ["--array=0-2%50", "dedup-0.sbatch"],
        ["--array=0%50", "dedup-1.sbatch"],
        ["--array=0-2%50", "shards-0.sbatch"],
        ["--kill-on-invalid-dep=yes", "publish.sbatch"],
    ]
    steps = ("clean", "clean-end", "dedup-0", "dedup-1", "shards-0", "publish")
    assert all_jobs(run.store) == {step: [str(101 + n)] for n, step in enumerate(steps)}
    record = last_submission(run.store)
    assert record is not None and record.missing["clean"] == [0, 1, 2] and record.sbatch == ["--partition=cpu"]
    text = (tmp_path / "scripts" / "dedup-1.sbatch").read_text()
    assert '--until dedup-1 --slice "$slice/3"' in text  # a step of one task is a slice of the run, too
    assert "--discard-work" not in text
    assert "--discard-work" in (tmp_path / "scripts" / "publish.sbatch").read_text()


def test_what_was_submitted_is_not_submitted_by_slurm_again(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    launch(run, tmp_path / "scripts").first()
    with pytest.raises(RefineError, match="refinery cluster resume"):
        launch(run, tmp_path / "scripts").first()


def test_scripts_may_be_written_again_before_they_are_submitted(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    launch(run, tmp_path / "scripts", submit=False).first()
    assert not calls(tmp_path, "sbatch") and not all_jobs(run.store)
    launch(run, tmp_path / "scripts", submit=False).first()
    subprocess.run([tmp_path / "scripts" / "submit.sh"], check=True, capture_output=True)  # as a user does
    assert all_jobs(run.store)["publish"] == ["106"]


def test_jobs_of_another_run_in_the_same_folder_are_forgotten(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "jobs").write_text("clean 5\n")
    launch(run, tmp_path / "scripts").first()
    assert all_jobs(run.store)["clean"] == ["101"]


def test_a_submission_that_breaks_off_leaves_the_ids_of_its_jobs(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    tool("sbatch", 'grep -q dedup-0 <<< "$*" && { echo "no such partition" >&2; exit 1; }; echo 7')
    with pytest.raises(SlurmTrouble, match="no such partition"):
        launch(run, tmp_path / "scripts").first()
    assert all_jobs(run.store) == {"clean": ["7"], "clean-end": ["7"]}


def test_resume_submits_the_missing_slices_and_what_follows(
    run: CutRun, tool: Tool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch(run, tmp_path / "scripts").first()
    for number in (0, 1, 4):
        run.wave(number)
    assert execute(["cluster", "resume", str(run.prefix), "--throttle", "2", "--sbatch=--partition=big"]) == 0
    again = calls(tmp_path, "sbatch")[6:]
    assert [call.split()[-2:] for call in again[:2]] == [
        ["--array=1%2", "clean.sbatch"],
        ["--array=0%2", "clean-end.sbatch"],
    ]
    assert again[0].startswith("--parsable --array") and "--dependency=afterok:107" in again[1]
    assert "#SBATCH --partition=big" in (tmp_path / "scripts" / "clean.sbatch").read_text()
    assert all_jobs(run.store)["clean"] == ["101", "107"]
    assert next_number(run.store) == 2
    assert "submitted: 6 jobs, 107-112" in capsys.readouterr().out


def test_resume_leaves_out_steps_that_are_done(run: CutRun, tmp_path: Path) -> None:
    run.put("clean.json", {})
    run.slice("dedup-0", 1)
    found, cut = ProgressReader(str(run.prefix)).read(), read_cut(run.store)
    assert cut is not None
    made = make_submission(found, cut, submitted(tmp_path), 2)
    assert [(script.step, [a and (a.offset, a.text) for a in arrays]) for script, arrays in made.steps] == [
        ("dedup-0", [(0, "0"), (2, "0")]),
        ("dedup-1", [(0, "0")]),
        ("shards-0", [(0, "0-1"), (2, "0")]),
        ("publish", [None]),
    ]


def test_resume_waits_for_what_is_in_the_queue(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    launch(run, tmp_path / "scripts").first()
    tool("squeue", "printf '101 RUNNING\\n101 PENDING\\n5 RUNNING\\n'")
    with pytest.raises(RefineError, match="2 tasks of clean are still in the queue"):
        launch(run, tmp_path / "scripts").again()
    tool("squeue", 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1')  # all have ended
    launch(run, tmp_path / "scripts").again()


def test_nothing_is_resumed_that_was_not_submitted_or_is_complete(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    with pytest.raises(RefineError, match="nothing was submitted here"):
        resumed(run.store, "out", {})
    write_submission(run.store, 0, submitted(tmp_path))
    run.finish()
    launch(run, tmp_path / "scripts").again()
    assert not calls(tmp_path, "sbatch")


def test_cancel_ends_the_recorded_jobs(run: CutRun, tool: Tool, tmp_path: Path) -> None:
    assert execute(["cluster", "cancel", str(run.prefix)]) == 2
    launch(run, tmp_path / "scripts").first()
    assert execute(["cluster", "cancel", str(run.prefix)]) == 0
    assert calls(tmp_path, "scancel") == ["--quiet 101 102 103 104 105 106"]


@pytest.mark.parametrize("change", [{"words": [1]}, {"workers": "2"}, {"missing": {"clean": ["x"]}}, {"sbatch": None}])
def test_a_record_that_nobody_wrote_so_is_refused(change: dict[str, object], run: CutRun, tmp_path: Path) -> None:
    write_submission(run.store, 0, submitted(tmp_path, **change))
    with pytest.raises(FormatError, match="submission-00000"):
        last_submission(run.store)


def test_an_id_that_is_no_number_is_refused(run: CutRun, tmp_path: Path) -> None:
    write_jobs(run.store, 0, {"clean": ["--all"]})
    with pytest.raises(FormatError, match="jobs-00000"):
        all_jobs(run.store)


# --- Slurm's commands ----------------------------------------------------------------------------------------------


def test_a_controller_that_hangs_does_not_hang_us(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("squeue", "exec sleep 60")
    with pytest.raises(SlurmTrouble, match="squeue did not answer in 0 s"):
        slurm.call("squeue", seconds=0.2)


def test_the_largest_array_is_the_clusters(tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert slurm.max_array_size() == 1001
    tool("scontrol", "echo 'MaxArraySize = 0'")
    with pytest.raises(SlurmTrouble, match="switched off"):
        slurm.max_array_size()
    tool("scontrol", "echo; echo nothing to see >&2; exit 1")
    with pytest.raises(SlurmTrouble, match="scontrol: nothing to see"):
        slurm.max_array_size()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmTrouble, match="scontrol is not on this machine"):
        slurm.max_array_size()


def test_without_slurm_scripts_are_written_all_the_same(
    run: CutRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    launch(run, tmp_path / "scripts", submit=False).first()
    assert (tmp_path / "scripts" / "submit.sh").exists()
