"""Ten commits in a row run every test at full size once: `make test-tenth`."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from tests import sampling
from tests.sampling import ROOT, TENTHS, of_the_tenth, tenth, tenth_of

NODES = [f"tests/test_{name}.py::test_it[{cell}-{size}]" for name in "abc" for cell in range(40) for size in (1, 2)]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tenth is the one of the commit, not the one that this session runs."""
    monkeypatch.delenv(sampling.TENTH, raising=False)
    tenth.cache_clear()
    yield
    tenth.cache_clear()


def run(monkeypatch: pytest.MonkeyPatch, number: int) -> tuple[list[str], list[str]]:
    """The nodes that a session of that tenth runs, and those that it leaves out."""
    monkeypatch.setattr(sampling, "ONE_TENTH", True)
    monkeypatch.setattr(sampling, "chosen", {})
    monkeypatch.setattr(sampling, "tenth", lambda: number)
    items: list[Any] = [SimpleNamespace(nodeid=node) for node in NODES]
    mine, others = of_the_tenth(items)
    assert sampling.chosen == {sampling.NODES: (len(mine), len(NODES))}
    return [item.nodeid for item in mine], [item.nodeid for item in others]


def test_every_node_is_in_one_of_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Counter[str] = Counter()
    for number in range(TENTHS):
        mine, others = run(monkeypatch, number)
        assert sorted(mine + others) == sorted(NODES)
        assert len(mine) > len(NODES) / 40
        found.update(mine)
    assert found == Counter(NODES)


def test_a_node_stays_in_its_tenth() -> None:
    """Whatever the process, the machine, and the tests beside it."""
    assert [tenth_of(f"tests/test_a.py::test_it[{cell}]") for cell in range(8)] == [9, 6, 3, 8, 7, 9, 0, 4]


def test_without_tenths_every_node_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ONE_TENTH", False)
    items: list[Any] = [SimpleNamespace(nodeid=node) for node in NODES]
    assert of_the_tenth(items) == (items, [])


def test_a_session_runs_every_cell_of_its_tenth_and_nothing_else() -> None:
    """Two sessions that collect a sampled matrix: all of its cells, and those of one tenth. Some five seconds."""
    path = "tests/transforms/extract/blocks/test_hostile.py"
    everything, some = collected(path, REFINERY_TESTS="all"), collected(path, **named(3))
    assert len(everything) > 48  # a commit runs eight
    assert some == [node for node in everything if tenth_of(node) == 3] != []


def named(number: int) -> dict[str, str]:
    return {sampling.TESTS: "tenth", sampling.TENTH: str(number)}


def collected(path: str, **variables: str) -> list[str]:
    done = session(path, "--collect-only", **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    if sampling.TENTH in variables:
        assert f"{sampling.TENTH}={variables[sampling.TENTH]}" in done.stdout
    return [line for line in done.stdout.splitlines() if line.startswith(f"{path}::")]


def session(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "REFINERY_TEST"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=ROOT,
        env=inherited | variables,
        capture_output=True,
        text=True,
    )


# --- commits --------------------------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.invalid", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, message: str) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)


def tenth_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sampling, "ROOT", folder)
    tenth.cache_clear()
    return tenth()


def test_ten_commits_in_a_row_have_ten_tenths(commits: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a branch of several commits is merged on the way."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    commit(tmp_path, "first")
    found = []
    for number in range(TENTHS + 2):
        if number == 4:
            git(tmp_path, "checkout", "--quiet", "-b", "aside")
            for name in "abc":
                commit(tmp_path, name)
            git(tmp_path, "checkout", "--quiet", "main")
            git(tmp_path, "merge", "--quiet", "--no-ff", "--message", "merged", "aside")
        else:
            commit(tmp_path, str(number))
        found.append(tenth_at(tmp_path, monkeypatch))
    assert found == [number % TENTHS for number in range(2, TENTHS + 4)]


def test_an_amended_commit_has_the_same_samples(commits: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sampling.SEED, raising=False)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    found = []
    for words in (["first"], ["second"], ["mended", "--amend"]):
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", *words)
        monkeypatch.setattr(sampling, "ROOT", tmp_path)
        sampling.seed.cache_clear()
        found.append(sampling.seed())
    sampling.seed.cache_clear()
    assert found == ["commit-1", "commit-2", "commit-2"]


def test_examples_are_chosen_by_the_seed_everywhere() -> None:
    """Where the environment says CI, Hypothesis' own profile would choose them, so nobody else would see them."""
    assert not settings().derandomize and settings().max_examples == sampling.examples(100)


def test_without_a_history_the_seed_gives_the_tenth(
    commits: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a shallow clone every commit is the first; in an archive there is none."""
    monkeypatch.setenv(sampling.SEED, "5eed")
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", "whole")
    for name in "abc":
        commit(tmp_path / "whole", name)
    git(tmp_path, "clone", "--quiet", "--depth", "1", (tmp_path / "whole").as_uri(), "shallow")
    (tmp_path / "archive").mkdir()
    assert tenth_at(tmp_path / "whole", monkeypatch) == 3
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    sampling.seed.cache_clear()
    try:
        for folder in ("shallow", "archive"):
            assert tenth_at(tmp_path / folder, monkeypatch) == tenth_of("5eed")
    finally:
        sampling.seed.cache_clear()


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["10", "-1", "03", "x"])
def test_a_tenth_that_is_none(commits: None, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.TENTH, given)
    with pytest.raises(pytest.UsageError, match=f"{sampling.TENTH}: '{given}' was given, allowed are 0 to 9"):
        tenth()


def test_how_many_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, want in (("", "some"), ("some", "some"), ("all", "all"), ("tenth", "tenth")):
        monkeypatch.setenv(sampling.TESTS, given)
        assert sampling.how_many() == want
    monkeypatch.setenv(sampling.TESTS, "every")
    with pytest.raises(pytest.UsageError, match="'every' was given, allowed are some, tenth, all"):
        sampling.how_many()


# --- files for one commit in four -------------------------------------------------------------------------------------


class Item:
    """What `skip_three_in_four` needs of a test."""

    def __init__(self, nodeid: str, is_marked: bool) -> None:
        self.nodeid = nodeid
        self.marks = [pytest.mark.file_on_one_commit_in_four.mark] if is_marked else []

    def get_closest_marker(self, name: str) -> Any:
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)


def left_out(monkeypatch: pytest.MonkeyPatch, seed: str, is_all: bool = False) -> set[str]:
    monkeypatch.setattr(sampling, "ALL", is_all)
    monkeypatch.setattr(sampling, "chosen", {})
    monkeypatch.setattr(sampling, "seed", lambda: seed)
    items: list[Any] = [
        Item(f"tests/test_{name}.py::test_{test}", name != "often")
        for name in ["often", *map(str, range(40))]
        for test in "ab"
    ]
    sampling.skip_three_in_four(items)
    found = {item.nodeid for item in items if item.get_closest_marker("skip")}
    ((kept, count),) = sampling.chosen.values()
    assert count == 40 and len(found) == 2 * (count - kept)
    return found


def test_a_quarter_of_commits_runs_a_file_with_all_of_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [f"{number:x}" for number in range(200)]
    found = Counter(node for seed in seeds for node in left_out(monkeypatch, seed))
    assert all(found[f"tests/test_{name}.py::test_a"] == found[f"tests/test_{name}.py::test_b"] for name in range(40))
    assert len(found) == 80 and all(100 < count < 190 for count in found.values())  # 150 of 200, more or less


def test_all_files_run_where_all_cells_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_out(monkeypatch, "1", is_all=True) == set()
