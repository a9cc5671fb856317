"""The engine `blocks`: main text of a page from a model of its blocks, with its structure."""

from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from refinery.transforms.extract.blocks.model import Model, choose_blocks, score_blocks
from refinery.transforms.extract.blocks.page import LINKED_DATA, Column, Flag, Page, parse_page
from refinery.transforms.extract.blocks.render import Output, render
from refinery.transforms.extract.blocks.structure import drop_trailing_links, keep_enclosed, keep_title, without_repeats

# A page with less text than this may have been built by a script: then what the page says elsewhere is looked at, and
# taken where it is this many times as long.
LITTLE, LONGER = 400, 2
BODIES = ("articleBody", "reviewBody", "text", "description")  # of schema.org, in this order
MOST_NODES = 10_000


def extract_blocks(
    html: str | bytes, url: str, model: Model, output: Output, list_bullets: bool, max_blocks: int
) -> str | None:
    """Main text of `html` (without lone surrogates, or UTF-8), "" for none, None for more than `max_blocks` blocks.

    Linear in the page.

    Where fewer than LITTLE characters survive: linked data (articleBody, description), then all blocks of <noscript>
    and <template>, if they say more.
    """
    page = parse_page(html, url, max_blocks)
    if len(page.blocks) > max_blocks:
        return None
    text = render(page, main_blocks(page, score_blocks(page, model)), output, list_bullets)
    if len(text) >= LITTLE:
        return text
    for other in (linked_text(page), _unscripted(page, output, list_bullets)):
        if len(other) > max(len(text) * LONGER, LITTLE):
            return other
    return text


def main_blocks(page: Page, probabilities: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which blocks are main text, given the probability of each: the choice of the model, corrected by structure."""
    kept = choose_blocks(probabilities, page.blocks[:, Column.WORDS])
    kept = keep_enclosed(page, probabilities, drop_trailing_links(page, probabilities, kept))
    return without_repeats(page, keep_title(page, probabilities, kept))


def linked_text(page: Page) -> str:
    """The longest body of an article, or else description, in the page's linked data; "" for none."""
    found = dict.fromkeys(BODIES, "")
    for kind, data in page.extras:
        if kind != LINKED_DATA:
            continue
        try:
            nodes: list[Any] = [orjson.loads(data)]
        except orjson.JSONDecodeError:
            continue
        for _ in range(MOST_NODES):
            if not nodes:
                break
            node = nodes.pop()
            if isinstance(node, list):
                nodes.extend(node)
            elif isinstance(node, dict):
                for name in BODIES:
                    value = node.get(name)
                    if isinstance(value, str) and len(value) > len(found[name]):
                        found[name] = value
                nodes.extend(node.values())
    longest = next((text for text in found.values() if text), "")
    if "<" not in longest and "&" not in longest:
        return longest
    inner = parse_page(longest, "")
    return render(inner, np.ones(len(inner.blocks), np.bool_), "text", list_bullets=True)


def _unscripted(page: Page, output: Output, list_bullets: bool) -> str:
    inside = (page.blocks[:, Column.FLAGS] & (Flag.NOSCRIPT | Flag.TEMPLATE)) != 0
    return render(page, inside, output, list_bullets)
