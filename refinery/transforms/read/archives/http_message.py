"""The page inside a crawl record: an HTTP response, or a body and its media type, as HTML or plain text.

A declared type decides, unless the bytes are plainly something else; a missing one is sniffed (http/media_sniffing.py).
How fields are read: http/fields.py; how codings come off: http_body.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from refinery.transforms.core.document import NO_META, Scalar
from refinery.transforms.extract.page_rights.page_notes import header_notes
from refinery.transforms.read.archives.http_body import NoPage, decompress, message_content
from refinery.transforms.read.http.fields import MAX_HEADER, content_type, media_type, parse_headers
from refinery.transforms.read.http.media_sniffing import is_foreign, sniff

MAX_INTERIM = 8  # responses before the final one

TEXT = "text/plain"
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
XML_TYPES = frozenset({"text/xml", "application/xml"})
NO_TYPES = frozenset({"", "*/*", "unknown/unknown", "application/unknown"})
BYTES = "application/octet-stream"
PAGE_TYPES = HTML_TYPES | XML_TYPES | NO_TYPES | {TEXT, BYTES}  # what can turn out to be a page

_BLANK_LINE = re.compile(rb"\n\r?\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")


@dataclass(frozen=True, slots=True)
class Payload:
    """A page's bytes, decoded except for its charset. `charset` is the declared one, lower case, or "". notes: what the
    HTTP header says of the page's use."""

    body: bytes
    is_html: bool
    charset: str
    notes: Mapping[str, Scalar] = field(default_factory=lambda: NO_META)


def http_page(block: bytes, identified: str, limit: int, layer_limit: int) -> Payload | NoPage:
    """The page in an HTTP response.

    block: status line, headers, body. identified: media type that the crawler found ("": none). limit: most bytes of a
    page; layer_limit: most bytes of an encoding's layer below it. No more than the limits is ever inflated.
    """
    status = _STATUS.match(block)
    for _ in range(MAX_INTERIM):  # RFC 9110, section 15.2: any number of them may come before the response
        end = _BLANK_LINE.search(block, 0, MAX_HEADER)
        following = _STATUS.match(block, end.end()) if end and status and status[1][:1] == b"1" else None
        if not end or not following:
            break
        block, status = block[end.end() :], following
    if not status:
        return NoPage(error="BadHttp")
    if status[1] != b"200":
        return NoPage("http-status")
    if not end and len(block) >= MAX_HEADER:
        return NoPage(error="BadHttp")
    headers = parse_headers(block[: end.start()] if end else block, joined=True)
    body = block[end.end() :] if end else b""
    declared, charset = content_type(headers.get("content-type", ""))
    kind = media_type(identified) if identified.strip() else declared
    if kind not in PAGE_TYPES:  # before it is decoded for nothing
        return NoPage("content-type")
    is_plain = kind not in HTML_TYPES and kind not in XML_TYPES
    decoded = message_content(body, headers, limit, layer_limit, is_plain)
    page = decoded if isinstance(decoded, NoPage) else typed_page(decoded, kind, charset, limit)
    return replace(page, notes=header_notes(headers)) if isinstance(page, Payload) else page


def typed_page(body: bytes, kind: str, charset: str, limit: int) -> Payload | NoPage:
    """`body` as a page, if its media type `kind` or, without one, its first bytes say that it is HTML or plain text.

    A body that is compressed without a word about it is decompressed, since the type is that of the content. One that
    is another format is none of either, whatever the type says.
    """
    if len(body) > limit:
        return NoPage("too-large")
    if not body or body.isspace():
        return NoPage("empty")
    kind = media_type(kind)
    if kind not in PAGE_TYPES:
        return NoPage("content-type")
    if kind != BYTES:
        content = decompress(body, limit)
        if isinstance(content, NoPage):
            return content
        body = content
    if kind in HTML_TYPES or kind == TEXT:
        if is_foreign(body):
            return NoPage("content-type")
        return Payload(body, kind != TEXT, charset) if body and not body.isspace() else NoPage("empty")
    sniffed = sniff(body)
    if sniffed == "html" or (sniffed == "text" and kind in NO_TYPES):
        return Payload(body, sniffed == "html", charset)
    return NoPage("content-type")
