"""`refinery redact`: replace personal data and credentials in texts."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.cli.step_arguments import listed, run_step, step_arguments
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.run.steps.step import Step

EXAMPLES = """examples:
  refinery redact 'in/**/*.jsonl.gz' --output out
  refinery redact 'in/*.parquet' --only email,phone --no-secrets --output out
Interrupted? Run the same command again to continue where it stopped."""


def arguments(parser: ArgumentParser) -> None:
    step_arguments(parser)
    parser.add_argument(
        "--only", type=listed, default=[], metavar="TYPES", help="only these types of personal data: email,phone,ip"
    )
    parser.add_argument("--no-secrets", action="store_true", help="leave keys, tokens and passwords as they are")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Replace personal data."""

    def make() -> "Step":
        from refinery.pipelines.run.steps.steps import redact_step

        return redact_step(args.only, not args.no_secrets)

    return run_step(args, flags, make)


COMMAND = Command(
    name="redact",
    summary="replace personal data and credentials, file by file",
    section=Section.STEP,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
