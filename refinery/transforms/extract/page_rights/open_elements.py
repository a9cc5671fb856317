"""Tags of a page that hold certain words, and the elements around them, without a tree of the page.

Comments, scripts and styles are left out. The kernel `markup` reads the page, here is what it found; linear in the page
whatever its bytes: nothing is looked for twice, tags up to MAX_TAG, nesting up to a bound of the kernel.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from refinery.transforms.native import markup

MAX_TAG = 4096  # bytes

_NAME = re.compile(rb"<([a-zA-Z]+)")
_NAMED = re.compile(rb"(?:class|id|itemtype|role)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"(?<![\w:.-])([a-zA-Z][\w:.-]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Element:
    """tag: in small letters. names: its class, id, role and itemtype, in small letters."""

    tag: bytes
    names: bytes


def tags_at(page: bytes, spans: Sequence[Span], places: Iterable[int]) -> list[tuple[int, bytes]]:
    """(place, tag) of the tags that ascending places are in, each once, except those in a span."""
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


def around(page: bytes, places: Sequence[int]) -> Iterator[list[Element]]:
    """For each of ascending places the elements that are open there, outermost first."""
    elements: dict[int, Element] = {}
    for tags in markup.open_tags(page, np.array(places, np.int64)):
        for begin, end in tags:
            if begin not in elements:
                elements[begin] = _element(page[begin:end])
        yield [elements[begin] for begin, _ in tags]


def _element(tag: bytes) -> Element:
    name = _NAME.match(tag)
    names = b" ".join(b"".join(part) for part in _NAMED.findall(tag[:MAX_TAG])).lower()
    return Element(name[1].lower() if name else b"", names)


def attributes(tag: bytes) -> dict[str, str]:
    """Attributes of a tag by name in small letters, of a repeated one the first; entities of addresses as they are."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(tag):
        value = b"".join(values).decode("utf-8", "replace").replace("&amp;", "&").strip()
        found.setdefault(name.decode().lower(), value)
    return found
