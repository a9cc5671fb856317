"""Kept blocks to text or Markdown: headings, lists, tables, code and line breaks stay what they are."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.extract.blocks.page import Column, Flag, Page

Output = Literal["text", "markdown"]


def render(page: Page, kept: NDArray[np.bool_], output: Output, list_bullets: bool) -> str:
    """The text of the kept blocks: a blank line between paragraphs, none between items of a list or rows of a table.

    text: items begin with a bullet or their number if `list_bullets`; cells are divided by tabs. markdown: "#" before
    headings, "-" or a number before items, "|" around cells, fences around code, ">" before quotations. Linear.
    """
    parts: list[str] = []
    before: NDArray[np.int32] | None = None
    for number in np.flatnonzero(kept).tolist():
        block = page.blocks[number]
        if before is not None:
            parts.append("\n" if _adjoins(before, block) else "\n\n")
        text = page.block_text(number)
        parts.extend(_markdown(text, block, before) if output == "markdown" else _text(text, block, list_bullets))
        before = block
    return "".join(parts)


def _adjoins(before: NDArray[np.int32], block: NDArray[np.int32]) -> bool:
    if before[Column.ROW] and block[Column.ROW]:
        return True
    return bool(before[Column.LIST] and block[Column.ITEM])


def _bullet(block: NDArray[np.int32], sign: str) -> str:
    item = int(block[Column.ITEM])
    return f"{item}. " if item > 0 else sign if item < 0 else ""


def _text(text: str, block: NDArray[np.int32], list_bullets: bool) -> Iterator[str]:
    if list_bullets:
        yield _bullet(block, "• ")
    yield text


def _markdown(text: str, block: NDArray[np.int32], before: NDArray[np.int32] | None) -> Iterator[str]:
    flags = int(block[Column.FLAGS])
    if flags & Flag.PRE:
        fence = "```"
        while fence in text:
            fence += "`"
        yield f"{fence}\n{text}\n{fence}"
    elif flags & Flag.CELLS:
        cells = text.replace("|", "\\|").replace("\n", " ").split("\t")
        yield f"| {' | '.join(cells)} |"
        if before is None or not int(before[Column.FLAGS]) & Flag.CELLS:
            yield f"\n|{' --- |' * len(cells)}"
    elif block[Column.HEADING]:
        yield f"{'#' * int(block[Column.HEADING])} {' '.join(text.split())}"
    else:
        lead = "  " * max(0, int(block[Column.LIST]) - 1) + _bullet(block, "- ")
        if flags & Flag.QUOTE:
            lead = "> " + lead
            text = text.replace("\n", "\n> ")
        yield lead + text
