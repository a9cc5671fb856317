"""`refinery status`: where an export stands."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery status out/web-pt
  refinery status gs://bucket/web-jsonl --json"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("location", metavar="LOCATION", help="the location of an export")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print where an export stands; 1 if it is not complete."""
    from refinery.pipelines.corpus.export.status import export_status, json_line, text_lines

    found = export_status(args.location)
    for line in [json_line(found)] if args.json else text_lines(found):
        say(line)
    return ExitCode.DONE if found.state == "complete" else ExitCode.FAILED


COMMAND = Command(
    name="status",
    summary="show how far an export is, by source",
    section=Section.HAND_ON,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={ExitCode.DONE: "the export is complete", ExitCode.FAILED: "it is not"},
)
