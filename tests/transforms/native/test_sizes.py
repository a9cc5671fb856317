"""Sizes of texts are those of their bytes, whatever their characters take and wherever they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.native import sizes

CHARACTERS = ("a", "\n", "\x7f", "\x80", "ÿ", "Ā", "\u07ff", "\u0800", "漢", "\ud800", "\udfff", "\uffff", "\U00010000")


@given(st.text() | st.lists(st.sampled_from((*CHARACTERS, "\U0010ffff", "b" * 200)), max_size=60).map("".join))
def test_as_encoded(text: str) -> None:
    assert sizes.utf8_bytes(text) == len(text.encode("utf-8", "surrogatepass"))
    assert sizes.lines(text) == len(text.split("\n"))


@pytest.mark.parametrize("character", ["a", "\n", "é", "漢", "\U0001f600"])
def test_long_texts_overflow_no_counter(character: str) -> None:
    for length in (127, 128, 129, 4096, 65_535, 65_536, 200_000):
        text = character * length + "x"
        assert sizes.utf8_bytes(text) == len(character.encode()) * length + 1
        assert sizes.lines(text) == (length if character == "\n" else 0) + 1


def test_other_objects_are_refused() -> None:
    for function in (sizes.utf8_bytes, sizes.lines):
        with pytest.raises(TypeError, match="text: bytes given, a str is needed"):
            function(b"bytes")  # type: ignore[arg-type]  # what is refused
