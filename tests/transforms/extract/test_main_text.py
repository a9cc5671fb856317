"""Lines of a page and the two rules that drop some of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.main_text import Line, drop_boilerplate, parse_lines


def lines_of(minimal: str, list_bullets: bool = True) -> list[str]:
    return [line.text for line in parse_lines(minimal, list_bullets)]


@pytest.mark.parametrize(
    ("minimal", "lines"),
    [
        ("", [""]),
        ("plain &amp;lt; &lt;b&gt;", ["plain &lt; <b>"]),
        ("<h1>Title</h1>\n\n<p>Text</p>", ["Title", "", "Text"]),
        ("<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>", ["", "  • a", "  • b", ""]),
        ("<ol>\n  <li>a</li>\n  <li>b</li>\n</ol>", ["", "  1. a", "  2. b", ""]),
        ("<ol><li>a<ul><li>x</li></ul></li><li>b</li></ol>", ["1. a• x2. b"]),
        ("</ul></ol><li>stray", ["• stray"]),
        ("a<br>\nb<br><br>\nc", ["a", "b", "", "c"]),
        ("<pre>x\n    y</pre>", ["x", "    y"]),
        ('<a href="x>y" title="&quot;">link</a> text', ["link text"]),
        ("<b>unknown</b>", ["<b>unknown</b>"]),
    ],
)
def test_lines(minimal: str, lines: list[str]) -> None:
    assert lines_of(minimal) == lines


def test_bullets_can_be_left_out() -> None:
    assert lines_of("<ol>\n  <li>a</li></ol><ul><li>b</li></ul>", list_bullets=False) == ["", "  ab"]


@pytest.mark.parametrize(
    ("minimal", "linked"),
    [
        ('ab <a href="u">cd e</a> f', [3]),
        ('<a href="u">ab\n\ncd</a>', [2, 0, 2]),
        ('x <a href="u"></p>\n<p>text <a href="v">k</a>', [0, 1]),  # resiliparse leaves empty links open
        ('x <a href="u">\n\ntext to the end', [0, 0, 0]),
        ("x</a> y", [0]),
    ],
)
def test_linked_characters(minimal: str, linked: list[int]) -> None:
    assert [line.linked for line in parse_lines(minimal, True)] == linked


SENTENCE = Line("This is a sentence that closes a text, as sentences do.")


def kept(*lines: Line, link_density: float | None = 0.7, trim_end: bool = True) -> list[str]:
    return [line.text for line in drop_boilerplate(list(lines), link_density, trim_end)]


def test_link_lists_go_with_their_heading() -> None:
    link, heading = Line("Another page", linked=11), Line("More", heading=True)
    assert kept(SENTENCE, heading, Line(""), link, link, SENTENCE) == [SENTENCE.text, "", SENTENCE.text]
    assert kept(SENTENCE, heading, link, SENTENCE, link_density=None) == [
        SENTENCE.text,
        "More",
        link.text,
        SENTENCE.text,
    ]
    table = Line("Another\tpage", linked=11, kept=True)
    assert kept(table, SENTENCE) == [table.text, SENTENCE.text]
    partly = Line("Another page", linked=7)
    assert kept(partly, SENTENCE) == [partly.text, SENTENCE.text]
    assert kept(partly, SENTENCE, link_density=0.6) == [SENTENCE.text]


def test_short_lines_at_the_end_go() -> None:
    short, heading = Line("Share this page"), Line("Comments", heading=True)
    assert kept(short, SENTENCE, heading, short, Line("")) == [short.text, SENTENCE.text, ""]
    assert kept(SENTENCE, heading, short, trim_end=False) == [SENTENCE.text, heading.text, short.text]
    for last in ("The end.", "終わり。", "“Yes”", "five words are not short", "x" * 40):
        assert kept(SENTENCE, Line(last)) == [SENTENCE.text, last]
    assert kept(SENTENCE, Line("a verse", kept=True)) == [SENTENCE.text, "a verse"]


def test_something_is_always_left() -> None:
    assert kept(Line("Title", heading=True), Line("Short")) == ["Title", "Short"]
    assert kept(Line("Link", linked=4)) == ["Link"]
    assert kept() == []


@given(
    st.text("ab <>/&;\n\t")
    | st.lists(st.sampled_from(['<a href="u">', "</a>", "<li>", "<ol>", "</ol>", "<pre>", "<br>", "x", "\n"])).map(
        "".join
    )
)
def test_any_string_can_be_read(minimal: str) -> None:
    lines = parse_lines(minimal, True)
    assert all("\n" not in line.text and 0 <= line.linked <= line.size for line in lines)
    assert len(drop_boilerplate(lines, 0.7, True)) <= len(lines)


def test_long_input_is_linear() -> None:
    assert len(lines_of("<li>" * 300_000)) == 1
    assert lines_of("&lt;" * 1_000_000) == ["<" * 1_000_000]
    assert len(lines_of('<a href="u">' * 200_000)) == 1
    assert len(kept(*[Line("short")] * 200_000, SENTENCE)) == 200_001
