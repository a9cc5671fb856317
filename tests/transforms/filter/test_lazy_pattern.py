"""LazyPattern: compiled once, when it is first used, and like the compiled pattern from then on."""

import copy
import re
from typing import Any

import pytest

from refinery.transforms.redaction.pii_types.lazy_pattern import LazyPattern
from refinery.transforms.redaction.pii_types.scan import Hints, compile_bytes


def test_it_is_compiled_once_and_not_before() -> None:
    made: list[str] = []

    def make() -> Any:
        made.append("compiled")
        return re.compile("b+")

    pattern = LazyPattern(make)
    assert made == []
    assert [pattern.search("abbc")[0], pattern.sub("-", "abbc"), pattern.pattern] == ["bb", "a-c", "b+"]
    assert [match[0] for match in pattern.finditer("bab")] == ["b", "b"]
    assert made == ["compiled"]
    with pytest.raises(AttributeError, match="no_such_method"):
        pattern.no_such_method  # noqa: B018


def test_a_copy_works_before_and_after_it_is_compiled() -> None:
    pattern = LazyPattern(lambda: re.compile("b+"))
    for _ in range(2):
        assert copy.deepcopy(pattern).fullmatch("bb") and copy.copy(pattern).fullmatch("bb")
        assert pattern.fullmatch("bb")


def test_an_error_is_raised_where_it_is_used() -> None:
    pattern = compile_bytes(b"(")
    with pytest.raises(Exception, match="missing"):
        pattern.search(b"x")


def test_hints_take_patterns_and_what_makes_them() -> None:
    hints = Hints({"letters": b"[a-z]", "digits": lambda: b"[0-9]"})
    assert [hints.of(text) for text in (b"a1", b"1", b"")] == [{"letters", "digits"}, {"digits"}, frozenset()]
