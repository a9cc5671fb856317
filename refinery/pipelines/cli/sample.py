"""`refinery sample`: documents to read."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from refinery.pipelines.shell.arguments import counted, progress, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery sample out/web                                          20 documents of the corpus
  refinery sample out/web -n 5 --seed 7 --measure                  with what every rule measured
  refinery sample out/web --stage heuristics                       what a stage dropped
  refinery sample out/web --stage heuristics --reason gopher-too-few-words -n 50 --json
The same seed draws the same documents. $PAGER names the pager, `less` without one."""
MOST = 10_000  # documents at once


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a run: a folder, gs://… or s3://…")
    parser.add_argument(
        "--stage", default="", metavar="NAME", help="documents that this stage dropped, instead of kept ones"
    )
    parser.add_argument("--reason", default="", metavar="NAME", help="documents that were dropped for this reason")
    parser.add_argument("-n", dest="number", type=counted, default=20, metavar="N", help="number of documents (20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which ones (0)")
    parser.add_argument(
        "--measure", action="store_true", help="kept documents: judge them again, and show what every rule measured"
    )
    parser.add_argument("--no-replay", action="store_true", help="dropped documents: do not read their records again")
    parser.add_argument("--recipe", default="", metavar="FILE", help="the run's recipe, if it has stages of its own")
    parser.add_argument("--json", action="store_true", help="one JSON object per document instead of text")
    parser.add_argument("--no-pager", action="store_true", help="print without a pager, also to a terminal")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Show documents; FAILED where there is none."""
    from refinery.pipelines.corpus.show.pager import page
    from refinery.pipelines.corpus.show.sample import (
        nothing_line,
        sample_json,
        sample_kept,
        sample_lines,
        sample_rejected,
    )
    from refinery.pipelines.corpus.show.texts import Texts

    if not 1 <= args.number <= MOST:
        raise ValueError(f"-n: {args.number} given, 1 to {MOST:,} is allowed")
    texts = Texts(args.prefix, args.recipe)
    texts.corpus.load_with_run()
    found: Iterator[Any]
    if args.stage or args.reason:
        chosen = (args.stage, args.reason, args.number, args.seed, not args.no_replay)
        found = sample_rejected(texts, *chosen, progress)
    else:
        found = sample_kept(texts, args.number, args.seed, args.measure)
    first = next(found, None)
    if first is None:
        progress(nothing_line(texts, args.stage, args.reason))
        return ExitCode.FAILED
    found = chain([first], found)
    page(sample_json(found) if args.json else sample_lines(found), say, not (args.no_pager or args.json))
    return ExitCode.DONE


COMMAND = Command(
    name="sample",
    summary="show kept or dropped documents, with what rules measured beside their thresholds",
    section=Section.LOOK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={
        ExitCode.DONE: "there was something to read",
        ExitCode.FAILED: "there was nothing",
        ExitCode.USAGE: "the command is wrong, or there is no corpus",
    },
)
