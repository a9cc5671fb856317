"""`refinery show`: a document's text."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.cli.trace import FOUND, add_documents, named_documents
from refinery.pipelines.shell.arguments import progress, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery show out/web --url https://example.org/page
  refinery show out/web --id 0f9c2e6a41d7b8350f9c2e6a41d7b835 --tokens
  refinery show out/web --token train/web/shard-00000-of-00016:1234
  refinery show out/web --origin 'crawl/a.warc.gz@1024'           also for a page that was dropped
  refinery show out/web --url https://example.org/page --raw > page.txt
A document of the corpus is decoded from its tokens, or read from its shard of texts; another one is read at its origin
again, credentials redacted."""


def arguments(parser: ArgumentParser) -> None:
    add_documents(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--tokens", action="store_true", help="ids and pieces, a line a token, instead of the text")
    form.add_argument("--raw", action="store_true", help="only the text, with nothing escaped, for files and pipes")
    form.add_argument("--json", action="store_true", help="one JSON object per document instead of text")
    parser.add_argument("--no-pager", action="store_true", help="print without a pager, also to a terminal")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Show the documents; FAILED unless all that were asked for were found."""
    from refinery.loader.errors import NoTokens
    from refinery.pipelines.corpus.show.pager import page
    from refinery.pipelines.corpus.show.show import raw_texts, show_json, show_lines
    from refinery.pipelines.corpus.show.texts import Texts
    from refinery.pipelines.corpus.trace.trace_documents import trace

    queries = named_documents(args)
    if not queries:
        raise ValueError("nothing to show: give --url, --id, --origin or --token; `refinery sample` draws documents")
    texts = Texts(args.prefix, args.recipe, args.work)
    texts.corpus.load_with_run()
    if args.tokens and not texts.corpus.manifest.has_tokens:
        raise NoTokens(args.prefix)
    found = trace(args.prefix, queries, args.work, progress, texts.corpus)
    lines = (
        raw_texts(found, texts)
        if args.raw
        else show_json(found, texts)
        if args.json
        else show_lines(found, texts, args.tokens)
    )
    page(lines, say, not (args.no_pager or args.raw or args.json))
    return ExitCode.DONE if found.complete else ExitCode.FAILED


COMMAND = Command(
    name="show",
    summary="show a document's text as published, and its origin",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes=FOUND,
)
