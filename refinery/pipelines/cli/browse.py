"""`refinery browse`: a run in a browser."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from importlib.util import find_spec

from refinery import DISTRIBUTION
from refinery.pipelines.shell.arguments import progress, result
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery browse out/web                                   prints an address; open it in a browser on this machine
  refinery browse out/web out/web2                          two runs, and the documents whose fate differs
  refinery browse gs://bucket/corpus --port 8321 --judgements web.jsonl
  ssh -L 8321:127.0.0.1:8321 host refinery browse out/web --port 8321      from another machine
It serves this machine alone, and one browser: the address works once. Ctrl-C ends it. Needs the extra [browse]."""
SAMPLE = 100
MOST_SAMPLE = 1_000
JUDGEMENTS = "refinery-judgements.jsonl"
NEEDED = ("starlette", "uvicorn")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "prefix", metavar="PREFIX", nargs="+", help="of one run or two: folders, gs://… or s3://…; finished or not"
    )
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="of 127.0.0.1 (default: a free one)")
    parser.add_argument(
        "--judgements",
        default=JUDGEMENTS,
        metavar="FILE",
        help=f"where judgements are added, a local file outside the runs (default: {JUDGEMENTS})",
    )
    parser.add_argument(
        "--sample",
        type=_sample,
        default=SAMPLE,
        metavar="N",
        help=f"documents of a sample: of words, thresholds and two large runs (default: {SAMPLE})",
    )
    parser.add_argument(
        "--work",
        action="append",
        default=[],
        metavar="LOCATION",
        help="where parts are (PREFIX/work); once for each run",
    )
    parser.add_argument(
        "--recipe",
        action="append",
        default=[],
        metavar="FILE",
        help="the run's, where it has stages of its own; once for each run",
    )


def _port(text: str) -> int:
    return _number(text, 0, 65_535)


def _sample(text: str) -> int:
    return _number(text, 1, MOST_SAMPLE)


def _number(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and least <= int(text) <= most):
        raise ArgumentTypeError(f"{text!r:.40} given, a number from {least:,} to {most:,} is allowed")
    return int(text)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Serve until it is interrupted."""
    for name in NEEDED:
        if find_spec(name) is None:
            raise ValueError(f"{name} is not installed; browse needs pip install '{DISTRIBUTION}[browse]'")
    if len(args.prefix) > 2:
        raise ValueError(f"{len(args.prefix)} runs given, one or two are allowed")
    for flag in ("work", "recipe"):
        if len(getattr(args, flag)) > len(args.prefix):
            raise ValueError(f"--{flag}: given {len(getattr(args, flag))} times, once for each run is allowed")

    from refinery.pipelines.corpus.browse.serve import look_at, serve

    both = [[*given, "", ""] for given in (args.work, args.recipe)]
    runs = look_at(args.prefix, *both)
    progress("open this address in a browser on this machine; it works once; Ctrl-C ends the server")
    serve(runs, args.judgements, args.port, args.sample, result)
    return ExitCode.DONE


COMMAND = Command(
    name="browse",
    summary="a run, or two, in a browser: search, documents stage by stage, thresholds, clusters, judgements",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={
        ExitCode.DONE: "it was ended by Ctrl-C",
        ExitCode.USAGE: "the command is wrong, the extra [browse] is missing, or there is no run",
    },
)
