import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Drop
from refinery.transforms.core.params import ParamsError
from refinery.transforms.dedup.cut_lines import CUT_LINES, LineParams, cut_lines
from refinery.transforms.dedup.cut_substrings import (
    CUT_SUBSTRINGS,
    SPAN_CUTS,
    SubstringParams,
    cut_substrings,
    empty_spans,
    noted_spans,
)
from tests.beam import make_document

ALL = SubstringParams(min_chars=0)


def marked(text: str, *cuts: str, **meta: str):
    """A document of which these parts, in order, are to be cut."""
    spans, last = [], 0
    for part in cuts:
        begin = text.index(part, last)
        last = begin + len(part)
        spans += [begin, last]
    return make_document(text, "f", source="web", meta={"kept": "x", CUT_SUBSTRINGS: SPAN_CUTS.noted(spans), **meta})


@pytest.mark.parametrize(
    ("text", "cuts", "left"),
    [
        ("One. Two two. Three.", ["Two two"], "One. Three."),
        ("One. Two two.\nThree.", ["Two two"], "One. \nThree."),
        ("One (two two) three", ["two two"], "One (three"),
        ("One\n\nTwo.\n\nThree.\n\nFour", ["Two.\n\nThree"], "One\n\nFour"),
        ("One\n\n- Two.\n- Three", ["Two"], "One\n\n- Three"),
        ("Two two.\n\nOne", ["Two two"], "One"),
        ("One\nTwo", ["One\nTwo"], ""),
        ("One\n\nTwo two", ["Two two"], "One"),
        ("a b c d e", ["b", "d"], "a c e"),
        ("a\r\nb\r\nc", ["b"], "a\r\nc"),
        ("日本語。中国", ["日本語"], "中国"),
    ],
)
def test_what_is_left(text, cuts, left):
    answer = cut_substrings(marked(text, *cuts), ALL)
    if not left:
        assert answer == Drop("too-little-left")
        return
    assert answer.text == left
    assert answer.meta == {"kept": "x", "chars_cut": sum(map(len, cuts))}


def test_documents_without_repeats_stay_as_they_are():
    doc = make_document("text", "f", source="web")
    assert cut_substrings(doc, SubstringParams()) is doc


@pytest.mark.parametrize(("min_chars", "kept"), [(4, True), (5, False)])
def test_too_little_left(min_chars, kept):
    answer = cut_substrings(marked("One.\nTwo two", "Two two"), SubstringParams(min_chars=min_chars))
    assert (answer != Drop("too-little-left")) is kept


@pytest.mark.parametrize(("max_share", "kept"), [(0.5, True), (0.49, False)])
def test_dropping_leaves_the_others_whole(max_share, kept):
    doc = marked("abcde fghi", "abcde")
    answer = cut_substrings(doc, SubstringParams(action="drop", max_share=max_share))
    if not kept:
        assert answer == Drop("mostly-repeated")
        return
    assert (answer.text, answer.meta) == (doc.text, {"kept": "x"})


def test_counting_leaves_all_as_they_are():
    doc = marked("abcde fghi", "abcde")
    answer = cut_substrings(doc, SubstringParams(action="note"))
    assert (answer.text, answer.meta) == (doc.text, {"kept": "x", "chars_cut": 5})
    lines = make_document("menu\ntext", "f", source="web", meta={CUT_LINES: "0"})
    answer = cut_lines(lines, LineParams(action="note"))
    assert (answer.text, answer.meta) == (lines.text, {"lines_cut": 1})


def test_lines_keep_their_numbers():
    text = "menu\n\nOne.\nrepeated text\nhere. And\n\nTwo\nmenu"
    doc = marked(text, "repeated text\nhere", **{CUT_LINES: "0,7"})
    left = cut_substrings(doc, ALL)
    assert left.text.count("\n") == text.count("\n")
    assert left.meta == {"kept": "x", "chars_cut": 18, CUT_LINES: "0,3,7"}
    assert cut_lines(left, LineParams(min_chars=0)).text == "One.\nAnd\n\nTwo"


@given(st.text("ab .\n-\u0301日", max_size=30), st.lists(st.integers(0, 30), max_size=6))
def test_line_breaks_and_all_other_words_stay(text, edges):
    edges = sorted(min(edge, len(text)) for edge in edges)
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    left, emptied = empty_spans(text, spans)
    assert left.count("\n") == text.count("\n")
    outside = [c for i, c in enumerate(text) if not any(begin <= i < end for begin, end in spans)]
    assert [c for c in left if c.isalnum()] == [c for c in outside if c.isalnum()]
    assert emptied == sorted(set(emptied))
    assert all(not any(map(str.isalnum, left.split("\n")[number])) for number in emptied)


@pytest.mark.parametrize("listed", ["5-9", "3-2", "0-2,1-3", "x", "1", "-1-3", "1-2,"])
def test_wrong_spans_are_refused(listed):
    with pytest.raises(ValueError):
        noted_spans({CUT_SUBSTRINGS: listed}, 4)


@given(st.lists(st.integers(0, 50), max_size=8))
def test_spans_round_trip(edges):
    edges.sort()
    numbers = edges[: len(edges) // 2 * 2]
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    assert noted_spans({CUT_SUBSTRINGS: SPAN_CUTS.noted(numbers)}, 50) == spans


@pytest.mark.parametrize("key", [{"min_words": 49}, {"action": "keep"}, {"max_share": 1.5}, {"min_chars": -1}])
def test_parameters_are_checked(key):
    with pytest.raises(ParamsError):
        SubstringParams(**key)
