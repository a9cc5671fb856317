"""`refinery dedup`: remove copies from data sets."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.cli.step_arguments import run_step, step_arguments
from refinery.pipelines.shell.arguments import rate
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.run.steps.step import Step

EXAMPLES = """examples:
  refinery dedup 'in/**/*.jsonl.zst' --output out                 near copies: a similarity of 0.8 or more
  refinery dedup 'in/*.parquet' --exact --output out              only equal texts
  refinery dedup 'in/*.jsonl' --near 0.9 --lines --output out     near copies, and lines of menus
  refinery dedup 'in/*.jsonl' --exact --annotate --output out     labels instead of removals
  refinery dedup 'new/*.jsonl' --against out/web --output out     also copies of a published corpus
Interrupted? Run the same command again to continue where it stopped."""


def arguments(parser: ArgumentParser) -> None:
    step_arguments(parser)
    parser.add_argument("--exact", action="store_true", help="remove documents of equal text, up to white space")
    parser.add_argument(
        "--near",
        type=rate,
        metavar="SHARE",
        help="remove documents whose shingles of five words have this Jaccard similarity or more (default: 0.8, where "
        "nothing else is asked for)",
    )
    parser.add_argument("--lines", action="store_true", help="cut lines that are in more than six documents")
    parser.add_argument("--substrings", action="store_true", help="cut runs of 50 words that are repeated")
    parser.add_argument("--url", action="store_true", help="keep one document of each address, the newest")
    parser.add_argument(
        "--against", action="append", default=[], metavar="PREFIX", help="also remove copies of this corpus"
    )
    parser.add_argument(
        "--prefer",
        default="first",
        choices=("first", "longest", "newest"),
        help="which copy stays (default: the first in the order of files and rows)",
    )


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Remove copies."""

    def make() -> "Step":
        from refinery.pipelines.run.steps.steps import dedup_step

        return dedup_step(
            args.exact, args.near, args.lines, args.substrings, args.url, tuple(args.against), args.prefer
        )

    return run_step(args, flags, make)


COMMAND = Command(
    name="dedup",
    summary="remove copies from data sets, file by file",
    section=Section.STEP,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
