"""What a page says of its own use: its licence, reservations of text and data mining, and "noai".

A licence counts only where it is about the page as a whole: in the head (`<link rel=license>`, `<meta name=dc.rights>`,
`dcterms.license`, JSON-LD of the page), as `rel=license` in the body (microformats: "the licence of the current page";
ccREL), or as a plain link to Creative Commons in a footer or sidebar. Not where what is around it is a figure,
a caption, a comment or another work's notice: pages quote the licences of their images.

A search for one word in the page, and for a few in its head, comes first: most pages cost that alone, 0.1 ms a MB.
"""

import html
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from refinery.transforms.core.document import Scalar
from refinery.transforms.extract.page_rights.license_ids import OTHER, license_of_address, license_of_text
from refinery.transforms.extract.page_rights.open_elements import Element, Span, around, attributes, tags_at
from refinery.transforms.extract.page_rights.page_notes import (
    LICENSE,
    LICENSE_FROM,
    NO_AI,
    TDM_RESERVATION,
    reservation_of,
    says_no_ai,
)
from refinery.transforms.native import markup

MAX_TAGS = 200  # that are looked at
MAX_JSON = 1 << 20  # bytes of a JSON-LD script
MAX_PARTS = 3  # licences of one page, which hold together; more of them are a list of other works
MAX_FIELD = 2000  # characters of a record's licence
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,39}")
MAX_LINKS = 2  # plain ones to a page's licence: a button and words beside it
NEAR = 5  # elements around a link whose names say what it is about

_ANYWHERE = (b"reativecommons",)
_BODY = (b"<body",)
_HEAD_WORDS = (b"licen", b"tdm-reservation", b"noai", b"rights")
MAX_HEAD = 1 << 18  # bytes of a head without an end
MAX_PLACES = 10_000  # of words that are looked for
_PAGE_TAGS = (b"a", b"link", b"meta", b"span", b"p", b"div", b"small")
_TAG_NAME = re.compile(rb"<([a-z]+)[\s/]", re.IGNORECASE)
_JSON_LD = re.compile(rb"<script\b[^<>]*\bapplication/ld\+json[^<>]*>", re.IGNORECASE)

Tag = tuple[int, bytes, dict[str, str]]  # place, name, attributes

# fmt: off
_META_LICENSE = frozenset((
    "dc.rights", "dc.rights.license", "dc.rights.uri", "dc.license", "dcterms.rights", "dcterms.license",
    "dcterms.rights.uri", "dc:rights", "dcterms:license", "dcterms:rights", "dct:license", "cc:license", "rights",
    "license", "licence", "copyright", "article:license", "og:license", "citation_license", "eprints.rights",
))
# fmt: on
_META_ADDRESSES = _META_LICENSE - {"copyright", "rights"}  # these are mostly prose about who holds the rights
_REL = frozenset(("license", "licence", "cc:license", "dct:license", "dcterms:license", "schema:license"))
_ABOUT_OTHERS = re.compile(
    rb"caption|figure|figcaption|image|photo|picture|bild|foto|thumb|gallery|galerie|slide|media|video|audio|player|embed"
    rb"|credit|attachment|lightbox|imageobject|videoobject|audioobject|map|leaflet|related|teaser"
)
_COMMENTS = re.compile(rb"\bcomment(?:s|-?list|-?body|-?content)?\b|\bkommentare?\b")
_FOOTERS = re.compile(
    rb"foot(?!note|ball|age|er-?image)|colophon|copyright|licen[sc]e|lizenz|imprint|impressum|legal|contentinfo"
    rb"|site-?info|sidebar|textwidget"
)
# fmt: off
_TYPES_OF_OTHERS = frozenset((
    "imageobject", "videoobject", "audioobject", "mediaobject", "photograph", "product", "softwareapplication",
    "softwaresourcecode", "mobileapplication", "webapplication", "videogame", "musicrecording", "podcastepisode",
    "dataset", "datacatalog", "imagegallery", "3dmodel", "map", "clip",
))
# fmt: on


