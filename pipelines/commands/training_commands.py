"""The commands that are about tokenizers and classifiers: training them, and what follows from a tokenizer."""

import argparse
from collections.abc import Sequence
from typing import Any

from refinery.pipelines.commands.arguments import (
    add_recipe_arguments,
    add_runner_arguments,
    check_beam_flags,
    refuse_flags,
    result,
    say,
)
from refinery.pipelines.progress.flags import add_output_arguments
from refinery.pipelines.shell.exit_codes import ExitCode

TRAIN_TOKENIZER_EXAMPLES = """examples:
  refinery train-tokenizer my.yaml --output tokenizer.json --vocab-size 50000 --special-token '<|pad|>'
  refinery train-tokenizer my.yaml --output tokenizer.json --share web=0.6 --share code=0.3 --share books=0.1
  refinery train-tokenizer my.yaml --output larger.json --continue-from tokenizer.json --vocab-size 60000"""

TRAIN_QUALITY_EXAMPLES = """examples:
  refinery train-quality --positive 'good/*.jsonl.gz' --negative 'web/*.warc.gz' --output quality.bin
  refinery train-quality --positive good.jsonl --negative bad.jsonl --output quality.ftz --quantise"""

TRAIN_TOXICITY_EXAMPLES = """examples:
  refinery train-toxicity --toxic 'toxic/*.jsonl' --clean 'clean/*.jsonl' --output toxicity.bin"""

TRAIN_EXTRACTOR_EXAMPLES = """examples:
  refinery train-extractor gold.jsonl.gz pages.warc.gz --output weights.npy
  refinery train-extractor gold.jsonl.gz --folds 0 --output weights.npy     without figures of a cross-validation"""

TRAIN_PERPLEXITY_EXAMPLES = """examples:
  refinery train-perplexity --input 'wikipedia/*.jsonl.zst' --output english.model
  refinery train-perplexity --input good.jsonl --sample 'crawl/*.warc.gz' --output english.model"""

RETOKENIZE_EXAMPLES = """examples:
  refinery retokenize out/web --tokenizer other.json --output out/web-other
  refinery retokenize out/web --tokenizer llama.model --bos auto --eos auto --output out/web-llama"""

BLEND_EXAMPLES = """examples:
  refinery blend out/web
  refinery blend gs://bucket/corpus --weight web=0.7 --weight books=0.3
In a launch of Megatron: --data-path $(refinery blend out/web)"""


