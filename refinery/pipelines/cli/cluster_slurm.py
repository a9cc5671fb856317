"""`refinery cluster slurm`: a run as job arrays of Slurm."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.cli import refine
from refinery.pipelines.shell.arguments import counted, say, take_flags
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery cluster slurm recipes/web.yaml --output /shared/web --tasks 200 --workers 16 --submit
  refinery cluster slurm recipes/web.yaml --output /shared/web --tasks 200 --workers 16 --sbatch '--partition=cpu'
  refinery cluster slurm recipes/web.yaml --output s3://bucket/web --tasks 2000 --scripts web-slurm --throttle 50
Further arguments are those of `refinery refine`. The recipe, its files and local locations must be on storage that all
nodes mount. See docs/engines/slurm.md."""


def arguments(parser: ArgumentParser) -> None:
    refine.run_arguments(parser)
    add_tasks_argument(parser)
    add_sbatch_argument(parser, "ours")
    parser.add_argument(
        "--scripts", default="", metavar="DIR", help="where scripts and logs go (default: PREFIX-slurm)"
    )
    add_throttle_argument(parser, "tasks", "all")
    parser.add_argument("--submit", action="store_true", help="submit the jobs, too")


def add_tasks_argument(parser: ArgumentParser) -> None:
    """How many slices a run has."""
    parser.add_argument(
        "--tasks",
        type=counted,
        required=True,
        metavar="N",
        help="slices of the run: tasks of each array. It cannot be changed later",
    )


def add_sbatch_argument(parser: ArgumentParser, replaced: str) -> None:
    """Options of sbatch. replaced: whose options they replace, for the help."""
    parser.add_argument(
        "--sbatch",
        action="append",
        default=[],
        metavar="OPTIONS",
        help=f"options of sbatch, as in --sbatch '--partition=cpu --time=8:00:00'; they replace {replaced}",
    )
    take_flags(parser, "--sbatch")


def add_throttle_argument(parser: ArgumentParser, what: str, default: str) -> None:
    """How many run at once. what, default: for the help."""
    parser.add_argument(
        "--throttle", type=counted, default=0, metavar="N", help=f"{what} that may run at once (default: {default})"
    )


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Seal the cut, write the scripts, and submit them if asked to."""
    from refinery.pipelines.run.cluster.begin import begin, check_arguments
    from refinery.pipelines.run.cluster.launch import Launch
    from refinery.pipelines.run.cluster.submission import Submitted
    from refinery.pipelines.runners.cluster.sbatch import options
    from refinery.pipelines.runners.cluster.words import absolute

    options(args.sbatch)
    if not args.scripts and "://" in args.output:
        raise ValueError(f"--scripts: none given; name a folder that all nodes mount, since {args.output} is a bucket")
    words = check_arguments(args, refine.run_arguments)
    submitted = Submitted(
        words=words.all,
        ending=words.ending,
        folder=os.getcwd(),
        scratch=args.scratch,
        scripts=absolute(args.scripts or f"{args.output.rstrip('/')}-slurm"),
        workers=args.workers,
        sbatch=args.sbatch,
        throttle=args.throttle,
    )
    reader = begin(args, words)
    Launch(reader, submitted, say, args.submit).first()
    return ExitCode.DONE


COMMAND = Command(
    name="cluster slurm",
    summary="write, and submit, a run's steps as job arrays of Slurm",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
