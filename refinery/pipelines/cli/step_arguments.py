"""Arguments that all one-step commands have, and how they run."""

import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from refinery.pipelines.shell.arguments import SOURCE_FIELDS, add_runner_arguments, result, say
from refinery.pipelines.shell.exit_codes import ExitCode

if TYPE_CHECKING:
    from refinery.pipelines.run.steps.step import Step


def listed(text: str) -> list[str]:
    """The value of an option with several names: a,b."""
    return [each for each in (part.strip() for part in text.split(",")) if each]


def step_arguments(parser: ArgumentParser, annotates: bool = True, labels: bool = True, also: str = "") -> None:
    """Inputs, output, shape, and those of every command that runs Beam jobs. annotates: whether it can label rows in
    place of dropping some. labels: whether its labels may be files of their own. also: what else the inputs may be."""
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help=f"files or globs: JSONL, CSV, TSV or Parquet{also}")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help="where the files go; the accounts go to FOLDER.refinery, with --layout shards to FOLDER itself",
    )
    for name, what in SOURCE_FIELDS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default="", metavar="NAME", help=f"the field of the {what}")
    parser.add_argument(
        "--format", default="", metavar="NAME", help="the format of all inputs (default: by their names)"
    )
    parser.add_argument(
        "--layout",
        default="as-input",
        choices=("as-input", "shards"),
        help="as-input: a file for each input file; shards: a shuffled corpus of Parquet",
    )
    if annotates:
        parser.add_argument("--annotate", action="store_true", help="drop nothing: label every row instead")
    if labels:
        parser.add_argument(
            "--as",
            dest="labels_as",
            default="fields",
            choices=("fields", "attributes"),
            help="where labels go: fields of the rows, or attributes: a file beside each file, in the form of Dolma's",
        )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="set a further key of the recipe"
    )
    parser.add_argument("--work", default="", metavar="LOCATION", help="where the parts of its phases go")
    parser.add_argument("--discard-work", action="store_true", help="remove these parts at the end")
    add_runner_arguments(parser)


def run_step(args: Namespace, flags: Sequence[str], make: "Callable[[], Step]") -> ExitCode:
    """Run what `make` makes, once the worker processes have started."""
    if args.runner == "local":
        from refinery.pipelines.runners.forked_pool import prepare_to_fork

        prepare_to_fork()
    from refinery.pipelines.published.outputs import ACCOUNTS
    from refinery.pipelines.runners.runner import Runner
    from refinery.pipelines.runners.scratch import scratch_of

    place = args.output.rstrip("/") + (ACCOUNTS if args.layout == "as-input" else "")
    scratch = scratch_of(args.scratch, args.work or f"{place}/work")
    runner = Runner(args.runner, args.workers, tuple(flags), args.quiet, args.traceback, say, scratch=scratch)
    with runner.open():
        from refinery.loader.storage.open_store import open_store
        from refinery.pipelines.published.damaged_files import damage_lines, damaged_files
        from refinery.pipelines.run.api import runner_flags
        from refinery.pipelines.run.steps.run_step import StepRun
        from refinery.pipelines.run.steps.step import inputs_of

        step = make()
        given = {key: value for key in (*SOURCE_FIELDS, "format") if (value := getattr(args, key))}
        where = args.layout, getattr(args, "annotate", False), getattr(args, "labels_as", "fields")
        inputs = inputs_of(step, args.inputs, given, *where)
        run = StepRun(step, inputs, args.output, tuple(args.set), shlex.join(["refinery", *sys.argv[1:]]))
        runner.flags = runner_flags(run.recipe(), args.runner, flags, run.accounts, args.work)
        manifest = run.run(runner, args.work, args.discard_work)
        closing = run.closing(manifest)
        damaged = list(damage_lines(damaged_files(open_store(run.accounts), manifest)))
    result(closing)
    for line in damaged:
        result(line)
    result(f"what went and why: {run.accounts}/report.html   check it: refinery verify {run.accounts}")
    return ExitCode.DONE
