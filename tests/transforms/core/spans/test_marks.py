"""Spans after an edit are those of a list of characters that is edited one by one, or the edit is refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, document_id
from refinery.transforms.core.spans.marks import (
    Marks,
    Places,
    SpanCut,
    SpansOfAnotherText,
    edited,
    marks_of,
    moved,
    notes_of,
    read_places,
    replaced,
    shown,
    write_places,
)
from tests.beam import make_document
from tests.sampling import examples

Edits = list[tuple[int, int, str]]


@st.composite
def places(draw: st.DrawFn, size: int) -> Places:
    """Ascending spans of a text of so many characters."""
    borders = sorted(draw(st.sets(st.integers(0, size), max_size=8)))
    return tuple(zip(borders[::2], borders[1::2], strict=False))


@st.composite
def marked_edits(draw: st.DrawFn) -> tuple[str, Marks, Edits]:
    text = draw(st.text("ab ö\n", min_size=1, max_size=30))
    trained = draw(places(len(text)))
    controls = tuple(span for span in draw(places(len(text))) if _in_one(span, trained))
    edits = [(start, end, draw(st.text("xyz", max_size=4))) for start, end in draw(places(len(text)))]
    return text, Marks(trained, controls), edits


def _in_one(span: tuple[int, int], trained: Places) -> bool:
    """Whether a control token is in one trained span, or in none."""
    start, end = span
    return any(a <= start and end <= b for a, b in trained) or all(end <= a or b <= start for a, b in trained)


def expected(text: str, places: Places, edits: Edits) -> list[bool] | None:
    """Which characters of the new text belong to the spans; None where an edit is over a border. Character by
    character, without arithmetic of places."""
    owner = [next((number for number, (a, b) in enumerate(places) if a <= at < b), -1) for at in range(len(text))]
    found: list[bool] = []
    at = 0
    for start, end, new in edits:
        found += [one >= 0 for one in owner[at:start]]
        owners = set(owner[start:end])
        if len(owners) > 1:
            return None
        found += [owners.pop() >= 0] * len(new)
        at = end
    return found + [one >= 0 for one in owner[at:]]


@settings(max_examples=examples(300), deadline=None)
@given(marked_edits())
def test_spans_move_as_characters_do(case: tuple[str, Marks, Edits]) -> None:
    text, marks, edits = case
    new = replaced(text, edits)
    trained, touches = (
        expected(text, marks.trained, edits),
        any(max(start, a) < min(end, b) for start, end, _ in edits for a, b in marks.controls),
    )
    if trained is None or touches:
        with pytest.raises(SpanCut):
            moved(marks, edits)
        return
    after = moved(marks, edits)
    assert [any(a <= at < b for a, b in after.trained) for at in range(len(new))] == trained
    assert [new[a:b] for a, b in after.controls] == [text[a:b] for a, b in marks.controls]


def make(text: str, marks: Marks) -> Document:
    doc = make_document(text)
    return replace(doc, id=document_id(text), text=text, meta=notes_of(text, marks))


def test_what_is_put_in_at_a_border_belongs_to_no_span() -> None:
    marks = Marks(((2, 4),), ())
    assert moved(marks, [(2, 2, "xx"), (4, 4, "yy")]).trained == ((4, 6),)
    assert moved(marks, [(3, 3, "xx")]).trained == ((2, 6),)
    assert moved(marks, [(2, 4, "")]).trained == ()


def test_notes_are_of_one_text() -> None:
    marks = Marks(((2, 5),), ((4, 5),))
    doc = make("abcdefg", marks)
    assert marks_of(doc) == marks
    assert marks_of(make_document("abc")) is None
    with pytest.raises(SpansOfAnotherText):
        marks_of(replace(doc, text="abcdef"))
    longer = edited(doc, [(0, 1, "AAA")])
    assert (longer.text, marks_of(longer)) == ("AAAbcdefg", Marks(((4, 7),), ((6, 7),)))
    with pytest.raises(SpanCut):
        edited(doc, [(1, 3, "x")])
    assert edited(make_document("abc"), [(0, 1, "x")]).text == "xbc"


@pytest.mark.parametrize("note", ["3-2", "1-1", "0-4 3-5", "0-99", "a-b", "1", "1-2  3-4", "-1-2", "1-2 ", "01-2"])
def test_other_notes_are_refused(note: str) -> None:
    with pytest.raises(ValueError):
        read_places(note, 10)
    assert read_places(write_places([(1, 2), (2, 9)]), 10) == ((1, 2), (2, 9))


def test_control_tokens_are_hidden_from_searches() -> None:
    assert shown("a<e>b", Marks((), ((1, 4),))) == "a\n\n\nb"
    assert shown("a<e>b", None) == "a<e>b"
