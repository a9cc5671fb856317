"""Marks in dropped texts: what a reason is about, and the text as it was."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.reports.run import histogram, quotes
from refinery.pipelines.reports.run.quotes import marked

CASES = [
    ("c4-lorem-ipsum", "A Lorem Ipsum text", ["Lorem Ipsum"]),
    ("c4-curly-bracket", "if (a) { b }", ["{", "}"]),
    ("repetition-duplicate-lines", "one\ntwo\none", ["one", "one"]),
    ("repetition-duplicate-3-grams", "a b c d a b c d", ["a b c d"]),
    ("fineweb-few-terminal-lines", "No end\nAn end.", ["No end"]),
    ("language-score", "Der Apfel", []),
]


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(quotes).failed == 0 and doctest.testmod(histogram).failed == 0


@pytest.mark.parametrize(("reason", "text", "hits"), CASES)
def test_what_the_reason_is_about_is_marked(reason: str, text: str, hits: list[str]) -> None:
    pieces = marked(text, reason)
    assert [piece for piece, hit in pieces if hit] == hits
    assert "".join(piece for piece, _ in pieces) == text


@given(st.text(max_size=300), st.sampled_from([reason for reason, _, _ in CASES]))
def test_no_text_is_changed(text: str, reason: str) -> None:
    assert "".join(piece for piece, _ in marked(text, reason)) == text


def test_marks_are_few() -> None:
    assert sum(hit for _, hit in marked("{" * 5000, "c4-curly-bracket")) == quotes.MOST
