"""`refinery refine`: run a recipe."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.progress.track.tracker import KINDS
from refinery.pipelines.shell.arguments import add_recipe_arguments, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

EXAMPLES = """examples:
  refinery refine recipes/demo.yaml --output out/demo/corpus
  refinery refine recipes/web.yaml --input 'crawl/*.warc.gz' --output out/web --set near_dup.threshold=0.8
  refinery refine recipes/web.yaml --output out/web2 --reuse out/web --set tokenizer.path=other.json
  refinery refine recipes/web.yaml --output gs://bucket/corpus --runner DataflowRunner …    (docs/operations.md)
  refinery refine recipes/web.yaml --output out/web --reuse out/old --dry-run    (says what would run)
  refinery refine recipes/web.yaml --output out/web --track mlflow    (docs/operations/track.md)
Any flag that is not listed here goes to Beam. Interrupted? Run the same command again: it goes on where it stopped.
On Dataflow the jobs go on without this command; the same command finds them again."""


def arguments(parser: ArgumentParser) -> None:
    add_recipe_arguments(parser)
    parser.add_argument(
        "--output", required=True, metavar="PREFIX", help="where the corpus goes: a folder, gs://… or s3://…"
    )
    parser.add_argument("--reuse", default="", metavar="PREFIX", help="take over what another run has finished")
    parser.add_argument(
        "--work", default="", metavar="LOCATION", help="where the phases' parts go (default: PREFIX/work)"
    )
    parser.add_argument(
        "--discard-work", action="store_true", help="remove the phases' parts when the corpus is complete"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check everything and say what would run; nothing is written"
    )
    parser.add_argument(
        "--track",
        default="",
        choices=tuple(KINDS),
        help="send counts and rates to MLflow, Weights & Biases or an OpenTelemetry collector",
    )


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Run a recipe. Worker processes start first, so that their imports run in parallel with the launcher's."""
    from refinery.pipelines.progress.track.tracking import tracking
    from refinery.pipelines.runners.runner import Runner
    from refinery.pipelines.runners.scratch import scratch_of

    workers = 0 if args.dry_run else args.workers
    scratch = scratch_of(args.scratch, args.work or f"{args.output}/work")
    runner = Runner(args.runner, workers, tuple(flags), args.quiet, args.traceback, say, scratch=scratch)
    with runner.open(), tracking("" if args.dry_run else args.track, say) as tracked:
        from refinery.pipelines.recipe.load_recipe import load_recipe
        from refinery.pipelines.run.api import runner_flags
        from refinery.pipelines.run.packed_counts import packed_line
        from refinery.pipelines.run.refine import Refinement

        recipe = load_recipe(args.recipe, args.set, args.input)
        runner.flags = runner_flags(recipe, args.runner, flags, args.output, args.work)
        tell = result if args.dry_run else say  # what a dry run says is its answer
        run = Refinement(recipe, args.output, runner, args.work, args.reuse, args.discard_work, tell)
        if args.dry_run:
            run.dry_run()
            return ExitCode.DONE
        manifest = run.run()
        if tracked is not None:
            tracked.final(manifest.totals, manifest.funnel)
    totals = manifest.totals
    tokens = f", {many(totals['tokens'], 'token')}" if manifest.has_tokens else ""
    result(f"{many(totals['documents'], 'document')}{tokens} in {args.output}")
    if line := packed_line(manifest):
        result(line)
    own = f" --recipe {args.recipe}" if ":" in recipe.lane and not manifest.has_tokens else ""
    result(f"check it:   refinery verify {args.output}{own}")
    return ExitCode.DONE


COMMAND = Command(
    name="refine",
    summary="run a recipe",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
