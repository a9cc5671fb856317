"""`refinery plan`: what a corpus will take."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.reports.plan.inputs import Input

EXAMPLES = """examples:
  refinery plan                                                     the reference case
  refinery plan --tokens 1T --preset strict --pass-days 7 --gpus 256 --train-days 20
  refinery plan --tokens 1T --retention quality=0.2 --retention language=0.35 --hosts 100
  refinery plan --from out/one-percent --share 1%                   what the whole will take, with an interval
  refinery plan --from out/one-percent --share 1% --html plan.html   the same as a page with sliders
Counts may end in k, M, B (billion) or T, bytes in kB, MB, GB, TB or PB.
docs/planning.md says what is computed and what is assumed."""


def arguments(parser: ArgumentParser) -> None:
    from refinery.pipelines.recipe.quantities.quantity import typed
    from refinery.pipelines.reports.plan.inputs import INPUTS

    source = parser.add_mutually_exclusive_group()
    source.add_argument("--preset", default="", metavar="NAME", help="retentions: reference (default), lazy or strict")
    source.add_argument(
        "--from", default="", dest="prefix", metavar="PREFIX", help="retentions, speed and tokens of a finished run"
    )
    parser.add_argument(
        "--retention",
        action="append",
        default=[],
        metavar="STAGE=SHARE",
        help="what a stage keeps of the bytes that enter it, instead of the preset's; may be repeated",
    )
    parser.add_argument("--share", default="", help="with --from: how much of the whole that run read, e.g. 1%%")
    parser.add_argument("--work", default="", metavar="LOCATION", help="with --from: where its parts are (PREFIX/work)")
    parser.add_argument("--hosts", default="", metavar="N", help="hosts that there are; the days follow from them")
    parser.add_argument("--html", default="", metavar="FILE", help="write the plan as a page with sliders instead")
    parser.add_argument("--overwrite", action="store_true", help="replace a page that is there")
    parser.add_argument("--json", action="store_true", help="one JSON object of every quantity instead of text")
    for each in INPUTS:
        default = f"; default {typed(each.reference)}" if each.name != "raw" else ""
        parser.add_argument(each.flag, default="", metavar="N", help=f"{each.meaning}{default}".replace("%", "%%"))


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print the plan, or write its page."""
    for line in _lines(args):
        say(line)
    return ExitCode.DONE


def _lines(args: Namespace) -> Iterator[str]:
    """The plan, line by line; with --html its page is written. Raises ValueError for flags that cannot be."""
    from refinery.loader.storage.open_store import open_store
    from refinery.pipelines.recipe.quantities.quantity import parse_quantity, parse_share
    from refinery.pipelines.reports.plan.from_run import forecast_lines, plan_from
    from refinery.pipelines.reports.plan.inputs import BY_NAME, INPUTS, check_input
    from refinery.pipelines.reports.plan.measured import measure
    from refinery.pipelines.reports.plan.outputs import plan_json, plan_lines
    from refinery.pipelines.reports.plan.page import plan_page
    from refinery.pipelines.reports.plan.presets import chosen
    from refinery.pipelines.reports.plan.scenario import on_hosts, scenario
    from refinery.pipelines.run.phases import seconds_of_work
    from refinery.pipelines.training.new_file import check_new, write_new

    given = {each.name: text for each in INPUTS if (text := getattr(args, each.name))}
    inputs = {name: read_input(BY_NAME[name], text) for name, text in given.items()}
    for name, value in inputs.items():
        check_input(BY_NAME[name], value)
    if args.html and not args.overwrite:
        check_new(args.html)
    found = None
    if args.prefix:
        if args.retention:
            raise ValueError("--retention changes a preset; with --from the measured ones hold (--html has sliders)")
        share = read("--share", parse_share, args.share) if args.share else 0.0
        seconds = sum((seconds_of_work(open_store(args.prefix), args.work) or {}).values())
        found = plan_from(measure(args.prefix, seconds), inputs, share)
        plan = found.plan
    else:
        if args.share or args.work:
            raise ValueError("--share and --work belong to --from PREFIX")
        hand = dict(read_retention(text) for text in args.retention)
        plan = scenario(inputs, chosen(args.preset, hand) if args.preset or hand else None)
    if args.hosts:
        if args.pass_days:
            raise ValueError("--hosts and --pass-days: give one, the other follows from it")
        plan = on_hosts(plan, read("--hosts", partial(parse_quantity, kind="count"), args.hosts))
    lines = list(forecast_lines(found)) if found else []
    if args.html:
        notes = "; ".join(line.strip().removeprefix("measured: ") for line in lines if line)
        page = plan_page(plan, found.retentions if found else None, notes)
        write_new(args.html, page.encode(), args.overwrite)
        yield f"{args.html}: open it in a browser; it needs no network"
    elif args.json:
        yield plan_json(plan, found)
    else:
        yield from lines
        yield from plan_lines(plan)


def read_input(declared: "Input", text: str) -> float:
    """The value of an input's flag. Raises ValueError that names the flag."""
    from refinery.pipelines.recipe.quantities.quantity import parse_quantity

    return read(declared.flag, partial(parse_quantity, kind=declared.kind), text)


def read(flag: str, parse: Callable[[str], float], text: str) -> float:
    """A flag's value. Raises ValueError that names the flag."""
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def read_retention(text: str) -> tuple[str, float]:
    """STAGE=SHARE. Raises ValueError for anything else."""
    from refinery.pipelines.recipe.quantities.quantity import parse_share

    stage, equals, share = text.partition("=")
    if not equals:
        raise ValueError(f"--retention: {text!r:.80} given, STAGE=SHARE is expected, such as quality=0.2")
    return stage, read(f"--retention {stage:.80}", parse_share, share)


COMMAND = Command(
    name="plan",
    summary="what a corpus will take: raw bytes, cores, hosts, days, cost, and the loader's tokens per second",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={ExitCode.DONE: "computed", ExitCode.USAGE: "an input is impossible, or there is no corpus to measure"},
)
