"""Exit codes: what every command says to the shell.

A command declares where they mean more than here (`Command.exit_codes`); `--help` and the table in docs/commands.md are
made from these sentences.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command ends with. 2 is argparse's own for arguments, 130 what shells say of Ctrl-C (128 + SIGINT)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INTERRUPTED = 130


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "a run, a job, storage or a check failed; the last line says what to do",
    ExitCode.USAGE: "the command, the recipe or its inputs are wrong, or a corpus is damaged",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C or SIGTERM); the same command continues where it stopped",
}


def meanings(special: Mapping[ExitCode, str]) -> Mapping[ExitCode, str]:
    """What the codes of a command mean. special: those that mean more than usual."""
    return {**MEANINGS, **special}


def exit_code_lines(special: Mapping[ExitCode, str]) -> Iterator[str]:
    """For the end of `--help`."""
    yield "exit codes:"
    yield from (f"  {code.value:>3}  {meaning}" for code, meaning in meanings(special).items())
