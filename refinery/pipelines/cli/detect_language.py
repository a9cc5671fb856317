"""`refinery detect-language`: say which language each text is in."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.cli.step_arguments import listed, run_step, step_arguments
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.run.steps.step import Step

EXAMPLES = """examples:
  refinery detect-language 'in/**/*.jsonl.gz' --output out            a field `language` behind the others
  refinery detect-language 'in/*.parquet' --keep en,de --output out    texts in these languages stay
Interrupted? Run the same command again to continue where it stopped."""


def arguments(parser: ArgumentParser) -> None:
    step_arguments(parser, annotates=False)
    parser.add_argument("--keep", type=listed, default=[], metavar="CODES", help="keep only these languages: en,de")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Detect languages."""

    def make() -> "Step":
        from refinery.pipelines.run.steps.steps import language_step

        return language_step(args.keep)

    return run_step(args, flags, make)


COMMAND = Command(
    name="detect-language",
    summary="label each text with its language, file by file",
    section=Section.STEP,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
