"""`refinery train-quality`: a quality classifier."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import rate, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery train-quality --positive 'good/*.jsonl.gz' --negative 'web/*.warc.gz' --output quality.bin
  refinery train-quality --positive good.jsonl --negative bad.jsonl --output quality.ftz --quantise"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--positive", action="append", required=True, metavar="GLOB", help="files of good text")
    parser.add_argument("--negative", action="append", required=True, metavar="GLOB", help="files of bad text")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="the fastText model to write, with FILE.json (figures on held-out texts) and FILE.md (a model card); "
        "folders on its way are made",
    )
    parser.add_argument("--quantise", action="store_true", help="about a sixth of the size, nearly the same scores")
    parser.add_argument("--held-out", type=rate, default=0.1, metavar="SHARE", help="of the texts, to measure on")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the order of texts and of what is held out (default: 1)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on texts read by the same readers as any source. The output is looked at before anything is read."""
    from refinery.pipelines.training.sample import read_texts
    from refinery.pipelines.training.train_quality import TrainQualityParams, check_outputs, train_quality

    params = TrainQualityParams(seed=args.seed, held_out=args.held_out, quantise=args.quantise)
    if not args.overwrite:
        check_outputs(args.output)
    texts = []
    inputs = {"positive": args.positive, "negative": args.negative}
    for name, globs in inputs.items():
        texts.append(read_texts(name, globs))
        say(f"{name}: {many(len(texts[-1]), 'text')} read")
    say(f"learning, {params.epochs} epochs")
    train_quality(texts[0], texts[1], args.output, params, args.overwrite, inputs)
    return ExitCode.DONE


COMMAND = Command(
    name="train-quality",
    summary="train a quality classifier from good and bad text",
    section=Section.TRAIN,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
