"""The flags of `refinery compare`; what it needs is imported when it runs."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from refinery.pipelines.training.new_file import check_new, write_new

if TYPE_CHECKING:
    from refinery.pipelines.comparison.compare import Comparison

SHOWN = 3  # documents that are listed of each kind
REPLAYED = 40  # records that are read again, of those whose rule is not recorded

COMPARE_EXAMPLES = """examples:
  refinery compare out/web out/web2                       what changed from A to B
  refinery compare out/web out/web2 --html changes.html   the same as a page
  refinery compare gs://bucket/old gs://bucket/new --json --list 0
  refinery compare out/web out/web2 --documents moved.parquet    every document that they do not share, and why
  refinery compare out/main out/branch --exit-code        for CI: 1 if documents, tokens or funnel differ
docs/compare.md says what is compared, how exact it is, and what it costs."""


def add_compare(commands: Any) -> argparse.ArgumentParser:
    """Add the command's parser to `commands`, the subparsers of the command line."""
    parser = commands.add_parser(
        "compare",
        help="what changed between two corpora: settings, funnel, documents and which rule moved them",
        epilog=COMPARE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
        help="records read again for each side, at most, where no file says which rule dropped them "
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
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.add_argument("--exit-code", action="store_true", help="end with 1 if documents, tokens or funnel differ")
    return cast(argparse.ArgumentParser, parser)


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r:.40} given, a number from 0 to 10,000 is allowed")
    return value


def compare_command(args: argparse.Namespace, say: Callable[[str], None]) -> bool:
    """Compare, write what is asked for, say the rest. Returns whether they differ."""
    from refinery.pipelines.comparison.compare import compare

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
    return found.differ


def _said(args: argparse.Namespace, found: "Comparison") -> Iterator[str]:
    from refinery.pipelines.comparison.as_json import comparison_json
    from refinery.pipelines.comparison.page import compare_page
    from refinery.pipelines.comparison.text import text_lines

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
