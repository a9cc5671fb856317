"""`refinery cluster resume`: what a run on Slurm still lacks."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.cli.cluster_slurm import add_sbatch_argument, add_throttle_argument
from refinery.pipelines.cli.cluster_status import add_run_arguments
from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery cluster resume /shared/out/web
  refinery cluster resume /shared/out/web --sbatch '--partition=cpu --time=24:00:00'
Slices that are done are not submitted again. Other arguments are those that `refinery cluster slurm` recorded."""


def arguments(parser: ArgumentParser) -> None:
    add_run_arguments(parser)
    add_sbatch_argument(parser, "those given before")
    add_throttle_argument(parser, "tasks", "as before")
    parser.add_argument("--dry-run", action="store_true", help="write the scripts, but do not submit them")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Submit arrays of the missing slices, then the steps behind them."""
    from refinery.pipelines.run.cluster.launch import Launch, resumed
    from refinery.pipelines.run.cluster.progress import ProgressReader

    reader = ProgressReader(args.prefix, args.work)
    if reader.read().is_complete:
        say(f"{args.prefix} is complete; nothing to do")
        return ExitCode.DONE
    submitted = resumed(reader.work_store, args.prefix, {"sbatch": args.sbatch, "throttle": args.throttle})
    Launch(reader, submitted, say, not args.dry_run).again()
    return ExitCode.DONE


COMMAND = Command(
    name="cluster resume",
    summary="submit what a run on Slurm still lacks",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
