"""`refinery verify`: of all that a location holds, or of a corpus by shares on many machines."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.progress.output import current
from refinery.pipelines.progress.work import Work
from refinery.pipelines.shell.arguments import add_runner_arguments, result, say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.live import live_totals

if TYPE_CHECKING:
    from refinery.pipelines.corpus.verify.whole import Report

EXAMPLES = """examples:
  refinery verify out/web
  refinery verify gs://bucket/corpus
  refinery verify out/web --full                 every text, not a sample
  refinery verify out/web-jsonl                  an export, too
  refinery verify out/web-2 --against out/web    a takedown: what stayed is the same, and nothing else went
  refinery verify gs://bucket/corpus --shards 0/16 --partial gs://bucket/checks    one of 16 machines
  refinery verify gs://bucket/corpus --merge gs://bucket/checks                    and the verdict of all
  refinery verify gs://bucket/corpus --runner DataflowRunner --partial gs://bucket/checks …    as a job
Any flag that is not listed here goes to Beam. Interrupted? Run the same command again: shares that are checked stay so,
and a job on Dataflow is found again. The report is the same in whatever way, with any number of --workers."""
LOCAL = "local"  # processes of this command, without Beam


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="a corpus or an export: a folder, gs://… or s3://…")
    parser.add_argument("--against", default="", metavar="PREFIX", help="the version before: what stayed is the same")
    parser.add_argument(
        "--full", action="store_true", help="decode every document, not a sample: is each text the one of its id?"
    )
    parser.add_argument("--shards", default="", metavar="K/N", help="check share K of N alone, from 0/N to N-1/N")
    parser.add_argument("--partial", default="", metavar="DIR", help="where --shards and a job write what they find")
    parser.add_argument("--merge", default="", metavar="DIR", help="the verdict from the partial results of all shares")
    parser.add_argument("--recipe", default="", metavar="FILE", help="the run's, where it has a writer of its own")
    add_runner_arguments(parser)


def is_for_job(args: Namespace) -> bool:
    """Whether a job checks, by Beam."""
    return bool(args.runner != LOCAL)


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Say what was checked and every failure; of a share how many failures it found. Raises ValueError for options
    that do not belong together, and for partial results that cannot be merged."""
    is_job = is_for_job(args)
    if args.workers < 0:
        raise ValueError(f"--workers: {args.workers} given, 0 or more is allowed")
    if is_job and (args.shards or args.merge):
        raise ValueError("--runner: a job checks all shares and merges them: leave out --shards and --merge")
    if is_job and not args.partial:
        raise ValueError("--partial DIR is missing: where the job writes what it finds; a new folder for each check")
    if not is_job and bool(args.shards) != bool(args.partial):
        raise ValueError("--shards K/N and --partial DIR belong together: the share, and where to write what it found")
    if args.shards and args.merge:
        raise ValueError("--merge looks at the whole: leave it out of the command of a share")
    from refinery.pipelines.corpus.verify.kinds import refuse_nothing

    refuse_nothing(args.prefix)
    if args.recipe:
        from refinery.pipelines.recipe.writers import know_writer_of

        know_writer_of(args.recipe)
    work = Work("verify")
    if is_job or args.shards or args.merge:
        from refinery.pipelines.corpus.verify.kinds import refuse_unless_corpus

        refuse_unless_corpus(args.prefix)
    if args.shards:
        return _share(args, work)
    report = _job(args, flags) if is_job else _here(args, work)
    lines = report.summary_lines()
    begin = len(lines) - 1 - len(report.failures) if report.failures else len(lines)  # of the failures and their number
    for line in lines[:begin]:
        result(line)
    for line in lines[begin:]:
        current().tell("error", line, sys.stdout)
    if report.failures:
        again = "; then check all shares again, with --partial to another folder" if args.merge else ""
        current().error(
            f"next: put back the files that are named, from a copy, or refine again to another --output{again}"
        )
        return ExitCode.FAILED
    return ExitCode.DONE


def _here(args: Namespace, work: Work) -> "Report":
    from refinery.pipelines.corpus.verify.kinds import check_for
    from refinery.pipelines.corpus.verify.pieces import samples_of
    from refinery.pipelines.corpus.verify.verify import verify_merged

    asked = {"samples": samples_of(args.full), "against": args.against, "workers": args.workers}
    with current().watch("verify", live_totals, work, is_told=False):  # the report says how it ended
        if args.merge:
            return verify_merged(args.prefix, args.merge, **asked)
        report: Report = check_for(args.prefix, **asked)(args.prefix, work=work)
        return report


def _job(args: Namespace, flags: Sequence[str]) -> "Report":
    from refinery.pipelines.corpus.verify.as_job import verify_as_job, work_of
    from refinery.pipelines.corpus.verify.pieces import samples_of
    from refinery.pipelines.runners.capacity import DATAFLOW
    from refinery.pipelines.runners.dataflow.flag_checks import check_bucket
    from refinery.pipelines.runners.runner import Runner, launch_flags, runner_name

    if runner_name(args.runner) == DATAFLOW:
        check_bucket("PREFIX", args.prefix)
        check_bucket("--partial", args.partial)
        if args.against:
            check_bucket("--against", args.against)
    launched = launch_flags(args.runner, flags, args.partial, work_of(args.partial))
    runner = Runner(args.runner, args.workers, launched, args.quiet, args.traceback, say, scratch=args.scratch)
    if args.recipe:
        from refinery.pipelines.recipe.load_recipe import load_recipe

        code = load_recipe(args.recipe).CODE
        runner.use_code(code.folder, tuple(code.files))
    with runner.open():
        return verify_as_job(
            args.prefix, args.partial, runner, samples=samples_of(args.full), against=args.against, say=say
        )


def _share(args: Namespace, work: Work) -> ExitCode:
    """Done when the partial result is there, whatever it says: the verdict is that of --merge."""
    from refinery.pipelines.corpus.verify.partials import Share
    from refinery.pipelines.corpus.verify.pieces import samples_of
    from refinery.pipelines.corpus.verify.verify import verify_share

    share = Share.parse(args.shards)
    asked = {"samples": samples_of(args.full), "against": args.against, "workers": args.workers}
    with current().watch("verify", live_totals, work, is_told=False):
        failures = verify_share(args.prefix, share, args.partial, work=work, **asked)
    many = f"{failures} failure{'s' if failures != 1 else ''}"
    result(f"share {share.number} of {share.count}: {many} in its files, written to {args.partial}")
    same = " --full" * args.full + (f" --against {args.against}" if args.against else "")
    result(f"when all are there:   refinery verify {args.prefix} --merge {args.partial}{same}")
    return ExitCode.DONE


COMMAND = Command(
    name="verify",
    summary="check a finished corpus or export; exit code 0 only if all holds",
    section=Section.CHECK,
    examples=EXAMPLES,
    arguments=arguments,
    beam_flags=is_for_job,
    run=run,
    exit_codes={
        ExitCode.DONE: "all holds (with --shards: what the share found is written)",
        ExitCode.FAILED: "something does not; every failure is a line",
        ExitCode.USAGE: "the command is wrong, nothing is there, or partial results are missing or unfit",
    },
)
