"""The most attributes of a tag, beside a reading of one tag at a time and the parser that the limit protects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html as lxml_html

from refinery.transforms.native import attributes

BLANK = "\t\n\f\r "


def attributes_from(page: str, at: int) -> int:
    """Attributes of the tag whose name begins at `at`: the states of the HTML standard, 13.2.5.8 and 13.2.5.32 on."""
    found, state = 0, "tag name"
    while at < len(page):
        c = page[at]
        at += 1
        if c == ">" and not state.startswith("quoted by"):
            break
        if state == "tag name":
            state = "before attribute" if c in BLANK + "/" else state
        elif state == "before attribute":
            if c not in BLANK + "/":
                found, state = found + 1, "attribute name"
        elif state == "attribute name":
            if c in BLANK:
                state = "after attribute name"
            elif c in "/=":
                state = "before attribute" if c == "/" else "before value"
        elif state == "after attribute name":
            if c in "/=":
                state = "before attribute" if c == "/" else "before value"
            elif c not in BLANK:
                found, state = found + 1, "attribute name"
        elif state == "before value":
            if c not in BLANK:
                state = f"quoted by {c}" if c in "\"'" else "unquoted value"
        elif state == "unquoted value":
            state = "before attribute" if c in BLANK else state
        elif state == "after quoted value":
            state = "before attribute"
            at -= c not in BLANK + "/"
        elif state == f"quoted by {c}":
            state = "after quoted value"
    return found


def slow_most(page: str) -> int:
    starts = [
        at + 1 for at, c in enumerate(page[:-1]) if c == "<" and page[at + 1].isascii() and page[at + 1].isalpha()
    ]
    return max((attributes_from(page, at) for at in starts), default=0)


@pytest.mark.parametrize(
    ("page", "most"),
    [
        ("", 0),
        ("a b c < d e f", 0),
        ("<p>a b c", 0),
        ("<p a b=1 c='x y' d=\"z\" =e f/g>x<br></p>", 7),
        ('<p a="1"b="2"c', 3),
        ('<p a=">" b = "<i c d e f>" >', 4),  # the quoted one would have four if it were a tag
        ("<!-- <p a b c> --><i d>", 3),
        ("<title><p a b c></title>", 3),
        ("<P\u00e9 a\u00e9>", 1),
        ("</p a b>", 0),
        ("<p a=b/c/d e>", 2),
        ("<p a= = b>", 2),
    ],
)
def test_most(page: str, most: int) -> None:
    assert attributes.most(page) == attributes.most(page.encode()) == slow_most(page) == most


@given(st.text(alphabet="<>/='\" \nabp\0é", max_size=40))
def test_it_is_the_largest_of_all_places(page: str) -> None:
    assert attributes.most(page) == slow_most(page)


@given(st.text(alphabet="<>/='\" \nabp!-", max_size=40))
def test_the_parser_finds_no_more(page: str) -> None:
    html = f"<p>{page}</p>"
    elements = lxml_html.fromstring(html).iter(lxml_html.etree.Element)
    assert max(len(element.attrib) for element in elements) <= attributes.most(html)


def test_arguments() -> None:
    with pytest.raises(TypeError, match="html: int given, a str or bytes are needed"):
        attributes.most(3)  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError):
        attributes.most("\ud800")
