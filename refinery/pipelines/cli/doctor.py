"""`refinery doctor`: what is missing for a run."""

import logging
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from refinery.pipelines.shell.arguments import counted, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery doctor                                     this installation and this machine
  refinery doctor recipes/web.yaml --input 'crawl/*.warc.gz' --output out/web
  refinery doctor recipes/web.yaml --output gs://bucket/corpus --runner DataflowRunner --region=europe-west4
  refinery doctor recipes/web.yaml --output /mnt/web --runner FlinkRunner --flink_master=host:8081
  refinery doctor --json
With a recipe it also says whether its files load, what its sources hold and whether the run fits on this machine;
with another runner, why a launch would be refused, and what it asks of Dataflow's quotas. It runs nothing, and writes
nothing except one object on s3://, which it removes again."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("recipe", nargs="?", default="", metavar="RECIPE", help="a YAML file, as for `refine`")
    parser.add_argument("--input", action="append", default=[], metavar="GLOB", help="as for `refine`")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for `refine`")
    parser.add_argument("--output", default="", metavar="PREFIX", help="where the corpus would go")
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts would go (PREFIX/work)")
    parser.add_argument("--runner", default="local", help="local (default), DataflowRunner, …; other flags go to it")
    parser.add_argument("--workers", type=counted, default=os.cpu_count() or 1, metavar="N", help="processes (cores)")
    parser.add_argument("--scratch", default="", metavar="FOLDER", help="as for `refine`")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Say what is there and what is missing; FAILED where there is a problem."""
    from refinery.pipelines.cli.command_line import OWN
    from refinery.pipelines.runners.doctor.examine import Asked, examine, json_line, text_lines
    from refinery.pipelines.runners.doctor.finding import Finding, State

    places = args.output, args.work
    asked = Asked(
        args.recipe, args.set, args.input, args.runner, args.workers, *places, flags, args.scratch, OWN.words()
    )
    found: list[Finding] = []

    def noted() -> Iterator[Finding]:
        for finding in examine(asked):
            found.append(finding)
            yield finding

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # of requests that are tried again: the finding says what came of it
    try:
        for line in [json_line(list(noted()))] if args.json else text_lines(noted()):
            say(line)
    finally:
        logging.disable(before)
    return ExitCode.FAILED if any(finding.state is State.PROBLEM for finding in found) else ExitCode.DONE


COMMAND = Command(
    name="doctor",
    summary="list what is missing for a run: Python, kernels, libraries, credentials, disk, memory, Dataflow's flags",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=lambda args: bool(args.runner != "local"),
    run=run,
    exit_codes={
        ExitCode.DONE: "no problem, but there may be warnings",
        ExitCode.FAILED: "there is a problem; its line says what to do",
    },
)
