"""Exit codes: what every command says to the shell, declared once.

`--help` of the command line and of each command, and the table in docs/commands.md, are made from these sentences.
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
    ExitCode.USAGE: "the command, the recipe or its inputs are wrong; nothing was run",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C or SIGTERM); the same command goes on where it stopped",
}

# What 0, 1 and 2 mean for the commands that answer a question, where that is more than the above.
ANSWERS: Mapping[str, Mapping[ExitCode, str]] = {
    "compare": {
        ExitCode.DONE: "compared, whatever was found (with --exit-code: no difference)",
        ExitCode.FAILED: "with --exit-code: documents, tokens or funnel differ; or storage failed",
        ExitCode.USAGE: "the command is wrong, or one of them is no complete corpus",
    },
    "plan": {ExitCode.DONE: "computed", ExitCode.USAGE: "an input is impossible, or there is no corpus to measure"},
    "audit": {
        ExitCode.DONE: "everything that was compared agrees",
        ExitCode.FAILED: "something differs, or nothing was compared",
        ExitCode.USAGE: "the command is wrong, or inputs or models are not those of the run",
    },
    "card": {ExitCode.DONE: "the cards are there", ExitCode.USAGE: "there is no finished corpus, or a file is there"},
    "report": {ExitCode.DONE: "the page is there", ExitCode.USAGE: "there is no finished run, or the file is there"},
    "try": {ExitCode.DONE: "it came through all stages", ExitCode.FAILED: "a stage dropped it or failed"},
    "doctor": {ExitCode.DONE: "no problem (warnings may be)", ExitCode.FAILED: "a problem, each with what to do"},
    "inspect": {
        ExitCode.DONE: "the corpus is complete",
        ExitCode.FAILED: "it is not, or is damaged",
        ExitCode.USAGE: "the command is wrong, or there is no run",
    },
    "status": {ExitCode.DONE: "the export is complete", ExitCode.FAILED: "it is not"},
    "trace": {
        ExitCode.DONE: "everything was found",
        ExitCode.FAILED: "something was not",
        ExitCode.USAGE: "the command is wrong, or there is no corpus",
    },
    "show": {
        ExitCode.DONE: "everything was found",
        ExitCode.FAILED: "something was not",
        ExitCode.USAGE: "the command is wrong, or there is no corpus",
    },
    "sample": {
        ExitCode.DONE: "there was something to read",
        ExitCode.FAILED: "there was nothing",
        ExitCode.USAGE: "the command is wrong, or there is no corpus",
    },
    "verify": {
        ExitCode.DONE: "all holds (with --shards: what the share found is written)",
        ExitCode.FAILED: "something does not; every failure is a line",
        ExitCode.USAGE: "the command is wrong, or partial results are missing, damaged or of another check",
    },
}


def meanings(command: str = "") -> Mapping[ExitCode, str]:
    """What the codes of a command mean; "" for what they mean in general."""
    return {**MEANINGS, **ANSWERS.get(command, {})}


def exit_code_lines(command: str = "") -> Iterator[str]:
    """For the end of `--help`."""
    yield "exit codes:"
    yield from (f"  {code.value:>3}  {meaning}" for code, meaning in meanings(command).items())
