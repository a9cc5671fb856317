"""`refinery refine`: run a recipe."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.progress.track.tracker import KINDS
from refinery.pipelines.shell.arguments import add_recipe_arguments, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.wording import many

if TYPE_CHECKING:
    from refinery.pipelines.run.sliced_run import SlicedRun

EXAMPLES = """examples:
  refinery refine recipes/demo.yaml --output out/demo/corpus
  refinery refine recipes/web.yaml --input 'crawl/*.warc.gz' --output out/web --set near_dup.threshold=0.8
  refinery refine recipes/web.yaml --output out/web2 --reuse out/web --set tokenizer.path=other.json
  refinery refine recipes/web.yaml --output gs://bucket/corpus --runner DataflowRunner …    (docs/operations.md)
  refinery refine recipes/web.yaml --output out/web --reuse out/old --dry-run    (says what would run)
  refinery refine recipes/web.yaml --output out/web --track mlflow    (docs/operations/track.md)
Flags that are not listed here go to Beam. Interrupted? Run the same command again to continue where it stopped.
On Dataflow the jobs continue without this command; the same command finds them again."""


def run_arguments(parser: ArgumentParser) -> None:
    """Arguments of a whole run, also of one whose steps are other commands."""
    add_recipe_arguments(parser)
    parser.add_argument(
        "--output", required=True, metavar="PREFIX", help="where the corpus goes: a folder, gs://… or s3://…"
    )
    parser.add_argument(
        "--work", default="", metavar="LOCATION", help="where the phases' parts go (default: PREFIX/work)"
    )
    parser.add_argument(
        "--discard-work", action="store_true", help="remove the phases' parts when the corpus is complete"
    )
    parser.add_argument(
        "--track",
        default="",
        choices=tuple(KINDS),
        help="send counts and rates to MLflow, Weights & Biases or an OpenTelemetry collector",
    )


def arguments(parser: ArgumentParser) -> None:
    run_arguments(parser)
    parser.add_argument("--reuse", default="", metavar="PREFIX", help="reuse finished phases of another run")
    parser.add_argument(
        "--dry-run", action="store_true", help="check everything and say what would run; nothing is written"
    )
    parser.add_argument("--slices", type=int, metavar="N", help="with --until cut: cut the inputs once")
    parser.add_argument(
        "--slice", metavar="K/N", help="do slice K (from 0) of N of one step; see docs/engines/slices.md"
    )
    parser.add_argument("--until", default="", metavar="STEP", help="the step of --slice; cut; publish")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Run a recipe. Worker processes start first, with what is imported by then."""
    from refinery.pipelines.runners.forked_pool import prepare_to_fork

    prepare_to_fork(args.runner)
    from refinery.pipelines.progress.track.tracking import tracking
    from refinery.pipelines.runners.runner import Runner
    from refinery.pipelines.runners.scratch import scratch_of

    task = task_of(args)
    workers = 0 if args.dry_run or args.slices else args.workers
    # Several machines share the work location of a run by slices: what is temporary stays on each.
    scratch = args.scratch if task else scratch_of(args.scratch, args.work or f"{args.output}/work")
    runner = Runner(args.runner, workers, tuple(flags), args.quiet, args.traceback, say, scratch=scratch)
    with runner.open(), tracking("" if args.dry_run else args.track, say) as tracked:
        from refinery.loader.storage.open_store import open_store
        from refinery.pipelines.published.damaged_files import damage_lines, damaged_files
        from refinery.pipelines.published.packed_counts import packed_line
        from refinery.pipelines.recipe.load_recipe import load_recipe
        from refinery.pipelines.run.api import runner_flags
        from refinery.pipelines.run.refine import Refinement
        from refinery.pipelines.run.sliced_run import SlicedRun

        recipe = load_recipe(args.recipe, args.set, args.input)
        runner.flags = runner_flags(recipe, args.runner, flags, args.output, args.work)
        if args.slices is not None or task is not None:
            return run_sliced(args, SlicedRun(recipe, args.output, runner, args.work, say=say), task)
        tell = result if args.dry_run else say  # what a dry run says is its answer
        kind = SlicedRun if args.until else Refinement
        run = kind(recipe, args.output, runner, args.work, args.reuse, args.discard_work, tell)
        if args.dry_run:
            run.dry_run()
            return ExitCode.DONE
        manifest = run.publish() if isinstance(run, SlicedRun) else run.run()
        if tracked is not None:
            tracked.final(manifest.totals, manifest.funnel)
    totals = manifest.totals
    tokens = f", {many(totals['tokens'], 'token')}" if manifest.has_tokens else ""
    result(f"{many(totals['documents'], 'document')}{tokens} in {args.output}")
    if line := packed_line(manifest):
        result(line)
    for line in damage_lines(damaged_files(open_store(args.output), manifest)):
        result(line)
    own = f" --recipe {args.recipe}" if ":" in recipe.lane and not manifest.has_tokens else ""
    result(f"check it:   refinery verify {args.output}{own}")
    return ExitCode.DONE


def task_of(args: Namespace) -> tuple[int, int] | None:
    """The slice that is asked for, and of how many; None without --slice. Raises ValueError for options that do not go
    together."""
    from refinery.pipelines.run.slices.names import CUT_STEP, PUBLISH

    if args.slices is not None and (args.slice or args.until != CUT_STEP):
        raise ValueError("--slices: cuts the inputs and goes only with --until cut; --slice K/N does a slice of a step")
    if (args.slices is not None or args.slice is not None) and (given := ending_options(args)):
        which = "--slices" if args.slice is None else "--slice"
        raise ValueError(f"{which}: {', '.join(given)} given too; the command that ends the run takes them")
    if args.slice is None:
        if args.until not in ("", PUBLISH) and args.slices is None:
            raise ValueError(
                f"--until: {args.until!r:.80} given without --slice K/N; only --until {PUBLISH} goes without, and "
                "--until cut needs --slices N"
            )
        return None
    if not args.until:
        raise ValueError("--slice: which step? Give --until STEP, such as --until clean")
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", args.slice)
    if found is None:
        raise ValueError(f"--slice: {args.slice!r:.80} given, K/N is allowed, such as 0/4 for the first of four")
    return int(found[1]), int(found[2])


def ending_options(args: Namespace) -> list[str]:
    """Those that were given of the options that one command alone of a run by slices takes."""
    names = ("reuse", "discard_work", "dry_run", "track")
    return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name)]


def run_sliced(args: Namespace, run: "SlicedRun", task: tuple[int, int] | None) -> ExitCode:
    """Cut the inputs, or do a slice."""
    from refinery.pipelines.run.slices.sliced_job import Task

    if task is None:
        cut = run.seal_cut(args.slices)
        if cut is None:
            result(f"{args.output} is complete already; nothing to do")
            return ExitCode.DONE
        steps = ", ".join(step.name for step in cut.steps)
        result(f"{many(len(cut.waves), 'wave')} in {many(cut.slices, 'slice')}; steps: {steps}")
    else:
        result(run.run_task(Task(args.until, task[0]), task[1]))
    return ExitCode.DONE


COMMAND = Command(
    name="refine",
    summary="run a recipe: make a corpus, or resume a run",
    section=Section.MAKE,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=True,
    run=run,
)
