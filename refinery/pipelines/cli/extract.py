"""`refinery extract`: take the text out of pages."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.cli.step_arguments import run_step, step_arguments
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.run.steps.step import Step

EXAMPLES = """examples:
  refinery extract 'crawl/*.warc.gz' --output out                            shards of Parquet, a row for each page
  refinery extract 'in/*.jsonl' --html-field html --output out               a field `text` behind the others
  refinery extract 'in/*.parquet' --html-field page --into body --markdown --output out
Interrupted? Run the same command again to continue where it stopped."""


def arguments(parser: ArgumentParser) -> None:
    step_arguments(parser, annotates=False, labels=False, also="; without --html-field WARC, ARC, WET or HTML")
    parser.add_argument(
        "--html-field",
        default="",
        metavar="NAME",
        help="the field with the HTML (default: inputs are archives or pages)",
    )
    parser.add_argument("--into", default="text", metavar="NAME", help="the new field of the text (default: text)")
    parser.add_argument("--markdown", action="store_true", help="mark headings, items, tables and code")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Extract texts. Without a field of HTML the inputs are archives or pages, which have no rows to be kept."""
    if not args.html_field:
        args.layout = "shards"

    def make() -> "Step":
        from refinery.pipelines.run.steps.steps import extract_step

        return extract_step(args.html_field, args.markdown, args.into if args.layout == "as-input" else "")

    return run_step(args, flags, make)


COMMAND = Command(
    name="extract",
    summary="take the main text out of HTML: of archives, or of a field of rows",
    section=Section.STEP,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
