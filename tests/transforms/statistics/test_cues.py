"""Cues are found where regular expressions find them, in bytes of any kind and length."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.native import signs as kernel
from refinery.transforms.statistics.cues import Cues, is_cue
from tests.native.kernel_calls import call

CUES = (r"<[/a-z]", r"[ \t]{5}|\n{4}", r"\xc2[\x80-\x9f]|\x00", "(?i)cookie|log in", "x{64}", r"\)\s\{|\}", "x{63}y")
PARTS = (b"<", b"/", b"a", b" ", b"    ", b"\n\n", b"\t", b"\xc2", b"\x85", b"\0", b"CooKie", b"LOG ", b"in", b"x" * 31)


@given(st.lists(st.sampled_from((*PARTS, b"x", b"y", b")", b"{", b"}")), max_size=200).map(b"".join) | st.binary())
def test_as_regular_expressions_find_them(data: bytes) -> None:
    wanted = tuple(number for number, cue in enumerate(CUES) if re.search(cue.encode(), data))
    assert Cues(CUES).find(data) == wanted


@pytest.mark.parametrize("size", [0, 1, 2, 63, 64, 65, 127, 128, 129, 1000])
def test_a_cue_is_found_at_every_place(size: int) -> None:
    found = Cues(("abcde",))
    for at in range(size + 1):
        assert found.find(b"-" * at + b"abcde" + b"-" * (size - at)) == (0,)
    assert found.find(b"abcd" * size) == ()


@pytest.mark.parametrize("pattern", ["a+", "a*b", "(a|b)", "a?", ".", "^a", "a{2,3}", "[^", "", "a||b"])
def test_other_patterns_are_no_cues(pattern: str) -> None:
    assert not is_cue(pattern)


def test_more_cues_than_the_kernel_has_room_for_are_refused() -> None:
    assert Cues(["x{64}"] * 4).find(b"x" * 64) == (0, 1, 2, 3)
    for cues in (["x{65}"], ["x{33}"] * 5):
        with pytest.raises(ValueError, match=r"^cues: "):
            Cues(cues)
    with pytest.raises(ValueError, match=r"^cue: '\+' given"):
        Cues(["x+"])


LINES = (b"", b"x" * 19, b"x" * 20, b"x" * 21, b"y" * 36, b"y" * 35 + b"z", b" a; \t", b"}", b";;", b" ")


@given(st.lists(st.sampled_from(LINES), max_size=30).map(b"\n".join) | st.binary(), st.integers(1, 4))
def test_lines_as_they_are_split(data: bytes, times: int) -> None:
    lines = data.split(b"\n")
    long = [line for line in lines if len(line) >= 20]
    assert kernel.repeats_line(data, 20, times) == any(long.count(line) >= times for line in long)
    ends = "".join("x" if line.rstrip(b" \t").endswith((b";", b"}")) else "-" for line in lines)
    assert kernel.lines_end_in(data, b";}", times) == ("x" * times in ends)


@given(st.text() | st.lists(st.sampled_from(("\n", "\r", "ÿ", "漢", "\ud800", "\U0001f600", "\n" * 150))).map("".join))
def test_lines_are_counted_whatever_characters_take(text: str) -> None:
    assert kernel.count_lines(text) == text.count("\n") + 1


@pytest.mark.parametrize("character", ["a", "漢", "\U0001f600"])
def test_many_lines_overflow_no_counter(character: str) -> None:
    for lines in (127, 128, 129, 4096, 65_536, 200_000):
        assert kernel.count_lines(character + "\n" * lines) == lines + 1
    with pytest.raises(TypeError, match="text: bytes given, a str is needed"):
        kernel.count_lines(b"")  # type: ignore[arg-type]  # what is refused


@pytest.mark.parametrize(
    ("function", "changed", "sentence"),
    [
        (kernel.find, {"table": np.zeros((257, 4), np.uint64)}, "table: 258 rows of 4 uint64"),
        (kernel.repeats_line, {"least": 0}, "least: 0 given"),
        (kernel.repeats_line, {"times": 0}, "times: 0 given"),
        (kernel.repeats_line, {"least": 2**64}, "least: a number above"),
        (kernel.lines_end_in, {"times": 0}, "times: 0 given"),
    ],
)
def test_values_out_of_bounds_are_refused(function: Any, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(function, changed)
