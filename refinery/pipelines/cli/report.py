"""`refinery report`: a run as a page."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery report out/web                                    writes out/web/report.html if it is not there
  refinery report out/web --overwrite                        writes it anew
  refinery report gs://bucket/corpus --output report.html    as a local file
  refinery report out/web --work gs://parts/web --core-hour-price 0.04 --output cheap.html
The page needs no network: open it in a browser. Every run of `refinery refine` ends with one."""


def arguments(parser: ArgumentParser) -> None:
    from refinery.pipelines.recipe.quantities.prices import PRICES
    from refinery.pipelines.recipe.quantities.quantity import typed

    price = PRICES["core_hour_price"]
    parser.add_argument("prefix", metavar="PREFIX", help="of a finished run: a folder, gs://… or s3://…")
    parser.add_argument("--output", default="", metavar="FILE", help="where the page goes (PREFIX/report.html)")
    parser.add_argument("--overwrite", action="store_true", help="replace a page that is there")
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts are (PREFIX/work)")
    parser.add_argument("--recipe", default="", metavar="FILE", help="the run's, where it has a writer of its own")
    parser.add_argument(
        "--core-hour-price",
        default="",
        metavar="N",
        help=f"dollars for an hour of a core; default {typed(price.dollars)}, a list price of {price.noted}",
    )


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Write the page, and say where it is and what deserves attention."""
    for line in _lines(args):
        say(line)
    return ExitCode.DONE


def _lines(args: Namespace) -> Iterator[str]:
    """Write the page and say where, with what deserves attention. Raises ValueError for a prefix without a finished
    run, or a file that is there."""
    from refinery.loader.storage.open_store import open_store
    from refinery.pipelines.recipe.quantities.quantity import parse_quantity
    from refinery.pipelines.recipe.writers import know_writer_of
    from refinery.pipelines.reports.run.attention import findings
    from refinery.pipelines.reports.run.facts import PRICE as USUAL
    from refinery.pipelines.reports.run.facts import read_facts
    from refinery.pipelines.reports.run.report_page import report_page
    from refinery.pipelines.reports.run.write import REPORT
    from refinery.pipelines.run.phases import seconds_of_work
    from refinery.pipelines.training.new_file import check_new, write_new

    price = USUAL
    if args.core_hour_price:
        try:
            price = parse_quantity(args.core_hour_price, "dollars")
        except ValueError as error:
            raise ValueError(f"--core-hour-price: {error}") from None
    if not args.output and args.prefix.startswith(("http://", "https://")):
        raise ValueError(f"{args.prefix} cannot be written; give --output FILE")
    know_writer_of(args.recipe)
    store = open_store(args.prefix)
    output = args.output or store.url(REPORT)
    facts = read_facts(store, seconds_of_work(store, args.work), price)
    if not args.output and not args.overwrite and store.size(REPORT) is not None:
        yield f"{output} is there already: open it in a browser (--overwrite writes it anew)"
    else:
        if not args.overwrite:
            check_new(output)
        write_new(output, report_page(facts).encode(), args.overwrite)
        yield f"{output}: open it in a browser; it needs no network"
    for finding in findings(facts):
        if finding.warns:
            yield f"look: {finding.text}"


COMMAND = Command(
    name="report",
    summary="a finished run as one page of HTML: what deserves attention, funnel, distributions, documents to read",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={ExitCode.DONE: "the page is there", ExitCode.USAGE: "there is no finished run, or the file is there"},
)
