"""`refinery acquire commoncrawl`: some files of a crawl, whole and checked."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import counted, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery acquire commoncrawl --snapshot CC-MAIN-2024-10 --files 4 --output crawl
  refinery acquire commoncrawl --snapshot CC-MAIN-2024-10 --kind wet --files 100 --rate 50 --output crawl
Interrupted? Run the same command again. A larger --files keeps what is there."""
SERVER = "https://data.commoncrawl.org"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--snapshot", required=True, metavar="NAME", help="CC-MAIN-2024-10, or CC-NEWS/2024/05")
    parser.add_argument("--files", required=True, type=counted, metavar="N", help="how many, by hash of their names")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="a local folder")
    parser.add_argument("--kind", default="warc", choices=["warc", "wet"], help="pages, or their text (default: warc)")
    parser.add_argument("--seed", type=int, default=0, help="which files (default: 0)")
    parser.add_argument("--rate", type=float, default=25.0, metavar="MB", help="megabytes a second at most (25)")
    parser.add_argument("--server", default=SERVER, metavar="URL", help=f"a mirror (default: {SERVER})")
    parser.add_argument("--check", action="store_true", help="read again what is there, and fetch what has changed")
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Download, and say what to write into a recipe."""
    for line in acquire(args, say):
        result(line)
    return ExitCode.DONE


def acquire(args: Namespace, say: Callable[[str], None]) -> Iterator[str]:
    """Download; the last lines are for a recipe. Raises ValueError and OSError as `acquire_crawl` does."""
    from refinery.pipelines.acquire.commoncrawl import Crawl, acquire_crawl

    crawl = Crawl(args.snapshot, args.files, args.kind, args.seed, args.server)
    return acquire_crawl(crawl, args.output, args.rate * 1e6, args.check, say)


COMMAND = Command(
    name="acquire commoncrawl",
    summary="download files of a crawl",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
