"""A page as blocks of text, and what is known of it as a whole.

The kernel `htmlblocks` does the work; here its columns have names, and what stands outside the text is read: the
address, the title, linked data (schema.org), Open Graph.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.native import htmlblocks


class Column:
    """Columns of `Page.blocks`, in the order of the kernel's (include/htmlblocks_output.h says what they hold)."""

    START, END, ELEMENT, SIZE, WORDS = 0, 1, 2, 3, 4
    LINKED, SENTENCES, SYMBOLS = 5, 7, 11
    HEADING, LIST, ITEM, FLAGS = 22, 23, 24, 25
    ROW, WHOLE, CELL = 28, 31, 32


class Element:
    """Columns of `Page.elements`: its parent (-1: none), its first block, the one behind its last, and its kind."""

    PARENT, FIRST, LAST, KIND = 0, 1, 2, 4
    # Kinds, in the order of include/htmlblocks/htmlblocks_names.h.
    TABLE, TR, TBODY, THEAD, TFOOT, CAPTION, PRE = 9, 10, 13, 14, 15, 16, 23


class Flag:
    """Bits of the column FLAGS that rendering and fallbacks read."""

    PRE, TABLE, NOSCRIPT, TEMPLATE, HIDDEN, QUOTE, HEAD_CELL, CELLS, CODE = 1, 2, 16, 32, 64, 128, 512, 1024, 4096


TITLE, LINKED_DATA, OPEN_GRAPH_TYPE, DESCRIPTION = 0, 1, 2, 3  # kinds of extras

# What addresses say about the type of a page.
ADDRESS = tuple(
    re.compile(pattern)
    for pattern in (
        r"forum|thread|topic|/t/|viewtopic|discussion|question|community|comments",
        r"product|/p/|/dp/|item|/pd/|\bsku",
        r"categor|collection|/c/|shop|store|/browse|/list",
        r"blog|news|article|story|post|/20\d\d",
        r"docs?\b|api|reference|manual|wiki|guide|tutorial|learn|help|support",
        r"service|solution|pricing|feature|about|company",
        r"best|top|list|tag|archive|search|directory|events?",
    )
)
# Types of schema.org that tell types of pages apart, by group.
LINKED_TYPES = (
    ("Product", "ProductGroup"),
    ("Article", "NewsArticle", "BlogPosting", "TechArticle", "ReportageNewsArticle"),
    ("DiscussionForumPosting", "QAPage", "Question"),
    ("ItemList", "CollectionPage", "OfferCatalog"),
    ("FAQPage",),
    ("Organization", "LocalBusiness"),
    ("Service", "SoftwareApplication"),
    ("Recipe",),
    ("Review", "AggregateRating"),
    ("BreadcrumbList",),
    ("VideoObject",),
    ("Event",),
    ("WebPage",),
)
LINKED_GROUP = {name: group for group, names in enumerate(LINKED_TYPES) for name in names}
LINKED_TYPE = re.compile(r'"@type"\s{0,9}:\s{0,9}(?:\[\s{0,9})?"([A-Za-z]{3,40})"')
LINKED_CHARS = 200_000
OPEN_GRAPH_TYPES = ("website", "article", "product", "video", "profile")
# Groups of class words (include/htmlblocks_names.h) whose presence on <body> is a feature.
BODY_GROUPS = (19, 22, 23, 24, 27, 28, 26, 20, 42, 15)
TITLE_CHARS = 300
MOST_BLOCKS = 500_000
TITLE_BORDER = re.compile(r"\s[|\-–—:»·•]\s|\|")


class Arrays(NamedTuple):
    """What the kernel's `features` and `score` take, in their order, without the lexicon's values."""

    blocks: bytes
    groups: bytes
    elements: bytes
    values: NDArray[np.uint32]
    titles: NDArray[np.uint32]
    source: int


