"""What messages suggest: one helper for every name that people type."""

import doctest

import pytest

from refinery.transforms.core import wording
from refinery.transforms.core.languages import meant
from refinery.transforms.core.wording import closest


def test_the_examples_of_the_docstrings() -> None:
    for module in (wording, meant):
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("key", "names", "near"),
    [
        ("PARQUET", ("jsonl", "parquet"), "parquet"),
        ("dataflo", ("local", "DataflowRunner"), "DataflowRunner"),
        ("min-words", ("gopher-too-few-words", "min-words-of-a-line"), "min-words-of-a-line"),
        ("few-words", ("gopher-too-few-words", "gopher-symbols"), "gopher-too-few-words"),
        ("zzz", ("jsonl", "parquet"), ""),
        ("", ("jsonl",), ""),
        (7, ("jsonl",), ""),
        ("a" * 1000, ("a" * 1000,), ""),
    ],
)
def test_what_was_probably_meant(key: object, names: tuple[str, ...], near: str) -> None:
    assert closest(key, names) == near
