"""A command of the command line: one declaration, in one file.

Our own are the files of pipelines/cli; those of other packages are entry points (docs/extending.md). From declarations
follow the parser, `--help`, exit codes, completion and docs/commands.md.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from refinery.pipelines.shell.arguments import check_beam_flags, refuse_flags
from refinery.pipelines.shell.exit_codes import ExitCode, exit_code_lines


class Section(StrEnum):
    """Headings of `refinery --help`, in their order; under each, commands are in alphabetical order."""

    PREPARE = "prepare a run"
    STEP = "do one step, text to text"
    MAKE = "make a corpus"
    LOOK = "look at a corpus"
    CHECK = "check a corpus"
    HAND_ON = "hand a corpus on"
    TRAIN = "train tokenizers and models"
    OTHER = "from other packages"


def no_arguments(parser: ArgumentParser) -> None:
    """Of a command that takes none."""


ServiceOptions = Callable[[Namespace, Sequence[str]], Iterable[str]]


def no_service_options(args: Namespace, flags: Sequence[str]) -> Iterable[str]:
    """Where no job service is asked."""
    return ()


@dataclass(frozen=True)
class Command:
    """What people type, what it says of itself, and what it does.

    name: a word, or two for a command of a group ("acquire git"). summary: its line in `--help`, without a full stop.
    examples: the end of its `--help`; lines that begin with `  refinery NAME` are examples, and tests parse them.
    run: does the work, and returns the exit code; None makes the command a group, whose members are declared in files
    of their own. arguments: adds its arguments to a parser. It is called only where these are needed, so it may import
    what declares them. beam_flags: whether flags that are not its own are Beam's, for all or for some arguments; they
    are checked before `run` is called with them. exit_codes: what 0, 1 and 2 mean, where that is more than usual.
    """

    name: str
    summary: str
    section: Section = Section.OTHER
    examples: str = ""
    run: Callable[[Namespace, Sequence[str]], ExitCode] | None = None
    arguments: Callable[[ArgumentParser], None] = no_arguments
    beam_flags: bool | Callable[[Namespace], bool] = False
    exit_codes: Mapping[ExitCode, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.name.split(" "))

    def epilog(self, examples: str = "") -> str:
        """The end of its `--help`: examples (of a group those of its members), then exit codes."""
        codes = "\n".join(exit_code_lines(self.exit_codes))
        return "\n\n".join(filter(None, (self.examples, examples, codes)))

    def option_strings(self) -> list[str]:
        """Its options, as they are typed."""
        parser = ArgumentParser(add_help=False)
        self.arguments(parser)
        return [text for action in parser._actions for text in action.option_strings]

    def __call__(
        self, args: Namespace, flags: Sequence[str], of_service: ServiceOptions = no_service_options
    ) -> ExitCode:
        """Check the flags that are not its own, and run. of_service: options of the engine's job service.

        Raises ValueError for a flag that nobody knows, and whatever `run` raises.
        """
        if self.run is None:
            raise ValueError(f"{self.name}: a group of commands; `refinery {self.name} --help` lists them")
        for_beam = self.beam_flags(args) if callable(self.beam_flags) else self.beam_flags
        if not for_beam:
            refuse_flags(flags)
        elif flags:
            check_beam_flags(flags, self.option_strings(), lambda: of_service(args, flags))
        return ExitCode(self.run(args, flags))
