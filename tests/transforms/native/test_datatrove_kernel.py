"""The kernel that counts with datatrove's units, against the same counts in plain Python."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.native import datatrove
from tests.native import chosen
from tests.sampling import examples, one_commit_in_four
from tests.transforms import datatrove_oracle as oracle
from tests.transforms.native.test_counting_kernel import ANY_TEXTS, as_dict, blocks

BREAKS = "\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
LINES = st.lists(
    st.sampled_from(
        [*BREAKS, "\n", "\n\n", "\r\n", " ", "\u3000", "a", "b.", "• a", "-", "→", "_", "。", "\ud800", "ab"]
    ),
    max_size=40,
).map("".join)
TEXTS = st.one_of(ANY_TEXTS, LINES)


def check(text: str, short: int) -> None:
    assert as_dict(datatrove.quality(text)) == oracle.quality(text)
    assert as_dict(datatrove.repeated_pieces(text)) == oracle.repeated_pieces(text)
    assert as_dict(datatrove.kept_lines(text, short)) == oracle.kept_lines(text, short)
    assert datatrove.stripped_lines(text) == oracle.stripped_lines(text)


@given(TEXTS, st.integers(0, 12))
@settings(max_examples=examples(1500), deadline=None)
def test_kernel_equals_plain_python(text: str, short: int) -> None:
    check(text, short)


@one_commit_in_four
def test_kernel_knows_every_character() -> None:
    """White space, ends of lines and of sentences, letters and punctuation in all planes."""
    for block in blocks():
        check("".join(f" {c}{c} →{c}\n{c} a{c}b{c}\n\n{c}" for c in block), 3)


@pytest.mark.parametrize("letter", ["a", "ă", "𐐨"])
def test_long_texts_are_the_same(letter: str) -> None:
    """Read without the GIL."""
    lines = "".join(f"{letter}{number % 3000}.\n" + "\n" * (number % 3) for number in range(12_000))
    assert len(lines) > 1 << 16
    check(f" {lines}\t{lines[:100]}", 5)


@pytest.mark.parametrize("count", [datatrove.repeated_pieces, lambda text: datatrove.kept_lines(text, 9)])
def test_lines_chosen_against_fixed_hashes_are_different_lines(count: Any) -> None:
    lines = chosen.words_in_one_slot(chosen.LINE_PRIME, 10)[:2500]
    found = as_dict(count("\n".join(lines)))
    assert found.get("lines", found.get("kept_lines")) == len(lines)
    assert not any(value for name, value in found.items() if "duplicate" in name)


@pytest.mark.parametrize("chars", [-1, 2**64])
def test_lengths_out_of_bounds_are_refused(chars: int) -> None:
    with pytest.raises(ValueError, match="short_line_chars: "):
        datatrove.kept_lines("text", chars)
