"""The flags of `refinery show` and `refinery sample`; what they need is imported when they run."""

import argparse
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, cast

from refinery.pipelines.looking.pager import page
from refinery.pipelines.tracing.command import add_documents, named_documents, progress

SHOW_EXAMPLES = """examples:
  refinery show out/web --url https://example.org/page
  refinery show out/web --id 0f9c2e6a41d7b8350f9c2e6a41d7b835 --tokens
  refinery show out/web --token train/web/shard-00000-of-00016:1234
  refinery show out/web --origin 'crawl/a.warc.gz@1024'           also of a page that was dropped
  refinery show out/web --url https://example.org/page --raw > page.txt
A document of the corpus is decoded from its tokens; another one is read at its origin again, credentials redacted."""

SAMPLE_EXAMPLES = """examples:
  refinery sample out/web                                          20 documents of the corpus
  refinery sample out/web -n 5 --seed 7 --measure                  with what every rule measured
  refinery sample out/web --stage heuristics                       what a stage dropped
  refinery sample out/web --stage heuristics --reason gopher-too-few-words -n 50 --json
The same seed draws the same documents. $PAGER names the pager, `less` without one."""

MOST = 10_000  # documents at once


def add_show(commands: Any) -> argparse.ArgumentParser:
    """Add the command's parser to `commands`, the subparsers of the command line."""
    show = commands.add_parser(
        "show",
        help="a document's text as published, and where it comes from",
        epilog=SHOW_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_documents(show)
    form = show.add_mutually_exclusive_group()
    form.add_argument("--tokens", action="store_true", help="ids and pieces, a line a token, instead of the text")
    form.add_argument("--raw", action="store_true", help="the text alone, nothing in it escaped: for files and pipes")
    form.add_argument("--json", action="store_true", help="one JSON object a document instead of text")
    show.add_argument("--no-pager", action="store_true", help="print, also to a terminal")
    return cast(argparse.ArgumentParser, show)


def add_sample(commands: Any) -> argparse.ArgumentParser:
    """Add the command's parser to `commands`, the subparsers of the command line."""
    sample = commands.add_parser(
        "sample",
        help="documents to read, kept ones or dropped ones, with what rules measured beside their thresholds",
        epilog=SAMPLE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sample.add_argument("prefix", metavar="PREFIX", help="of a run: a folder, gs://… or s3://…")
    sample.add_argument("--stage", default="", metavar="NAME", help="of what this stage dropped, instead of the corpus")
    sample.add_argument("--reason", default="", metavar="NAME", help="of what was dropped for this reason")
    sample.add_argument("-n", dest="number", type=int, default=20, metavar="N", help="how many (20)")
    sample.add_argument("--seed", type=int, default=0, metavar="N", help="which ones (0)")
    sample.add_argument("--measure", action="store_true", help="kept ones: judged again, with what every rule measured")
    sample.add_argument("--no-replay", action="store_true", help="dropped ones: do not read their records again")
    sample.add_argument("--recipe", default="", metavar="FILE", help="the run's, where it has stages of its own")
    sample.add_argument("--json", action="store_true", help="one JSON object a document instead of text")
    sample.add_argument("--no-pager", action="store_true", help="print, also to a terminal")
    return cast(argparse.ArgumentParser, sample)


def show_command(args: argparse.Namespace, say: Callable[[str], None]) -> bool:
    """Show the documents; whether all that were asked for were found."""
    from refinery.pipelines.looking.show import raw_texts, show_json, show_lines
    from refinery.pipelines.looking.texts import Texts
    from refinery.pipelines.tracing.trace_documents import trace

    queries = named_documents(args)
    if not queries:
        raise ValueError("nothing to show: give --url, --id, --origin or --token; `refinery sample` draws documents")
    texts = Texts(args.prefix, args.recipe, args.work)
    found = trace(args.prefix, queries, args.work, progress, texts.manifest)
    lines = (
        raw_texts(found, texts)
        if args.raw
        else show_json(found, texts)
        if args.json
        else show_lines(found, texts, args.tokens)
    )
    page(lines, say, not (args.no_pager or args.raw or args.json))
    return found.complete


def sample_command(args: argparse.Namespace, say: Callable[[str], None]) -> bool:
    """Show documents; whether there was any."""
    from refinery.pipelines.looking.sample import nothing_line, sample_json, sample_kept, sample_lines, sample_rejected
    from refinery.pipelines.looking.texts import Texts

    if not 1 <= args.number <= MOST:
        raise ValueError(f"-n: {args.number} given, 1 to {MOST:,} is allowed")
    texts = Texts(args.prefix, args.recipe)
    found: Iterator[Any]
    if args.stage or args.reason:
        chosen = (args.stage, args.reason, args.number, args.seed, not args.no_replay)
        found = sample_rejected(texts, *chosen, progress)
    else:
        found = sample_kept(texts, args.number, args.seed, args.measure)
    first = next(found, None)
    if first is None:
        progress(nothing_line(texts, args.stage, args.reason))
        return False
    found = chain([first], found)
    page(sample_json(found) if args.json else sample_lines(found), say, not (args.no_pager or args.json))
    return True
