"""`refinery cluster status`: how far a run on a cluster is."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery cluster status /shared/out/web
  refinery cluster status /shared/out/web --watch
  refinery cluster status s3://bucket/web --json
It reads small files only. Slurm is asked for the jobs that were submitted, where it is installed."""
SECONDS = 10.0  # between two looks of --watch


def arguments(parser: ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("--watch", action="store_true", help="look again every ten seconds, until the run is complete")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text; with --watch one a line")


def add_run_arguments(parser: ArgumentParser) -> None:
    """Where a run is."""
    parser.add_argument("prefix", metavar="PREFIX", help="the output of a run on a cluster")
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts are (PREFIX/work)")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print the state, once or again and again."""
    import time

    from refinery.pipelines.run.cluster.progress import ProgressReader
    from refinery.pipelines.run.cluster.text import json_line, text_lines
    from refinery.pipelines.run.cluster.watch import Watched, ask

    watched = Watched(ProgressReader(args.prefix, args.work))
    while True:
        found = watched.read()
        asked = ask(watched.reader.work_store, found)
        lines = [json_line(found, asked)] if args.json else list(text_lines(found, asked))
        for line in lines:
            say(line)
        if found.is_complete or not args.watch:
            return ExitCode.DONE if found.is_complete else ExitCode.FAILED
        if not args.json:
            say("")
        time.sleep(SECONDS)


COMMAND = Command(
    name="cluster status",
    summary="show the slices of each step of a run on a cluster: done, running, failed, and why",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={
        ExitCode.DONE: "the corpus is complete",
        ExitCode.FAILED: "it is not",
        ExitCode.USAGE: "the command is wrong, or no run on a cluster has begun there",
    },
)
