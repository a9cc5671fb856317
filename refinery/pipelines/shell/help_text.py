"""`--help` of the program and of every command, its examples as words, and what an error says to do next."""

import argparse
import errno
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from refinery.loader.errors import FormatError
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import closest, meant

PROGRAM = "refinery"
COMMAND = "COMMAND"  # what stands for one in --help
# What in a message says what to do: a second half of the sentence, a command, what is allowed or needed, an order.
ADVICE = re.compile(
    r"; |: `|`refinery|\ballowed\b|\bneeded?\b|\bdid you mean\b|\bagain\b|[Cc]hoose |: give |\bwrite |Valid values"
    r"|\bexpected\b|They come first"
)
# For errors that say nothing of the kind: of damaged files, and the system's own.
STEPS: Mapping[type[Exception], str] = {
    FormatError: "`refinery verify` says what else is damaged",
    FileNotFoundError: "correct the name, or make the file",
    FileExistsError: "choose another name, or remove what is there",
    PermissionError: "change its rights, or choose another place",
    NotADirectoryError: "name a folder",
    IsADirectoryError: "name a file in it",
    OSError: "run the same command again when this is put right",
}
MEMORY = (
    "this machine, or a limit of it (`ulimit -v`, `ulimit -u`, a container's), leaves too little memory or too few "
    "processes: raise it, or lower --workers; then run the same command again"
)
NO_THREAD = "can't start new thread"  # as Python says it
NO_ROOM = {
    errno.ENOSPC: "free some, or name another place (--scratch for temporary files); then run the same command again",
    errno.EDQUOT: "raise the quota or name another place; then run the same command again",
    errno.EROFS: "name a place that can be written to",
    errno.ENOMEM: MEMORY,
    errno.EAGAIN: MEMORY,  # of a process that cannot be started
    errno.EMFILE: "raise the limit (`ulimit -n 4096`), then run the same command again",
}
CHOICE = re.compile(r"argument (.*): invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)
TYPE = re.compile(r"argument (.*): invalid (int|float) value: '(.*)'", re.DOTALL)
MISSING = re.compile(r"the following arguments are required: (.*)")
NUMBERS = {"int": "a whole number", "float": "a number"}
RECIPES = (".yaml", ".yml")
COMMENT = re.compile(r"\s{3,}|\s[|>]\s")  # ends an example: what is said about it, a pipe, a file


class Suggested(tuple[str, ...]):
    """Values that completion offers for an argument which takes others, too: argparse's `choices`."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return True


def joined(words: Sequence[str], options: Collection[str]) -> list[str]:
    """Words, with the value of each of these options behind it and `=`.

    >>> joined(["--sbatch", "--mem=1G", "--x", "--y"], {"--sbatch"})
    ['--sbatch=--mem=1G', '--x', '--y']
    """
    found: list[str] = []
    for word in words:
        if found and found[-1] in options:
            found[-1] = f"{found[-1]}={word}"
        else:
            found.append(word)
    return found


class CommandParser(argparse.ArgumentParser):
    """argparse's parser, whose errors say what to do next. Commands that are added to it are of this class, too."""

    words: Sequence[str] = ()  # that are being parsed
    flag_options: frozenset[str] = frozenset()  # options whose value may begin with a dash

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, which asks each command's parser for its part of the words, but a value of `flag_options` may
        begin with a dash."""
        self.words = [word.partition("=")[0] for word in args or ()]
        given = None if args is None else joined(args, self.flag_options)
        return super().parse_known_args(given, namespace)

    def error(self, message: str) -> NoReturn:
        """One line. Ends with USAGE."""
        if found := CHOICE.search(message):
            message = wrong_choice(found[1], found[2], re.findall(r"[^\s',]+", found[3]))
        elif found := TYPE.search(message):
            message = f"{found[1]}: {found[3]!r:.80} given, {NUMBERS[found[2]]} is expected"
        elif found := MISSING.search(message):
            names = [name for each in found[1].split(", ") for name in each.split("/")]
            near = ((word, closest(word, names)) for word in self.words if word.startswith("--"))
            if pair := next(((word, name) for word, name in near if name and word != name), None):
                message = f"unknown flag {pair[0]}; did you mean {pair[1]}?"
        message = message.removeprefix("argument ")
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {safe(message)}; `{self.prog} --help` has examples\n")


def wrong_choice(argument: str, value: str, choices: Sequence[str]) -> str:
    """The message about a value that is none of the choices, or a word that is not a command."""
    if argument == COMMAND and (value.endswith(RECIPES) or "/" in value or os.path.isdir(value)):
        use = "refine" if value.endswith(RECIPES) else "inspect"
        return f"{value!r:.80} given where a command is expected: `{PROGRAM} {use} {shlex.quote(value):.80}`"
    what = f"{value!r:.80} is not a command" if argument == COMMAND else f"{argument}: {value!r:.80} given"
    allowed = f", one of {', '.join(choices)} is allowed"
    return f"{what}{meant(value, choices) or allowed}"


class ProgramParser(CommandParser):
    """The parser of the program, whose `--help` lists the commands under headings."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        self.headings: dict[str, str] = {}
        self.notes: list[str] = []
        self.commands = self.add_subparsers(dest="command", required=True, metavar=COMMAND, parser_class=CommandParser)

    def format_help(self) -> str:
        """As argparse's, except for the headings, and notes below them."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        choices = {action.dest: action for action in self.commands._get_subactions()}
        sections = {"options": [action for action in self._actions if action.option_strings]}
        for name, heading in self.headings.items():
            sections.setdefault(heading, []).append(choices[name])
        for heading, actions in sections.items():
            formatter.start_section(heading)
            formatter.add_arguments(actions)
            formatter.end_section()
        for text in (*self.notes, self.epilog):
            formatter.add_text(text)
        return formatter.format_help()


def all_commands(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """(name, parser) of every command in order; "acquire", then "acquire git"."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                full = f"{name} {word}".strip()
                yield full, inner
                yield from all_commands(inner, full)


def example_lines(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every example in a command's help: the lines that begin with the program's name."""
    yield from (line for line in (parser.epilog or "").splitlines() if line.startswith(f"  {PROGRAM} "))


def examples(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """The words behind `refinery` of every example."""
    yield from (shlex.split(COMMENT.split(line.strip())[0])[1:] for line in example_lines(parser))


def with_next_step(error: BaseException, message: str, command: str) -> str:
    """An error's message; one that says only what is wrong gets a second half, by what kind of error it is.

    >>> with_next_step(FileNotFoundError(), "no such file: 'a.jsonl'", "refine")
    "no such file: 'a.jsonl'; correct the name, or make the file"
    """
    if isinstance(error, MemoryError) and not message:
        return f"out of memory; {MEMORY}"
    if message == NO_THREAD:
        return f"{message}; {MEMORY}"
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return f"{message.rstrip('.')}; {NO_ROOM[error.errno]}"
    if ADVICE.search(message):
        return message
    usual = f"`{PROGRAM} {command} --help` has examples"
    usual = usual if isinstance(error, ValueError) else f"`{PROGRAM} doctor` looks for what is missing here"
    step = next((step for kind, step in STEPS.items() if isinstance(error, kind)), usual)
    return f"{message.rstrip('.')}; {step}"
