"""Every fenced block of README and docs/ runs, or tests/docs/blocks.py says why it does not."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import (
    LANGUAGES,
    NOT_RUN,
    OTHERS,
    PAGES,
    PYTHON_ELSEWHERE,
    ROOT,
    Block,
    blocks,
    elsewhere,
    in_subject,
    is_generated,
    not_run,
    page_name,
    runs_elsewhere,
    words,
)
from tests.docs.workspace import make_workspace, stand_ins
from tests.fork_server import fork_server
from tests.sampling import sampled

BLOCKS = [block for path in PAGES for block in blocks(path)]
SHELL = [block for block in BLOCKS if block.language == "sh" and not is_generated(block.page)]
SAVED = re.compile(r"as\s+`([\w.-]+\.yaml)`")  # "Save this one as `my-corpus.yaml`"
EXIT_CODE = re.compile(r"exit code (\d+)")
COMMAND = re.compile(r"(\$ )?(\S+=\S+ )*(refinery [a-z-]+ |make [a-z]|(\S*/)?(python|pip|pytest) -|(\S*/)?pip install)")


def runs_here(block: Block) -> bool:
    if is_generated(block.page) or runs_elsewhere(block.page):
        return False
    if block.language == "sh":
        return any(not not_run(command) for command, _ in block.commands)
    return block.language == "python" and not elsewhere(block)


def test_every_block_says_what_it_is() -> None:
    assert {(block.page, block.language) for block in BLOCKS if block.language not in LANGUAGES} == set()
    for path in PAGES:  # none is indented, or fenced otherwise, or left open
        fences = re.findall(r"^\s*(?:```|~~~)", path.read_text(), re.MULTILINE)
        assert len(fences) == 2 * sum(block.page == page_name(path) for block in BLOCKS), path.name


def test_text_is_no_code() -> None:
    """Nobody types what is in a block of text; `console` shows a command and what it printed."""
    lines = [(block.page, line) for block in BLOCKS if block.language == "text" for line in block.body.splitlines()]
    assert [(page, line) for page, line in lines if COMMAND.match(line.strip())] == []
    assert all(block.body.startswith("$ ") for block in BLOCKS if block.language == "console")


def test_every_exception_is_in_use() -> None:
    commands = [command for block in SHELL for command, _ in block.commands]
    assert set(NOT_RUN) == {not_run(command) for command in commands} - {""}
    python = [block for block in BLOCKS if block.language == "python"]
    for subject, start in PYTHON_ELSEWHERE:
        found = [block for block in python if in_subject(block.page, subject)]
        assert any(block.body.startswith(start) for block in found), (subject, start)


RUN = sorted({block.page for block in BLOCKS if runs_here(block)})


@pytest.mark.parametrize("name", sampled("pages whose snippets run", RUN, len(RUN) // 8))
def test_a_pages_snippets_run(
    name: str, tmp_path: Path, inputs: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other in a folder of the page's own: recipes are saved, commands typed, Python executed.

    The tutorial makes two corpora, which takes some seconds. On one core, as in forks: runs start as many processes
    as there are.
    """
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.chdir(make_workspace(tmp_path, inputs, corpus))
    forms = stand_ins(corpus)
    for block in BLOCKS:
        if block.page == name:
            run(block, tmp_path, forms)


def run(block: Block, folder: Path, forms: Mapping[str, str]) -> None:
    saved = SAVED.findall(block.before)
    if block.language == "yaml" and saved:
        (folder / saved[-1]).write_text(block.body)
    elif block.language == "python" and not elsewhere(block):
        exec(compile(block.body, block.page, "exec"), {"__name__": "block"})  # noqa: S102 - our own page
    elif block.language == "sh":
        for command, comment in block.commands:
            if not not_run(command):
                type_in(command, comment, folder, forms)


def type_in(command: str, comment: str, folder: Path, forms: Mapping[str, str]) -> None:
    """`echo … > file`, or a `refinery` command, which ends with 0 unless its comment says "exit code N". What it makes
    may stand in the workspace for other pages.
    """
    if command.startswith("echo "):
        text, _, file = words(command)[1:]
        (folder / file).write_text(f"{forms.get(text, text)}\n")
        return
    arguments = [forms.get(word, word) for word in words(command)]
    assert arguments[0] == "refinery", f"{command}: NOT_RUN in tests/docs/blocks.py says why a command is not run"
    output = folder / arguments[arguments.index("--output") + 1] if "--output" in arguments else folder
    if output.is_symlink() and arguments[1] != "doctor":
        output.unlink()
    ended = fork_server().run(*arguments[1:], folder=folder)
    code = EXIT_CODE.search(comment)
    assert ended.code == int(code[1] if code else 0), f"{command}\n{ended.out}\n{ended.err}"


def test_code_of_other_tools_is_code() -> None:
    """It is only there beside ours or before them, and nothing of it is installed here."""
    found = [block for block in BLOCKS if block.language in OTHERS]
    assert all(in_subject(block.page, "coming-from") or in_subject(block.page, "scale") for block in found)
    assert {block.language for block in found} == OTHERS
    for block in found:
        if block.language == "py":
            compile(block.body, block.page, "exec")
        elif block.language == "yml":
            assert yaml.safe_load(block.body)
        else:
            assert all(shlex.split(command) for command, _ in block.commands)
            assert subprocess.run(["bash", "-n"], input=block.body, text=True).returncode == 0


# --- what is not run ------------------------------------------------------------------------------------------------


def all_commands() -> Iterator[str]:
    """All lines of `sh` and `console`."""
    for block in BLOCKS:
        if block.language == "sh":
            yield from (command for command, _ in block.commands)
        elif block.language == "console":
            yield from (line[2:] for line in block.body.splitlines() if line.startswith("$ "))


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [
        *all_commands(),
        *(found for path in PAGES for found in re.findall(r"`(make [a-z][\w-]*)", path.read_text())),
    ]
    told = {found for text in texts for found in re.findall(r"^(?:\S+=\S+ )*make (?:\w+=\S+ )*([a-z][\w-]*)", text)}
    assert {"demo", "test", "docs"} <= told and told - targets == set()


def test_benchmarks_take_the_flags_that_pages_name() -> None:
    checked = 0
    for command in all_commands():
        module = re.search(r"python (?:-m benchmarks\.(\w+)|benchmarks/(\w+)\.py)", command)
        if module:
            source = (ROOT / "benchmarks" / f"{module[1] or module[2]}.py").read_text()
            flags = [word for word in words(command) if word.startswith("--")]
            assert [flag for flag in flags if not re.search(f'"(--)?{flag[2:]}"', source)] == [], command
            checked += 1
    assert checked > 15
