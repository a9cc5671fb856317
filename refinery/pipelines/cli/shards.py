"""`refinery shards`: the shards of a node."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import counted, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery shards https://host/corpus --node node-17
  refinery shards gs://bucket/web-pt --node node-17 --count 3 --fetch shards"""


def arguments(parser: ArgumentParser) -> None:
    from refinery.loader.format.manifest import SPLITS
    from refinery.loader.stream.assignment import SHARDS

    parser.add_argument("location", metavar="LOCATION", help="a folder, gs://…, s3://… or https://…")
    parser.add_argument("--node", required=True, metavar="NAME", help="the node's name, the same after every restart")
    parser.add_argument("--count", type=counted, default=SHARDS, metavar="N", help="the primary and the next ones")
    parser.add_argument("--split", default="train", choices=SPLITS, help="train (default) or validation")
    parser.add_argument("--fetch", default="", metavar="FOLDER", help="download these files, verified, resumable")
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of text")
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print a node's shards, then fetch them if that is asked for."""
    from refinery.pipelines.corpus.export.distribution import fetch_shards, json_lines, shards_of_node, text_lines

    found = shards_of_node(args.location, args.node, args.count, args.split)
    for line in json_lines(found) if args.json else text_lines(found):
        result(line)
    if args.fetch:
        fetch_shards(args.location, found, args.fetch, say)
    return ExitCode.DONE


COMMAND = Command(
    name="shards",
    summary="which shards of a corpus or a torch export a lone node trains on",
    section=Section.HAND_ON,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
