"""Slurm's scripts: one for each step, an array of its slices, and submit.sh, which chains them."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from refinery.pipelines.runners.cluster.arrays import Array
from refinery.pipelines.runners.cluster.resources import Resources
from refinery.pipelines.runners.cluster.words import STEP, folder_word, one_line, plain, quoted

JOBS = "jobs"  # file beside submit.sh: a line "STEP ID" for each job that it submitted
SUBMIT = "submit.sh"
LOGS = "logs"
SCRATCH = "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}"  # what sites name the disk of a node
WARNING_SECONDS = 120  # before the end of the time limit: for the command to stop
OWN_SECONDS = 5  # in which a command that was told to stop has begun to
MOST_RESTARTS = 20  # by the time limit: a slice that needs more asks for more time
# What the scripts rely on, and users cannot give.
OURS = frozenset(
    (
        *("--array", "-a", "--dependency", "-d", "--kill-on-invalid-dep", "--wrap", "--parsable", "--wait", "-W"),
        *("--job-name", "-J", "--chdir", "-D", "--input", "-i", "--output", "-o", "--error", "-e", "--open-mode"),
        *("--signal", "--requeue", "--no-requeue", "--test-only"),
    )
)
# Options of the same meaning: one of the user's replaces ours.
SAME = {"-c": "--cpus-per-task", "-t": "--time", "--mem-per-cpu": "--mem"}


@dataclass(frozen=True)
class StepScript:
    """A step's script. slices: of the run; 0 for the last command, which publishes. words: the command up
    to what names the slice. folder: where it was typed. scratch: "" for the node's own disk. extra: further options of
    sbatch, checked by `options`."""

    step: str
    slices: int
    words: Sequence[str]
    folder: str
    scripts: str
    resources: Resources
    scratch: str = ""
    extra: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not STEP.fullmatch(self.step):
            raise ValueError(f"step: {self.step!r:.80} given, a-z, 0-9 and - are allowed")

    @property
    def name(self) -> str:
        return f"{self.step}.sbatch"

    def text(self) -> str:
        """The script."""
        return "\n".join([*self._head(), "", *self._body(), ""])

    def _head(self) -> Iterator[str]:
        yield "#!/bin/bash"
        what = f"Step {self.step}: the slice of this array's index" if self.slices else "The last step: the corpus"
        yield f"# {what}. Written by `refinery cluster slurm`; {SUBMIT} submits it."
        if self.slices:
            yield "# Argument: the slice of index 0, where a step has more than one array."
        log = f"{self.step}-%5a.log" if self.slices else f"{self.step}.log"
        own = {
            "--job-name": f"refinery-{self.step}",
            "--output": plain("--scripts", f"{self.scripts}/{LOGS}/") + log,
            "--cpus-per-task": str(self.resources.cpus),
            "--mem": f"{self.resources.memory_mib}M",
            "--time": self.resources.clock,
            "--requeue": "",
            "--open-mode": "append",
            "--signal": f"B:USR1@{WARNING_SECONDS}",
        }
        given = {_long(option) for option in self.extra}
        for name, value in own.items():
            if name not in given:
                yield f"#SBATCH {in_a_line(f'{name}={value}' if value else name)}"
        yield from (f"#SBATCH {option}" for option in self.extra)

    def _body(self) -> Iterator[str]:
        scratch = folder_word("--scratch", self.scratch) if self.scratch else f'"{SCRATCH}"'
        yield "set -euo pipefail"
        yield f"cd {quoted([self.folder])}"
        words = f"{quoted(self.words)} --scratch {scratch}"
        if self.slices:
            yield "slice=$(( ${1:-0} + SLURM_ARRAY_TASK_ID ))"
            words += f' --until {self.step} --slice "$slice/{self.slices}"'
        else:
            words += f" --until {self.step}"
        yield f"command=({words})"
        yield RUN


# Slurm sends USR1 to the script before the time limit, and TERM to all processes of a job that is cancelled or makes
# room for another one. Both end the command cleanly; TERM is passed on only where the command did not get its own one.
# Only USR1 asks for another turn: a cancelled job must not come back, and one that made room is requeued by Slurm.
RUN = f"""
out_of_time=no signals=0 seen=-1 code=0
stop() {{ signals=$((signals + 1)); (sleep "$1"; kill -TERM "$child" 2>/dev/null) & }}
trap 'out_of_time=yes; stop 0' USR1
trap 'stop {OWN_SECONDS}' TERM INT
echo "$(date -Is) $(hostname -s): job $SLURM_JOB_ID begins, restart ${{SLURM_RESTART_COUNT:-0}}"
"${{command[@]}}" &
child=$!
while [ "$seen" -ne "$signals" ]; do # a signal ends wait, but not the command
    seen=$signals code=0
    wait "$child" || code=$?
