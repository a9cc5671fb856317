"""`refinery train-extractor`: the page extractor."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import counted, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery train-extractor gold.jsonl.gz pages.warc.gz --output weights.npy
  refinery train-extractor gold.jsonl.gz --folds 0 --output weights.npy     without figures of a cross-validation"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "gold", nargs="+", metavar="GOLD", help="JSON lines with html and main text, or such without and their WARC"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="the weights to write (.npy)")
    parser.add_argument("--folds", type=counted, default=5, help="of the cross-validation by domain; 0: none")
    parser.add_argument("--trees", type=counted, default=300, help="of each model (default: 300)")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the pages and features that each tree sees (default: 1)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Train, measure and write. The output is looked at before anything is read."""
    from refinery.pipelines.training.extractor.boosting import BoostingParams
    from refinery.pipelines.training.extractor.train import train_extractor
    from refinery.pipelines.training.new_file import check_new, write_new

    if not args.overwrite:
        check_new(args.output)
    params = BoostingParams(seed=args.seed, trees=args.trees)
    data = train_extractor(args.gold, params, args.folds, say)
    write_new(args.output, data, args.overwrite)
    result(f"{args.output}: {params.models} x {params.trees} trees, {len(data):,} bytes")
    return ExitCode.DONE


COMMAND = Command(
    name="train-extractor",
    summary="train the page extractor on pages with their main text",
    section=Section.TRAIN,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
