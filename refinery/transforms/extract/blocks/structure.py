"""What stands inside a text, above it, behind it, and twice: four corrections of the model's choice.

`drop_trailing_links`: items that are links and follow the last sentence are not main text, nor is a heading that heads
nothing. A page of two sentences has few words, so the choice takes doubtful blocks along. `keep_enclosed`: code, rows,
items and formulas inside main text are main text. Few pages have any, so the model is not sure of them, and an article
without its listings is worth little.

On pages of domains that the model had not seen (1,657 with full gold text) the first changes 29 and the second 135,
where it takes 4,233 words more, 63 % of them main text (of code 89 %); word F1 goes from .8674 to .8679.

`keep_title`: the page's title as a heading right above main text belongs to it.

`without_repeats`: what a page says twice is main text once.
"""

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.extract.blocks.page import Column, Element, Flag, Page
from refinery.transforms.extract.blocks.render import simple_rows

# Text is like code if from a tenth to a half of it are characters such as { } < > = _ * / and there are at least so
# many: prose has one in a hundred.
LEAST_SYMBOLS, LEAST_SHARE, MOST_SHARE = 3, 10, 2
DOUBTFUL_ITEM = 200  # of 1000; menus are lists, too, so an item that is less probable main text is none
LEAST_TITLE = 400  # of 1000; what stands right below the title is main text, so the title probably is, too
DOUBTFUL = 600  # of 1000; what the model is surer of stays
TABLE_PARTS = {Element.TABLE, Element.TR, Element.TBODY, Element.THEAD, Element.TFOOT}
LINK = 9, 10  # a block is a link if so much of it is
REPEATED = 6  # words of a block that is left out when it repeats another


def keep_enclosed(page: Page, probabilities: NDArray[np.int32], kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`kept`, and each run of blocks between two kept ones that is code, rows of cells, items and formulas throughout.

    The kept blocks on both sides must be in the smallest element around the run that holds more than the run, or,
    for rows at the border of a table, in that around the table. Half of it or more must not be links. Linear in blocks
    and elements.
    """
    filled = np.flatnonzero(kept)
    if len(filled) < 2:
        return kept
    blocks = page.blocks
    others = np.concatenate(([0], np.cumsum(~_is_structure(page, probabilities, kept))))
    sizes, links = (
        np.concatenate(([0], np.cumsum(blocks[:, column], dtype=np.int64))) for column in (Column.SIZE, Column.LINKED)
    )
    first, behind = filled[:-1] + 1, filled[1:]
    runs = (behind > first) & (others[behind] == others[first])
    runs &= 2 * (links[behind] - links[first]) < sizes[behind] - sizes[first]
    if not runs.any():
        return kept
    elements, result = page.elements, kept.copy()
    for start, stop in zip(first[runs].tolist(), behind[runs].tolist(), strict=True):
        # An element inside one run is inside no other, so all of these walks together are linear.
        around = int(blocks[start, Column.ELEMENT])
        while around >= 0 and elements[around, Element.FIRST] >= start and elements[around, Element.LAST] <= stop:
            around = int(elements[around, Element.PARENT])
        for _ in range(len(TABLE_PARTS)):
            if around >= 0 and int(elements[around, Element.KIND]) in TABLE_PARTS:
                around = int(elements[around, Element.PARENT])
        if around < 0 or (elements[around, Element.FIRST] < start and elements[around, Element.LAST] > stop):
            result[start:stop] = True
    return result


def _is_structure(page: Page, probabilities: NDArray[np.int32], kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    blocks = page.blocks
    flags, size, symbols = (blocks[:, column] for column in (Column.FLAGS, Column.SIZE, Column.SYMBOLS))
    like_code = (symbols >= LEAST_SYMBOLS) & (symbols >= size // LEAST_SHARE) & (symbols <= size // MOST_SHARE)
    items = (blocks[:, Column.LIST] > 0) & (probabilities >= DOUBTFUL_ITEM)
    marked: NDArray[np.bool_] = (flags & (Flag.PRE | Flag.CODE | Flag.CELLS)) != 0
    if (flags[~kept] & Flag.TABLE).any():
        marked |= np.isin(blocks[:, Column.ROW], np.fromiter(simple_rows(blocks), np.int32))
        marked |= page.elements[blocks[:, Column.ELEMENT], Element.KIND] == Element.CAPTION
    return marked | items | like_code


def keep_title(page: Page, probabilities: NDArray[np.int32], kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`kept`, and headings of the first level that say the page's title, right before a kept block. Linear."""
    headings = np.flatnonzero((page.blocks[:-1, Column.HEADING] == 1) & kept[1:])
    if not len(headings):
        return kept
    result, titles = kept.copy(), set(page.arrays.titles.view(np.int32).tolist())
    for number in headings.tolist():
        if probabilities[number] >= LEAST_TITLE and int(page.blocks[number, Column.WHOLE]) in titles:
            result[number] = True
    return result


def drop_trailing_links(page: Page, probabilities: NDArray[np.int32], kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`kept` without what follows its last sentence and is a doubtful item that is a link, or a doubtful last heading.

    A page that has such items before its last sentence, too, is a list itself and stays as it is. Linear.
    """
    blocks = page.blocks
    part, whole = LINK
    links = whole * blocks[:, Column.LINKED].astype(np.int64) >= part * blocks[:, Column.SIZE].astype(np.int64)
    said = np.flatnonzero(kept & ~links & (blocks[:, Column.SENTENCES] > 0))
    items = kept & links & (blocks[:, Column.LIST] > 0)
    if not len(said) or items[: said[-1]].any():
        return kept
    doubtful = probabilities < DOUBTFUL
    result = kept & ~(items & doubtful)
    rest = np.flatnonzero(result & ~(doubtful & (blocks[:, Column.HEADING] > 0)))
    result[max(int(rest[-1]) if len(rest) else 0, int(said[-1])) + 1 :] = False
    return result


def without_repeats(page: Page, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`kept` without blocks of REPEATED words and more that say again what a kept block said in another place.

    Pages hold cards, descriptions and quotations twice, for wide screens and narrow ones. In the same element a
    repetition is the author's; so is one among rows of a table or lines of code.
    """
    first: dict[bytes, int] = {}
    blocks, result = page.blocks, kept.copy()
    plain = kept & (blocks[:, Column.WORDS] >= REPEATED)
    plain &= (blocks[:, Column.FLAGS] & (Flag.PRE | Flag.CELLS)) == 0
    numbers = np.flatnonzero(plain)
    if not len(numbers):
        return result
    # The element of a block outside of all is -1, which the last row stands for.
    parents = np.append(page.elements[:, Element.PARENT], -1)
    places = parents[blocks[numbers, Column.ELEMENT]].tolist()
    starts, ends = blocks[numbers, Column.START].tolist(), blocks[numbers, Column.END].tolist()
    for number, start, end, place in zip(numbers.tolist(), starts, ends, places, strict=True):
        if first.setdefault(page.text[start:end], place) != place:
            result[number] = False
    return result
