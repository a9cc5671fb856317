"""The steps of "A command" in docs/extending/, followed literally; and packages whose commands cannot be used."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import refinery.pipelines.cli as folder_of_commands
from refinery.pipelines.cli import command_line
from refinery.pipelines.cli.command_line import OWN, execute
from refinery.pipelines.shell.completion import SHELLS, completion
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.pipelines.shell.registry import Registry
from tests.docs.blocks import subject_text
from tests.pipelines.inputs import ROOT, run
from tests.sampling import one_commit_in_four, sampled
from tools.commands_page import commands, section_pages

PAGE = subject_text("extending")
SECTION = PAGE[PAGE.index("# A command\n") :]
FILE = re.search(r"```python\n(.*?)```", SECTION, re.S)
PROJECT = re.search(r"```text\n(\[project\].*?)```", SECTION, re.S)
TEST = re.search(r"\*\*2\. Its test.*?```python\n(.*?)```", SECTION, re.S)
assert FILE and PROJECT and TEST
NAME = "largest-shards"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package of the page is installed."""
    package, site = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("site")
    (package / "largest_shards.py").write_text(FILE[1])
    (package / "pyproject.toml").write_text(PROJECT[1])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(site), "."], cwd=package, check=True, capture_output=True)
    return site


def declare(site: Path, package: str, commands: str, **modules: str) -> None:
    """Another package there, as pip leaves one: its metadata and its modules."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[refinery.commands]\n{commands}\n")
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text)


def refinery(site: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """The command line in a new interpreter that has that package."""
    return run(*words, check=False, alone=True, environment={"PYTHONPATH": str(site)})


# --- the steps of the page ------------------------------------------------------------------------------------------


@one_commit_in_four
def test_a_command_of_a_package(site: Path, corpus: Path) -> None:
    done = refinery(site, NAME, corpus, "-n", 2)
    assert done.returncode == 0, done.stderr
    sizes = [int(line.split()[0].replace(",", "")) for line in done.stdout.splitlines()]
    assert len(sizes) == 2 and sizes == sorted(sizes, reverse=True)
    assert refinery(site, NAME, corpus, "-n", 0).returncode == ExitCode.USAGE
    unknown = refinery(site, NAME, corpus, "--region=x")
    assert unknown.returncode == ExitCode.USAGE and "unknown argument: --region=x" in unknown.stderr


@one_commit_in_four
def test_its_test_passes(tmp_path: Path) -> None:
    (tmp_path / "largest_shards.py").write_text(FILE[1])
    (tmp_path / "test_largest_shards.py").write_text(TEST[1])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_largest_shards.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "8 passed" in done.stdout, done.stdout + done.stderr


@one_commit_in_four
def test_it_is_in_help_completion_and_what_is_suggested(site: Path) -> None:
    said = refinery(site, "--help").stdout
    assert re.search(r"^from other packages:\n  largest-shards +the shards of a corpus with the most tok", said, re.M)
    assert refinery(site, NAME, "--help").stdout.startswith("usage: refinery largest-shards [-h] [-n N] PREFIX\n")
    assert "did you mean largest-shards?" in refinery(site, "largest-shard").stderr
    assert NAME in refinery(site, "completion", "bash").stdout
    assert "from other packages: largest-shards of my-commands" in refinery(site, "doctor").stdout


def test_the_entry_point_of_the_page_has_the_commands_name() -> None:
    assert tomllib.loads(PROJECT[1])["project"]["entry-points"]["refinery.commands"] == {NAME: "largest_shards:COMMAND"}


def test_a_file_in_this_tree_is_a_command(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file; parser, help, exit codes, completion and the page follow."""
    (tmp_path / "largest_shards.py").write_text(
        FILE[1]
        .replace("command import Command", "command import Command, Section")
        .replace("    arguments=arguments,\n", "    section=Section.LOOK,\n    arguments=arguments,\n")
        .replace("    run=run,\n", '    run=run,\n    exit_codes={ExitCode.DONE: "told"},\n')
    )
    monkeypatch.setattr(folder_of_commands, "__path__", [*folder_of_commands.__path__, str(tmp_path)])
    again = Registry(OWN.package, OWN.besides)
    monkeypatch.setattr(command_line, "OWN", again)
    try:
        assert execute([NAME, str(corpus)]) is ExitCode.DONE
        assert len(capsys.readouterr().out.splitlines()) == 3
        text = command_line.build_parser().format_help()
        assert re.search(r"^look at a corpus:(\n  .*)*\n  largest-shards +the shards", text, re.M)
        assert f"(commands/look.md#{NAME})" in commands()
        assert f"## {NAME}\n\nThe shards of a corpus with the most tokens.\n" in section_pages()["look.md"]
        assert all(NAME in completion(command_line.build_parser(), shell) for shell in SHELLS)
        with pytest.raises(SystemExit):
            execute([NAME, "--help"])
        assert "    0  told\n" in capsys.readouterr().out
    finally:
        sys.modules.pop(f"{OWN.package}.largest_shards", None)


