"""The command line: `refinery COMMAND …`, the same as `python -m refinery COMMAND …`.

Only the file of the command that is called is read, and only what that command needs is imported. The parsers of all
are built for completion, and without their arguments for `--help` and for a word that is not a command.
"""

import argparse
import contextlib
import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from refinery import DISTRIBUTION
from refinery.pipelines.progress.output import Output
from refinery.pipelines.shell.command import Command
from refinery.pipelines.shell.error_line import TRACEBACK, error_line
from refinery.pipelines.shell.exit_codes import ExitCode, exit_code_lines
from refinery.pipelines.shell.help_text import PROGRAM, CommandParser, ProgramParser, with_next_step
from refinery.pipelines.shell.interrupts import ignore_interrupts, take_interrupts
from refinery.pipelines.shell.own_process import begin_command
from refinery.pipelines.shell.registry import Registry
from refinery.transforms.core.wording import meant_address

if TYPE_CHECKING:
    from refinery.pipelines.shell.installed import Installed

OWN = Registry("refinery.pipelines.cli", besides=frozenset({"command_line", "step_arguments"}))

PLACES = ("prefix", "output", "work", "reuse", "recipe", "scratch", "against")  # arguments that are locations
IMPORTED = 200_000  # objects, more than any command imports

FIRST_STEPS = """examples:
  refinery doctor                                              what is missing here
  refinery train-tokenizer recipes/web.yaml --input 'crawl/*.warc.gz' --output tokenizer.json
  refinery refine recipes/web.yaml --input 'crawl/*.warc.gz' --output out/web
  refinery verify out/web
`refinery COMMAND --help` has examples of each command."""


class ShowVersion(argparse.Action):
    """Prints the version. The distribution's metadata is read only then: that takes as long as all of `--help`."""

    def __init__(self, option_strings: Sequence[str], **_: object) -> None:
        says = "show program's version number and exit"
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=says)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"{PROGRAM} {version(DISTRIBUTION)}")
        parser.exit()


def parser_for(words: Sequence[str]) -> ProgramParser:
    """The parser that a command line needs: of the command that it begins with; else of all, to say which there are.

    Entry points are read only where no command of ours is named, `--help` among them: 35 ms that no other run pays.
    """
    if found := OWN.named(words):
        return build_parser(found)
    others = installed_commands()
    if found := [each.said() for each in others if words and each.name == words[0]][:1]:
        return build_parser(found)
    parser = build_parser(with_installed(others), with_arguments=len(words) > 1 and words[0].startswith("-"))
    parser.notes += [each.refused for each in others if each.refused]
    return parser


def build_parser(commands: Iterable[Command] | None = None, *, with_arguments: bool = True) -> ProgramParser:
    """The parser of these commands, groups before their members; of all of ours where none are given.

    with_arguments: False leaves out what each takes, for a list of them.
    """
    found = OWN.all() if commands is None else list(commands)
    parser = ProgramParser(
        prog=PROGRAM,
        description="Raw crawl in, training shards out.",
        epilog="\n\n".join((FIRST_STEPS, "\n".join(exit_code_lines({})))),
    )
    parser.add_argument(
        "--version",
        action=ShowVersion,
        nargs=0,
        dest=argparse.SUPPRESS,
        default=argparse.SUPPRESS,
        help="show program's version number and exit",
    )
    groups = {"": parser.commands}
    for command in found:
        *above, word = command.words
        members = [other for other in found if other.words[:-1] == command.words]
        added: CommandParser = groups[" ".join(above)].add_parser(
            word,
            help=command.summary.replace("%", "%%"),
            epilog=command.epilog("\n\n".join(member.examples for member in members)),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if not above:
            parser.headings[word] = command.section
        if command.run is None:
            choices = " | ".join(member.words[-1] for member in members)
            groups[command.name] = added.add_subparsers(dest="member", required=True, metavar=choices)
        else:
            added.set_defaults(run=command)
            if with_arguments:
                command.arguments(added)
    return parser


def installed_commands() -> "list[Installed]":
    """Those of other packages, and those that were refused."""
    from refinery.pipelines.shell.installed import installed_commands

    return installed_commands(OWN.words())


def with_installed(others: "Iterable[Installed]") -> list[Command]:
    """All of ours, then those of other packages."""
    return [*OWN.all(), *(each.said() for each in others if not each.refused)]


def execute(argv: Sequence[str] | None = None) -> ExitCode:
    """Run one command. The exit codes are those of `ExitCode`."""
    words = sys.argv[1:] if argv is None else argv
    args, flags = parser_for(words).parse_known_args(words)
    take_interrupts()
    with Output(args.command, getattr(args, "quiet", False), getattr(args, "log_json", False)) as output:
        return execute_with(args, flags, output)


def execute_with(args: argparse.Namespace, flags: Sequence[str], output: Output) -> ExitCode:
    """Run one command; its errors become lines of the output."""
    command: Command = args.run
    try:
        check_places(args)
        return command(args, flags, service_options)
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
    except expected_errors() as error:
        said = with_next_step(error, error_line(str(error)), args.command)
        output.error(said, f"refinery: {said}")
        if getattr(args, "traceback", False):
            output.error(traceback.format_exc().rstrip())
        elif TRACEBACK in str(error):
            output.error("(the same command with --traceback shows where)")
        return ExitCode.FAILED


def check_places(args: argparse.Namespace) -> None:
    """Raises ValueError for a location whose scheme is mistyped: `gs:/bucket` would be made as a folder here."""
    for name in PLACES:
        given = getattr(args, name, "")
        if isinstance(given, str) and (address := meant_address(given)):
            raise ValueError(f"{given:.200} given; did you mean {address:.200}?")


def expected_errors() -> tuple[type[BaseException], ...]:
    """Of runs, jobs and storage: the message is for the user. Looked up when something is raised."""
    from refinery.loader.storage.store import StorageConflict

    return RuntimeError, OSError, MemoryError, StorageConflict


def collect_later(objects: int = IMPORTED) -> None:
    """Look for reference cycles only when that many objects have been made, then as usual: what a command imports is
    150,000 objects, none of them garbage, and looking through them again and again is a tenth of its start."""
    usual = gc.get_threshold()

    def at_first(phase: str, info: object) -> None:
        gc.callbacks.remove(at_first)
        gc.set_threshold(*usual)

    gc.callbacks.append(at_first)
    gc.set_threshold(objects, *usual[1:])


def main() -> None:
    """The console command."""
    begin_command()
    collect_later()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as cleanly as Ctrl-C
    try:
        code = execute()
    except KeyboardInterrupt:  # between the end of a command and that of the process
        code = ExitCode.INTERRUPTED
    ignore_interrupts()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    # Threads of an interrupted Beam job cannot be joined, and nothing needs them any more.
    os._exit(code)


def service_options(args: argparse.Namespace, flags: Sequence[str]) -> Iterable[str]:
    """The options of the job service to which a portable runner sends its jobs, such as those of Flink in Java."""
    from refinery.pipelines.runners.portable.addresses import is_portable, job_endpoint
    from refinery.pipelines.runners.portable.attach import described_options, job_service

    endpoint = job_endpoint(flags) if is_portable(getattr(args, "runner", "")) else ""
    return described_options(job_service(endpoint)) if endpoint else ()


if __name__ == "__main__":
    main()
