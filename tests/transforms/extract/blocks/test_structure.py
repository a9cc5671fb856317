"""What stands in a block and around it: the kernel's blocks, and text or Markdown made from them."""

import numpy as np
import pytest

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
        ('<p>see <span style="display: none">no</span><i aria-hidden="true">x</i>yes', ["see yes"]),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", ["a", "b", "c"]),
        ("<b>one<p>two</b>three</p>", ["one", "twothree"]),
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
    rows = features(page, bytes(2 * 3 * 4))
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
        htmlblocks.parse(b"", 1)  # type: ignore[arg-type]
