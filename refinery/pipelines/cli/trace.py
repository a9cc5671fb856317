"""`refinery trace`: what became of a page."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.shell.arguments import progress, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.corpus.trace.answers import Query

EXAMPLES = """examples:
  refinery trace out/web --url https://example.org/page
  refinery trace out/web --id 0f9c2e6a41d7b8350f9c2e6a41d7b835 --origin 'crawl/a.warc.gz@1024'
  refinery trace out/web --token train/web/shard-00000-of-00016:1234     whose token that is
  refinery trace out/web --text -                        all of a document's text, from standard input
  refinery trace out/web --text 'a few of its words' --search-texts 10G    a part of it
  refinery trace out/web --url https://example.org/page --search-inputs    reads the run's inputs for it
  refinery trace gs://bucket/corpus --urls addresses.txt --json
A page that was dropped or failed is read at its origin again and judged by the run's recipe: which rule, what it
measured, its threshold. An id, a text or a token costs one shard; a URL or an origin a column of every shard."""
FOUND: Mapping[ExitCode, str] = {
    ExitCode.DONE: "everything was found",
    ExitCode.FAILED: "something was not",
    ExitCode.USAGE: "the command is wrong, or there is no corpus, or a damaged one",
}
MOST_TEXT = 64 << 20  # bytes of a text that is asked for


def arguments(parser: ArgumentParser) -> None:
    add_documents(parser)
    parser.add_argument("--text", default="", help="the whole text of a document, or - for standard input")
    parser.add_argument("--urls", metavar="FILE", help="a local file of URLs, one per line")
    parser.add_argument(
        "--search-inputs", action="store_true", help="read the inputs of the run for URLs that are listed nowhere"
    )
    parser.add_argument(
        "--search-texts",
        default="",
        metavar="SIZE",
        help="with --text, which may then be a part: read up to SIZE of texts for it",
    )
    parser.add_argument("--no-replay", action="store_true", help="do not judge dropped pages again")
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of text")


def add_documents(parser: ArgumentParser) -> None:
    """The arguments that say which documents of which run are meant."""
    parser.add_argument("prefix", metavar="PREFIX", help="of a run: a folder, gs://… or s3://…")
    for name, form, what in (
        ("url", "URL", "URL of a page, exactly as in the input"),
        ("id", "HEX", "id of a document, 32 hexadecimal digits"),
        ("origin", "ORIGIN", "input file@offset, as in rejects/ and dead_letters/"),
        ("token", "SHARD:OFFSET", "a token: the shard's name, or its number in train/, and the offset in it"),
    ):
        parser.add_argument(f"--{name}", action="append", default=[], metavar=form, help=f"{what}; may be repeated")
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts are (PREFIX/work)")
    parser.add_argument("--recipe", default="", metavar="FILE", help="the run's, where it has stages of its own")


def named_documents(args: Namespace) -> "list[Query]":
    """What these arguments ask for. Raises ValueError for what no document can have."""
    from refinery.pipelines.corpus.trace.answers import Query

    return [Query(field, value) for field in ("url", "id", "origin", "token") for value in getattr(args, field)]


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Say what was found; FAILED unless that is everything."""
    from refinery.pipelines.corpus.trace.answers import Query
    from refinery.pipelines.corpus.trace.trace_documents import trace
    from refinery.pipelines.corpus.trace.trace_text import json_lines, text_lines

    if args.search_texts and not args.text:
        raise ValueError("--search-texts belongs to --text")
    text = read_text() if args.text == "-" else args.text
    queries = named_documents(args)
    queries += [Query("url", url) for url in (read_lines(args.urls) if args.urls else [])]
    searched = ""
    if args.search_texts:
        from refinery.pipelines.corpus.trace.search_texts import search_texts

        if args.recipe:
            from refinery.pipelines.recipe.writers import know_writer_of

            know_writer_of(args.recipe)
        most = parse_size("--search-texts", args.search_texts)
        found_texts = search_texts(args.prefix, args.work, text, most, progress)
        queries += [Query("id", id_) for id_ in found_texts.ids]
        searched = found_texts.line
    if text and (not searched or not found_texts.ids):
        queries.append(Query("text", text))
    found = trace(args.prefix, queries, args.work, progress)
    if args.search_inputs or not args.no_replay:
        from refinery.pipelines.corpus.trace.replays import replay_answers

        found = replay_answers(found, args.prefix, args.recipe, args.search_inputs, progress)
    for line in json_lines(found) if args.json else text_lines(found):
        say(line)
    if searched:
        progress(searched)
    return ExitCode.DONE if found.complete else ExitCode.FAILED


def parse_size(flag: str, text: str) -> float:
    """Bytes. Raises ValueError that names the flag."""
    from refinery.pipelines.recipe.quantities.quantity import parse_quantity

    try:
        return parse_quantity(text, "bytes")
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def read_text() -> str:
    """Standard input as text. Raises ValueError where it is longer than documents are."""
    data = sys.stdin.buffer.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise ValueError(f"--text: more than {MOST_TEXT:,} bytes given; no document is as long, give a part of it")
    return data.decode("utf-8", "replace")


def read_lines(path: str) -> list[str]:
    """Lines of a local file without line breaks or a byte order mark; empty ones are skipped."""
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as stream:
        lines = (line.rstrip("\r\n") for line in stream)
        return [line for line in lines if line]


COMMAND = Command(
    name="trace",
    summary="what became of a page: in the corpus, removed, dropped by which rule at which value, failed",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes=FOUND,
)