@dataclass(frozen=True)
class Page:
    """The blocks of a page.

    text: UTF-8 of all blocks. blocks: int32, one row per block. extras: (kind, text) of the page's title, linked data
    and the like.
    """

    text: bytes
    blocks: NDArray[np.int32]
    extras: list[tuple[int, str]]
    arrays: Arrays

    @property
    def elements(self) -> NDArray[np.int32]:
        """One row per element with text in it; an element's parent comes before it."""
        return np.frombuffer(self.arrays.elements, np.int32).reshape(-1, htmlblocks.ELEMENT_COLUMNS)

    def block_text(self, number: int) -> str:
        """The text of one block."""
        return self.text[self.blocks[number, Column.START] : self.blocks[number, Column.END]].decode()


def parse_page(html: str | bytes, url: str, most: int = MOST_BLOCKS) -> Page:
    """`html` (without lone surrogates, or UTF-8) in blocks. Linear, about 500 MB/s on real pages.

    most: where a page has more blocks, parsing stops behind the next one, so memory has a bound.
    """
    text, blocks, groups, elements, extras, body = htmlblocks.parse(html, most)
    characters = len(html) if isinstance(html, str) else htmlblocks.utf8_length(html)
    values = np.array(_address_values(url) + _page_values(extras, body, characters), np.float32)
    arrays = Arrays(blocks, groups, elements, values.view(np.uint32), _title_hashes(extras), characters)
    table = np.frombuffer(blocks, np.int32).reshape(-1, htmlblocks.BLOCK_COLUMNS)
    return Page(text, table, extras, arrays)


def features(page: Page, said: bytes) -> NDArray[np.float32]:
    """The features of each block: float32, blocks x features.

    said: int32, blocks x 4: the sum of the weights of its words, how many words it has, the lowest weight, how many
    have a weight.
    """
    arrays = page.arrays
    given = (arrays.blocks, arrays.groups, arrays.elements, said, arrays.values, arrays.titles, arrays.source)
    data = np.frombuffer(htmlblocks.features(*given), np.float32)
    return data.reshape(len(page.blocks), htmlblocks.FEATURES + len(arrays.values))


def _address_values(url: str) -> list[float]:
    address = url.partition("://")[2].lower().partition("?")[0].partition("#")[0][:2000]
    slash = address.find("/")
    path = address[slash:] if slash >= 0 else "/"
    return [
        *(float(bool(pattern.search(address))) for pattern in ADDRESS),
        float(path.count("/")),
        float(len(path)),
        float(path == "/"),
        float(sum(map(path.count, "0123456789"))),
        float(path.count("-")),
        float(path.endswith("/")),
    ]


def _page_values(extras: list[tuple[int, str]], body: int, size: int) -> list[float]:
    linked = [0.0] * len(LINKED_TYPES)
    open_graph = -1.0
    for kind, text in extras:
        if kind == LINKED_DATA:
            for name in LINKED_TYPE.findall(text[:LINKED_CHARS]):
                if name in LINKED_GROUP:
                    linked[LINKED_GROUP[name]] += 1
        elif kind == OPEN_GRAPH_TYPE:
            given = text.strip().lower()
            known = [number for number, name in enumerate(OPEN_GRAPH_TYPES) if given.startswith(name)]
            open_graph = float(known[0]) if known else float(len(OPEN_GRAPH_TYPES))
    return [*linked, open_graph, float(size), *(float(body >> group & 1) for group in BODY_GROUPS)]


def _title_hashes(extras: list[tuple[int, str]]) -> NDArray[np.uint32]:
    """The kernel's hashes of the page's title and of its parts ("Heading | Site"), as it computes them for blocks."""
    titles = [text for kind, text in extras if kind == TITLE]
    if not titles:
        return np.zeros(0, np.uint32)
    title = titles[0][:TITLE_CHARS]
    parts = [title, *TITLE_BORDER.split(title)][:32]
    html = "".join(f"<p>{part.replace('<', ' ')}" for part in parts)
    blocks = np.frombuffer(htmlblocks.parse(html, MOST_BLOCKS)[1], np.uint32).reshape(-1, htmlblocks.BLOCK_COLUMNS)
    return np.ascontiguousarray(blocks[:, Column.WHOLE])
