"""Places of a cleaned text in the text that was written, and what was cut out of a text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.write.rows.text_places import Places, common_blocks, cut_spans, gaps

# Characters that cleaning removes, joins or changes, among some that stay.
SPACES = [" ", "\t", "\n", "\r\n", "\r", "\x0b", "\u2028", "\u00a0", "   \n\n\n\n"]
SIGNS = ["a", "b", *SPACES, "\u00ad", "\u200b", "e\u0301", "\u00e9", "\u4e2d", "\ue000"]
TEXTS = st.lists(st.sampled_from(SIGNS), max_size=60).map("".join)


def without(text: str, spans: list[tuple[int, int]]) -> str:
    return "".join(text[start:end] for start, end in gaps(spans, len(text)))


@given(TEXTS, TEXTS)
def test_blocks_are_equal_and_ascend(a: str, b: str) -> None:
    at_a = at_b = 0
    for block in common_blocks(a, b):
        assert block.size and block.a_start >= at_a and block.b_start >= at_b
        at_a, at_b = block.a_start + block.size, block.b_start + block.size
        assert a[block.a_start : at_a] == b[block.b_start : at_b]
    assert at_a <= len(a) and at_b <= len(b)


@given(TEXTS, st.data())
def test_a_span_of_the_written_text_holds_all_of_its_characters(written: str, data: st.DataObject) -> None:
    """Whatever was cleaned: the span of the written text, cleaned itself, has the span of the cleaned one in it."""
    cleaned = clean_text(written, from_html=False)
    if not cleaned:
        return
    start = data.draw(st.integers(0, len(cleaned) - 1))
    end = data.draw(st.integers(start + 1, len(cleaned)))
    first, last = Places(written, cleaned).of(start, end)
    assert 0 <= first < last <= len(written)
    assert "".join(cleaned[start:end].split()) in "".join(clean_text(written[first:last], from_html=False).split())


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("plain jane@mail.org text", "jane@mail.org"),
        ("one\r\ntwo\r\n\r\n\r\n\r\njane@mail.org\r\n", "jane@mail.org"),
        ("cafe\u0301 " * 50 + "so\u00adft jane@mail.org cafe\u0301", "jane@mail.org"),
        ("\ud800" * 3 + "x jane@mail.org\u200b", "jane@mail.org"),
        ("\ue000" * 300 + "jane@mail.org" + " " * 300 + "\nend", "jane@mail.org"),
        ("jane@mail.org " * 40 + "\u00ad" * 20 + " bob@mail.org", "bob@mail.org"),
    ],
)
def test_where_something_is_in_the_written_text(written: str, found: str) -> None:
    cleaned = clean_text(written.encode("utf-8", "ignore").decode(), from_html=False)
    start = cleaned.index(found)
    first, last = Places(written, cleaned).of(start, start + len(found))
    assert written[first:last] == found


def test_what_touches_a_change_takes_all_of_it() -> None:
    written = "one e\u0301 two"
    cleaned = unicodedata.normalize("NFC", written)
    at = cleaned.index("\u00e9")
    assert Places(written, cleaned).of(at, at + 1) == (4, 6)
    garbled = "\u00c3\u00a9" * 400
    assert Places(f"so {garbled} it is", "so nothing it is").of(3, 10) == (3, 3 + len(garbled))


@given(st.lists(st.text("ab\n", max_size=4), max_size=30), st.data())
def test_cuts_leave_what_was_left(pieces: list[str], data: st.DataObject) -> None:
    kept = [piece for piece in pieces if data.draw(st.booleans())]
    text, left = "".join(pieces), "".join(kept)
    spans = cut_spans(text, left)
    assert spans == sorted(spans) and all(start < end for start, end in spans)
    kept_of_it = without(text, spans)
    # Short alphabets have cuts that a walk does not find: then all between the first and last difference is named.
    assert kept_of_it == left or (len(spans) == 1 and left.startswith(text[: spans[0][0]]))


def test_lines_are_cut_from_their_beginning() -> None:
    text = "Subscribe to our newsletter for more\nSubscribe to our newsletter for more fun.\nEnd."
    left = text.partition("\n")[2]
    assert cut_spans(text, left) == [(0, 37)] and cut_spans(text, text) == []
