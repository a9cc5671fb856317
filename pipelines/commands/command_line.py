"""The command line: `refinery COMMAND …`, the same as `python -m pipelines COMMAND …`."""

import argparse
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from importlib.util import find_spec

from refinery import DISTRIBUTION
from refinery.loader.storage.store import StorageConflict
from refinery.pipelines.audit.command import add_audit, audit_command
from refinery.pipelines.cards.command import add_card, card_command
from refinery.pipelines.commands.acquire import add_acquire
from refinery.pipelines.commands.arguments import (
    add_recipe_arguments,
    check_beam_flags,
    refuse_flags,
    result,
    say,
)
from refinery.pipelines.commands.export_commands import add_export_commands
from refinery.pipelines.commands.mix import run_mix
from refinery.pipelines.commands.remove import add_remove
from refinery.pipelines.commands.training_commands import add_training_commands
from refinery.pipelines.commands.verify_command import add_verify, verify_command
from refinery.pipelines.comparison.command import add_compare, compare_command
from refinery.pipelines.doctor.command import add_doctor, doctor
from refinery.pipelines.looking.command import add_sample, add_show, sample_command, show_command
from refinery.pipelines.mix.command import add_mix
from refinery.pipelines.opt_outs.command import add_opt_outs, opt_outs
from refinery.pipelines.planner.command import add_plan, plan_command
from refinery.pipelines.progress.output import Output
from refinery.pipelines.report_command.command import add_report, report_command
from refinery.pipelines.shell.completion import add_completion, completion
from refinery.pipelines.shell.error_line import TRACEBACK, error_line
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.pipelines.shell.help_text import CommandParser, finish_help, with_next_step
from refinery.pipelines.tracing.command import add_trace, origin_of, trace_command
from refinery.pipelines.tuning.command import add_try, decisions_of, try_json
from refinery.pipelines.tuning.decision_text import decision_lines

FIRST_STEPS = """examples:
  refinery doctor                                              what is missing here
  refinery train-tokenizer recipes/web.yaml --input 'crawl/*.warc.gz' --output tokenizer.json
  refinery refine recipes/web.yaml --input 'crawl/*.warc.gz' --output out/web
  refinery verify out/web
`refinery COMMAND --help` has examples of each command."""

REFINE_EXAMPLES = """examples:
  refinery refine recipes/demo.yaml --output out/demo/corpus
  refinery refine recipes/web.yaml --input 'crawl/*.warc.gz' --output out/web --set near_dup.threshold=0.8
  refinery refine recipes/web.yaml --output out/web2 --reuse out/web --set tokenizer.path=other.json
  refinery refine recipes/web.yaml --output gs://bucket/corpus --runner DataflowRunner …    (docs/operations.md)
  refinery refine recipes/web.yaml --output out/web --reuse out/old --dry-run    (says what would run)
Any flag that is not listed here goes to Beam. Interrupted? Run the same command again: it goes on where it stopped.
On Dataflow the jobs go on without this command; the same command finds them again."""

INSPECT_EXAMPLES = """examples:
  refinery inspect out/web
  refinery inspect gs://bucket/corpus --work gs://parts-bucket/corpus
  refinery inspect gs://bucket/corpus --live --json
It reads small files alone, and writes nothing."""


