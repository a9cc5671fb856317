"""What each artefact finds and what it leaves alone; one pass finds what each pattern finds alone."""

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.statistics.artefacts import ARTEFACTS, PATTERNS, WINDOW, find_artefacts, window

LINE = "A sentence that a page repeats.\n"

# (text, what is found in it)
CASES = [
    ("Plain words. They cost 3 < 4 & 5 > 2; fine, isn't it?", []),
    ("<div class='x'>", ["markup"]),
    ("one</p>two", ["markup"]),
    ("a <b> c", ["markup"]),
    ("write to <EMAIL> or <EMAIL_4f2k7q2m5xwa>, <redacted-path>/x", []),
    ("if a<b and b>c, <3 you", []),
    ("Tom &amp; Jerry", ["entities"]),
    ("don&#39;t &#x27;", ["entities"]),
    ("AT&T; R&D", []),
    ("a &b; c && d;", []),
    ("x = 1;\ny {\n}\n", ["code-lines"]),
    ("x = 1;\ny {", []),
    ("one;\n\ntwo;\nthree;", []),
    ("function f(a) { return 1 }", ["scripts"]),
    ("document.getElementById('x')", ["scripts"]),
    ("the function of (a) thing", []),
    ("read the document. Then (close) the window.", []),
    ("a\n\n\n\nb", ["white-space"]),
    ("a     b", ["white-space"]),
    ("a\t \t\t b", ["white-space"]),
    ("a    b\n\n\nc", []),
    ("a \ufffd b", ["replacement"]),
    ("donâ€™t", ["mojibake"]),
    ("cafÃ©", ["mojibake"]),
    ("café, SÃO PAULO, 5 €", []),
    ("a\x07b", ["control"]),
    ("a\x85b", ["control"]),
    ("a\tb\nc\xa0d", []),
    ("We use COOKIES to serve you.", ["notices"]),
    ("Please log in to comment", ["notices"]),
    ("She uses cookies in her kitchen.", []),
    (LINE * 3, ["repeated-lines"]),
    (LINE * 2, []),
    ("Short.\n" * 9, []),
    ("", []),
]


@pytest.mark.parametrize(("text", "found"), CASES)
def test_each_finds_its_own(text: str, found: list[str]) -> None:
    assert find_artefacts(window(text)) == found


def test_every_artefact_has_a_case() -> None:
    assert {name for _, found in CASES for name in found} == {row.name for row in ARTEFACTS}


def test_of_a_long_text_both_ends_are_looked_at() -> None:
    middle = "a plain word " * WINDOW
    assert find_artefacts(window("<br>" + middle)) == find_artefacts(window(middle + "<br>")) == ["markup"]
    assert find_artefacts(window(middle + "<br>" + middle)) == []
    assert len(window("\U0001f600" * 10 * WINDOW)) == 8 * WINDOW + 1


OPTIONS = re2.Options()
OPTIONS.encoding = re2.Options.Encoding.LATIN1
ALONE = {row.name: re2.compile(row.pattern.encode(), OPTIONS) for row in PATTERNS}
PIECES = (
    *("<", ">", "/p", "&", "amp;", "#39;", "{", "}", ";", "\n", "\t", "     ", "function", "(", ")", "=>"),
    *("Ã", "©", "â€", "cookie policy", "\x00", "\ufffd", "é", "w"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text())
def test_one_pass_finds_what_each_pattern_finds(text: str) -> None:
    data = window(text)
    alone = [name for name, pattern in ALONE.items() if pattern.search(data)]
    assert [name for name in find_artefacts(data) if name in ALONE] == alone
