"""`refinery tokenize`: make a corpus of tokens from a corpus of texts."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import add_runner_arguments, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery refine web.yaml --set writer=text --set tokenizer=null --output out/texts
  refinery tokenize out/texts --tokenizer tokenizer.json --output out/tokens
  refinery tokenize out/texts --tokenizer llama.model --bos auto --output out/llama --set packed.length=4096

The shards are those that one run of the recipe with this tokenizer would write. The same command resumes a stopped
one. After a takedown, name the new version of the texts and another --output (docs/tokenize.md)."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a corpus of texts: a folder, gs://… or s3://…")
    parser.add_argument(
        "--tokenizer", required=True, metavar="FILE", help="a tokenizer, as in tokenizer.path of a recipe"
    )
    parser.add_argument("--output", required=True, metavar="PREFIX", help="where the corpus of tokens goes")
    parser.add_argument(
        "--bos", default=None, metavar="NAME", help="a token's name, auto or null (default: as in recipes)"
    )
    parser.add_argument("--eos", default=None, metavar="NAME", help="the same for EOS")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of shards, packed or failures, or sources.NAME.target; others decided the texts",
    )
    parser.add_argument(
        "--recipe", default="", metavar="FILE", help="the recipe of the texts, if it has stages, readers or a lane of "
        "its own"
    )  # fmt: skip
    parser.add_argument("--work", default="", metavar="LOCATION", help="work location of this run (OUTPUT/work)")
    add_runner_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Run the encoder and the writer of shards over a corpus of texts."""
    if args.runner == "local":
        from refinery.pipelines.runners.forked_pool import prepare_to_fork

        prepare_to_fork()
    from refinery.pipelines.runners.runner import Runner
    from refinery.pipelines.runners.scratch import scratch_of

    scratch = scratch_of(args.scratch, args.work or f"{args.output}/work")
    runner = Runner(args.runner, args.workers, tuple(flags), args.quiet, args.traceback, say, scratch=scratch)
    with runner.open():
        from refinery.pipelines.published.packed_counts import packed_line
        from refinery.pipelines.run.api import runner_flags
        from refinery.pipelines.run.tokenizing.text_corpus import open_texts
        from refinery.pipelines.run.tokenizing.tokenization import Tokenization

        ends = {"bos": args.bos, "eos": args.eos}
        given = {key: None if name == "null" else name for key, name in ends.items() if name is not None}
        texts = open_texts(args.prefix, {"path": args.tokenizer, **given}, args.set, args.recipe)
        runner.flags = runner_flags(texts.recipe, args.runner, flags, args.output, args.work)
        manifest = Tokenization(texts.recipe, args.output, runner, args.work, say=say, texts=texts).run()
    totals = manifest.totals
    result(f"{many(totals['documents'], 'document')}, {many(totals['tokens'], 'token')} in {args.output}")
    if line := packed_line(manifest):
        result(line)
    result(f"check it:   refinery verify {args.output}")
    return ExitCode.DONE


COMMAND = Command(
    name="tokenize",
    summary="make a corpus of tokens from a corpus of texts, as one run would have made it",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
