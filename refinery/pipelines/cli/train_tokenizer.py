"""`refinery train-tokenizer`: a BPE tokenizer."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import add_recipe_arguments, counted, result, say, sized
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery train-tokenizer my.yaml --output tokenizer.json --vocab-size 50000 --special-token '<|pad|>'
  refinery train-tokenizer my.yaml --output tokenizer.json --share web=0.6 --share code=0.3 --share books=0.1
  refinery train-tokenizer my.yaml --output larger.json --continue-from tokenizer.json --vocab-size 60000"""


def arguments(parser: ArgumentParser) -> None:
    add_recipe_arguments(parser)
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="tokenizer.json, or a SentencePiece .model; missing folders are created",
    )
    parser.add_argument(
        "--vocab-size", type=counted, default=32_000, help="entries of the vocabulary, including special tokens"
    )
    parser.add_argument("--sample-bytes", type=sized, default=100_000_000, help="text to train on (default 100 MB)")
    parser.add_argument(
        "--share",
        action="append",
        default=[],
        metavar="SOURCE=NUMBER",
        help="share of the sample that comes from a source; may be repeated; other sources then give nothing",
    )
    parser.add_argument(
        "--special-token",
        action="append",
        default=[],
        metavar="NAME",
        help="a token in addition to <|endoftext|>; may be repeated",
    )
    parser.add_argument(
        "--continue-from",
        default="",
        metavar="FILE",
        help="a byte-level tokenizer.json that keeps its ids; new merges are appended",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on a sample of the documents that the recipe's phase 1 keeps. Everything that can be wrong with the flags
    is said before anything is sampled."""
    if args.sample_bytes < 1:
        raise ValueError(f"--sample-bytes: {args.sample_bytes} given, 1 or more is allowed")
    from refinery.pipelines.runners.forked_pool import prepare_to_fork

    prepare_to_fork(args.runner)
    from refinery.pipelines.runners.runner import Runner

    with Runner(
        args.runner, args.workers, tuple(flags), args.quiet, args.traceback, scratch=args.scratch
    ).open() as runner:
        from refinery.pipelines.recipe.load_recipe import load_recipe
        from refinery.pipelines.training.sample import parse_shares, sample_texts
        from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, check_training, train_tokenizer

        special = tuple(args.special_token)
        params = TrainTokenizerParams(args.vocab_size, args.seed, special_tokens=special, base=args.continue_from)
        check_training(args.output, params, args.overwrite)
        recipe = load_recipe(args.recipe, args.set, args.input)
        shares = parse_shares(recipe, args.share)
        say(f"sampling {args.sample_bytes:,} bytes of the sources of {args.recipe}")
        texts = sample_texts(recipe, runner, args.sample_bytes, args.seed, shares, say)
    bars = not (args.quiet or args.log_json)  # the library's own
    metrics = train_tokenizer(texts, args.output, params, args.overwrite, say, progress=bars)
    if args.quiet:
        result(f"{args.output}: {metrics}")
    return ExitCode.DONE


COMMAND = Command(
    name="train-tokenizer",
    summary="train a BPE tokenizer on a sample of a recipe's sources",
    section=Section.TRAIN,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
