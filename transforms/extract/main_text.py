"""HTML to main text: two engines.

resiliparse is the default: main-content rules on the parsed tree, about ten times as fast as trafilatura. What its
rules leave in, at the end of an article above all, are lists of links to others and short calls to action; two
classical features of blocks remove most of those here (`drop_boilerplate`): link density (Kohlschuetter, Fankhauser
and Nejdl, "Boilerplate Detection using Shallow Text Features", WSDM 2010) and, at the end, shortness.
"""

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

# What "minimal_html" output consists of; all other markup characters in it are escaped.
TAG = re.compile(r'<(/?)(a|br|h[1-6]|li|ol|p|pre|ul)((?: [^ ="<>]+="[^"]*")*)>')
ESCAPED = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"))  # "&" last
SENTENCE_END = tuple(".!?:;…\"'”“»’)]。！？；：」』）।۔؟")
SHORT_WORDS, SHORT_CHARS = 5, 40  # a line at the end of a page that is shorter, and ends no sentence, closes no text


@dataclass(slots=True)
class Line:
    """One line of extracted text and the features of the block it stands in."""

    text: str
    linked: int = 0  # characters of `text`, whitespace aside, inside links
    heading: bool = False
    kept: bool = False  # part of preformatted text, of a table, or of a block with line breaks: never judged alone

    @property
    def size(self) -> int:
        return len("".join(self.text.split()))


@lru_cache(maxsize=4)
def chain_of(elements: int) -> str:
    """A CSS selector for an element with `elements` - 1 others around it."""
    return ">".join(["*"] * elements)


def parse_page(html: str, max_depth: int) -> HTMLTree | None:
    """The tree of a page, None when it is deeper than `max_depth` elements below <body>.

    `html` without lone surrogates. The parser copes with any depth, main-content extraction takes quadratic time in it.
    """
    tree = HTMLTree.parse(html)
    document = tree.document
    # html and body come on top. Cost: a tenth of parsing; a selector stops at the first match.
    return None if document is None or document.query_selector(chain_of(max_depth + 3)) is not None else tree


def extract_resiliparse(
    tree: HTMLTree, link_density: float | None, trim_end: bool, comments: bool, list_bullets: bool
) -> str:
    """Main text of a page. Cost with parsing: about 100 MB/s of HTML on real pages.

    link_density: lines with at least this share of their characters in links go (None: none does). trim_end: so do
    headings and short lines after the last sentence. comments: keep what looks like a comment section.
    """
    minimal = _minimal_html(tree, comments, noscript=False)
    if not minimal.strip():
        minimal = _minimal_html(tree, comments, noscript=True)  # pages that a script would have filled
    lines = drop_boilerplate(parse_lines(minimal, list_bullets), link_density, trim_end)
    return "\n".join(line.text for line in lines)


def _minimal_html(tree: HTMLTree, comments: bool, noscript: bool) -> str:
    # Texts of alt attributes are left out: most are captions said twice, or names of icons.
    return extract_plain_text(
        tree,
        preserve_formatting="minimal_html",
        main_content=True,
        alt_texts=False,
        links=True,
        comments=comments,
        noscript=noscript,
    )


def parse_lines(minimal: str, list_bullets: bool) -> list[Line]:
    """Lines of resiliparse's "minimal_html" output, entities decoded. Linear in its size."""
    tags = list(TAG.finditer(minimal))
    closed = _closed_links(tags)
    lines: list[Line] = []
    line, parts = Line(""), [""]  # the current line, and its text so far
    numbers: list[int] = []  # of each open list: the number of its last item, -1 in unordered ones
    position, in_link, in_pre = 0, False, False

    def end_line(kept: bool) -> Line:
        line.text = "".join(parts)
        line.kept = line.kept or "\t" in line.text
        lines.append(line)
        parts.clear()
        return Line("", kept=kept)

    for tag in [*tags, None]:
        text = unescape_minimal(minimal[position : tag.start() if tag else len(minimal)])
        for count, part in enumerate(text.split("\n")):
            if count:
                line = end_line(kept=in_pre)
            parts.append(part)
            if in_link:
                line.linked += len("".join(part.split()))
        if tag is None:
            break
        position = tag.end()
        name, opens = tag[2], not tag[1]
        if name == "a":
            in_link = opens and tag.start() in closed
        elif name == "br":
            line.kept = True
            line = end_line(kept=True)
            position += minimal.startswith("\n", position)
        elif name == "pre":
            in_pre = opens
            line.kept = True
        elif name[0] == "h":
            line.heading = True
        elif name in ("ol", "ul"):
            if opens:
                numbers.append(0 if name == "ol" else -1)
            elif numbers:
                numbers.pop()
        elif name == "li" and opens:
            ordered = bool(numbers) and numbers[-1] >= 0
            if ordered:
                numbers[-1] += 1
            if list_bullets:
                parts.append(f"{numbers[-1]}. " if ordered else "• ")
    end_line(kept=False)
    return lines


def unescape_minimal(text: str) -> str:
    """Decode what resiliparse escapes, which is little: html.unescape takes a second for a million entities."""
    if "&" not in text:
        return text
    for entity, character in ESCAPED:
        text = text.replace(entity, character)
    return text


def _closed_links(tags: list[re.Match[str]]) -> set[int]:
    """Starts of the links that end before the next one starts. resiliparse leaves some empty links without an end."""
    closed, start = set(), -1
    for tag in tags:
        if tag[2] == "a":
            if not tag[1]:
                start = tag.start()
            elif start >= 0:
                closed.add(start)
                start = -1
    return closed


def drop_boilerplate(lines: list[Line], link_density: float | None, trim_end: bool) -> list[Line]:
    """`lines` without link lists and trailing bits; all of them when nothing would be left. Linear."""
    filled = [number for number, line in enumerate(lines) if line.text.strip()]
    dropped: set[int] = set()
    if link_density is not None:
        for number in filled:
            line = lines[number]
            if line.linked and not line.kept and line.linked >= link_density * line.size:
                dropped.add(number)
        for number, below in pairwise(filled):
            if lines[number].heading and below in dropped:
                dropped.add(number)
    if trim_end:
        for number in reversed(filled):
            if number not in dropped and not _closes_nothing(lines[number]):
                break
            dropped.add(number)
    if len(dropped) == len(filled):
        return lines
    return [line for number, line in enumerate(lines) if number not in dropped]


def _closes_nothing(line: Line) -> bool:
    if line.kept:
        return False
    text = line.text.strip()
    return line.heading or (
        len(text) < SHORT_CHARS and not text.endswith(SENTENCE_END) and len(text.split()) < SHORT_WORDS
    )


def extract_trafilatura(html: str, mode: str, comments: bool) -> str:
    """Main text of a page by trafilatura, "" when it finds none. Imported on first use (0.5 s).

    mode: fast (no fallback extractors) | standard | precision | recall. No dates, no metadata, and none of its
    duplicate removal, whose cache would make a page's text depend on the pages before it. Its other caches hold
    results of pure functions.
    """
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it logs an error for each page without text
    text = trafilatura.extract(
        html,
        fast=mode == "fast",
        favor_precision=mode == "precision",
        favor_recall=mode == "recall",
        include_comments=comments,
        deduplicate=False,
        with_metadata=False,
    )
    return text or ""
