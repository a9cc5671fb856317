"""Kept blocks to text or Markdown: headings, lists, tables, code and line breaks stay what they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.extract.blocks.page import Column, Element, Flag, Page

Output = Literal["text", "markdown"]

TAB, BAR = "\t", "\\|"
SHORT = 200  # a cell of more characters is a part of a layout (LONG_CELL of the kernel)


WANTED = [
    Column.START, Column.END, Column.ELEMENT, Column.FLAGS, Column.CELL,
    Column.HEADING, Column.LIST, Column.ITEM, Column.ROW, Column.SIZE,
]  # fmt: skip


@dataclass(slots=True)
class _Part:
    """What is set apart from what comes before and behind it: a block, a row of a table or a piece of code."""

    text: str
    flags: int
    heading: int
    lists: int
    item: int
    row: int
    cell: int  # of the last block
    inside: int  # the element of kind PRE or TABLE around it, -1: none
    size: int


@dataclass(slots=True)
class _Table:
    """A table in Markdown: where its first row stands in the output, cells of that, most cells of a row, last row."""

    head: int
    cells: int
    width: int
    last: _Part


def render(page: Page, kept: NDArray[np.bool_], output: Output, list_bullets: bool) -> str:
    """The text of the kept blocks: a blank line between paragraphs, none between items of a list or rows of a table.

    text: items begin with a bullet or their number if `list_bullets`; cells are divided by tabs, one for each cell. A
    row has one line if each of its cells has one short block. markdown: "#" before headings, "-" or a number before
    items, "|" around cells, fences around code, ">" before quotations. Linear.
    """
    lines: list[str] = []
    before: _Part | None = None
    table: _Table | None = None
    for part in _parts(page, np.flatnonzero(kept)):
        if before is not None:
            lines.append("\n" if _adjoins(before, part) else "\n\n")
        if output == "text":
            lines.append((_bullet(part, "• ") if list_bullets else "") + part.text)
        elif part.flags & Flag.CELLS and not part.flags & Flag.PRE:
            cells = part.text.count("\t") + 1
            if table is None or table.last is not before or table.last.inside != part.inside:
                _divide(lines, table)
                table = _Table(len(lines), cells, cells, part)
            table.width, table.last = max(table.width, cells), part
            lines.append(f"| {' | '.join(part.text.replace('|', BAR).split(TAB))} |".replace("\n", " "))
        else:
            lines.append(_markdown(part))
        before = part
    _divide(lines, table)
    return "".join(lines)


def _parts(page: Page, numbers: NDArray[np.intp]) -> Iterator[_Part]:
    blocks = page.blocks
    flags = blocks[numbers, Column.FLAGS]
    nested = bool(((flags & Flag.PRE) != 0).any() or blocks[numbers, Column.ROW].any())
    inside = _inside(page.elements) if nested else []
    simple = simple_rows(blocks) if nested else frozenset()
    text, pieces = page.text, list[str]()
    before: _Part | None = None  # whose text is still in pieces
    for start, end, element, bits, cell, heading, lists, item, row, size in blocks[numbers[:, None], WANTED].tolist():
        said = text[start:end].decode()
        around = inside[element] if nested and element >= 0 else -1
        if before is not None and before.flags & bits & Flag.PRE and before.inside == around >= 0:
            pieces.append("\n" + said)
            continue
        if row in simple:
            said, last = said.replace("\n", " "), cell + said.count("\t")
            if before is not None and before.row == row:
                pieces.append("\t" * (cell - before.cell) + said)
                before.cell = last
                continue
            cell, bits, said = last, bits | Flag.CELLS, "\t" * (cell - 1) + said
        if before is not None:
            before.text = "".join(pieces)
            yield before
        before = _Part("", bits, heading, lists, item, row, cell, around, size)
        pieces = [said]
    if before is not None:
        before.text = "".join(pieces)
        yield before


def _inside(elements: NDArray[np.int32]) -> list[int]:
    """For each element the nearest of kind PRE or TABLE that it is or is in, -1 for none."""
    found: list[int] = []
    for number, (parent, kind) in enumerate(elements[:, [Element.PARENT, Element.KIND]].tolist()):
        here = kind in (Element.TABLE, Element.PRE)
        found.append(number if here else found[parent] if parent >= 0 else -1)
    return found


def simple_rows(blocks: NDArray[np.int32]) -> frozenset[int]:
    """Numbers of the rows that have two cells or more with text, each of them one short block."""
    row, cell, size, flags = (blocks[:, column] for column in (Column.ROW, Column.CELL, Column.SIZE, Column.FLAGS))
    here = row > 0
    several = (flags & Flag.CELLS) != 0
    next_too = here[1:] & (row[1:] == row[:-1])
    many = np.concatenate((row[here & several], row[1:][next_too & (cell[1:] > cell[:-1])]))
    other = (size > SHORT) & ~several
    other |= (flags & Flag.PRE) != 0
    other |= (blocks[:, Column.HEADING] > 0) | (blocks[:, Column.ITEM] != 0)
    not_simple = np.concatenate((row[here & other], row[1:][next_too & (cell[1:] <= cell[:-1])]))
    return frozenset(many.tolist()) - frozenset(not_simple.tolist())


def _adjoins(before: _Part, part: _Part) -> bool:
    if before.row and part.row and before.inside == part.inside:
        rows = before.flags & part.flags & Flag.CELLS
        long = max(before.size, part.size) > SHORT or before.heading or part.heading
        return bool(rows) or not long
    return bool(before.lists and part.item)


def _bullet(part: _Part, sign: str) -> str:
    return f"{part.item}. " if part.item > 0 else sign if part.item < 0 else ""


def _divide(lines: list[str], table: _Table | None) -> None:
    """Below a table's head the line that divides it from the rest; cells beyond those of the head would be lost."""
    if table:
        lines[table.head] += "  |" * (table.width - table.cells) + f"\n|{' --- |' * table.width}"


def _markdown(part: _Part) -> str:
    text = part.text
    if part.flags & Flag.PRE:
        fence = "```"
        while fence in text:
            fence += "`"
        return f"{fence}\n{text}\n{fence}"
    if part.heading:
        return f"{'#' * part.heading} {' '.join(text.split())}"
    lead = "  " * max(0, part.lists - 1) + _bullet(part, "- ")
    if part.flags & Flag.QUOTE:
        lead = "> " + lead
        text = text.replace("\n", "\n> ")
    return lead + text
