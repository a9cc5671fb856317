"""What structure corrects of the model's choice: blocks inside main text, links behind it, and repeats."""

import numpy as np
import pytest

from refinery.transforms.extract.blocks.page import parse_page
from refinery.transforms.extract.blocks.structure import drop_trailing_links, keep_enclosed, keep_title, without_repeats

SAID = "<p>A sentence that was said.</p>"
CODE = "<pre>if x:\n    y()</pre>"


def enclosed(html: str, probability: int = 300) -> list[str]:
    """The blocks that are kept beside paragraphs with "said"."""
    page = parse_page(html, "")
    texts = [page.block_text(number) for number in range(len(page.blocks))]
    kept = np.array(["said" in text for text in texts])
    result = keep_enclosed(page, np.where(kept, 900, probability).astype(np.int32), kept)
    assert not (kept & ~result).any()
    return [text for text, before, after in zip(texts, kept, result, strict=True) if after and not before]


@pytest.mark.parametrize(
    ("html", "added"),
    [
        (f"<div>{SAID}{CODE}{SAID}</div>", ["if x:\n    y()"]),
        (f"<div>{SAID}<div class=highlight><div>{CODE}</div></div>{CODE}{SAID}</div>", ["if x:\n    y()"] * 2),
        (f"{SAID}<p>while (water &lt; 5) {{ run(pump); }}</p>{SAID}", ["while (water < 5) { run(pump); }"]),
        (f"{SAID}<table><tr><td>a<td>b<tr><td>c<td>d</table>{SAID}", ["a\tb", "c\td"]),
        (f"{SAID}<ul><li>one<li>two</ul>{SAID}", ["one", "two"]),
        (
            f"{SAID}<p><math><annotation encoding=application/x-tex>x^{{2}}=_1</annotation></math></p>{SAID}",
            ["$x^{2}=_1$"],
        ),
        # Whole tables: their first and last rows, captions, cells that are paragraphs.
        (f"{SAID}<table><caption>c</caption><tr><td>a<td>b</table>{SAID}", ["c", "a\tb"]),
        (f"{SAID}<table><caption>c</caption><tr><td>a<td>said</table>{SAID}", ["c"]),
        (f"{SAID}<table><tr><td>a<td>b<tr><td>c<td>said<tr><td>e<td>f</table>{SAID}", ["a\tb", "e\tf"]),
        (f"{SAID}<table><tr><td><p>a<td><p>said</table>{SAID}", ["a"]),
        (f"{SAID}<table><tr><td><p>a<p>b<td>said</table>{SAID}", []),
        # Prose, headings, and what has another kind of block beside it.
        (f"{SAID}<p>Advertisement</p>{SAID}", []),
        (f"{SAID}<h2>Next</h2>{SAID}", []),
        (f"{SAID}{CODE}<p>Copy to clipboard</p>{SAID}", []),
        # On one side alone, or in another container than the text on the other side.
        (f"{SAID}{CODE}<p>other</p>", []),
        (f"<div>{SAID}{CODE}</div><div>{SAID}</div>", []),
        (f"<div>{SAID}</div><div>{CODE}</div>{SAID}", ["if x:\n    y()"]),
        # Links.
        (f"{SAID}<ul><li><a href=x>one</a><li><a href=x>two</a></ul>{SAID}", []),
        (f"{SAID}<p>&lt;{{_}}&gt; ***</p>{SAID}", []),
    ],
)
def test_what_main_text_encloses(html: str, added: list[str]) -> None:
    assert enclosed(html) == added


def test_improbable_items_stay_out() -> None:
    assert enclosed(f"{SAID}<ul><li>one</ul>{SAID}", 199) == []
    assert enclosed(f"{SAID}{CODE}{SAID}", 0) == ["if x:\n    y()"]


@pytest.mark.parametrize(
    ("html", "probability", "added"),
    [
        (f"<title>A day - Site</title><h1>A day</h1>{SAID}", 400, ["A day"]),
        (f"<title>A day - Site</title><h1>A day</h1>{SAID}", 399, []),
        (f"<title>A day - Site</title><h2>A day</h2>{SAID}<h1>A day</h1>", 500, []),
        (f"<title>Another</title><h1>A day</h1>{SAID}", 500, []),
        (f"<title>A day</title><h1>A day</h1><p>By Ann{SAID}", 500, []),
        ("", 500, []),
    ],
)
def test_the_title_above_main_text_is_kept(html: str, probability: int, added: list[str]) -> None:
    page = parse_page(html, "")
    texts = [page.block_text(number) for number in range(len(page.blocks))]
    kept = np.array(["said" in text for text in texts], np.bool_)
    result = keep_title(page, np.full(len(kept), probability, np.int32), kept)
    assert [text for text, before, after in zip(texts, kept, result, strict=True) if after > before] == added


RELATED = "<h3>You might also like</h3><ul><li><a href=1>Bees</a><li><a href=2>Bread</a></ul>"


@pytest.mark.parametrize(
    ("html", "probability", "left"),
    [
        (f"{SAID}{RELATED}", 599, 1),
        (f"{SAID}{RELATED}", 600, 4),
        (f"{SAID}<h3>More</h3>", 499, 1),
        (f"{SAID}<p><a href=1>Source</a></p>", 499, 2),
        (f"{RELATED}{SAID}{RELATED}", 499, 7),  # a list of links
        (RELATED, 499, 3),
        ("", 499, 0),
    ],
)
def test_links_behind_the_text(html: str, probability: int, left: int) -> None:
    page = parse_page(html, "")
    said = np.array(["said" in page.block_text(number) for number in range(len(page.blocks))], np.bool_)
    probabilities = np.where(said, 900, probability).astype(np.int32)
    assert drop_trailing_links(page, probabilities, np.ones(len(said), np.bool_)).sum() == left


def test_what_was_said_elsewhere_is_not_said_again() -> None:
    said = "The same card stands here for wide screens and for narrow ones."
    html = f"<div><p>{said}<p>{said}<p>Short.</div><div><p>{said}<p>Short.<pre>{said}</pre></div>"
    page = parse_page(html, "")
    kept = without_repeats(page, np.ones(len(page.blocks), np.bool_))
    assert kept.tolist() == [True, True, True, False, True, True]
