"""Tags of a page that hold certain words, and the elements around them, without a tree of the page.

Comments, scripts and styles are left out. It is for a few tags of few pages, linear in the page whatever its bytes:
nothing is looked for twice, tags are looked at up to MAX_TAG, nesting up to MAX_DEPTH.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_DEPTH = 500
MAX_TAG = 4096  # bytes
MAX_PLACES = 10_000  # of words that are looked for

_HIDING = re.compile(rb"<!--|<(script|style|template|noscript)[\s>/]", re.IGNORECASE)
_ENDS = {
    name: re.compile(b"</" + name + rb"[\s>/]", re.IGNORECASE)
    for name in (b"script", b"style", b"template", b"noscript")
}
_HOLDERS = re.compile(
    rb"<(/?)(head|body|header|footer|aside|figure|figcaption|article|section|main|nav|div|blockquote|li|span|p|small"
    rb"|td|table|ol|ul|address|cite|em)(?:[\s/][^<>]*)?>",
    re.IGNORECASE,
)
_NAMED = re.compile(rb"(?:class|id|itemtype|role)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"(?<![\w:.-])([a-zA-Z][\w:.-]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Element:
    """tag: in small letters. names: its class, id, role and itemtype, in small letters."""

    tag: bytes
    names: bytes


def places_of(small: bytes, words: Iterable[bytes]) -> list[int]:
    """Where the words are in a page in small letters, ascending."""
    found: list[int] = []
    for word in words:
        at = small.find(word)
        while at >= 0 and len(found) < MAX_PLACES:
            found.append(at)
            at = small.find(word, at + len(word))
    return sorted(found)


def hidden_spans(page: bytes, until: int) -> list[Span]:
    """(start, end) of comments, scripts, styles and templates that begin before `until`, in order."""
    spans: list[Span] = []
    at = 0
    while begin := _HIDING.search(page, at, until):
        if begin[1] is None:
            end = page.find(b"-->", begin.end())
            at = end + 3 if end >= 0 else len(page)
        else:
            close = _ENDS[begin[1].lower()].search(page, begin.end())
            at = close.start() if close else len(page)
        spans.append((begin.start(), at))
    return spans


def tags_at(page: bytes, spans: Sequence[Span], places: Iterable[int]) -> list[tuple[int, bytes]]:
    """(place, tag) of the tags that ascending places are in, each once, but for those in a span."""
    found: list[tuple[int, bytes]] = []
    i = 0
    for place in places:
        while i < len(spans) and spans[i][1] <= place:
            i += 1
        if i < len(spans) and spans[i][0] <= place:
            continue
        begin = page.rfind(b"<", max(place - MAX_TAG, 0), place)
        if begin < 0 or (found and found[-1][0] == begin) or page.find(b">", begin, place) >= 0:
            continue
        end = page.find(b">", place, begin + MAX_TAG)
        if end >= 0:
            found.append((begin, page[begin : end + 1]))
    return found


def around(page: bytes, spans: Sequence[Span], places: Iterable[int]) -> Iterator[list[Element]]:
    """For each of ascending places the elements that are open there, outermost first."""
    stack: list[Element] = []
    tags = _shown(_HOLDERS.finditer(page), spans)
    tag = next(tags, None)
    for place in places:
        while tag is not None and tag.start() < place:
            name = tag[2].lower()
            if tag[1]:
                _close(stack, name)
            elif len(stack) < MAX_DEPTH and not tag[0].endswith(b"/>"):
                if name == b"p":
                    _close(stack, b"p", 1)
                names = b" ".join(b"".join(part) for part in _NAMED.findall(tag[0][:MAX_TAG])).lower()
                stack.append(Element(name, names))
            tag = next(tags, None)
        yield list(stack)


def _shown(tags: Iterable[re.Match[bytes]], spans: Sequence[Span]) -> Iterator[re.Match[bytes]]:
    i = 0
    for tag in tags:
        while i < len(spans) and spans[i][1] <= tag.start():
            i += 1
        if i == len(spans) or tag.start() < spans[i][0]:
            yield tag


def _close(stack: list[Element], name: bytes, most: int = 8) -> None:
    """Close the innermost element of that name, and those inside it: no more than a few, which somebody forgot."""
    for back in range(1, min(most, len(stack)) + 1):
        if stack[-back].tag == name:
            del stack[-back:]
            return


def attributes(tag: bytes) -> dict[str, str]:
    """Attributes of a tag by name in small letters, of a repeated one the first; entities of addresses as they are."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(tag):
        value = b"".join(values).decode("utf-8", "replace").replace("&amp;", "&").strip()
        found.setdefault(name.decode().lower(), value)
    return found
