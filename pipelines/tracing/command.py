"""The flags of `refinery trace` and what it says; what it needs is imported when it runs."""

import argparse
from collections.abc import Iterator
from typing import Any, cast

TRACE_EXAMPLES = """examples:
  refinery trace out/web --url https://example.org/page
  refinery trace out/web --id 0f9c2e6a41d7b8350f9c2e6a41d7b835 --origin 'crawl/a.warc.gz@1024'
  refinery trace gs://bucket/corpus --urls addresses.txt --json"""


def add_trace(commands: Any) -> argparse.ArgumentParser:
    """Add the command's parser to `commands`, the subparsers of the command line."""
    trace = commands.add_parser(
        "trace",
        help="what became of a page: in the corpus, removed, dropped, failed",
        epilog=TRACE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    trace.add_argument("prefix", metavar="PREFIX", help="of a run: a folder or gs://…")
    for name, form, what in (
        ("url", "URL", "URL of a page, exactly as in the input"),
        ("id", "HEX", "id of a document, 32 hexadecimal digits"),
        ("origin", "ORIGIN", "input file@offset, as in rejects/ and dead_letters/"),
    ):
        trace.add_argument(f"--{name}", action="append", default=[], metavar=form, help=f"{what}; may be repeated")
    trace.add_argument("--urls", metavar="FILE", help="a local file of URLs, one per line")
    trace.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts are (PREFIX/work)")
    trace.add_argument("--json", action="store_true", help="one JSON object per line instead of text")
    return cast(argparse.ArgumentParser, trace)


def trace_command(args: argparse.Namespace) -> tuple[bool, Iterator[str]]:
    """Whether everything was found, and what to print."""
    from refinery.pipelines.tracing.trace_documents import Query, trace
    from refinery.pipelines.tracing.trace_text import json_lines, text_lines

    urls = [*args.url, *(read_lines(args.urls) if args.urls else [])]
    asked = (("url", urls), ("id", args.id), ("origin", args.origin))
    found = trace(args.prefix, [Query(field, value) for field, values in asked for value in values], args.work)
    return found.complete, json_lines(found) if args.json else text_lines(found)


def read_lines(path: str) -> list[str]:
    """Lines of a local file without line breaks or a byte order mark; empty ones are skipped."""
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as stream:
        lines = (line.rstrip("\r\n") for line in stream)
        return [line for line in lines if line]


def origin_of(prefix: str, url: str) -> str:
    """Where the page of that URL was read by the run at `prefix`: input file@offset. Raises ValueError if that is not
    known there, as of pages that a rule dropped and the sample of rejects left out."""
    from refinery.pipelines.tracing.trace_documents import Missing, Query, trace

    for _, answer in trace(prefix, [Query("url", url)]).answers:
        if not isinstance(answer, Missing) and answer.doc.origin:
            return answer.doc.origin
    raise ValueError(f"{url:.300}: {prefix} does not know where it was read; without --from all sources are searched")
