"""`refinery retokenize`: make a corpus again with another tokenizer."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import add_runner_arguments, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery retokenize out/web --tokenizer other.json --output out/web-other
  refinery retokenize out/web --tokenizer llama.model --bos auto --eos auto --output out/web-llama"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a run whose work/ was kept: a folder, gs://… or s3://…")
    parser.add_argument(
        "--tokenizer", required=True, metavar="FILE", help="a tokenizer, as in tokenizer.path of a recipe"
    )
    parser.add_argument("--output", required=True, metavar="PREFIX", help="where the new corpus goes")
    parser.add_argument(
        "--bos", default=None, metavar="NAME", help="a token's name, auto or null (default: as in PREFIX)"
    )
    parser.add_argument("--eos", default=None, metavar="NAME", help="the same for EOS")
    parser.add_argument("--documents", default="", metavar="LOCATION", help="the run's work location (PREFIX/work)")
    parser.add_argument("--work", default="", metavar="LOCATION", help="work location of the new run (OUTPUT/work)")
    add_runner_arguments(parser)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Run only phase 3, with another tokenizer."""
    from refinery.pipelines.runners.forked_pool import prepare_to_fork

    prepare_to_fork(args.runner)
    from refinery.pipelines.runners.runner import Runner

    runner = Runner(args.runner, args.workers, tuple(flags), args.quiet, args.traceback, say, scratch=args.scratch)
    with runner.open():
        from refinery.pipelines.run.api import runner_flags
        from refinery.pipelines.run.retokenize import Retokenization, recorded_run, with_tokenizer

        recorded = recorded_run(args.prefix)
        ends = {"bos": args.bos, "eos": args.eos}
        given = {key: None if name == "null" else name for key, name in ends.items() if name is not None}
        recipe = with_tokenizer(recorded, {"path": args.tokenizer, **given})
        runner.flags = runner_flags(recipe, args.runner, flags, args.output, args.work)
        run = Retokenization(recipe, args.output, runner, args.work, args.documents or args.prefix, say=say)
        run.recorded = recorded
        totals = run.run().totals
    result(f"{many(totals['documents'], 'document')}, {many(totals['tokens'], 'token')} in {args.output}")
    return ExitCode.DONE


COMMAND = Command(
    name="retokenize",
    summary="make a corpus again with another tokenizer, from the documents of a run",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
