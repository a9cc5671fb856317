"""Every command of ours keeps what `refinery.testing.CommandTests` asks, and commands that do not are found."""

import importlib
import inspect
import zlib
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import OWN
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.testing import CommandTests
from tests.pipelines.shell.test_help import NOT_THERE

COMMANDS = {command.name: command for command in OWN.all() if command.run is not None}


def words(name: str) -> str:
    """What is not there, without processes that take long to start."""
    quick = " --workers 0" if "--workers" in COMMANDS[name].option_strings() and name != "doctor" else ""
    return f"{NOT_THERE[name][0]}{quick}"


for _name, _command in COMMANDS.items():
    _title = "".join(word.capitalize() for word in _name.replace("-", " ").split())
    _given = {"command": _command, "fails": words(_name), "code": NOT_THERE[_name][1]}
    globals()[f"Test{_title}"] = type(f"Test{_title}", (CommandTests,), _given)


# --- commands that do not -------------------------------------------------------------------------------------------

GOOD = '''"""A command that keeps all that it promises."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.command import Command
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery count-words a.txt
  refinery count-words a.txt -n 3"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", help="a text")
    parser.add_argument("-n", dest="number", type=int, default=1, help="how many (1)")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    with open(args.file) as file:
        print(len(file.read().split()))
    return ExitCode.DONE


COMMAND = Command("count-words", "how many words a text has", examples=EXAMPLES, arguments=arguments, run=run)
'''
OPEN = "    with open(args.file) as file:\n"
EXAMPLE, FAILS = "test_its_examples_are_taken", "test_what_fails_is_said_in_a_line"
SAYS, ARGUMENT = "test_it_says_what_it_is", "test_every_argument_says_what_it_is"
HELP, HEAVY = "test_its_help_has_examples_and_exit_codes", "test_its_module_imports_nothing_heavy"
FLAG, CTRL_C = "test_an_unknown_flag_leads_on", "test_it_ends_with_130_when_it_is_interrupted"
TAKES_ALL = "lambda parser: parser.add_argument('words', nargs='...', help='x')"
RUN_LAST = "arguments=arguments, run=run)"

# What is wrong -> text of GOOD, what stands in its place, the test that finds it, and what that says.
BROKEN = {
    "a full stop": ("a text has", "a text has.", SAYS, "a line without a full stop is needed"),
    "a group": (", run=run)", ")", SAYS, "no run given"),
    "no meaning": (RUN_LAST, "arguments=arguments, run=run, exit_codes={ExitCode.DONE: ''})", SAYS, "has no meaning"),
    "no exit code": (RUN_LAST, "arguments=arguments, run=run, exit_codes={7: 'x'})", SAYS, "7 given, a member of Exit"),
    "a heavy import": ("from argparse import", "import numpy\nfrom argparse import", HEAVY, "imports numpy at its top"),
    "no examples": ("examples=EXAMPLES, ", "", HELP, "a line that begins with"),
    "an example that is refused": ("a.txt -n 3", "a.txt -n many", EXAMPLE, "the parser refuses it: "),
    "an example with a flag of nobody": (
        "a.txt -n 3",
        "a.txt --most 3",
        EXAMPLE,
        "'--most'.* is not an argument of it",
    ),
    "an argument without help": ('"file", help="a text"', '"file"', ARGUMENT, "file: no help given"),
    "an argument of the program's": ('dest="number"', 'dest="command"', ARGUMENT, "stored as 'command'"),
    "any flag": (
        RUN_LAST,
        "arguments=lambda p: p.add_argument('w', nargs='...', help='x'), run=run)",
        FLAG,
        "runs with",
    ),
    "an error of another kind": (OPEN, f"    raise KeyError(args.file)\n{OPEN}", FAILS, "KeyError is raised"),
    "no failure": (OPEN, f"    return ExitCode.DONE\n{OPEN}", FAILS, "it ends with 0; `fails` names what is not there"),
    "another failure": (OPEN, f"    raise ValueError('no; do')\n{OPEN}", FAILS, "it ends with 2, .*FAILED.* is needed"),
    "nothing said": (OPEN, f"    return ExitCode.FAILED\n{OPEN}", FAILS, "nothing is said"),
    "no advice": (
        OPEN,
        f"    import sys\n    print('it failed', file=sys.stderr)\n    return ExitCode.FAILED\n{OPEN}",
        FAILS,
        "the line 'it failed' does not say what to do",
    ),
    "a file that is left": (OPEN, f"    open('left.txt', 'w').close()\n{OPEN}", FAILS, "'left.txt'.* is left behind"),
    "Ctrl-C that is caught": (
        OPEN,
        f"    try:\n        number = 1\n    except BaseException:\n        return ExitCode.FAILED\n{OPEN}",
        CTRL_C,
        "Ctrl-C in line 21: it ends with 1, 130 is needed",
    ),
}


def made(folder: Path, text: str) -> CommandTests:
    """The tests of a command in a module there."""
    name = f"count_words_{zlib.crc32(text.encode()):x}"
    (folder / f"{name}.py").write_text(text)
    found = importlib.import_module(name)
    kind = type(
        "Broken",
        (CommandTests,),
        {"command": found.COMMAND, "fails": "no.txt", "code": ExitCode.FAILED, "__test__": False},
    )
    broken: CommandTests = kind()
    return broken


def call(tests: CommandTests, name: str, folder: Path) -> None:
    function = getattr(tests, name)
    function(*([folder] if inspect.signature(function).parameters else []))


CONTRACTS = [name for name in vars(CommandTests) if name.startswith("test_")]


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_good_one_is_found_to_be_good(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "here").mkdir()
    call(made(tmp_path, GOOD), name, tmp_path / "here")


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, test, message = BROKEN[name]
    assert GOOD.count(before) == 1
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "here").mkdir()
    tests = made(tmp_path, GOOD.replace(before, after))
    with pytest.raises(AssertionError, match=message):
        call(tests, test, tmp_path / "here")


def test_every_contract_is_tried_on_a_broken_command() -> None:
    assert {test for _, _, test, _ in BROKEN.values()} == set(CONTRACTS)
