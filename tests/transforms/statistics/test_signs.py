"""The kernel `signs`: control characters, and lines."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.native import signs as kernel
from tests.native.kernel_calls import call

CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


@given(st.lists(st.sampled_from((b"a", b"\t\n", b" " * 63, b"\xc2", b"\x85", b"\xa0", b"\x7f", b"\0"))).map(b"".join))
def test_control_characters(data: bytes) -> None:
    assert kernel.has_control(data) == (CONTROL.search(data) is not None)


@pytest.mark.parametrize("byte", range(256))
def test_each_byte_alone_and_behind_the_first_of_two(byte: int) -> None:
    for data in (bytes([byte]), b"a" * 70 + bytes([byte]), b"\xc2" + bytes([byte]), bytes([byte]) + b"\x85"):
        assert kernel.has_control(data) == (CONTROL.search(data) is not None)


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
        (kernel.repeats_line, {"least": 0}, "least: 0 given"),
        (kernel.repeats_line, {"times": 0}, "times: 0 given"),
        (kernel.repeats_line, {"least": 2**64}, "least: a number above"),
        (kernel.lines_end_in, {"times": 0}, "times: 0 given"),
    ],
)
def test_values_out_of_bounds_are_refused(function: Any, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(function, changed)