# --- what cannot be used --------------------------------------------------------------------------------------------

GOOD = "from refinery.pipelines.shell.command import Command\n"
BROKEN = {
    "no such module": ("gone:COMMAND", "", "ModuleNotFoundError: No module named 'gone'"),
    "no such name": ("mine:COMMAND", "", "module 'mine' has no attribute 'COMMAND'"),
    "something else": ("mine:COMMAND", "COMMAND = 'text'", "TypeError: a str is there, a Command with `run` is needed"),
    "a group": ("mine:COMMAND", f"{GOOD}COMMAND = Command('bad', 'x')", "a Command with `run` is needed"),
    "another name": (
        "mine:COMMAND",
        f"{GOOD}COMMAND = Command('other', 'x', run=print)",
        "it calls itself 'other', it must have the name of its entry point",
    ),
    "it ends the process": ("mine:COMMAND", "raise SystemExit(7)", "SystemExit: 7"),
    "it divides by zero": ("mine:COMMAND", "1 / 0", "ZeroDivisionError: division by zero"),
    "arguments that fail": (
        "mine:COMMAND",
        f"{GOOD}COMMAND = Command('bad', 'x', run=print, arguments=lambda parser: parser.add_argument(1))",
        "cannot be loaded: ",
    ),
    "a help that is no format": (
        "mine:COMMAND",
        f"{GOOD}COMMAND = Command('bad', 'x', run=print, arguments=lambda p: p.add_argument('--a', help='5 %'))",
        "cannot be loaded: ValueError: ",
    ),
    "no point of entry": ("mine", "", "cannot be loaded: "),
}


@pytest.mark.parametrize("what", sampled("commands that cannot be loaded", BROKEN, 2))
def test_a_command_that_cannot_be_loaded_breaks_nothing(what: str, tmp_path: Path, corpus: Path) -> None:
    value, text, why = BROKEN[what]
    declare(tmp_path, "others", f"bad = {value}", mine=text)
    called = refinery(tmp_path, "bad", "x", "--any", "-h")
    assert called.returncode == ExitCode.FAILED and called.stdout == ""
    (line,) = called.stderr.splitlines()
    assert line.startswith(f"refinery: others: its command 'bad' ({value}) cannot be loaded: ") and why in line
    assert line.endswith("update others, or uninstall it")
    listed = refinery(tmp_path, "--help")
    assert (
        listed.returncode == 0 and "  bad               cannot be loaded; `refinery doctor` says why\n" in listed.stdout
    )
    assert refinery(tmp_path, "shards", corpus, "--node", "n").returncode == 0
    if what == "no such module":
        completed = refinery(tmp_path, "completion", "bash")
        assert completed.returncode == 0 and re.search(r"\bbad\b", completed.stdout)


@one_commit_in_four
def test_names_that_are_taken_are_refused(tmp_path: Path, corpus: Path) -> None:
    """By ours, by a package that comes first, and by what is no name."""
    text = GOOD + "".join(
        f"{name.upper()} = Command('{name}', 'of {name}', run=lambda args, flags: print('{name}'))\n"
        for name in ("shards", "mine")
    )
    declare(tmp_path, "a-package", "mine = a_module:MINE\nshards = a_module:SHARDS", a_module=text)
    declare(tmp_path, "b-package", "mine = b_module:MINE\nMy Own = b_module:MINE", b_module=text)
    ours = refinery(tmp_path, "shards", corpus, "--node", "n")
    assert ours.returncode == 0 and "train/" in ours.stdout and ours.stderr == ""
    listed = refinery(tmp_path, "--help").stdout
    taken = [
        "a-package: its command 'shards' (a_module:SHARDS) is left out: the name is taken by refinery itself",
        "b-package: its command 'mine' (b_module:MINE) is left out: the name is taken by a-package",
        "b-package: its command 'My Own' (b_module:MINE) is left out: a word of lower-case letters",
    ]
    found = refinery(tmp_path, "doctor")
    for line in taken:
        assert f"\n{line}" in listed and f"warning  commands: {line}" in found.stdout
    assert "from other packages: mine of a-package" in found.stdout
    assert re.search(r"^  mine +of mine$", listed, re.M) and listed.count("  shards ") == 1