def page_declarations(given: str | bytes) -> dict[str, Scalar]:
    """Notes of page_notes.py for a page: a str without lone surrogates, or UTF-8 or what is near it. Linear; never
    raises for any bytes."""
    head = markup.places(given, _HEAD_WORDS, _end_of_head(given), True, MAX_PLACES)
    ordered = sorted({*head, *markup.places(given, _ANYWHERE, sys.maxsize, False, MAX_PLACES)})
    if not ordered:
        return {}
    page = given if isinstance(given, bytes) else given.encode()
    named = any(_named(tag) for _, tag in tags_at(page, (), ordered))
    if not named and not markup.places(page, (b"ld+json",), sys.maxsize, False, 1):
        return {}
    spans = markup.hidden(page, ordered[-1])
    found = [(place, name, tag) for place, tag in tags_at(page, spans, ordered) if (name := _named(tag))]
    tags = [(place, name, attributes(tag)) for place, name, tag in found[:MAX_TAGS]]
    notes: dict[str, Scalar] = {}
    for _, name_of, values in tags:
        if name_of == b"meta":
            _meta_notes(values, notes)
    license_, where = _license(page, spans, tags)
    return {LICENSE.name: license_, LICENSE_FROM.name: where, **notes} if license_ else notes


def _end_of_head(given: str | bytes) -> int:
    """Where the body begins, at most MAX_HEAD. Scripts and comments of a head may hold a `<body`, too."""
    bodies = markup.places(given, _BODY, MAX_HEAD, True, MAX_PLACES)
    for until in dict.fromkeys((*bodies[:1], *bodies[-1:])):  # in nearly all pages the first is it
        spans = [(0, 0), *markup.hidden(given, until)]
        for body in bodies[: bisect_right(bodies, until)]:
            if body >= spans[bisect_left(spans, (body, 0)) - 1][1]:
                return body
    return MAX_HEAD


def license_of_field(given: str) -> dict[str, Scalar]:
    """Notes for what a record names as its licence: an address, a name of Creative Commons, an identifier, or words."""
    given = given.strip()[:MAX_FIELD]
    if not given:
        return {LICENSE.name: ""}
    license_ = license_of_address(given) or license_of_text(given) or (given if _IDENTIFIER.fullmatch(given) else OTHER)
    return {LICENSE.name: license_, LICENSE_FROM.name: "field"}


def _named(tag: bytes) -> bytes:
    """The name of a tag that can declare something, b"" of others."""
    name = _TAG_NAME.match(tag)
    return name[1].lower() if name and name[1].lower() in _PAGE_TAGS else b""


def _meta_notes(values: Mapping[str, str], notes: dict[str, Scalar]) -> None:
    name, content = values.get("name", "").lower(), values.get("content", "").lower()
    if name == "tdm-reservation" and (reserved := reservation_of(content)) is not None:
        notes.setdefault(TDM_RESERVATION.name, reserved)
    elif name == "robots" and says_no_ai(content):
        notes[NO_AI.name] = "noai"


def _license(page: bytes, spans: list[Span], tags: list[Tag]) -> tuple[str, str]:
    """(expression, where it was found), ("", "") for none."""
    head = [
        (license_, "meta" if tag == b"meta" else "link")
        for _, tag, values in tags
        if tag in (b"meta", b"link")
        for license_ in _in_head(tag, values)
    ]
    head += [(license_, "json-ld") for license_ in _in_json_ld(page, spans)]
    if known := _together(head):
        return known
    links = [
        (place, license_, by_rel)
        for place, tag, values in tags
        if tag not in (b"meta", b"link")
        for license_, by_rel in _of_link(values)
    ]
    body: list[tuple[str, str]] = []
    for (_, license_, by_rel), elements in zip(links, around(page, [place for place, *_ in links]), strict=True):
        if found := _in_body(license_, by_rel, elements):
            body.append(found)
    declared = [found for found in body if found[1] != "link"]
    if len({license_ for license_, _ in declared if license_ != OTHER}) > 1:
        declared = [found for found in declared if found[1] == "footer"] or declared
    linked = [(license_, "footer") for license_, where in body if where == "link"]
    if len({license_ for license_, _ in linked}) > 1 or len(linked) > MAX_LINKS:  # they are about several works
        linked = []
    return _together(declared) or _together(linked) or next(iter([*head, *declared]), ("", ""))


