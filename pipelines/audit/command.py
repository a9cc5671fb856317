"""The flags of `refinery audit` and what it does; what it needs is imported when it runs."""

import argparse
import os
from collections.abc import Callable
from typing import Any, cast

AUDIT_EXAMPLES = """examples:
  refinery audit out/web --sample 0.001 --inputs /data/crawl     the inputs, with the names that they had in the run
  refinery audit out/web --sample 1 --set quality.model=models/quality.bin
  refinery audit gs://bucket/corpus --sample 0.01 --inputs out/crawl=/mnt/crawl --files 20
  refinery audit out/web --sample 0.01 --seed 7 --output verdict.json
A sample of input records is judged again by the recipe in the manifest; documents, tokens, scores, decisions, reasons
and removals must be those that are published. `refinery verify` checks the files themselves: run it first."""


def add_audit(commands: Any) -> argparse.ArgumentParser:
    """Add the command's parser to `commands`, the subparsers of the command line."""
    audit = commands.add_parser(
        "audit",
        help="recompute a sample of a corpus from its inputs and compare bytes, decisions and reasons",
        epilog=AUDIT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    audit.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    audit.add_argument("--sample", type=float, required=True, metavar="RATE", help="share of the records, above 0 to 1")
    audit.add_argument(
        "--inputs",
        action="append",
        default=[],
        metavar="PLACE",
        help="where the inputs are now: a folder, or OLD=NEW; may be repeated (default: where the run read them)",
    )
    audit.add_argument("--set", action="append", default=[], metavar="KEY=FILE", help="where a file of the recipe is")
    audit.add_argument("--recipe", default="", metavar="FILE", help="the run's, where it has stages of its own")
    audit.add_argument("--seed", type=int, default=0, metavar="N", help="another sample")
    audit.add_argument("--files", type=int, metavar="N", help="only N of the input files, chosen by hash")
    audit.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (cores); 0: this one"
    )
    audit.add_argument("--output", default="", metavar="FILE", help="the verdict as sealed JSON")
    audit.add_argument("--overwrite", action="store_true", help="replace a verdict that is there")
    audit.add_argument("--json", action="store_true", help="print it instead of text")
    return cast(argparse.ArgumentParser, audit)


def audit_command(args: argparse.Namespace, say: Callable[[str], None]) -> bool:
    """Say what was found; whether all agrees. Raises ValueError for flags and inputs that are wrong."""
    from refinery.pipelines.audit.audit import audit
    from refinery.pipelines.audit.recorded import Asked
    from refinery.pipelines.audit.sample import Sample
    from refinery.pipelines.tracing.command import progress
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
    return verdict.is_sound
