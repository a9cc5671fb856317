"""The pager: only for a terminal, the user's own, and no loss where there is none."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.pipelines.corpus.show.pager import page

LINES = ["one", "two \u2028", "three"]


class Stdout(io.StringIO):
    """Standard output that is a terminal, or is not."""

    def __init__(self, is_terminal: bool = True) -> None:
        super().__init__()
        self.isatty = lambda: is_terminal  # type: ignore[method-assign]


def test_a_terminal_has_the_users_pager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdout", Stdout())
    monkeypatch.setenv("PAGER", f"tee '{tmp_path / 'with space'}'")
    said: list[str] = []
    page(LINES, said.append)
    assert (tmp_path / "with space").read_text() == "\n".join(LINES) + "\n" and said == []


@pytest.mark.parametrize("pager", ["no-such-program-anywhere", "", "cat", "/"])
def test_without_a_pager_lines_are_printed(monkeypatch: pytest.MonkeyPatch, pager: str) -> None:
    monkeypatch.setattr(sys, "stdout", Stdout())
    monkeypatch.setenv("PAGER", pager)
    said: list[str] = []
    page(LINES, said.append)
    assert said == LINES


def test_no_pager_where_nobody_sits_or_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Stdout())
    monkeypatch.setenv("PAGER", "false")
    said: list[str] = []
    page(LINES, said.append, wanted=False)
    monkeypatch.setattr(sys, "stdout", Stdout(is_terminal=False))
    page(LINES, said.append)
    assert said == LINES * 2


def test_who_leaves_the_pager_does_not_wait_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Stdout())
    made = 0

    def lines() -> Iterator[str]:
        nonlocal made
        while True:
            made += 1
            yield "line " * 1000

    monkeypatch.setenv("PAGER", "true")
    page(lines(), print)
    assert made < 10_000
