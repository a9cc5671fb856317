"""`refinery mix`: a view of corpora."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.progress.output import current
from refinery.pipelines.progress.work import Work
from refinery.pipelines.shell.arguments import counted, result
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.live import live_totals
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery mix half.yaml --output views/half
  refinery mix half.yaml --output views/more --set domains.web.tokens=2000000
  refinery mix half.yaml --dry-run                 the table of documents, tokens and epochs; nothing is written
  refinery mix views/half --corpus demo=out/demo-2 --output views/half-2   the same view after a takedown
A view copies no tokens: a manifest, and an index of the documents that it takes. docs/mixing.md has recipes;
`refinery verify` proves a view, TokenStream streams it."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="a YAML file (docs/mixing.md); with --corpus a view")
    parser.add_argument(
        "--corpus",
        action="append",
        default=[],
        metavar="NAME=PREFIX",
        help="make the view RECIPE again, with this version of its corpus, from which documents were taken out",
    )
    parser.add_argument("--output", default="", metavar="VIEW", help="where the view goes: a folder, gs://… or s3://…")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="set a key of the recipe")
    parser.add_argument("--dry-run", action="store_true", help="print what the view would be; nothing is written")
    parser.add_argument(
        "--workers", type=counted, default=os.cpu_count() or 1, metavar="N", help="processes that read shards (cores)"
    )
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Make a view, or say what it would be."""
    for line in _lines(args):
        result(line)
    return ExitCode.DONE


def _lines(args: Namespace) -> Iterator[str]:
    """Make the view, or say what it would be. Raises ValueError for flags and recipes that cannot be."""
    from refinery.pipelines.corpus.mix.build import published_domains
    from refinery.pipelines.corpus.mix.make_view import dry_run, make_view, view_again
    from refinery.pipelines.corpus.mix.recipe import load_mix
    from refinery.pipelines.corpus.mix.tables import bin_lines, domain_lines

    if args.workers < 0:
        raise ValueError(f"--workers: {args.workers} given, 0 or more is allowed")
    before = None
    if args.corpus:
        pairs = [each.partition("=") for each in args.corpus]
        if wrong := [each for each, (name, _, where) in zip(args.corpus, pairs, strict=True) if not name or not where]:
            raise ValueError(f"--corpus: {wrong[0]!r} given, NAME=PREFIX is expected")
        if args.set:
            raise ValueError("--set: given with --corpus, which makes a view again by its own recipe")
        recipe, before = view_again(args.recipe, {name: where for name, _, where in pairs})
    else:
        recipe = load_mix(args.recipe, args.set)
    if args.dry_run:
        built, _ = dry_run(recipe, args.workers)
        yield from bin_lines(built.domains, built.plan)
        yield from domain_lines(built.domains)
        return
    if not args.output:
        raise ValueError("--output: none given, a folder, gs:// or s3:// for the view is needed (or --dry-run)")
    work = Work("mix")
    with current().watch("mix", live_totals, work):
        view = make_view(recipe, args.output, work, args.workers, before)
    yield from bin_lines(published_domains(view), view.plan)
    yield from domain_lines(published_domains(view))
    size = view.selection.size if view.selection else 0
    documents, tokens = many(view.totals["documents"], "document"), many(view.totals["tokens"], "token")
    yield f"{documents}, {tokens}; {many(size, 'byte')} of selection"
    yield f"check it:   refinery verify {args.output}"


COMMAND = Command(
    name="mix",
    summary="a view of one or several corpora: filters, upsampling, caps, targets and weights, without copying tokens",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
