"""The page inside a crawl record: HTTP headers, chunks, content encodings, and whether it is HTML or plain text.

Nothing here guesses from a library of file signatures: a declared type decides, and only a missing one is sniffed
(WHATWG MIME Sniffing, sections 7.1 and 7.2, reduced to the question "HTML, plain text, or neither").
"""

import io
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import brotli
import zstandard

from refinery.transforms.core.document import NO_META, Scalar
from refinery.transforms.page_rights.page_notes import header_notes
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.members import GZIP, Broken

MAX_HEADER = 1 << 16
MAX_LAYERS = 3  # content encodings on top of each other
MAX_MEMBERS = 1_000  # of a gzip body: servers send one; each costs as much as a thousand bytes, be it empty
ZSTD_WINDOW = 8 << 20  # RFC 9659: what an HTTP client must accept

TEXT = "text/plain"
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
XML_TYPES = frozenset({"text/xml", "application/xml"})
NO_TYPES = frozenset({"", "*/*", "unknown/unknown", "application/unknown", "no-type", "unk"})
PAGE_TYPES = HTML_TYPES | XML_TYPES | NO_TYPES | {TEXT, "application/octet-stream"}  # what can turn out to be a page
FOREIGN_ENCODINGS = frozenset({"compress", "x-compress", "sdch", "dcb", "dcz", "exi", "aes128gcm", "pack200-gzip"})

_BLANK_LINE = re.compile(rb"\n\r?\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\n]{0,1024})?\r?\n")
_HALF_CHUNK_SIZE = re.compile(rb"[ \t]*[0-9a-fA-F]{0,8}[ \t]*(?:;[^\n]{0,1024})?\r?")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([a-z0-9._:+-]{1,40})")
_HTML_START = re.compile(
    rb"<(?:!doctype html|!--|(?:html|head|body|title|script|style|iframe|table|font|meta|link|div|h1|br|a|b|p)[\s>/])"
)
_XML_HTML = re.compile(rb"<(?:!doctype\s+html|html[\s>])")
_FOREIGN_START = (b"%pdf-", b"%!ps", b"{\\rtf", b"gif8", b"pk\3\4", b"rar ")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_DECLARATION = re.compile(rb"\s*<\?xml[^>]{0,1000}>")


@dataclass(frozen=True, slots=True)
class Payload:
    """A page's bytes, decoded but for its charset. `charset` is the declared one, lower case, or "". notes: what the
    HTTP header says of the page's use."""

    body: bytes
    is_html: bool
    charset: str
    notes: Mapping[str, Scalar] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class NoPage:
    """Why a record holds no page that can be used: a reason to skip it, or an `error` if it is damaged."""

    reason: str = ""
    error: str = ""


def http_page(block: bytes, identified: str, limit: int, layer_limit: int) -> Payload | NoPage:
    """The page in an HTTP response.

    block: status line, headers, body. identified: media type that the crawler found ("": none). limit: most bytes of a
    page; layer_limit: most bytes of an encoding's layer below it. No more than the limits is ever inflated.
    """
    status = _STATUS.match(block)
    if not status:
        return NoPage(error="BadHttp")
    if status[1] != b"200":
        return NoPage("http-status")
    end = _BLANK_LINE.search(block, 0, MAX_HEADER)
    if not end and len(block) >= MAX_HEADER:
        return NoPage(error="BadHttp")
    headers = parse_headers(block[: end.start()] if end else block)
    body = block[end.end() :] if end else b""
    declared = headers.get("content-type", "")
    kind = identified.strip() or declared
    if media_type(kind) not in PAGE_TYPES:  # before it is decoded for nothing
        return NoPage("content-type")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        dechunked = dechunk(body)
        if dechunked is None:
            return NoPage(error="BadChunk")
        body = dechunked
    decoded = decode_content(body, headers.get("content-encoding", ""), limit, layer_limit)
    page = decoded if isinstance(decoded, NoPage) else typed_page(decoded, kind, charset_of(declared), limit)
    return replace(page, notes=header_notes(headers)) if isinstance(page, Payload) else page


def typed_page(body: bytes, kind: str, charset: str, limit: int) -> Payload | NoPage:
    """`body` as a page, if its media type `kind` or, without one, its first bytes say that it is HTML or plain text."""
    if len(body) > limit:
        return NoPage("too-large")
    if not body or body.isspace():
        return NoPage("empty")
    kind = media_type(kind)
    if kind not in PAGE_TYPES:
        return NoPage("content-type")
    if kind in HTML_TYPES:
        return Payload(body, True, charset)
    if kind == TEXT:
        return Payload(body, False, charset)
    sniffed = sniff(body)
    if sniffed == "html" or (sniffed == "text" and kind in NO_TYPES):
        return Payload(body, sniffed == "html", charset)
    return NoPage("content-type")


def media_type(value: str) -> str:
    """Type and subtype of a Content-Type value: 'Text/HTML; charset=x' -> 'text/html'."""
    return re.split(r"[;,\s]", value.strip(), maxsplit=1)[0].lower()


def charset_of(value: str) -> str:
    """The charset of a Content-Type value, lower case, "" if there is none."""
    found = _CHARSET.search(value[:1024].lower())
    return found[1] if found else ""