def add_training_commands(commands: Any) -> None:
    """Add the train-… commands, retokenize and blend to argparse's commands."""
    tokenizer = commands.add_parser(
        "train-tokenizer",
        help="train a BPE tokenizer on a sample of a recipe's sources",
        epilog=TRAIN_TOKENIZER_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_recipe_arguments(tokenizer)
    tokenizer.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="tokenizer.json, or a SentencePiece .model; folders on its way are made",
    )
    tokenizer.add_argument("--vocab-size", type=int, default=32_000, help="entries, special tokens included")
    tokenizer.add_argument("--sample-bytes", type=int, default=100_000_000, help="text to train on (default 100 MB)")
    tokenizer.add_argument(
        "--share",
        action="append",
        default=[],
        metavar="SOURCE=NUMBER",
        help="share of the sample that a source gives; may be repeated; sources without one give nothing then",
    )
    tokenizer.add_argument(
        "--special-token", action="append", default=[], metavar="NAME", help="a token beside <|endoftext|>; repeatable"
    )
    tokenizer.add_argument(
        "--continue-from",
        default="",
        metavar="FILE",
        help="a byte-level tokenizer.json that keeps its ids; new merges are appended",
    )
    tokenizer.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    tokenizer.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    tokenizer.set_defaults(run=run_train_tokenizer)

    quality = commands.add_parser(
        "train-quality", help="train a quality classifier from good and bad text", epilog=TRAIN_QUALITY_EXAMPLES
    )
    quality.add_argument("--positive", action="append", required=True, metavar="GLOB", help="files of good text")
    quality.add_argument("--negative", action="append", required=True, metavar="GLOB", help="files of bad text")
    quality.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="the fastText model to write, with FILE.json (figures on held-out texts) and FILE.md (a model card); "
        "folders on its way are made",
    )
    quality.add_argument("--quantise", action="store_true", help="about a sixth of the size, nearly the same scores")
    quality.add_argument("--held-out", type=float, default=0.1, metavar="SHARE", help="of the texts, to measure on")
    quality.add_argument(
        "--seed", type=int, default=1, help="of the order of texts and of what is held out (default: 1)"
    )
    quality.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(quality)
    quality.set_defaults(run=run_train_quality)

    toxicity = commands.add_parser(
        "train-toxicity", help="train a toxicity classifier from toxic and clean text", epilog=TRAIN_TOXICITY_EXAMPLES
    )
    toxicity.add_argument("--toxic", action="append", required=True, metavar="GLOB", help="files of toxic sentences")
    toxicity.add_argument("--clean", action="append", required=True, metavar="GLOB", help="files of others")
    toxicity.add_argument(
        "--output", required=True, metavar="FILE", help="the fastText model to write; folders on its way are made"
    )
    toxicity.add_argument(
        "--seed", type=int, default=1, help="of the order of texts and of what is held out (default: 1)"
    )
    toxicity.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(toxicity)
    toxicity.set_defaults(run=run_train_toxicity)

    extractor = commands.add_parser(
        "train-extractor",
        help="train the page extractor on pages with their main text",
        epilog=TRAIN_EXTRACTOR_EXAMPLES,
    )
    extractor.add_argument(
        "gold", nargs="+", metavar="GOLD", help="JSON lines with html and main text, or such without and their WARC"
    )
    extractor.add_argument("--output", required=True, metavar="FILE", help="the weights to write (.npy)")
    extractor.add_argument("--folds", type=int, default=5, help="of the cross-validation by domain; 0: none")
    extractor.add_argument("--trees", type=int, default=300, help="of each model (default: 300)")
    extractor.add_argument(
        "--seed", type=int, default=1, help="of the pages and features that each tree sees (default: 1)"
    )
    extractor.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(extractor)
    extractor.set_defaults(run=run_train_extractor)

    perplexity = commands.add_parser(
        "train-perplexity",
        help="train the language model of the perplexity stage",
        epilog=TRAIN_PERPLEXITY_EXAMPLES,
    )
    perplexity.add_argument("--input", action="append", required=True, metavar="GLOB", help="good text, one language")
    perplexity.add_argument(
        "--sample", action="append", default=[], metavar="GLOB", help="text to take percentiles of (default: held out)"
    )
    perplexity.add_argument(
        "--output", required=True, metavar="FILE", help="the model to write, with FILE.json (its figures)"
    )
    perplexity.add_argument("--seed", type=int, default=1, help="of what is held out (default: 1)")
    perplexity.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    add_output_arguments(perplexity)
    perplexity.set_defaults(run=run_train_perplexity)

    again = commands.add_parser(
        "retokenize",
        help="a corpus anew with another tokenizer, from the documents of a run",
        epilog=RETOKENIZE_EXAMPLES,
    )
    again.add_argument(
        "prefix", metavar="PREFIX", help="of a run whose documents are there: a folder, gs://… or s3://…"
    )
    again.add_argument("--tokenizer", required=True, metavar="FILE", help="as tokenizer.path of a recipe")
    again.add_argument("--output", required=True, metavar="PREFIX", help="where the new corpus goes")
    again.add_argument("--bos", default=None, metavar="NAME", help="a token's name, auto or null (default: as before)")
    again.add_argument("--eos", default=None, metavar="NAME", help="likewise")
    again.add_argument("--documents", default="", metavar="LOCATION", help="the run's work location (PREFIX/work)")
    again.add_argument("--work", default="", metavar="LOCATION", help="work location of the new run (OUTPUT/work)")
    add_runner_arguments(again)
    again.set_defaults(run=run_retokenize)

    mix = commands.add_parser(
        "blend", help="print a corpus as the words behind Megatron's --data-path", epilog=BLEND_EXAMPLES
    )
    mix.add_argument("prefix", metavar="PREFIX", help="a finished corpus: a folder, gs://… or s3://…")
    mix.add_argument("--split", default="train", help="train (default) or validation")
    mix.add_argument(
        "--weight", action="append", default=[], metavar="DOMAIN=NUMBER", help="share of a domain (default: its tokens)"
    )
    mix.set_defaults(run=run_blend)