STAGES_EXAMPLES = """examples:
  refinery stages                          all stages of the web lane (--lane code: of the lane of source code)
  refinery stages language                 one of them
  refinery stages new too-many-digits      writes too_many_digits.py, a stage of your own, and its test
  refinery stages --recipe my.yaml         with the stages of your own that the recipe uses
  refinery stages --schema > recipe.schema.json     for completion and warnings in an editor"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = CommandParser(prog="refinery", description="Raw crawl in, training shards out.", epilog=FIRST_STEPS)
    parser.add_argument("--version", action="version", version=f"refinery {version(DISTRIBUTION)}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    refine = commands.add_parser(
        "refine", help="run a recipe", epilog=REFINE_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_recipe_arguments(refine)
    refine.add_argument(
        "--output", required=True, metavar="PREFIX", help="where the corpus goes: a folder, gs://… or s3://…"
    )
    refine.add_argument("--reuse", default="", metavar="PREFIX", help="take over what another run has finished")
    refine.add_argument(
        "--work", default="", metavar="LOCATION", help="where the phases' parts go (default: PREFIX/work)"
    )
    refine.add_argument(
        "--discard-work", action="store_true", help="remove the phases' parts when the corpus is complete"
    )
    refine.add_argument(
        "--dry-run", action="store_true", help="check everything and say what would run; nothing is written"
    )
    refine.set_defaults(run=run_refine)

    add_verify(commands).set_defaults(run=run_verify)

    inspect = commands.add_parser(
        "inspect",
        help="the status of a run: phases, jobs, counts, what to do next",
        epilog=INSPECT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inspect.add_argument("prefix", metavar="PREFIX", help="of a run: a folder, gs://… or s3://…")
    inspect.add_argument("--work", default="", metavar="LOCATION", help="where the phases' parts are (PREFIX/work)")
    inspect.add_argument("--live", action="store_true", help="ask Dataflow for the state of jobs (needs the network)")
    inspect.add_argument("--json", action="store_true", help="one JSON object instead of text")
    inspect.set_defaults(run=run_inspect)

    add_trace(commands).set_defaults(run=answering(trace_command))
    add_show(commands).set_defaults(run=answering(show_command))
    add_sample(commands).set_defaults(run=answering(sample_command))
    add_acquire(commands).set_defaults(run=run_acquire)
    add_doctor(commands).set_defaults(run=run_doctor)
    add_completion(commands).set_defaults(run=run_completion)

    stages = commands.add_parser(
        "stages",
        help="all stages with their parameters, reasons and versions; `stages new NAME` writes an example",
        epilog=STAGES_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    stages.add_argument(
        "words", nargs="*", metavar="NAME | new NAME", help="one stage alone; or a new one of that name"
    )
    stages.add_argument(
        "--recipe", default="", metavar="FILE", help="with the stages of your own that this recipe uses"
    )
    stages.add_argument("--lane", default="", help="of this lane (default: that of recipes which name none)")
    stages.add_argument("--folder", default=".", metavar="DIR", help="where `new` writes (default: here)")
    stages.add_argument("--markdown", action="store_true", help="as a page with tables")
    stages.add_argument("--schema", action="store_true", help="print the JSON schema of the lane's recipes instead")
    stages.set_defaults(run=run_stages)

    add_export_commands(commands)
    add_remove(commands)
    add_compare(commands).set_defaults(run=run_compare)
    add_mix(commands).set_defaults(run=run_mix)
    add_plan(commands).set_defaults(run=saying(plan_command))
    add_report(commands).set_defaults(run=saying(report_command))
    add_audit(commands).set_defaults(run=answering(audit_command))
    add_card(commands).set_defaults(run=saying(card_command))
    add_try(commands).set_defaults(run=run_try)
    add_opt_outs(commands).set_defaults(run=run_opt_outs)
    add_training_commands(commands)
    return finish_help(parser)


def run_refine(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Run a recipe. Worker processes start first, so that their imports run in parallel with the launcher's."""
    from refinery.pipelines.runners.runner import Runner
    from refinery.pipelines.runners.scratch import scratch_of

    check_beam_flags(flags)
    workers = 0 if args.dry_run else args.workers
    scratch = scratch_of(args.scratch, args.work or f"{args.output}/work")
    runner = Runner(args.runner, workers, tuple(flags), args.quiet, args.traceback, say, scratch=scratch)
    with runner.open():
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
    totals = manifest.totals
    result(f"{totals['documents']:,} documents, {totals['tokens']:,} tokens in {args.output}")
    if line := packed_line(manifest):
        result(line)
    result(f"check it:   refinery verify {args.output}")
    return ExitCode.DONE


