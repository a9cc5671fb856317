"""Slurm's scripts: they parse, say what they ask for, quote what users give, and chain the steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from refinery.pipelines.runners.cluster.arrays import Array, arrays
from refinery.pipelines.runners.cluster.resources import Resources
from refinery.pipelines.runners.cluster.sbatch import StepScript, Submission, options, write_scripts
from refinery.pipelines.runners.cluster.task_resources import task_resources

GB = 10**9
HOSTILE = "a b'; touch hacked; $(touch hacked) `touch hacked` \"x"


def step(place: Path, name: str = "clean", slices: int = 8, **more: object) -> StepScript:
    given: dict[str, object] = {
        "words": ["refinery", "refine", "r.yaml", "--output", "out"],
        "folder": "/",
        "scripts": str(place),
        "resources": Resources(16, 30_400, 5400),
    }
    return StepScript(name, slices, **(given | more))  # type: ignore[arg-type] - the test's own values


def bash(script: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "SLURM_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": "2", **environment}
    return subprocess.run(["bash", "-c", script, "x", *arguments], env=env, capture_output=True, text=True, check=False)


def test_a_step_script_as_people_read_it(tmp_path: Path) -> None:
    lines = step(Path("/shared/web-slurm"), folder="/home/u").text().splitlines()
    assert lines[0] == "#!/bin/bash"
    assert [line for line in lines if line.startswith("#SBATCH")] == [
        "#SBATCH --job-name=refinery-clean",
        "#SBATCH --output=/shared/web-slurm/logs/clean-%5a.log",
        "#SBATCH --cpus-per-task=16",
        "#SBATCH --mem=30400M",
        "#SBATCH --time=01:30:00",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        "#SBATCH --signal=B:USR1@120",
    ]
    code = [line for line in lines if line and not line.startswith("#")]
    assert code[:4] == [
        "set -euo pipefail",
        "cd /home/u",
        "slice=$(( ${1:-0} + SLURM_ARRAY_TASK_ID ))",
        'command=(refinery refine r.yaml --output out --scratch "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}" '
        '--until clean --slice "$slice/8")',
    ]


def test_the_last_step_publishes(tmp_path: Path) -> None:
    text = step(tmp_path, "publish", 0, scratch="$LOCAL/x").text()
    assert 'command=(refinery refine r.yaml --output out --scratch "${LOCAL:?is not set}"/x --until publish)' in text
    assert "--slice" not in text
    assert f"#SBATCH --output={tmp_path}/logs/publish.log" in text.splitlines()


def test_a_users_options_replace_ours(tmp_path: Path) -> None:
    extra = options(["--partition=cpu -t 8:00:00", "--mem-per-cpu=2G --comment='two words' --account a"])
    assert extra == ("--partition=cpu", "-t 8:00:00", "--mem-per-cpu=2G", '--comment="two words"', "--account=a")
    text = step(tmp_path, extra=extra).text()
    assert "--time" not in text.partition("set -e")[0] and "--mem=" not in text
    assert '#SBATCH --comment="two words"' in text.splitlines()


@pytest.mark.parametrize(
    "given",
    ["--array=0-9", "-a 0-9", "--dependency=afterok:1", "-o x", "--output x", "--signal=B:TERM@1", "--wrap=ls", "cpu"],
)
def test_what_the_scripts_decide_cannot_be_given(given: str) -> None:
    with pytest.raises(ValueError, match="--sbatch"):
        options([given])


@pytest.mark.parametrize("given", ["--comment=a\nb", "--comment='a\n#SBATCH --uid=0'", "--comment='$(x)'", "--x=a#b"])
def test_an_option_cannot_begin_another_line_or_a_comment(given: str) -> None:
    with pytest.raises(ValueError, match="--sbatch"):
        options([given])


def test_hostile_words_reach_the_command_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "a b;c"
    folder.mkdir()
    words = [sys.executable, "-c", "import sys; print(sys.argv[1:])", HOSTILE, "--set", "$HOME"]
    script = step(tmp_path, words=words, folder=str(folder), scratch="/s;x")
    done = bash(script.text())
    assert done.returncode == 0, done.stderr
    assert repr([HOSTILE, "--set", "$HOME", "--scratch", "/s;x", "--until", "clean", "--slice", "2/8"]) in done.stdout
    assert not list(tmp_path.rglob("hacked"))


@pytest.mark.parametrize("word", ["a\nb", "a\0b", "a\x07b"])
def test_words_of_several_lines_are_refused(word: str, tmp_path: Path) -> None:
    for more in ({"words": ["refinery", word]}, {"folder": word}, {"scripts": word}, {"scratch": word}):
        with pytest.raises(ValueError, match="do not print"):
            step(tmp_path, **more).text()


@pytest.mark.parametrize("name", ["", "Clean", "a b", "a;b", "../x", "a" * 26])
def test_steps_have_plain_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="step"):
        step(tmp_path, name)


def test_the_offset_of_a_second_array_is_added(tmp_path: Path) -> None:
    done = bash(step(tmp_path, words=["echo"]).text(), "1001")
    assert "--slice 1003/8" in done.stdout


# --- signals -------------------------------------------------------------------------------------------------------

# A command that ends cleanly with 130 when it is told to, as ours does.
WAITS = "trap 'echo told; exit 130' TERM; touch here; for i in $(seq 300); do sleep 0.1; done"


@pytest.mark.parametrize(
    ("sent", "restarts", "requeued"), [("USR1", "0", True), ("TERM", "0", False), ("USR1", "20", False)]
)
def test_only_the_time_limit_requeues(sent: str, restarts: str, requeued: bool, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "scontrol").write_text(f'#!/bin/bash\necho "$@" > {tmp_path}/asked\n')
    (tools / "scontrol").chmod(0o755)
    script = tmp_path / "clean.sbatch"
    script.write_text(step(tmp_path, words=["bash", "-c", WAITS], folder=str(tmp_path)).text())
    # The signal comes when the command has begun, however long that takes.
    sender = f"for _ in $(seq 1500); do sleep 0.02; [ -e {tmp_path}/here ] && break; done; kill -{sent} $1"
    both = f"bash -c '{sender}' x $$ & exec bash {script}"
    done = bash(both, SLURM_RESTART_COUNT=restarts, PATH=f"{tools}:{os.environ['PATH']}")
    assert "told" in done.stdout and done.returncode == 130, done.stdout + done.stderr
    assert (tmp_path / "asked").exists() == requeued
    if requeued:
        assert (tmp_path / "asked").read_text() == "requeue 77\n"


def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    assert bash(step(tmp_path, words=["bash", "-c", "exit 2"]).text()).returncode == 2


# --- submit.sh -----------------------------------------------------------------------------------------------------


@pytest.fixture
def sbatch(tmp_path: Path) -> dict[str, str]:
    """A stand-in that numbers jobs and writes down how it was called."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sbatch").write_text(
        f"#!/bin/bash\nprintf '%s\\n' \"$*\" >> {tmp_path}/calls\n"
        f'[ -e {tmp_path}/refuse ] && grep -q "$(cat {tmp_path}/refuse)" <<< "$*" && exit 1\n'
        f'echo "$((100 + $(wc -l < {tmp_path}/calls)));cluster"\n'
    )
    (tools / "sbatch").chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}"}