def run_train_tokenizer(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on a sample of the documents that the recipe's phase 1 keeps. Everything that can be wrong with the flags
    is said before anything is sampled."""
    from refinery.pipelines.runners.runner import Runner

    check_beam_flags(flags)
    if args.sample_bytes < 1:
        raise ValueError(f"--sample-bytes: {args.sample_bytes} given, 1 or more is allowed")
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


def run_train_quality(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on texts read by the same readers as any source. The output is looked at before anything is read."""
    from refinery.pipelines.training.sample import read_texts
    from refinery.pipelines.training.train_quality import TrainQualityParams, check_outputs, train_quality

    refuse_flags(flags)
    params = TrainQualityParams(seed=args.seed, held_out=args.held_out, quantise=args.quantise)
    if not args.overwrite:
        check_outputs(args.output)
    texts = []
    inputs = {"positive": args.positive, "negative": args.negative}
    for name, globs in inputs.items():
        texts.append(read_texts(name, globs))
        say(f"{name}: {len(texts[-1]):,} texts read")
    say(f"learning, {params.epochs} epochs")
    train_quality(texts[0], texts[1], args.output, params, args.overwrite, inputs)
    return ExitCode.DONE


def run_train_perplexity(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on texts read by the same readers as any source. The output is looked at before anything is read."""
    from refinery.pipelines.training.sample import read_texts
    from refinery.pipelines.training.train_perplexity import TrainPerplexityParams, check_outputs, train_perplexity

    refuse_flags(flags)
    if not args.overwrite:
        check_outputs(args.output)
    texts = read_texts("input", args.input)
    sample = read_texts("sample", args.sample) if args.sample else None
    say(f"{len(texts):,} texts read")
    train_perplexity(texts, args.output, TrainPerplexityParams(args.seed), args.overwrite, sample)
    return ExitCode.DONE


def run_train_toxicity(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Train on texts read by the same readers as any source. The output is looked at before anything is read."""
    from refinery.pipelines.training.new_file import check_new
    from refinery.pipelines.training.sample import read_texts
    from refinery.pipelines.training.train_toxicity import TrainToxicityParams, train_toxicity

    refuse_flags(flags)
    params = TrainToxicityParams(seed=args.seed)
    if not args.overwrite:
        check_new(args.output)
    texts = []
    for name, globs in (("toxic", args.toxic), ("clean", args.clean)):
        texts.append(read_texts(name, globs))
        say(f"{name}: {len(texts[-1]):,} texts read")
    say(f"learning, {params.epochs} epochs")
    train_toxicity(texts[0], texts[1], args.output, params, args.overwrite)
    return ExitCode.DONE


def run_train_extractor(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Train, measure and write. The output is looked at before anything is read."""
    from refinery.pipelines.training.extractor.boosting import BoostingParams
    from refinery.pipelines.training.extractor.train import train_extractor
    from refinery.pipelines.training.new_file import check_new, write_new

    refuse_flags(flags)
    if not args.overwrite:
        check_new(args.output)
    params = BoostingParams(seed=args.seed, trees=args.trees)
    data = train_extractor(args.gold, params, args.folds, say)
    write_new(args.output, data, args.overwrite)
    result(f"{args.output}: {params.models} x {params.trees} trees, {len(data):,} bytes")
    return ExitCode.DONE


def run_retokenize(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Run phase 3 alone with another tokenizer."""
    from refinery.pipelines.runners.runner import Runner

    check_beam_flags(flags)
    runner = Runner(args.runner, args.workers, tuple(flags), args.quiet, args.traceback, say, scratch=args.scratch)
    with runner.open():
        from refinery.pipelines.commands.retokenize import Retokenization, recorded_run, with_tokenizer
        from refinery.pipelines.run.api import runner_flags

        recorded = recorded_run(args.prefix)
        ends = {"bos": args.bos, "eos": args.eos}
        given = {key: None if name == "null" else name for key, name in ends.items() if name is not None}
        recipe = with_tokenizer(recorded, {"path": args.tokenizer, **given})
        runner.flags = runner_flags(recipe, args.runner, flags, args.output, args.work)
        run = Retokenization(recipe, args.output, runner, args.work, args.documents or args.prefix, say=say)
        run.recorded = recorded
        totals = run.run().totals
    result(f"{totals['documents']:,} documents, {totals['tokens']:,} tokens in {args.output}")
    return ExitCode.DONE


def run_blend(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print weights and paths in one line, for $(refinery blend PREFIX)."""
    from refinery.pipelines.commands.blend import blend, parse_weights

    refuse_flags(flags)
    say(" ".join(blend(args.prefix, args.split, parse_weights(args.weight))))
    return ExitCode.DONE