def parse_headers(block: bytes) -> Mapping[str, str]:
    """Fields of a header block behind its first line: lower-case name -> value; of a repeated field the first one.

    Folded lines are joined; lines without a colon are passed over. Bytes that are not UTF-8 become U+FFFD.
    """
    headers: dict[str, str] = {}
    name, folded = "", False
    for line in block.decode("utf-8", "replace").split("\n")[1:]:
        if line[:1] in (" ", "\t") and name:
            if folded:
                headers[name] = f"{headers[name]} {line.strip()}".strip()
            continue
        name, colon, value = line.partition(":")
        name = name.strip().lower() if colon else ""
        folded = bool(name) and name not in headers
        if folded:
            headers[name] = value.strip()
    return headers


def dechunk(body: bytes) -> bytes | None:
    """The content of a chunked body; as far as it goes if cut off, None if a chunk's size is damaged.

    A body that does not start with a chunk size is returned as it is: crawlers store it decoded but keep the header.
    """
    content = bytearray()  # chunks may be of a byte each, and objects of their own would take forty times as much
    at = 0
    while size := _CHUNK_SIZE.match(body, at):
        length = int(size[1], 16)
        if not length:
            return bytes(content)
        at = size.end() + length
        content += memoryview(body)[size.end() : at]
        if body.startswith(b"\r\n", at):
            at += 2
        elif body.startswith(b"\n", at):
            at += 1
    if not at:
        return body
    return bytes(content) if _HALF_CHUNK_SIZE.fullmatch(body, min(at, len(body))) else None


def decode_content(body: bytes, encodings: str, limit: int, layer_limit: int) -> bytes | NoPage:
    """`body` without its content encodings (the last one named is the outermost).

    What is cut off is decoded as far as it goes. A body that is not encoded as declared, but is text, is returned as it
    is. "too-large" if a layer passes its limit, "content-encoding" if there is no decoder.
    """
    names = [name.strip().lower() for name in encodings.split(",")]
    names = [name for name in names if name in DECODERS or name in FOREIGN_ENCODINGS]
    if len(names) > MAX_LAYERS or not FOREIGN_ENCODINGS.isdisjoint(names):
        return NoPage("content-encoding")
    for depth in range(len(names) - 1, -1, -1):
        bound = layer_limit if depth else limit
        if not body:
            return body
        try:
            decoded = DECODERS[names[depth]](body, bound + 1)
        except DECODE_ERRORS:
            if _BINARY.search(body, 0, 1024):
                return NoPage(error="BadEncoding")
            continue
        if len(decoded) > bound:
            return NoPage("too-large")
        body = decoded
    return body


def decode_gzip(body: bytes, size: int) -> bytes:
    """At most about `size` bytes of a gzip body, all members; what follows a complete member may be garbage. Raises
    Broken for what is none, and for one of more than MAX_MEMBERS members."""
    stream = MemberStream(ByteSource(io.BytesIO(body), ""), MAX_MEMBERS)
    if stream.magic != GZIP:
        raise Broken("BadGzip")
    parts = []
    while stream.total < size and (data := stream.read()):
        parts.append(data)
    if stream.broken == "TooManyMembers" or (stream.broken not in ("", "Truncated") and stream.marks[-1][1] == 0):
        raise Broken(stream.broken)
    return b"".join(parts)


def decode_deflate(body: bytes, size: int) -> bytes:
    """At most `size` bytes of a zlib or, as some servers send it, raw deflate body."""
    is_zlib = body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS).decompress(body, size)


def decode_brotli(body: bytes, size: int) -> bytes:
    """At most about `size` bytes of a brotli body."""
    decoder = brotli.Decompressor()
    parts = [decoder.process(body, output_buffer_limit=size)]
    total = len(parts[0])
    while total < size and not decoder.is_finished() and (data := decoder.process(b"", output_buffer_limit=size)):
        parts.append(data)
        total += len(data)
    return b"".join(parts)


def decode_zstd(body: bytes, size: int) -> bytes:
    """At most `size` bytes of a Zstandard body."""
    inflater = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    with inflater.stream_reader(body, read_across_frames=True) as reader:
        return reader.read(size)


DECODE_ERRORS = (Broken, zlib.error, brotli.error, zstandard.ZstdError)
DECODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": decode_gzip,
    "x-gzip": decode_gzip,
    "deflate": decode_deflate,
    "br": decode_brotli,
    "zstd": decode_zstd,
}


def sniff(body: bytes) -> str:
    """ "html", "text" or "" by the first 1,024 bytes; UTF-16 is seen through."""
    head = body[:1024]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0<\0" in head[:8] or b"<\0" in head[:4]:
        head = head.lstrip(b"\xff\xfe").replace(b"\0", b"")
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if declaration := _DECLARATION.match(head):
        return "html" if _XML_HTML.search(head, declaration.end()) else ""
    if _HTML_START.match(head) or (head[:1] == b"<" and _XML_HTML.search(head[:512])):
        return "html"
    return "" if _BINARY.search(head) or head.startswith(_FOREIGN_START) else "text"