def submitted(tmp_path: Path, throttle: int = 0, most: int = 1001) -> Path:
    folder = tmp_path / "scripts"
    steps = [
        (step(folder), [*arrays(range(8), most)]),
        (step(folder, "dedup-0"), [Array(0, (3, 7))]),
        (step(folder, "publish", 0), [None]),
    ]
    return write_scripts(Submission("out/web", str(folder), steps, throttle))[-1]


def test_each_step_comes_after_the_one_before(tmp_path: Path, sbatch: dict[str, str]) -> None:
    done = bash(f"bash {submitted(tmp_path, throttle=50)}", **sbatch)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().splitlines() == [
        "--parsable --array=0-7%50 clean.sbatch",
        "--parsable --dependency=afterok:101 --kill-on-invalid-dep=yes --array=3,7%50 dedup-0.sbatch",
        "--parsable --dependency=afterok:102 --kill-on-invalid-dep=yes publish.sbatch",
    ]
    assert (tmp_path / "scripts" / "jobs").read_text() == "clean 101\ndedup-0 102\npublish 103\n"


@pytest.mark.parametrize(("throttle", "second"), [(0, ""), (2, "--dependency=afterany:101 --kill-on-invalid-dep=yes ")])
def test_a_step_of_several_arrays(throttle: int, second: str, tmp_path: Path, sbatch: dict[str, str]) -> None:
    """With a bound on tasks at once they come one after the other; the next step waits for all."""
    bash(f"bash {submitted(tmp_path, throttle, most=5)}", **sbatch)
    calls = (tmp_path / "calls").read_text().splitlines()
    bound = "%2" if throttle else ""
    log = tmp_path / "scripts" / "logs" / "clean-from-00005-%5a.log"
    assert calls[0] == f"--parsable --array=0-4{bound} clean.sbatch"
    assert calls[1] == f"--parsable {second}--array=0-2{bound} --output={log} clean.sbatch 5"
    assert "--dependency=afterok:101:102 " in calls[2]


def test_a_job_that_is_refused_ends_the_submission(tmp_path: Path, sbatch: dict[str, str]) -> None:
    (tmp_path / "refuse").write_text("dedup-0")
    done = bash(f"bash {submitted(tmp_path)}", **sbatch)
    assert done.returncode == 1
    assert (tmp_path / "scripts" / "jobs").read_text() == "clean 101\n"
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


def test_scripts_parse_and_have_no_secret_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    submit = submitted(tmp_path)
    for path in [submit, *submit.parent.glob("*.sbatch")]:
        assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
        text = path.read_text()
        assert "very-secret" not in text and re.search("^set -euo pipefail$", text, re.MULTILINE)
        assert os.access(path, os.X_OK)


# --- what a task asks for ------------------------------------------------------------------------------------------


def test_what_a_task_asks_for_grows_with_its_slice_and_workers() -> None:
    one = task_resources([5 * GB] * 200, 200, 16)
    assert (one.cpus, one.memory_mib, one.clock) == (16, 28_600, "01:30:00")
    assert task_resources([50 * GB] * 200, 200, 16).seconds > one.seconds > task_resources([1], 1, 16).seconds
    assert task_resources([5 * GB] * 200, 200, 32).memory_mib > one.memory_mib
    assert task_resources([5 * GB] * 200, 1, 16).clock == "23:00:00"  # reads what all have written
    assert task_resources([], 4, 1).seconds == 1800
