"""`refinery audit`: a sample judged again."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import counted, progress, rate, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery audit out/web --sample 0.001 --inputs /data/crawl     the inputs, with the names that they had in the run
  refinery audit out/web --sample 1 --set quality.model=models/quality.bin
  refinery audit gs://bucket/corpus --sample 0.01 --inputs out/crawl=/mnt/crawl --files 20
  refinery audit out/web --sample 0.01 --seed 7 --output verdict.json
A sample of input records is judged again by the recipe in the manifest; documents, tokens, scores, decisions, reasons
and removals must be those that are published. `refinery verify` checks the files themselves: run it first."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    parser.add_argument("--sample", type=rate, required=True, metavar="RATE", help="share of the records, above 0 to 1")
    parser.add_argument(
        "--inputs",
        action="append",
        default=[],
        metavar="PLACE",
        help="where the inputs are now: a folder, or OLD=NEW; may be repeated (default: where the run read them)",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=FILE", help="where a file of the recipe is")
    parser.add_argument("--recipe", default="", metavar="FILE", help="the run's, where it has stages of its own")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another sample")
    parser.add_argument("--files", type=counted, metavar="N", help="only N of the input files, chosen by hash")
    parser.add_argument(
        "--workers", type=counted, default=os.cpu_count() or 1, metavar="N", help="processes (cores); 0: this one"
    )
    parser.add_argument("--output", default="", metavar="FILE", help="the verdict as sealed JSON")
    parser.add_argument("--overwrite", action="store_true", help="replace a verdict that is there")
    parser.add_argument("--json", action="store_true", help="print it instead of text")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Say what was found; FAILED unless all agrees. Raises ValueError for flags and inputs that are wrong."""
    from refinery.pipelines.corpus.audit.audit import audit
    from refinery.pipelines.corpus.audit.recorded import Asked
    from refinery.pipelines.corpus.audit.sample import Sample
    from refinery.pipelines.training.new_file import check_new, write_new

    if not 0 < args.sample <= 1:
        raise ValueError(f"--sample: {args.sample} given, above 0 and up to 1 is allowed")
    for name, least in (("files", 1), ("workers", 0)):
        if (value := getattr(args, name)) is not None and value < least:
            raise ValueError(f"--{name}: {value} given, {least} or more is allowed")
    if args.output and not args.overwrite:
        check_new(args.output)
    asked = Asked(args.prefix, tuple(args.inputs), tuple(args.set), args.recipe)
    verdict = audit(asked, Sample(args.sample, args.seed), args.workers, args.files, progress)
    if args.output:
        write_new(args.output, verdict.sealed(), args.overwrite)
    for line in verdict.sealed().decode().splitlines() if args.json else verdict.lines():
        say(line)
    return ExitCode.DONE if verdict.is_sound else ExitCode.FAILED


COMMAND = Command(
    name="audit",
    summary="recompute a sample of a corpus from its inputs and compare bytes, decisions and reasons",
    section=Section.CHECK,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
    exit_codes={
        ExitCode.DONE: "everything that was compared agrees",
        ExitCode.FAILED: "something differs, or nothing was compared",
        ExitCode.USAGE: "the command is wrong, or inputs or models are not those of the run",
    },
)
