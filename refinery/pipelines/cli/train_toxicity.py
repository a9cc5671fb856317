"""`refinery train-toxicity`: a toxicity classifier."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery train-toxicity --toxic 'toxic/*.jsonl' --clean 'clean/*.jsonl' --output toxicity.bin"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--toxic", action="append", required=True, metavar="GLOB", help="files of toxic sentences")
    parser.add_argument("--clean", action="append", required=True, metavar="GLOB", help="files of others")
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="the fastText model to write; folders on its way are made"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the order of texts and of what is held out (default: 1)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on texts read by the same readers as any source. The output is looked at before anything is read."""
    from refinery.pipelines.training.new_file import check_new
    from refinery.pipelines.training.sample import read_texts
    from refinery.pipelines.training.train_toxicity import TrainToxicityParams, train_toxicity

    params = TrainToxicityParams(seed=args.seed)
    if not args.overwrite:
        check_new(args.output)
    texts = []
    for name, globs in (("toxic", args.toxic), ("clean", args.clean)):
        texts.append(read_texts(name, globs))
        say(f"{name}: {many(len(texts[-1]), 'text')} read")
    say(f"learning, {params.epochs} epochs")
    train_toxicity(texts[0], texts[1], args.output, params, args.overwrite)
    return ExitCode.DONE


COMMAND = Command(
    name="train-toxicity",
    summary="train a toxicity classifier from toxic and clean text",
    section=Section.TRAIN,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
