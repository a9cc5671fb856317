"""`refinery cluster cancel`: the end of a run's jobs on Slurm."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.cli.cluster_status import add_run_arguments
from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery cluster cancel /shared/out/web
What is done stays: `refinery cluster resume` goes on from there."""


def arguments(parser: ArgumentParser) -> None:
    add_run_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Cancel the jobs that were recorded."""
    from refinery.loader.storage.open_store import open_store
    from refinery.pipelines.run.cluster.submission import all_jobs
    from refinery.pipelines.runners.cluster.arrays import ranges
    from refinery.pipelines.runners.cluster.slurm import cancel

    jobs = all_jobs(open_store(args.work or f"{args.prefix.rstrip('/')}/work"))
    ids = sorted((id_ for each in jobs.values() for id_ in each), key=int)
    if not ids:
        raise ValueError(f"{args.prefix}: no jobs of a run on Slurm are recorded here")
    cancel(ids)
    say(f"cancelled: {ranges(map(int, ids))}; `refinery cluster resume {args.prefix}` goes on")
    return ExitCode.DONE


COMMAND = Command(
    name="cluster cancel",
    summary="cancel the jobs of a run on Slurm",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
