"""The beginning of a run on a cluster: its arguments are checked, and its inputs are cut into slices."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence

from refinery.pipelines.run.cluster.progress import ProgressReader
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.slices.cut import check_slices
from refinery.pipelines.runners.cluster.words import absolute, check_no_secrets, one_line
from refinery.pipelines.shell.typed import typed

STDERR = 2  # the file, also where Python's object is another one
# Arguments of `refine` that the jobs get otherwise, or that make no sense for them.
LEFT_OUT = ("scratch", "dry_run", "runner", "slices", "slice", "until")


def check_arguments(args: Namespace, arguments: Callable[[ArgumentParser], None]) -> list[str]:
    """The words of `refine` that the jobs run. arguments: declares those of `refine`. Raises ValueError for what jobs
    on other machines cannot have."""
    if args.runner != "local":
        raise ValueError(f"--runner: {args.runner!r:.80} given; slices run on the local runner of their machine")
    for name in ("dry_run", "slices", "slice", "until"):
        if getattr(args, name, None):
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag}: given; `refinery refine … {flag}` has it, a cluster's jobs do not")
    check_slices(args.tasks, "--tasks")
    if args.workers < 1:
        raise ValueError(f"--workers: {args.workers} given, 1 or more are allowed")
    if getattr(args, "throttle", 0) < 0:
        raise ValueError(f"--throttle: {args.throttle} given, 0 or more are allowed")
    args.workers = str(args.workers)  # said also where it is this machine's default
    words = typed(args, arguments, LEFT_OUT)
    args.workers = int(args.workers)
    check_no_secrets(words)
    for word in words:
        one_line("argument", word)
    return words


def begin(args: Namespace, words: Sequence[str]) -> ProgressReader:
    """Seal the cut, by the command that seals it, where it is not sealed. Raises RefineError where that fails; it has
    said why."""
    command = [sys.executable, "-m", "refinery", "refine", *words, "--slices", str(args.tasks), "--until", "cut"]
    # What it says is about the run; the answer of this command is on standard output.
    code = subprocess.run(command, check=False, stdout=STDERR).returncode  # noqa: S603 - ours, no shell
    if code == 2:
        raise ValueError("the inputs were not cut into slices; the lines above say why")
    if code:
        raise RefineError(f"the inputs were not cut into slices (exit code {code}); the lines above say why")
    return ProgressReader(args.output, absolute(args.work) if args.work else "")
