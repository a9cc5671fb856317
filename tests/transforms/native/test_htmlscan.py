"""The forecast of a page's depth is never far below what the parser builds, and stops what would hurt."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resiliparse.parse.html import HTMLTree

from refinery.transforms.native import htmlscan

FAR = 1_000_000

NAMES = (
    "div p span b i a font nobr table tr td th tbody thead caption colgroup li ul ol dl dd dt h1 h2 form button select "
    "option optgroup svg math g mi foreignObject desc title annotation-xml template object marquee textarea style "
    "script xmp iframe noscript plaintext br img input hr ruby rt rp section unknown-x frameset body html head"
)
TAGS = st.builds(
    "<{}{}{}{}>".format,
    st.sampled_from(["", "", "/"]),
    st.sampled_from(NAMES.split()),
    st.sampled_from(["", "", " x=%d", " color=red", ' class="a>b"', " t='<div>'"]),
    st.sampled_from(["", "", "", "/"]),
)
PIECES = TAGS | st.sampled_from(
    ["x", " ", "<!-- -->", "<!-->", "<![CDATA[<b>]]>", "</>", "<?php ?>", "<", "</p", "&lt;"]
)


def real_depth(html: str) -> tuple[int, int]:
    """(depth, elements) of the tree that the parser builds."""
    deepest = elements = 0
    stack: list[tuple[Any, int]] = [(HTMLTree.parse(html).document, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        child = node.first_child
        while child is not None:
            if child.type == 1:
                elements += 1
                stack.append((child, depth + 1))
            child = child.next
    return deepest, elements


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=4), st.lists(PIECES, min_size=1, max_size=8))
def test_repeated_markup_grows_no_faster_than_foreseen(start: list[str], again: list[str]) -> None:
    head, body = "".join(start).replace("%d", "0"), "".join(again)
    html = head + "".join(body.replace("%d", str(number)) for number in range(40))
    depth, elements, _, _ = htmlscan.cost(html, FAR, FAR)
    true_depth, true_elements = real_depth(html)
    assert true_depth <= 2.5 * depth + 12
    assert true_elements <= 3 * elements + 60 or depth > 20


@pytest.mark.parametrize(
    ("html", "depth"),
    [
        ("", 0),
        ("text < text", 0),
        ("<div><div></div><div>", 2),
        ("<p>one<p>two<p>three", 1),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", 4),
        ("<table><tr><td>a<td>b<tr><td>c</table>", 3),
        ("<b><b><b><b>", 4),
        ("<p><b>x</p>" * 50, 5),
        ("<table><tr>" + "<td><font>x</td>" * 50, 4),
        ("<br><img><input><hr>" * 50, 0),
        ("<script>" + "<div>" * 50 + "</script><div>", 1),
        ("<!-- " + "<div>" * 50 + " --><div>", 1),
        ('<a title="' + "<div>" * 50 + '">', 1),
        ("<svg>" + "<path/>" * 50 + "</svg>", 1),
        ("<div/>" * 50, 50),
        ("<option>" * 50, 1),
        ("<td>" * 50, 0),
        ("<x-y>" * 50, 50),
    ],
)
def test_depths(html: str, depth: int) -> None:
    assert htmlscan.cost(html, FAR, FAR)[0] == depth


def test_elements_attributes_and_steps() -> None:
    assert htmlscan.cost("<p a b=1 c='x y' d=\"z\" =e f/g>x<br></p>", FAR, FAR)[1:3] == (2, 7)
    assert htmlscan.cost("<div>abcd<i>ef</i>", FAR, FAR)[3] == 4 + 2 * 2 + 100 * 1
    # Unclosed formatting elements are opened again in each paragraph: 20 of them make 20 elements a paragraph.
    fonts = "".join(f"<font size={number}>" for number in range(20))
    assert htmlscan.cost(f"<p>{fonts}</p>" + "<p>x</p>" * 100, FAR, FAR)[1] >= 100 * 20


def test_it_stops_where_a_limit_is_passed() -> None:
    assert htmlscan.cost("<div>" * 1_000_000, 512, FAR)[0] == 513
    assert htmlscan.cost("<br>" * 1_000_000, 512, 1000)[1] == 1001
    with pytest.raises(ValueError, match="max_depth: 0 given, 1 to 1000000 is allowed"):
        htmlscan.cost("", 0, 1)
    with pytest.raises(UnicodeEncodeError):
        htmlscan.cost("\ud800", 1, 1)


@given(st.text(alphabet="<>/!-?\"'= \nabp\0é[]"), st.integers(1, 5))
def test_no_markup_is_an_error(html: str, limit: int) -> None:
    depth, elements, attributes, steps = htmlscan.cost(html, limit, limit)
    assert 0 <= depth <= limit + 1
    assert min(elements, attributes, steps) >= 0
