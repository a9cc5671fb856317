"""The completion scripts have every command, flag and choice, and shells take them."""

import argparse
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import build_parser, execute
from refinery.pipelines.shell.completion import FILES, FOLDERS, SHELLS, completion
from refinery.pipelines.shell.help_text import all_commands

COMMANDS = dict(all_commands(build_parser()))


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    return {shell: completion(build_parser(), shell) for shell in SHELLS}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_flag_is_in_it(shell: str, scripts: dict[str, str]) -> None:
    text = scripts[shell]
    for name, parser in COMMANDS.items():
        assert re.search(rf"(?<![\w-]){re.escape(name.split()[-1])}(?![\w-])", text), name
        for action in parser._actions:
            for option in action.option_strings:
                wanted = re.sub("^--", "-l ", re.sub("^-(?!-)", "-s ", option)) if shell == "fish" else option
                assert re.search(rf"{re.escape(wanted)}(?![\w-])", text), f"{name} {option}"


def test_flags_stand_with_their_command(scripts: dict[str, str]) -> None:
    """bash: one list of flags a command."""
    found = dict(re.findall(r"^_shtab_refinery_(\w+)_option_strings=\((.*)\)$", scripts["bash"], re.MULTILINE))
    assert found == {
        re.sub(r"\W", "_", name): " ".join(text for action in parser._actions for text in action.option_strings)
        for name, parser in COMMANDS.items()
    }


def test_the_same_bytes_every_time(scripts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["completion", "zsh"]) == 0
    assert capsys.readouterr().out == scripts["zsh"] + "\n"


def test_words_that_mean_files_are_in_use() -> None:
    """A name that no argument has any more would be dead."""
    used = {
        action.metavar if isinstance(action.metavar, str) else action.dest
        for parser in COMMANDS.values()
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction)
    }
    assert used >= FILES | FOLDERS


def complete(script: str, folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    line = " ".join(shlex.quote(word) for word in words)
    asked = (
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}\n"
        "compopt() { :; }\n"  # only means something while bash itself completes
        f"_shtab_refinery; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""
    return [word.strip() for word in done.stdout.split()]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_what_bash_offers(scripts: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "web.yaml").touch()
    (tmp_path / "folder").mkdir()
    script = scripts["bash"]
    assert complete(script, tmp_path, "refinery", "ref") == ["refine"]
    assert complete(script, tmp_path, "refinery", "train-q") == ["train-quality"]
    assert complete(script, tmp_path, "refinery", "acquire", "c") == ["commoncrawl"]
    assert complete(script, tmp_path, "refinery", "refine", "--dis") == ["--discard-work"]
    assert complete(script, tmp_path, "refinery", "refine", "we") == ["web.yaml"]
    assert complete(script, tmp_path, "refinery", "export", "--format", "hug") == ["huggingface"]
    assert complete(script, tmp_path, "refinery", "shards", "x", "--fetch", "") == ["folder"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_takes_it(shell: str, scripts: dict[str, str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    file = tmp_path / "script"
    file.write_text(scripts[shell])
    done = subprocess.run([shell, "-n", str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