def run_verify(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print what was checked and every failure."""
    return verify_command(args, flags, result)


def run_inspect(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print the status of a run. With --live, flags go to Beam, as for a launch (--impersonate_service_account)."""
    from refinery.pipelines.commands.inspection import inspect
    from refinery.pipelines.commands.inspection_text import json_line, text_lines
    from refinery.pipelines.mix.inspect_view import holds_view, inspect_view

    ask = None
    if args.live:
        from refinery.pipelines.runners.runner import ask_dataflow

        check_beam_flags(flags)
        ask = ask_dataflow(flags)
    else:
        refuse_flags(flags)
    if holds_view(args.prefix):
        lines, code = inspect_view(args.prefix, args.json)
        for line in lines:
            say(line)
        return code
    found = inspect(args.prefix, args.work, ask)
    for line in [json_line(found)] if args.json else text_lines(found):
        say(line)
    codes = {"complete": ExitCode.DONE, "empty": ExitCode.USAGE, "foreign": ExitCode.USAGE}
    return codes.get(found.state, ExitCode.FAILED)


def run_acquire(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Download or read, and say what to write into a recipe."""
    refuse_flags(flags)
    for line in args.acquire(args, say):
        result(line)
    return ExitCode.DONE


def run_doctor(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print what is there and what is missing. Flags are Beam's, as for a launch."""
    if args.runner == "local":
        refuse_flags(flags)
    else:
        check_beam_flags(flags)
    return doctor(args, flags, say)


def run_opt_outs(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Make a table of opt-outs, and say what is in it."""
    refuse_flags(flags)
    return opt_outs(args, result)


def run_completion(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print the script of a shell."""
    refuse_flags(flags)
    say(completion(build_parser(), args.shell))
    return ExitCode.DONE


def run_stages(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print what stages there are, or write a new one."""
    from refinery.pipelines.commands.pages import stage_page
    from refinery.pipelines.commands.stages import list_stages, new_stage
    from refinery.pipelines.recipe.load_recipe import load_recipe, with_target
    from refinery.pipelines.recipe.recipe import DEFAULT_LANE, find_lane, recipe_class
    from refinery.pipelines.recipe.schema import schema_text

    refuse_flags(flags)
    if args.words[:1] == ["new"]:
        if len(args.words) != 2:
            raise ValueError("stages new: one name is needed, such as `refinery stages new too-many-digits`")
        lines = new_stage(args.words[1], args.folder)
    else:
        lane = load_recipe(args.recipe).LANE if args.recipe else with_target(find_lane(args.lane or DEFAULT_LANE))
        if len(args.words) > 1:
            raise ValueError(f"stages: {' '.join(args.words)} given, one name is allowed")
        listed = list(list_stages(lane, *args.words))
        if args.schema:
            lines = [schema_text(recipe_class(lane))]
        else:
            lines = [stage_page(lane, *args.words)] if args.markdown else listed
    for line in lines:
        say(line)
    return ExitCode.DONE


def run_compare(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Say what tells two corpora apart; 1 only if --exit-code asks for it and they differ."""
    refuse_flags(flags)
    return ExitCode.FAILED if compare_command(args, say) and args.exit_code else ExitCode.DONE


def answering(command: Callable[[argparse.Namespace, Callable[[str], None]], bool]) -> Callable[..., ExitCode]:
    """A command that says its answer, and whether that is a good one."""

    def run(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
        refuse_flags(flags)
        return ExitCode.DONE if command(args, say) else ExitCode.FAILED

    return run


def saying(command: Callable[[argparse.Namespace], Iterable[str]]) -> Callable[..., ExitCode]:
    """A command that is done when it has said its lines."""

    def run(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
        refuse_flags(flags)
        for line in command(args):
            say(line)
        return ExitCode.DONE

    return run


def run_try(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Print what every stage decides about one document; 1 if one of them loses it."""
    refuse_flags(flags)
    if args.url_from and not args.url:
        raise ValueError("--url-from belongs to --url")
    origin = origin_of(args.url_from, args.url) if args.url_from else args.origin
    decisions = list(decisions_of(args, origin))
    for line in try_json(decisions) if args.json else decision_lines(decisions):
        say(line)
    return ExitCode.FAILED if decisions[-1].outcome in ("dropped", "dead") else ExitCode.DONE


def execute(argv: Sequence[str] | None = None) -> ExitCode:
    """Run one command. The exit codes are those of `ExitCode`."""
    args, flags = build_parser().parse_known_args(argv)
    with Output(args.command, getattr(args, "quiet", False), getattr(args, "log_json", False)) as output:
        return execute_with(args, flags, output)


def execute_with(args: argparse.Namespace, flags: Sequence[str], output: Output) -> ExitCode:
    """Run one command; its errors become lines of the output."""
    run: Callable[[argparse.Namespace, Sequence[str]], int] = args.run
    try:
        return ExitCode(run(args, flags))
    except KeyboardInterrupt as error:  # the message of LauncherLeft says how to find the job again
        said = str(error) or "interrupted; run the same command again to resume"
        output.error(said, f"\n{said}")
        return ExitCode.INTERRUPTED
    except ValueError as error:  # of recipes, inputs and flags: the message is for the user
        said = with_next_step(error, str(error), args.command)
        output.error(said, f"refinery: {said}")
        return ExitCode.USAGE
    except ModuleNotFoundError as error:
        if find_spec("apache_beam") is not None:
            raise
        needed = f"pip install '{DISTRIBUTION}[pipeline]'"
        said = f"{error.name} is not installed; only the loader is. Commands need {needed}"
        output.error(said, f"refinery: {said}")
        return ExitCode.FAILED
    except (RuntimeError, OSError, MemoryError, StorageConflict) as error:
        said = with_next_step(error, error_line(str(error)), args.command)
        output.error(said, f"refinery: {said}")
        if getattr(args, "traceback", False):
            output.error(traceback.format_exc().rstrip())
        elif TRACEBACK in str(error):
            output.error("(the same command with --traceback shows where)")
        return ExitCode.FAILED


def main() -> None:
    """The console command."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as cleanly as Ctrl-C
    code = execute()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    # Threads of an interrupted Beam job cannot be joined, and nothing needs them any more.
    os._exit(code)


if __name__ == "__main__":
    main()
