"""The program and its groups have examples that the parser takes; exit codes are of one declaration; errors lead on.

What single commands promise: tests/testing/test_commands.py.
"""

import argparse
import errno
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from refinery.pipelines.cli import blend
from refinery.pipelines.cli.command_line import OWN, build_parser, execute
from refinery.pipelines.shell.exit_codes import MEANINGS, ExitCode, exit_code_lines, meanings
from refinery.pipelines.shell.help_text import all_commands, examples, with_next_step

PARSER = build_parser()
COMMANDS = dict(all_commands(PARSER))
CODES = {command.name: command.exit_codes for command in OWN.all()}
# Those that do something, rather than only have commands of their own.
LEAVES = [name for name in COMMANDS if not any(other.startswith(f"{name} ") for other in COMMANDS)]
GROUPS = ["", *(name for name in COMMANDS if name not in LEAVES)]  # "" is the program; tests/testing tries commands

# What each command says of something that is not there, and how it ends.
NOT_THERE = {
    "refine": ("no.yaml --output out", ExitCode.USAGE),
    "verify": ("no", ExitCode.USAGE),
    "inspect": ("no", ExitCode.USAGE),
    "trace": ("no --urls no.txt", ExitCode.FAILED),
    "show": (f"no --id {'0' * 32}", ExitCode.USAGE),
    "sample": ("no", ExitCode.USAGE),
    "cluster slurm": ("no.yaml --output out --tasks 2", ExitCode.USAGE),
    "cluster kubernetes": ("no.yaml --output s3://bucket/x --tasks 2 --image i", ExitCode.USAGE),
    "cluster status": ("no", ExitCode.USAGE),
    "cluster resume": ("no", ExitCode.USAGE),
    "cluster cancel": ("no", ExitCode.USAGE),
    "acquire git": ("no.yaml --output out", ExitCode.FAILED),
    "acquire commoncrawl": ("--snapshot no --files 1 --output out", ExitCode.USAGE),
    "dedup": ("no --output out", ExitCode.USAGE),
    "filter": ("no --rules c4 --output out", ExitCode.USAGE),
    "extract": ("no --html-field html --output out", ExitCode.USAGE),
    "redact": ("no --output out", ExitCode.USAGE),
    "detect-language": ("no --output out", ExitCode.USAGE),
    "doctor": ("no.yaml", ExitCode.FAILED),
    "init": ("no --output out.yaml", ExitCode.USAGE),
    "completion": ("bash no", ExitCode.USAGE),
    "stages": ("no", ExitCode.USAGE),
    "export": ("no --format jsonl --output out", ExitCode.USAGE),
    "remove": ("no --source s --output out", ExitCode.USAGE),
    "status": ("no", ExitCode.USAGE),
    "shards": ("no --node n", ExitCode.USAGE),
    "opt-outs": ("no.jsonl --output out", ExitCode.USAGE),
    "train-tokenizer": ("no.yaml --output out.json", ExitCode.USAGE),
    "train-quality": ("--positive no --negative no --output out", ExitCode.USAGE),
    "train-toxicity": ("--toxic no --clean no --output out", ExitCode.USAGE),
    "train-extractor": ("no --output out", ExitCode.FAILED),
    "train-perplexity": ("--input no --output out", ExitCode.USAGE),
    "retokenize": ("no --tokenizer no --output out", ExitCode.USAGE),
    "tokenize": ("no --tokenizer no --output out", ExitCode.USAGE),
    "blend": ("no", ExitCode.USAGE),
    "adopt": ("no --tokenizer no --output out", ExitCode.FAILED),
    "browse": ("no", ExitCode.USAGE),
    "compare": ("no other", ExitCode.USAGE),
    "mix": ("no.yaml --output out", ExitCode.USAGE),
    "plan": ("--from no --share 0.01", ExitCode.USAGE),
    "report": ("no", ExitCode.USAGE),
    "card": ("no", ExitCode.USAGE),
    "audit": ("no --sample 1", ExitCode.USAGE),
    "try": ("no.yaml --text no", ExitCode.USAGE),
}


# --- help -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_has_examples_which_parse(name: str) -> None:
    """Further words are Beam's flags, or "…" for them."""
    found = list(examples(COMMANDS[name] if name else PARSER))
    assert found, f"{name}: its epilog needs lines that begin with `  refinery {name}`"
    for words in found:
        assert shlex.join(words).startswith(name)
        args, flags = build_parser().parse_known_args(words)
        assert callable(args.run) and all(flag == "…" or flag.startswith("--") for flag in flags), words


