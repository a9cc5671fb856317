"""A mistake gets one line that says what to do, and the exit code of its kind."""

import errno
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from refinery.pipelines.cli import command_line
from refinery.pipelines.cli.command_line import execute
from tests.pipelines.cli.mistakes import COMMANDS, DRY, RECIPES, Mistake, good_recipe, make_workspace
from tests.pipelines.small_runs import command, make_small_inputs


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    inputs = make_small_inputs(tmp_path_factory.mktemp("mistakes") / "inputs")
    corpus = inputs.parent / "corpus"
    assert execute(list(map(str, command(inputs, corpus, "--quiet")))) == 0
    folder = tmp_path_factory.mktemp("workspace")
    make_workspace(folder, inputs, corpus)
    return folder


def run(words: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and standard error of a command line, as a user gets them."""
    capfd.readouterr()
    try:
        code = int(execute(words))
    except SystemExit as left:
        code = int(left.code or 0)
    return code, capfd.readouterr().err


def check(words: list[str], says: str, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    found, said = run(words, capfd)
    assert found == code, said
    assert said.count("\n") == 1, said
    assert re.fullmatch(rf"refinery( [a-z -]+)?: (error: )?{says}\n", said), said


@pytest.mark.parametrize("mistake", COMMANDS, ids=lambda mistake: mistake.words or "nothing")
def test_a_mistaken_command(
    mistake: Mistake, workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace)
    before = sorted(map(str, workspace.rglob("*")))
    check(shlex.split(mistake.words), mistake.says, mistake.code, capfd)
    assert sorted(map(str, workspace.rglob("*"))) == before  # nothing was written


@pytest.mark.parametrize(("wrong", "says"), RECIPES, ids=[says for _, says in RECIPES])
def test_a_mistaken_recipe(
    wrong: bytes | Callable[[dict[str, Any]], Any],
    says: str,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(workspace)
    data = wrong if isinstance(wrong, bytes) else yaml.safe_dump(wrong(good_recipe())).encode()
    (workspace / "wrong.yaml").write_bytes(data)
    check(["refine", "wrong.yaml", *DRY.split()], says, 2, capfd)


def test_there_are_sixty_and_more() -> None:
    assert len(COMMANDS) + len(RECIPES) >= 60


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "free some, or name another place"),
        (errno.EACCES, "change its rights, or choose another place"),
        (errno.EROFS, "name a place that can be written to"),
        (errno.EMFILE, "raise the limit"),
    ],
)
def test_what_the_system_refuses(
    number: int, says: str, workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No space, no rights, a read-only place: as root and on every machine, so the error is made here."""
    monkeypatch.chdir(workspace)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number), "new/_run.json")

    monkeypatch.setattr("refinery.pipelines.run.refine.claim", refuse)
    check(["refine", "my.yaml", "--workers", "0", "--output", "new"], f".*new/_run.json.*; {says}.*", 1, capfd)


def test_without_an_extra(workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setattr(command_line, "find_spec", lambda name: None)

    def missing(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'apache_beam'", name="apache_beam")

    monkeypatch.setattr("refinery.pipelines.run.refine.claim", missing)
    says = "apache_beam is not installed; only the loader is. Commands need pip install '.*\\[pipeline\\]'"
    check(["refine", "my.yaml", "--workers", "0", "--output", "new"], says, 1, capfd)


def test_a_second_run_at_the_same_time(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace)
    from refinery.loader.storage.open_store import open_store
    from refinery.pipelines.run.at_work import at_work

    with at_work(open_store(str(tmp_path / "new/work")), False, print):
        code, said = run(["refine", "my.yaml", "--workers", "0", "--output", str(tmp_path / "new")], capfd)
    assert (code, said.count("\n")) == (1, 1), said
