"""The beginning of a run on a cluster: its arguments are checked, and its inputs are cut into slices."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from refinery.pipelines.run.cluster.progress import ProgressReader
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.slices.cut import check_slices
from refinery.pipelines.run.slices.names import CUT_STEP
from refinery.pipelines.runners.cluster.words import absolute, check_no_secrets, one_line
from refinery.pipelines.shell.typed import typed

STDERR = 2  # the file, also where Python's object is another one
# Arguments of `refine` that the jobs get otherwise, and that only the last one takes.
OWN = ("scratch", "runner")
ENDING = ("discard_work", "track")

Arguments = Callable[[ArgumentParser], None]


@dataclass(frozen=True)
class Words:
    """Words of `refine` for jobs: of all, and those that only the last one takes."""

    all: list[str]
    ending: list[str]


def check_arguments(args: Namespace, arguments: Arguments) -> Words:
    """The words of `refine` that the jobs run. arguments: declares those of `refine` that a whole run has.

    Raises ValueError for what jobs on other machines cannot have."""
    if args.runner != "local":
        raise ValueError(f"--runner: {args.runner!r:.80} given; slices run on the local runner of their machine")
    check_slices(args.tasks, "--tasks")
    for name, least in (("workers", 1), ("throttle", 0)):
        if getattr(args, name) < least:
            raise ValueError(f"--{name}: {getattr(args, name)} given, {least} or more are allowed")
    said = Namespace(**vars(args) | {"workers": str(args.workers)})  # said also where it is this machine's default
    words = typed(said, arguments, (*OWN, *ENDING))
    ending = typed(said, arguments, [name for name in vars(args) if name not in ENDING])
    check_no_secrets(words)
    for word in (*words, *ending):
        one_line("argument", word)
    return Words(words, ending)


def begin(args: Namespace, words: Words) -> ProgressReader:
    """Seal the cut, by the command that seals it, where it is not sealed. Raises RefineError where that fails; it has
    said why."""
    command = [sys.executable, "-m", "refinery", "refine", *words.all, "--slices", str(args.tasks), "--until", CUT_STEP]
    # What it says is about the run; the answer of this command is on standard output.
    code = subprocess.run(command, check=False, stdout=STDERR).returncode  # noqa: S603 - ours, no shell
    if code == 2:
        raise ValueError("the inputs were not cut into slices; the lines above say why")
    if code:
        raise RefineError(f"the inputs were not cut into slices (exit code {code}); the lines above say why")
    return ProgressReader(args.output, absolute(args.work) if args.work else "")
