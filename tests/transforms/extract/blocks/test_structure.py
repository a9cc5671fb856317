"""What stands in a block and around it: the kernel's blocks, and text or Markdown made from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.blocks.page import Page, features, parse_page
from refinery.transforms.extract.blocks.render import Output, render
from refinery.transforms.native import htmlblocks


def blocks(html: str) -> list[str]:
    page = parse_page(html, "https://x.org/")
    return [page.block_text(number) for number in range(len(page.blocks))]


def everything(html: str, output: Output = "text", list_bullets: bool = True) -> str:
    page: Page = parse_page(html, "https://x.org/")
    return render(page, np.ones(len(page.blocks), np.bool_), output, list_bullets)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one<p>two", ["one", "two"]),
        ("<div>one<span> two</span> <b>three</b></div>four", ["one two three", "four"]),
        ("a<br>b<br><br>c", ["a\nb", "c"]),
        ("<!-- no --><p>yes<!-- > no --> and<!--->yes", ["yes andyes"]),
        ("<script>if (a < b) x('</p>');</script><p>x<style>p {}</style>y", ["xy"]),
        ("<p>&lt;b&gt; &amp;amp; &eacute;&#233;&#xE9;&#150; &copy &nosuch; &", ["<b> &amp; ééé– © &nosuch; &"]),
        ("<p>a < b <3 > c", ["a < b <3 > c"]),
        ("<pre>\n  def f():\n\treturn 1\n</pre>", ["  def f():\n\treturn 1"]),
        ("<table><tr><th>a<th>b<tr><td>1</td><td></td><td>3</td></table>", ["a\tb", "1\t\t3"]),
        ("<table><tr><td><p>one</p><td><p>two</p></table>", ["one", "two"]),
        ("<select><option>a<option>b</select><button>c</button>", ["c"]),
        ("<svg><title>no</title><text>no</text></svg><p>yes", ["yes"]),
        ("<p>x<a href=u>link</a><a href=v>other</a>", ["xlink other"]),
        ('<p>see <span style="display: none">no</span><i aria-hidden="true">x</i>yes', ["see xyes"]),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", ["a", "b", "c"]),
        ("<b>one<p>two</b>three</p>", ["one", "twothree"]),
        ("<p>x<noscript><iframe src=y /></noscript><p>y<noscript><iframe></iframe>z</noscript>", ["x", "yz"]),
        ("<p>x<iframe>no</iframe><p>y<iframe /><p>z", ["x", "y", "z"]),
        ('<main>x</main><div hidden id="S:0"><p>streamed</div><p hidden>y', ["x", "streamed", "y"]),
        ('<p>a <dfn>word<span id="w-tooltip">said of it</span></dfn> and<i role=tooltip>no</i>', ["a word and"]),
        ('<p><span class="d-none">$begin$</span>yes', ["yes"]),
        ("text of a page\r\n without   markup", ["text of a page without markup"]),
        ("", []),
        ("<p> \u00a0\u200b </p>", []),
        ("<p>نمی\u200cدانم 👩\u200d🔬</p>", ["نمی\u200cدانم 👩\u200d🔬"]),
    ],
)
def test_blocks(html: str, expected: list[str]) -> None:
    assert blocks(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        '<math alttext="x^2"><mi>x</mi></math>',
        '<math><semantics><mi>x</mi><annotation encoding="application/x-tex">x^2</annotation></semantics></math>',
        '<span class="katex"><math><annotation encoding="application/x-tex">x^2</annotation></math>'
        '<span class="katex-html" aria-hidden="true">x2</span></span>',
        '<span class="MathJax">x2</span><script type="math/tex">x^2</script>',
    ],
)
def test_formulas_become_tex(html: str) -> None:
    assert blocks(f"<p>Let {html} be") == ["Let $x^2$ be"]


def test_formulas_in_alternative_texts_and_without_tex() -> None:
    assert blocks(r'<p>so <img class="tex" alt="\frac{1}{2}">') == [r"so $\frac{1}{2}$"]
    assert blocks("<p><math><mi>x</mi><mo>=</mo><mn>1</mn></math>") == ["x=1"]


def test_mathjax_3_has_its_formula_once() -> None:
    shown = "<mjx-math>x2</mjx-math><mjx-assistive-mml><math><mi>x</mi></math></mjx-assistive-mml>"
    assert blocks(f'<p>Let <mjx-container class="MathJax" jax="CHTML">{shown}</mjx-container> be') == ["Let x be"]


@pytest.mark.parametrize(
    ("html", "text", "markdown"),
    [
        # Lines of code that are elements of their own, and two pieces of code.
        (
            "<pre><div>a</div><div>  b    c</div></pre><pre>d</pre>",
            "a\n  b    c\n\nd",
            "```\na\n  b    c\n```\n\n```\nd\n```",
        ),
        # Cells that are paragraphs, empty cells, a row that is longer than the first, another table.
        (
            "<table><tr><td></td><th><p>A</p></th></tr><tr><th>r</th><td></td><td><p>5</p></td></tr></table>"
            "<table><tr><td>1<td>2</table>",
            "A\nr\t\t5\n\n1\t2",
            "A\n| r |  | 5 |\n| --- | --- | --- |\n\n| 1 | 2 |\n| --- | --- |",
        ),
        ("<table><tr><td></td><th>A<th><p>B</table>", "\tA\tB", "|  | A | B |\n| --- | --- | --- |"),
        (
            "<table><tr><td>a<td>b<tr><td>c<td>d<td>e</table>",
            "a\tb\nc\td\te",
            "| a | b |  |\n| --- | --- | --- |\n| c | d | e |",
        ),
        # Cells of several paragraphs, and tables that are layout.
        ("<table><tr><td><p>a<p>b<td><p>c</table>", "a\nb\nc", "a\nb\nc"),
        (f"<table><tr><td><p>{'word ' * 60}<td><p>c</table>", f"{('word ' * 60).strip()}\n\nc", None),
        ("<table><tr><td><h2>a</h2><td><p>c</table>", "a\n\nc", "## a\n\nc"),
        ("One,<br>two,<br><br>three<br>four", "One,\ntwo,\n\nthree\nfour", "One,\ntwo,\n\nthree\nfour"),
    ],
)
def test_code_and_tables(html: str, text: str, markdown: str | None) -> None:
    assert everything(html) == text
    assert markdown is None or everything(html, "markdown") == markdown


PAGE = """<h2>Title</h2><p>Words</p><ol start=3><li>three<ul><li>deep</li></ul></li><li>four</li></ol>
<table><tr><th>k<th>v<tr><td>a|b<td>1</table><pre>x = 1
  y</pre><blockquote><p>said</p></blockquote>"""


def test_structure_as_text() -> None:
    assert everything(PAGE) == "Title\n\nWords\n\n3. three\n• deep\n4. four\n\nk\tv\na|b\t1\n\nx = 1\n  y\n\nsaid"
    assert "\n\nthree\ndeep\nfour\n\n" in everything(PAGE, list_bullets=False)


def test_structure_as_markdown() -> None:
    assert everything(PAGE, "markdown") == (
        "## Title\n\nWords\n\n3. three\n  - deep\n4. four\n\n| k | v |\n| --- | --- |\n| a\\|b | 1 |\n\n"
        "```\nx = 1\n  y\n```\n\n> said"
    )


def test_a_page_has_a_row_of_features_for_each_block() -> None:
    page = parse_page("<title>One - Site</title><h1>One</h1><p>Two, three.", "https://x.org/blog/one")
    rows = features(page, bytes(2 * 4 * 4))
    assert rows.shape == (2, htmlblocks.FEATURES + len(page.arrays.values)) and np.isfinite(rows).all()
    assert len(page.arrays.titles) == 3
    with pytest.raises(ValueError, match="said"):
        features(page, bytes(3 * 4))


def test_parsing_stops_behind_the_blocks_that_are_wanted() -> None:
    assert len(parse_page("<p>x" * 100, "", 10).blocks) == 11
    with pytest.raises(ValueError, match="most: 0 given"):
        htmlblocks.parse("", 0)
    with pytest.raises(ValueError):
        htmlblocks.parse("\ud800", 1)
    with pytest.raises(TypeError):
        htmlblocks.parse(None, 1)  # type: ignore[arg-type]


@given(
    st.binary()
    | st.lists(st.sampled_from([b"a" * 9, b"\xc3", b"\xa9", b"\xed", b"\xa0", b"\xf0\x9f", b"\x92", b"\xf4"])).map(
        b"".join
    )
)
def test_bytes_are_utf8_where_python_says_so(data: bytes) -> None:
    try:
        expected = len(data.decode())
    except UnicodeDecodeError:
        expected = -1
    assert htmlblocks.utf8_length(data) == expected
    if expected < 0:
        with pytest.raises(ValueError, match="not UTF-8"):
            htmlblocks.parse(data, 1)


@given(st.text())
def test_a_page_is_the_same_as_text_and_as_bytes(html: str) -> None:
    html = html.encode("utf-8", "ignore").decode()
    text, data = (parse_page(given, "https://x.org/") for given in (html, html.encode()))
    said = bytes(16 * len(text.blocks))
    assert text.text == data.text and (features(text, said) == features(data, said)).all()
