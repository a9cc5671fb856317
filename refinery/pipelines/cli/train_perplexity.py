"""`refinery train-perplexity`: the language model of the perplexity stage."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery train-perplexity --input 'wikipedia/*.jsonl.zst' --output english.model
  refinery train-perplexity --input good.jsonl --sample 'crawl/*.warc.gz' --output english.model"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--input", action="append", required=True, metavar="GLOB", help="good text, one language")
    parser.add_argument(
        "--sample", action="append", default=[], metavar="GLOB", help="text to take percentiles of (default: held out)"
    )
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="the model to write, with FILE.json (its figures)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is held out (default: 1)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on texts read by the same readers as any source. The output is looked at before anything is read."""
    from refinery.pipelines.training.sample import read_texts
    from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, check_outputs, train_perplexity

    if not args.overwrite:
        check_outputs(args.output)
    texts = read_texts("input", args.input)
    sample = read_texts("sample", args.sample) if args.sample else None
    say(f"{many(len(texts), 'text')} read")
    train_perplexity(texts, args.output, TrainPerplexityParams(args.seed), args.overwrite, sample)
    return ExitCode.DONE


COMMAND = Command(
    name="train-perplexity",
    summary="train the language model of the perplexity stage",
    section=Section.TRAIN,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
