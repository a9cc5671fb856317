"""`refinery try`: one document through every stage."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.corpus.replay.try_document import Decision

EXAMPLES = """examples:
  refinery try my.yaml --text page.txt
  refinery try my.yaml --text page.html --html --address https://example.org/page
  echo "…" | refinery try my.yaml --text - --set heuristics.gopher.min_words=20
  refinery try my.yaml --origin 'crawl/a.warc.gz@1024'             as `refinery trace` and rejects/ print origins
  refinery try my.yaml --url https://example.org/page --url-from out/web    finds the origin in that run first
A rule's measured value is the threshold at which its decision changes. Deduplication is left out, because it needs the
other documents."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("recipe", help="a YAML file, see docs/recipes.md")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a recipe key")
    parser.add_argument(
        "--input", action="append", default=[], metavar="GLOB", help="read these files instead of the recipe's sources"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", default="", metavar="FILE", help="a local file, or - for standard input")
    what.add_argument("--url", default="", help="the page of this address in the recipe's sources")
    what.add_argument("--origin", default="", help="the record at input file@offset")
    parser.add_argument("--html", action="store_true", help="with --text: the text is an HTML page")
    parser.add_argument("--address", default="", metavar="URL", help="with --text: the address of the text")
    parser.add_argument(
        "--url-from", default="", metavar="PREFIX", help="with --url: a run that knows where the page is"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per stage, one a line")


def decisions_of(args: Namespace, origin: str) -> "Iterator[Decision]":
    """The decisions about the document that the flags name; origin: where it is, if that is known."""
    from refinery.pipelines.corpus.replay.find_record import from_sources, from_text
    from refinery.pipelines.corpus.replay.try_document import try_document
    from refinery.pipelines.recipe.load_recipe import load_recipe

    if (args.html or args.address) and not args.text:
        raise ValueError("--html and --address belong to --text FILE; a record of a source has its own")
    recipe = load_recipe(args.recipe, args.set, args.input)
    if args.text:
        raw = from_text(args.text, recipe.limits.max_record_bytes, args.html, args.address)
    else:
        raw = from_sources(recipe, args.url, origin)
    return try_document(recipe, raw)


def try_json(decisions: "Iterable[Decision]") -> Iterator[str]:
    """An object a stage: what `Decision` and `Reading` hold."""
    for each in decisions:
        yield json.dumps(asdict(each), default=str, allow_nan=False)


def origin_of(prefix: str, url: str) -> str:
    """Where the page of that URL was read by the run at `prefix`: input file@offset. Raises ValueError if that is not
    known there, as of pages that a rule dropped and the sample of rejects left out."""
    from refinery.pipelines.corpus.trace.answers import Missing, Query
    from refinery.pipelines.corpus.trace.trace_documents import trace

    for _, answer in trace(prefix, [Query("url", url)]).answers:
        if not isinstance(answer, Missing) and answer.doc.origin:
            return answer.doc.origin
    raise ValueError(
        f"{url:.300}: {prefix} does not know where it was read; without --url-from all sources are searched"
    )


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print what every stage decides about one document; 1 if one of them loses it."""
    from refinery.pipelines.corpus.replay.decision_text import decision_lines

    if args.url_from and not args.url:
        raise ValueError("--url-from belongs to --url")
    origin = origin_of(args.url_from, args.url) if args.url_from else args.origin
    decisions = list(decisions_of(args, origin))
    for line in try_json(decisions) if args.json else decision_lines(decisions):
        say(line)
    return ExitCode.FAILED if decisions[-1].outcome in ("dropped", "dead") else ExitCode.DONE


COMMAND = Command(
    name="try",
    summary="take one document through every stage of a recipe: each decision, and what every rule measured",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={ExitCode.DONE: "it came through all stages", ExitCode.FAILED: "a stage dropped it or failed"},
)
