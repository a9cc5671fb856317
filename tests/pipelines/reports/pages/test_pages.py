"""What pages are made of: no text leaves its element, no element runs or loads anything."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.reports.pages.markup import CONTROLS, Html, el, join, visible
from refinery.pipelines.reports.pages.page import inert_json, page, table

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "\"' onclick='alert(1)",
    "javascript:alert(1)",
    "&lt;script&gt;",
    "a\u202egnp.exe",
    "a\u2028b\u2029c",
    "\x00\x1b[2J",
    "\ud800",
)


class Parsed(HTMLParser):
    """Tags in order, and the text of each element that was opened last."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


TEXTS = st.text(st.characters(), max_size=60) | st.sampled_from(HOSTILE)


@given(TEXTS, TEXTS)
def test_a_text_stays_in_its_element(text: str, attribute: str) -> None:
    parsed = Parsed(el("p", text, title=attribute))
    assert parsed.tags == [("p", {"title": attribute})]
    assert "".join(parsed.texts) == visible(text)


@given(st.recursive(TEXTS | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_data_stays_in_its_script_and_is_read_back(data: Any) -> None:
    parsed = Parsed(page("t", [], {"data": data}))
    scripts = [attrs for tag, attrs in parsed.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}]
    text = next(text for text in parsed.texts if text.startswith("{"))
    assert text.isascii()
    assert not set(text) & set("<>&")
    assert json.loads(text) == json.loads(json.dumps({"data": data}))


@given(TEXTS)
def test_nothing_invisible_is_left(text: str) -> None:
    assert not CONTROLS.search(visible(text))
    assert visible(visible(text)) == visible(text)


def test_what_scripts_of_the_world_need_stays() -> None:
    for text in ("نمی\u200cخواهم", "👩\u200d🚀", "a\tb\nc", "日本\u3000語", "a\xa0b"):
        assert visible(text) == text


@pytest.mark.parametrize(
    "make",
    [
        lambda: el("script", "1"),
        lambda: el("iframe"),
        lambda: el("p", onclick="x"),
        lambda: el("p", style="color:red"),
        lambda: el("img", src="x"),
        lambda: el("a", "x", href="javascript:alert(1)"),
        lambda: el("a", "x", href="https://example.com/"),
        lambda: page("t", [], scripts=["'</script>'"]),
        lambda: page("t", [], scripts=["'<!--'"]),
        lambda: page("t", [], styles=["/*</STYLE>*/"]),
    ],
)
def test_what_runs_or_loads_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"page"):
        make()


def test_numbers_that_json_lacks_are_refused() -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            inert_json([number])


def test_children_are_text_markup_or_both() -> None:
    assert el("p", "<", None, [1, ["a", (el("b", "c"),)]], Html("<i></i>")) == "<p>&lt;1a<b>c</b><i></i></p>"
    assert join(["a", 2.5]) == "a2.5"
    assert el("a", "x", href="#top", hidden=False, title=None, data_x=0) == '<a href="#top" data-x="0">x</a>'
    with pytest.raises(TypeError, match="object"):
        join([object()])


def test_the_title_is_text() -> None:
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in page("</title><script>", [])


def test_the_policy_names_every_script_and_style_and_nothing_else() -> None:
    text = page("t", [], None, ["p{}"], ["let a", "let b"])
    policy = next(attrs["content"] for tag, attrs in Parsed(text).tags if "http-equiv" in attrs)
    assert policy is not None
    assert policy.count("sha256-") == 4
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; style-src")
    assert "script-src" not in str(Parsed(page("t", [])).tags)


def test_a_table_has_headings_in_both_directions() -> None:
    made = table(["stage", "kept"], [["<read>", 1], ["url", el("b", "2")]], "what is kept")
    parsed = Parsed(made)
    assert [attrs.get("scope") for tag, attrs in parsed.tags if tag == "th"] == ["col", "col", "row", "row"]
    assert "&lt;read&gt;" in made
    assert "<b>2</b>" in made