done
echo "$(date -Is) $(hostname -s): job $SLURM_JOB_ID ends, exit code $code"
if [ "$out_of_time" = yes ] && [ "$code" -ne 0 ]; then
    if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {MOST_RESTARTS} ]; then
        echo "the time limit is near: requeued, to go on where it stopped"
        scontrol requeue "$SLURM_JOB_ID" && exit "$code"
    fi
    echo "stopped by the time limit, and not requeued again: give more with --sbatch '--time=…'"
fi
exit "$code\""""


@dataclass(frozen=True)
class Submission:
    """What submit.sh submits: (script, its arrays) in order; None for a single job. throttle: tasks at once, 0 for
    all."""

    prefix: str
    scripts: str
    steps: Sequence[tuple[StepScript, Sequence[Array | None]]]
    throttle: int = 0

    def text(self) -> str:
        """The script submit.sh."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield "#!/bin/bash"
        yield f"# Submits the steps of {one_line('--output', self.prefix)}, each after the one before."
        yield f"# Job ids are added to the file {JOBS} beside this one. Written by `refinery cluster slurm`."
        yield "set -euo pipefail"
        yield f"cd {quoted([self.scripts])}"
        yield f"mkdir -p {LOGS}"
        yield SUBMIT_STEP
        before = ""
        for script, arrays in self.steps:
            ids: list[str] = []
            for array in arrays:
                chain = [f"afterok{before}"] if before else []
                if ids and self.throttle:  # one array after the other, so that the bound holds for all
                    chain.append(f"afterany:${ids[-1]}")
                ids.append(f"{script.step.replace('-', '_')}_{len(ids)}")
                yield f"{ids[-1]}=$(submit {script.step} {self._options(script, array, ','.join(chain))})"
            before = "".join(f":${name}" for name in ids)

    def _options(self, script: StepScript, array: Array | None, chain: str) -> str:
        options = [f'"--dependency={chain}" --kill-on-invalid-dep=yes'] if chain else []
        if array is None:
            return " ".join([*options, script.name])
        options.append(f"--array={array.text}" + (f"%{self.throttle}" if self.throttle else ""))
        if not array.offset:
            return " ".join([*options, script.name])
        log = plain("--scripts", f"{self.scripts}/{LOGS}/") + f"{script.step}-from-{array.offset:05d}-%5a.log"
        return " ".join([*options, f"--output={shlex.quote(log)}", script.name, str(array.offset)])


SUBMIT_STEP = f"""submit() {{ # step, arguments of sbatch …
    local step=$1 id
    shift
    id=$(sbatch --parsable "$@") || exit
    echo "$step ${{id%%;*}}" | tee -a {JOBS} >&2
    echo "${{id%%;*}}"
}}"""


def options(given: Sequence[str]) -> tuple[str, ...]:
    """Options of sbatch out of what users gave, each as --name=value for a line of #SBATCH.

    Raises ValueError for what is not an option, what the scripts decide, and what such a line cannot hold.
    """
    found: list[str] = []
    for text in given:
        for word in shlex.split(one_line("--sbatch", text)):
            if word.startswith("-"):
                found.append(word)
            elif found and "=" not in found[-1]:
                found[-1] += f" {word}" if len(found[-1]) == 2 else f"={word}"
            else:
                raise ValueError(f"--sbatch: {word!r:.80} belongs to no option; give '--name=value …'")
    for option in found:
        if _name(plain("--sbatch", option)) in OURS:
            raise ValueError(f"--sbatch: {_name(option)} given, which the scripts decide themselves")
    return tuple(in_a_line(option) for option in found)


def in_a_line(option: str) -> str:
    """With quotes around a value that has spaces."""
    name, equals, value = option.partition("=")
    return f'{name}="{value}"' if equals and " " in value else option


def _name(option: str) -> str:
    """ "--time=5" -> "--time", "-t5" and "-t 5" -> "-t"."""
    return option.partition("=")[0] if option.startswith("--") else option[:2]


def _long(option: str) -> str:
    return SAME.get(_name(option), _name(option))


def write_scripts(submission: Submission) -> list[Path]:
    """Write the scripts into their folder, which is made; those of an earlier call are replaced. Returns their paths,
    submit.sh last."""
    folder = Path(submission.scripts)
    (folder / LOGS).mkdir(parents=True, exist_ok=True)
    texts = {script.name: script.text() for script, _ in submission.steps} | {SUBMIT: submission.text()}
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return [folder / name for name in texts]
