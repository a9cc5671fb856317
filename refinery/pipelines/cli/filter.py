"""`refinery filter`: judge documents by published rules."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.cli.step_arguments import listed, run_step, step_arguments
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.run.steps.step import Step

EXAMPLES = """examples:
  refinery filter 'in/**/*.jsonl.gz' --rules gopher,c4,fineweb --output out
  refinery filter 'in/*.parquet' --rules gopher --language en,de --output out
  refinery filter 'in/*.jsonl' --rules gopher,c4 --annotate --output out      labels instead of drops
Interrupted? Run the same command again to continue where it stopped."""


def arguments(parser: ArgumentParser) -> None:
    step_arguments(parser)
    parser.add_argument(
        "--rules", type=listed, default=[], metavar="SETS", help="some of basic, gopher, repetition, c4, fineweb: a,b"
    )
    parser.add_argument("--language", type=listed, default=[], metavar="CODES", help="keep these languages: en,de")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Judge documents."""

    def make() -> "Step":
        from refinery.pipelines.run.steps.steps import filter_step

        return filter_step(args.rules, args.language)

    return run_step(args, flags, make)


COMMAND = Command(
    name="filter",
    summary="keep what passes published rules, file by file",
    section=Section.STEP,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
