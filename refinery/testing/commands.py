"""What every command promises, as tests that its author inherits."""

import contextlib
import gc
import io
import os
import shlex
import subprocess
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NoReturn

from refinery.pipelines.cli.command_line import OWN, build_parser, execute_with
from refinery.pipelines.progress.output import Output
from refinery.pipelines.shell.command import Command
from refinery.pipelines.shell.exit_codes import ExitCode, exit_code_lines
from refinery.pipelines.shell.help_text import ADVICE, PROGRAM, all_commands, examples
from refinery.testing.expect import expect

# What takes long to import, or is not wanted where a command only looks at something.
HEAVY = ("numpy", "pyarrow", "pydantic", "yaml", "apache_beam", "torch", "pandas", "requests", "grpc", "scipy")
TAKEN = ("run", "command", "member")  # where the parser of the program keeps its own
UNKNOWN = "--no-such-flag"
MOST_LINES = 15  # of `run` at which Ctrl-C is tried


@dataclass
class Ended:
    """What became of a command line: its exit code, and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return f"{self.err}{self.out}".strip()


class CommandTests:
    """Tests of one command. Give it `command`, the declaration, and `fails`: arguments of something that is not there,
    with which it ends soon and writes nothing; `code`: the exit code of that, where it is to be a certain one.

    What they hold a command to: its module imports nothing that takes long; its help has examples that its parser
    takes, and its exit codes; each argument says what it is; an argument that nobody knows leads to the help; what
    fails is said in lines that say what to do, with an exit code of a failure, and leaves no file; Ctrl-C ends it with
    130, whatever line it is at.
    """

    command: ClassVar[Command]
    fails: ClassVar[str]
    code: ClassVar[ExitCode | None] = None

    # --- what the tests are made of ---------------------------------------------------------------------------------

    def parser(self, command: Command | None = None) -> Any:
        """The program's parser with only this command, below its group if it has one."""
        chosen = command or self.command
        groups = [group for group in OWN.all() if group.run is None and group.words == chosen.words[:-1]]
        return build_parser([*groups, chosen])

    def execute(self, words: Sequence[str], command: Command | None = None) -> Ended:
        """What comes of a command line, words behind the command's name."""
        out, err = io.StringIO(), io.StringIO()
        chosen = command or self.command
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                args, flags = self.parser(chosen).parse_known_args([*chosen.words, *words])
                with Output(args.command, getattr(args, "quiet", False)) as output:
                    code = int(execute_with(args, flags, output))
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return Ended(code, out.getvalue(), err.getvalue())

    def examples(self) -> list[list[str]]:
        """Its examples, as words behind its name."""
        own, every = self.command.words, examples(dict(all_commands(self.parser()))[self.command.name])
        return [words[len(own) :] for words in every if tuple(words[: len(own)]) == own]

    def failing(self) -> list[str]:
        """The words of `fails`."""
        return shlex.split(self.fails)

    # --- the declaration --------------------------------------------------------------------------------------------

    def test_it_says_what_it_is(self) -> None:
        said = self.command.summary
        good = bool(said) and said == said.strip() and not said.endswith(".") and "\n" not in said
        expect(good, f"summary: {said!r} given, a line without a full stop is needed")
        expect(self.command.run is not None, f"{self.command.name}: no run given; a group has no tests")
        for code, meaning in self.command.exit_codes.items():
            expect(isinstance(code, ExitCode), f"exit_codes: {code!r} given, a member of ExitCode is needed")
            expect(bool(meaning.strip()), f"exit_codes: {code!r} has no meaning")

    def test_its_module_imports_nothing_heavy(self) -> None:
        """`refinery --help` reads the modules of all commands; what a command needs is imported in `run`."""
        module = getattr(self.command.run, "__module__", "")
        script = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
        places = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": places}
        )
        expect(done.returncode == 0, f"{module} cannot be imported: {done.stderr.strip()[-2000:]}")
        expect(not done.stdout.split(), f"{module} imports {', '.join(done.stdout.split())} at its top, not in `run`")

    def test_its_help_has_examples_and_exit_codes(self) -> None:
        shown = self.execute(["--help"])
        expect(shown.code == 0 and shown.err == "", f"--help ends with {shown.code}: {shown.said}")
        expect(bool(self.examples()), f"examples: a line that begins with `  {PROGRAM} {self.command.name}` is needed")
        codes = "\n".join(exit_code_lines(self.command.exit_codes))
        expect(shown.out.endswith(f"{codes}\n"), "its help does not end with its exit codes")

    def test_its_examples_are_taken(self) -> None:
        for words in self.examples():
            line, err = " ".join(words), io.StringIO()
            with contextlib.redirect_stderr(err):
                try:
                    args, flags = self.parser().parse_known_args([*self.command.words, *words])
                except SystemExit:
                    expect(False, f"example `{line}`: the parser refuses it: {err.getvalue()}")
            for_beam = self.command.beam_flags
            allowed = bool(for_beam(args) if callable(for_beam) else for_beam)
            strange = [flag for flag in flags if flag != "…" and not (allowed and flag.startswith("-"))]
            expect(not strange, f"example `{line}`: {strange[:1]} is not an argument of it")

    def test_every_argument_says_what_it_is(self) -> None:
        for action in dict(all_commands(self.parser()))[self.command.name]._actions:
            name = "/".join(action.option_strings) or action.dest
            expect(bool(action.help), f"{name}: no help given")
            expect(action.dest not in TAKEN, f"{name}: stored as {action.dest!r}, which the program needs for itself")

    # --- mistakes and failures --------------------------------------------------------------------------------------

    def test_an_unknown_flag_leads_on(self) -> None:
        ended = self.execute([*self.failing(), UNKNOWN], replace(self.command, run=reach))
        expect("reached" not in ended.err, f"{UNKNOWN}: the command runs with it")
        expect(ended.code == ExitCode.USAGE, f"{UNKNOWN}: it ends with {ended.code}, {ExitCode.USAGE} is needed")
        leads = bool(ADVICE.search(ended.err)) and "Traceback" not in ended.err
        expect(leads, f"{UNKNOWN}: {ended.said!r} does not say what to do")

    def test_what_fails_is_said_in_a_line(self, tmp_path: Path) -> None:
        with contextlib.chdir(tmp_path):
            try:
                ended = self.execute(self.failing())
            except Exception as error:  # noqa: BLE001 - what the program does not expect
                kinds = "ValueError, OSError or RuntimeError is needed"
                expect(False, f"{self.fails}: {type(error).__name__} is raised; {kinds}")
        failed = ended.code in (ExitCode.FAILED, ExitCode.USAGE)
        expect(failed, f"{self.fails}: it ends with {ended.code}; `fails` names what is not there")
        expect(self.code in (None, ended.code), f"{self.fails}: it ends with {ended.code}, {self.code!r} is needed")
        expect(bool(ended.said), f"{self.fails}: nothing is said")
        for line in ended.err.splitlines():
            leads = bool(ADVICE.search(line)) or line.startswith("next: ")
            expect(leads, f"{self.fails}: the line {line!r} does not say what to do")
        left = [path.name for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith(".lock")]
        expect(not left, f"{self.fails}: {left[:3]} is left behind")

    def test_it_ends_with_130_when_it_is_interrupted(self, tmp_path: Path) -> None:
        """Ctrl-C at each line of `run` that it comes to before it fails."""
        for count in range(1, MOST_LINES + 1):
            with contextlib.chdir(tmp_path), warnings.catch_warnings(), interrupted(self.command.run, count) as lines:
                warnings.simplefilter("ignore", ResourceWarning)  # what is open is left to the interpreter
                ended = self.execute(self.failing())
                gc.collect()
            if len(lines) < count:
                break
            said = f"Ctrl-C in line {lines[-1]}: it ends with {ended.code}, {int(ExitCode.INTERRUPTED)} is needed"
            expect(ended.code == ExitCode.INTERRUPTED, said)
            expect(bool(ended.err.strip()), f"Ctrl-C in line {lines[-1]}: nothing is said")


def reach(args: Namespace, flags: Sequence[str]) -> NoReturn:
    """In place of a command: says that it is reached."""
    raise ValueError("reached")


@contextlib.contextmanager
def interrupted(run: Callable[..., Any] | None, count: int) -> Iterator[list[int]]:
    """KeyboardInterrupt at the line of `run` that is the `count`-th to be come to; yields those that it came to."""
    lines: list[int] = []
    code = getattr(run, "__code__", None)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not code:
            return None
        if event == "line" and frame.f_lineno not in lines:
            lines.append(frame.f_lineno)
            if len(lines) == count:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
