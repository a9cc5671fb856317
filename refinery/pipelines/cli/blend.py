"""`refinery blend`: a corpus as Megatron's --data-path."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery blend out/web
  refinery blend gs://bucket/corpus --weight web=0.7 --weight books=0.3
In a launch of Megatron: --data-path $(refinery blend out/web)"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    parser.add_argument("--split", default="train", help="train (default) or validation")
    parser.add_argument(
        "--weight", action="append", default=[], metavar="DOMAIN=NUMBER", help="share of a domain (default: its tokens)"
    )


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print weights and paths in one line, for $(refinery blend PREFIX)."""
    from refinery.pipelines.corpus.adopt.blend import blend, parse_weights

    say(" ".join(blend(args.prefix, args.split, parse_weights(args.weight))))
    return ExitCode.DONE


COMMAND = Command(
    name="blend",
    summary="print a corpus as the arguments of Megatron's --data-path",
    section=Section.HAND_ON,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
