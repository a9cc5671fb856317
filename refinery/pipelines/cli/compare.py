"""`refinery compare`: what changed between two corpora."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.corpus.compare.compare import Comparison

EXAMPLES = """examples:
  refinery compare out/web out/web2                       what changed from A to B
  refinery compare out/web out/web2 --html changes.html   the same as a page
  refinery compare gs://bucket/old gs://bucket/new --json --list 0
  refinery compare out/web out/web2 --documents moved.parquet    every document that they do not share, and why
  refinery compare out/main out/branch --exit-code        for CI: 1 if documents, tokens or funnel differ
docs/compare.md says what is compared, how exact it is, and what it costs."""
SHOWN = 3  # documents that are listed of each kind
REPLAYED = 40  # records that are read again, of those whose rule is not recorded


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="a corpus: a folder, gs://… or s3://…")
    parser.add_argument("b", metavar="B", help="the corpus that it is compared with")
    parser.add_argument("--work-a", default="", metavar="LOCATION", help="where the parts of A's phases are (A/work)")
    parser.add_argument("--work-b", default="", metavar="LOCATION", help="where the parts of B's phases are (B/work)")
    parser.add_argument(
        "--list", type=_count, default=SHOWN, metavar="N", help=f"documents shown of each kind (default: {SHOWN})"
    )
    parser.add_argument(
        "--replay",
        type=_count,
        default=REPLAYED,
        metavar="N",
        help="most records of each side that are read again if no file says which rule dropped them "
        f"(default: {REPLAYED}; 0: none)",
    )
    for side in "ab":
        parser.add_argument(
            f"--recipe-{side}",
            default="",
            metavar="FILE",
            help=f"the recipe of {side.upper()}, to replay a run with stages or a lane of its own",
        )
    parser.add_argument(
        "--documents", default="", metavar="FILE", help="write every document that they do not share, as Parquet"
    )
    parser.add_argument("--html", default="", metavar="FILE", help="write the comparison as a page")
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.add_argument("--exit-code", action="store_true", help="end with 1 if documents, tokens or funnel differ")


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 10_000:
        raise ArgumentTypeError(f"{text!r:.40} given, a number from 0 to 10,000 is allowed")
    return value


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Compare, write what is asked for, say the rest; FAILED only if --exit-code asks for it and they differ."""
    from refinery.pipelines.corpus.compare.compare import compare
    from refinery.pipelines.training.new_file import check_new, write_new

    files = [path for path in (args.documents, args.html) if path]
    if not args.overwrite:
        for path in files:
            check_new(path)
    if len(files) == 2 and files[0] == files[1]:
        raise ValueError(f"--documents and --html: {files[0]} given twice; give each a file of its own")

    def write_documents(path: Path) -> None:
        write_new(args.documents, path, args.overwrite)

    found = compare(
        (args.a, args.b),
        (args.work_a, args.work_b),
        args.list,
        args.replay,
        (args.recipe_a, args.recipe_b),
        write_documents if args.documents else None,
    )
    for line in _said(args, found):
        say(line)
    return ExitCode.FAILED if found.differ and args.exit_code else ExitCode.DONE


def _said(args: Namespace, found: "Comparison") -> Iterator[str]:
    from refinery.pipelines.corpus.compare.as_json import comparison_json
    from refinery.pipelines.corpus.compare.page import compare_page
    from refinery.pipelines.corpus.compare.text import text_lines
    from refinery.pipelines.training.new_file import write_new

    if args.html:
        write_new(args.html, compare_page(found).encode(), args.overwrite)
    if args.json:
        yield comparison_json(found)
        return
    yield from text_lines(found)
    if args.documents:
        yield f"{args.documents}: every document that they do not share, with what became of it"
    if args.html:
        yield f"{args.html}: open it in a browser; it needs no network"


COMMAND = Command(
    name="compare",
    summary="show what changed between two corpora: settings, funnel, documents and which rule moved them",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={
        ExitCode.DONE: "compared, whatever was found (with --exit-code: no difference)",
        ExitCode.FAILED: "with --exit-code: documents, tokens or funnel differ; or storage failed",
        ExitCode.USAGE: "the command is wrong, or one of the two is not a complete corpus",
    },
)
