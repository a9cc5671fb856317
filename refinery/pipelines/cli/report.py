"""`refinery report`: a run as a page."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.reports.run.facts import Facts

EXAMPLES = """examples:
  refinery report out/web                                    writes out/web/report.html if it is not there
  refinery report out/web --overwrite                        writes it anew
  refinery report gs://bucket/corpus --output report.html    as a local file
  refinery report out/web --texts --output dropped.html      with texts of what was dropped, read again where they were
  refinery report out/web --work gs://parts/web --core-hour-price 0.04 --output cheap.html
The page needs no network: open it in a browser. Every run of `refinery refine` ends with one."""


def arguments(parser: ArgumentParser) -> None:
    from refinery.pipelines.recipe.quantities.prices import PRICES
    from refinery.pipelines.recipe.quantities.quantity import typed

    price = PRICES["core_hour_price"]
    parser.add_argument("prefix", metavar="PREFIX", help="of a finished run: a folder, gs://… or s3://…")
    parser.add_argument("--output", default="", metavar="FILE", help="where the page goes (PREFIX/report.html)")
    parser.add_argument("--overwrite", action="store_true", help="replace a page that is there")
    parser.add_argument(
        "--texts",
        action="store_true",
        help="quote dropped documents, read at their origins again; texts dropped for secrets, personal data, harmful "
        "content or rights are left out. Needs --output, outside the corpus",
    )
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts are (PREFIX/work)")
    parser.add_argument(
        "--recipe", default="", metavar="FILE", help="the run's, where it has stages or a writer of its own"
    )
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
    from refinery.pipelines.run.wall_clock import read_times
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
    if args.texts:
        _check_outside(args.output, store.root)
    times = read_times(open_store(args.work or store.url("work")))
    facts = read_facts(store, seconds_of_work(store, args.work), price, times=times)
    if args.texts:
        facts, problems = _with_texts(facts, args.prefix, args.recipe)
        yield from (f"no text: {problem}" for problem in problems)
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


def _check_outside(output: str, prefix: str) -> None:
    """Raises ValueError unless a page with texts goes to a file outside the corpus."""
    if not output:
        raise ValueError("--texts: give --output FILE, outside the corpus: the page quotes texts that were dropped")
    places = (
        (output, prefix) if "://" in output or "://" in prefix else (Path(output).resolve(), Path(prefix).resolve())
    )
    if f"{places[0]}/".startswith(f"{str(places[1]).rstrip('/')}/"):
        raise ValueError(f"--output: {output} is in the corpus, which no dropped text may be; name another place")


def _with_texts(facts: "Facts", prefix: str, recipe: str) -> "tuple[Facts, list[str]]":
    """The facts with the texts that replays give."""
    from refinery.pipelines.corpus.trace.answers import Doc
    from refinery.pipelines.corpus.trace.recorded_run import RecordedRun
    from refinery.pipelines.reports.run.replayed_texts import Text, with_texts

    recorded = RecordedRun(prefix, recipe, measure=False)

    def replayed(origin: str, source: str) -> Text:
        found, problem = recorded.replay(Doc(origin=origin, source=source))
        if found is None:
            return Text(problem=problem)
        return Text(found.text, "" if found.is_kept else found.last.stage)

    return with_texts(facts, replayed)


COMMAND = Command(
    name="report",
    summary="a finished run as one page of HTML: what deserves attention, funnel, distributions, documents to read",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={ExitCode.DONE: "the page is there", ExitCode.USAGE: "there is no finished run, or the file is there"},
)
