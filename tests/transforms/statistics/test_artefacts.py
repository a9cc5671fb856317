"""What each artefact finds and what it leaves alone; the look at a text hides nothing that a pattern finds alone."""

from collections import Counter

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.statistics.artefacts import ARTEFACTS, LINE, PATTERNS, WINDOW, find_artefacts, window

SENTENCE = "A sentence that a page repeats.\n"

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
    ("x;\ny{ \t\n}", ["code-lines"]),
    ("x;\ny;\n \n;\n", []),
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
    (SENTENCE * 3, ["repeated-lines"]),
    (SENTENCE * 2, []),
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


def alone(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern.encode(), options)


ALONE = {row.name: alone(row.pattern) for row in PATTERNS}
CONTROL = alone(r"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
CODE_LINES = alone(r"(?:[{};][ \t]*\n[^\n]*){2}[{};][ \t]*(?:\n|\z)")
PIECES = (
    *(
        "<",
        ">",
        "/p",
        "a",
        " class=",
        "&",
        "amp;",
        "#39;",
        "{",
        "}",
        ";",
        "\n",
        "\t",
        " ",
        "     ",
        "function",
        "(",
        ")",
    ),
    *(
        "=>",
        "document.",
        "window.",
        "write",
        "Ã",
        "©",
        "â€",
        "Cookie",
        " policy",
        "all rights ",
        "RESERVED",
        "terms of ",
    ),
    *("use", "log in to", "share ", "this ", "on", "\x00", "\x85", "\ufffd", "é", "ſ", "w", SENTENCE, SENTENCE.upper()),
)


def repeats(data: bytes) -> bool:
    return any(times > 2 for line, times in Counter(data.split(b"\n")).items() if len(line) >= LINE)


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text())
def test_nothing_is_hidden_that_a_pattern_finds(text: str) -> None:
    data = window(text)
    found = {name for name, pattern in ALONE.items() if pattern.search(data)}
    found |= {"code-lines"} if CODE_LINES.search(data) else set()
    found |= {"control"} if CONTROL.search(data) else set()
    assert set(find_artefacts(data)) == found | ({"repeated-lines"} if repeats(data) else set())


def test_every_alternative_of_a_notice_is_found() -> None:
    phrases = (
        *("cookie policy", "accept cookies", "accept all cookies", "we use cookies", "enable javascript"),
        *("javascript is off", "javascript is disabled", "all rights reserved", "terms of use", "terms of service"),
        *("terms and conditions", "privacy policy", "sign up for", "subscribe to our", "log in to", "login to"),
        *("click here", "share on", "share this on"),
    )
    assert [phrase for phrase in phrases if find_artefacts(phrase.title().encode()) != ["notices"]] == []