@pytest.mark.parametrize("name", GROUPS)
def test_every_help_ends_with_its_exit_codes(name: str) -> None:
    parser = COMMANDS[name] if name else PARSER
    text = parser.format_help()
    assert text.endswith("\n".join(exit_code_lines(CODES[name] if name else {})) + "\n")
    assert text.count("exit code") <= 2  # `verify` says it in its summary


# --- exit codes -----------------------------------------------------------------------------------------------------


def test_the_declaration() -> None:
    assert set(MEANINGS) == set(ExitCode) and {name for name, codes in CODES.items() if codes} <= set(LEAVES)
    assert meanings(CODES["trace"])[ExitCode.FAILED] == "something was not" and meanings(CODES["blend"]) == MEANINGS


def test_every_command_that_fails_is_in_the_table() -> None:
    assert sorted(NOT_THERE) == sorted(LEAVES), "say in NOT_THERE how a new command fails"


@pytest.mark.parametrize("name", [name for name in LEAVES if COMMANDS[name].get_default("seed") is not None])
def test_a_number_that_is_none(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        execute([*name.split(), *NOT_THERE[name][0].split(), "--seed", "many"])
    assert ended.value.code == ExitCode.USAGE
    assert capsys.readouterr().err.endswith(f"`refinery {name} --help` has examples\n")


@pytest.mark.parametrize(
    ("raised", "expected", "said"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted; run the same command again to resume"),
        (ValueError("too much"), ExitCode.USAGE, "refinery: too much; `refinery blend --help` has examples"),
        (RuntimeError("no."), ExitCode.FAILED, "refinery: no; `refinery doctor` looks for what is missing here"),
        (PermissionError(13, "no", "f"), ExitCode.FAILED, "refinery: [Errno 13] no: 'f'; change its rights, or choose"),
    ],
)
def test_whatever_a_command_raises(
    raised: BaseException,
    expected: ExitCode,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(args: argparse.Namespace, flags: Sequence[str]) -> int:
        raise raised

    monkeypatch.setattr(blend, "COMMAND", replace(blend.COMMAND, run=fail))
    assert execute(["blend", "x"]) is expected
    assert said in capsys.readouterr().err


def test_a_code_that_is_not_declared_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blend, "COMMAND", replace(blend.COMMAND, run=lambda args, flags: 7))
    assert execute(["blend", "x"]) is ExitCode.USAGE


def test_a_killed_command_ends_as_an_interrupted_one() -> None:
    """SIGTERM, in a process of its own: it sends it to itself once the command runs."""
    script = (
        "import dataclasses, os, signal, sys; from refinery.pipelines.cli import blend, command_line\n"
        "kill = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "blend.COMMAND = dataclasses.replace(blend.COMMAND, run=kill)\n"
        "sys.argv = ['refinery', 'blend', 'x']; command_line.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == ExitCode.INTERRUPTED and "again to resume" in done.stderr


# --- errors ---------------------------------------------------------------------------------------------------------


def test_a_mistyped_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        execute(["refin"])
    assert re.search(r"did you mean refine\?; `refinery --help` has examples\n$", capsys.readouterr().err)


def test_a_message_that_says_what_to_do_stays_as_it_is() -> None:
    said = "--rate: 0 given, a number above 0 is allowed"
    assert with_next_step(ValueError(said), said, "acquire") == said


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
    ],
    ids=["memory", "thread", "ENOMEM", "fork"],
)
def test_what_says_no_memory_says_what_to_lower(error: BaseException) -> None:
    said = with_next_step(error, str(error), "refine")
    assert said[0].isalpha() or said[0] == "["
    assert "ulimit" in said and said.endswith("or lower --workers; then run the same command again")


def test_options_of_other_programs_are_values() -> None:
    """As people type them: the value of --sbatch begins with dashes, and is one word."""
    from refinery.pipelines.cli.command_line import parser_for

    words = ["cluster", "slurm", "r.yaml", "--output", "o", "--tasks", "2", "--sbatch", "--partition=cpu", "--submit"]
    args = parser_for(words).parse_args([*words, "--sbatch", "--mem=1G --time=9"])
    assert (args.sbatch, args.submit) == (["--partition=cpu", "--mem=1G --time=9"], True)
