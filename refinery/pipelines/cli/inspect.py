"""`refinery inspect`: the status of a run."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery inspect out/web
  refinery inspect gs://bucket/corpus --work gs://parts-bucket/corpus
  refinery inspect gs://bucket/corpus --live --json
It reads only small files, and writes nothing."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a run: a folder, gs://… or s3://…")
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts are (PREFIX/work)")
    parser.add_argument("--live", action="store_true", help="ask Dataflow for the state of jobs (needs the network)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print the status of a run. With --live, flags go to Beam, as for a launch (--impersonate_service_account)."""
    from refinery.pipelines.corpus.checks.kinds import VIEW, kind_of
    from refinery.pipelines.run.inspection.inspection import inspect
    from refinery.pipelines.run.inspection.text import json_line, text_lines

    ask = None
    if args.live:
        from refinery.pipelines.runners.runner import ask_dataflow

        ask = ask_dataflow(flags)
    if kind_of(args.prefix) == VIEW:
        from refinery.pipelines.corpus.mix.inspect_view import inspect_view

        lines, code = inspect_view(args.prefix, args.json)
        for line in lines:
            say(line)
        return code
    found = inspect(args.prefix, args.work, ask)
    for line in [json_line(found)] if args.json else text_lines(found):
        say(line)
    codes = {"complete": ExitCode.DONE, "empty": ExitCode.USAGE, "foreign": ExitCode.USAGE}
    return codes.get(found.state, ExitCode.FAILED)


COMMAND = Command(
    name="inspect",
    summary="show the status of a run: phases, jobs, counts, what to do next",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=lambda args: bool(args.live),
    run=run,
    exit_codes={
        ExitCode.DONE: "the corpus is complete",
        ExitCode.FAILED: "the corpus is not complete, or is damaged",
        ExitCode.USAGE: "the command is wrong, or there is no run",
    },
)