def _together(found: list[tuple[str, str]]) -> tuple[str, str] | None:
    """Known licences as one expression, with where the first was found; None for none, or too many for one page."""
    known = dict.fromkeys(license_ for license_, _ in found if license_ != OTHER)
    if not known or len(known) > MAX_PARTS:
        return None
    return " AND ".join(sorted(known)), next(where for license_, where in found if license_ in known)


def _in_head(tag: bytes, values: Mapping[str, str]) -> Iterator[str]:
    if tag == b"link":
        named = set(values.get("rel", "").lower().split()) | set(values.get("itemprop", "").lower().split())
        if named & _REL and values.get("href"):
            yield license_of_address(values["href"]) or OTHER
        elif "copyright" in named and (license_ := license_of_address(values.get("href", ""))):
            yield license_
        return
    name = (values.get("name") or values.get("property") or values.get("itemprop") or "").lower()
    content = html.unescape(values.get("content", ""))
    if name in _META_LICENSE and content and (license_ := license_of_address(content) or license_of_text(content)):
        yield license_
    elif name in _META_ADDRESSES and name.endswith(("license", "licence", ".uri")) and "://" in content:
        yield OTHER


def _of_link(values: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """The licence that a tag of the body is a link to, and whether it says that it is the page's; none of most tags."""
    if "about" in values:
        return
    rel = set(values.get("rel", "").lower().split())
    named = rel | set(values.get("property", "").lower().split()) | set(values.get("itemprop", "").lower().split())
    address = values.get("href") or values.get("resource") or values.get("content") or ""
    if named & _REL and address:
        yield license_of_address(address) or OTHER, True
    elif license_ := license_of_address(values.get("href", "")):
        yield license_, False


def _in_body(license_: str, by_rel: bool, elements: list[Element]) -> tuple[str, str] | None:
    """A linked licence, if it is the page's, and how the page says so: "footer", "rel", or by a plain "link"."""
    if any(map(_is_quoted, elements)) or any(_ABOUT_OTHERS.search(near.names) for near in elements[-NEAR:]):
        return None
    in_footer = any(map(_is_footer, elements))
    if by_rel:
        return license_, "footer" if in_footer else "rel"
    return (license_, "link") if in_footer else None


def _is_quoted(element: Element) -> bool:
    if element.tag == b"body":
        return False
    return (
        element.tag in (b"figure", b"figcaption", b"cite", b"blockquote") or _COMMENTS.search(element.names) is not None
    )


def _is_footer(element: Element) -> bool:
    if element.tag == b"body":
        return False
    return element.tag in (b"footer", b"aside") or _FOOTERS.search(element.names) is not None


def _in_json_ld(page: bytes, spans: list[Span]) -> Iterator[str]:
    """Licences of the nodes that JSON-LD scripts are about, but for images and other works."""
    begins = [begin for begin, _ in spans]
    places = markup.places(page, (b"application/ld+json",), sys.maxsize, True, sys.maxsize)
    for number in sorted({bisect_right(begins, place) - 1 for place in places} - {-1}):
        begin, end = spans[number]
        head = _JSON_LD.match(page, begin)
        data = page[head.end() : end].strip() if head else b""
        told = len(data) <= MAX_JSON and markup.places(data, (b"licen",), MAX_JSON, True, 1)
        value = _parsed(data) if told else None
        nodes: list[dict[str, Any]] = [node for node in _listed(value) if isinstance(node, dict)]
        nodes += [inner for node in nodes for inner in _listed(node.get("@graph")) if isinstance(inner, dict)]
        for node in nodes:
            types = {str(kind).lower().rpartition("/")[2] for kind in _listed(node.get("@type"))}
            if not types & _TYPES_OF_OTHERS:
                for given in _listed(node.get("license")):
                    yield from _json_license(given)


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _json_license(given: Any) -> Iterator[str]:
    if isinstance(given, dict):
        given = given.get("@id") or given.get("url") or given.get("name")
    if isinstance(given, str) and given.strip():
        yield license_of_address(given) or license_of_text(given) or OTHER
