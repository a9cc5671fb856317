"""Slurm's own commands, each with a deadline: a controller that hangs must not hang ours."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from refinery.pipelines.runners.cluster.sbatch import JOBS

ASK_SECONDS = 10.0
SUBMIT_SECONDS = 600.0
JOB_ID = re.compile(r"[0-9]{1,12}")
SUBMITTED = re.compile(r"[a-z0-9-]+ [0-9]{1,12}")  # what submit.sh says of each job before one fails
MAX_ARRAY = re.compile(r"^MaxArraySize\s*=\s*([0-9]+)", re.MULTILINE)
GONE = "Invalid job id specified"
DEFAULT_MAX_ARRAY = 1001  # Slurm's own


class SlurmTrouble(RuntimeError):
    """A command of Slurm is missing, failed, or did not answer in time."""


def call(*words: str, seconds: float = ASK_SECONDS) -> str:
    """What a command printed. Raises SlurmTrouble, one line."""
    try:
        done = subprocess.run(  # noqa: S603 - a list of words, no shell
            words, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except FileNotFoundError:
        raise SlurmTrouble(f"{words[0]} is not on this machine; use a login node of the cluster") from None
    except subprocess.TimeoutExpired:
        raise SlurmTrouble(f"{words[0]} did not answer in {seconds:.0f} s") from None
    if done.returncode:
        said_by_all = (line.strip() for line in done.stderr.splitlines())
        lines = [line for line in said_by_all if line and not SUBMITTED.fullmatch(line)]
        said = lines[0].removeprefix(f"{words[0]}: ") if lines else f"exit code {done.returncode}"  # more is of causes
        raise SlurmTrouble(f"{words[0]}: {said:.300}")
    return done.stdout


def max_array_size() -> int:
    """MaxArraySize of the cluster: one more than the largest index. Raises SlurmTrouble."""
    found = MAX_ARRAY.search(call("scontrol", "show", "config"))
    size = int(found[1]) if found else DEFAULT_MAX_ARRAY
    if size < 2:
        raise SlurmTrouble("scontrol show config: MaxArraySize is 0; job arrays are switched off on this cluster")
    return size


def submit(script: Path) -> None:
    """Run submit.sh. Raises SlurmTrouble; jobs that were submitted before are in its file."""
    call("bash", str(script), seconds=SUBMIT_SECONDS)


def read_jobs(scripts: str) -> dict[str, list[str]]:
    """Step -> ids of the jobs that submit.sh of this folder has submitted; {} where it has not run."""
    try:
        lines = (Path(scripts) / JOBS).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found: dict[str, list[str]] = {}
    for step, _, id_ in (line.partition(" ") for line in lines):
        if JOB_ID.fullmatch(id_):
            found.setdefault(step, []).append(id_)
    return found


def forget_jobs(scripts: str) -> None:
    """Begin a new list of jobs: what another run left in this folder does not belong to this one."""
    (Path(scripts) / JOBS).unlink(missing_ok=True)


def queue(jobs: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """Step -> state -> tasks in the queue, such as {"clean": {"RUNNING": 3, "PENDING": 90}}; without steps that have
    none. Raises SlurmTrouble."""
    steps = {id_: step for step, ids in jobs.items() for id_ in ids}
    if not steps:
        return {}
    try:
        listed = call("squeue", "--noheader", "--array", "--format=%F %T", f"--jobs={','.join(steps)}")
    except SlurmTrouble as trouble:
        if GONE in str(trouble):  # as squeue says where the only job that was asked for ended some time ago
            return {}
        raise
    found: dict[str, Counter[str]] = {}
    for id_, _, state in (line.strip().partition(" ") for line in listed.splitlines()):
        if id_ in steps:
            found.setdefault(steps[id_], Counter())[state] += 1
    return {step: dict(sorted(states.items())) for step, states in found.items()}


def cancel(ids: Sequence[str]) -> None:
    """Cancel jobs. Those that have ended are left alone. Raises SlurmTrouble."""
    if ids:
        call("scancel", "--quiet", *ids, seconds=60.0)
