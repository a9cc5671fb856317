"""The content of an HTTP message: its body without transfer codings (RFC 9112, sections 6 and 7) and content codings
(RFC 9110, section 8.4).

Headers of archives often say more than is true: crawlers take a coding off and keep the field that names it, or lose
the field and keep the coding. So a coding comes off where the bytes have it; of text that has none, nothing does.
"""

import io
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import brotli
import zstandard

from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.http.chunks import dechunk, whole_chunks
from refinery.transforms.read.http.fields import coding_names
from refinery.transforms.read.http.media_sniffing import has_controls
from refinery.transforms.read.members import GZIP, ZSTD, Broken

MAX_LAYERS = 3  # compressions on top of each other
MAX_MEMBERS = 1_000  # of a body: servers send one; each costs as much as a thousand bytes, be it empty
ZSTD_WINDOW = 8 << 20  # RFC 9659: what an HTTP client must accept
BROTLI_PIECE = 1 << 12  # bytes fed at once to a body that is not brotli up to its last byte

FOREIGN_CODINGS = frozenset({"compress", "x-compress", "sdch", "dcb", "dcz", "exi", "aes128gcm", "pack200-gzip"})


@dataclass(frozen=True, slots=True)
class NoPage:
    """Why a record holds no page that can be used: a reason to skip it, or an `error` if it is damaged."""

    reason: str = ""
    error: str = ""


def message_content(
    body: bytes, headers: Mapping[str, str], limit: int, layer_limit: int, is_plain: bool = False
) -> bytes | NoPage:
    """`body` without the codings that `headers` name (joined ones), and without chunks that they do not name.

    limit, layer_limit: as of `decode`. is_plain: whether the content may begin with any word, as HTML does not.
    "BadChunk" where the size of a chunk is damaged.
    """
    transfer = coding_names(headers.get("transfer-encoding", ""))
    names = [*coding_names(headers.get("content-encoding", "")), *transfer]
    if "chunked" not in names:
        body = whole_chunks(body)
    while "chunked" in names:
        at = len(names) - 1 - names[::-1].index("chunked")
        outer, names = names[at + 1 :], names[:at]
        while names[-1:] == ["chunked"]:  # it may be named once (RFC 9112, section 7.1)
            names.pop()
        opened = decode(body, outer, layer_limit, layer_limit)
        if isinstance(opened, NoPage):
            return opened
        content = dechunk(opened, is_plain)
        if content is None:
            return NoPage(error="BadChunk")
        body = whole_chunks(content)
    return decode(body, names, limit, layer_limit)


def decode_content(body: bytes, encodings: str, limit: int, layer_limit: int) -> bytes | NoPage:
    """`body` without the codings in a value of Content-Encoding. Limits and answers as of `decode`."""
    return decode(body, coding_names(encodings), limit, layer_limit)


def decode(body: bytes, codings: Sequence[str], limit: int, layer_limit: int) -> bytes | NoPage:
    """`body` without its codings, the last one named being the outermost; names of no coding are passed over.

    What is cut off is decoded as far as it goes. A body that is not encoded as declared, but is text or compressed
    otherwise, is returned as it is. limit: most bytes of the result; layer_limit: of a layer below it. "too-large" if a
    layer passes its limit, "content-encoding" if there is no decoder.
    """
    names = [name for name in codings if name in DECODERS or name in FOREIGN_CODINGS]
    if len(names) > MAX_LAYERS or not FOREIGN_CODINGS.isdisjoint(names):
        return NoPage("content-encoding")
    for depth in range(len(names) - 1, -1, -1):
        bound = layer_limit if depth else limit
        if not body:
            return body
        try:
            decoded = DECODERS[names[depth]](body, bound + 1)
        except DECODE_ERRORS:
            other = DECODERS.get(_compression(body), DECODERS[names[depth]])
            if has_controls(body) and other is DECODERS[names[depth]]:
                return NoPage(error="BadEncoding")
            continue
        if len(decoded) > bound:
            return NoPage("too-large")
        body = decoded
    return body


def decompress(body: bytes, limit: int) -> bytes | NoPage:
    """`body` without compressions that its first bytes show, whatever was declared: gzip and Zstandard.

    "too-large" if one passes the limit, "content-encoding" where one cannot be undone.
    """
    for _ in range(MAX_LAYERS):
        name = _compression(body)
        if not name:
            return body
        try:
            body = DECODERS[name](body, limit + 1)
        except DECODE_ERRORS:
            return NoPage("content-encoding")
        if len(body) > limit:
            return NoPage("too-large")
    return NoPage("content-encoding") if _compression(body) else body


def _compression(body: bytes) -> str:
    return "gzip" if body.startswith(GZIP) else "zstd" if body.startswith(ZSTD) else ""


def decode_gzip(body: bytes, size: int) -> bytes:
    """At most about `size` bytes of a gzip body, all members; what follows a complete member may be garbage. Raises
    Broken for what is none, and for one of more than MAX_MEMBERS members."""
    return _members(body, size, GZIP)


def decode_zstd(body: bytes, size: int) -> bytes:
    """At most about `size` bytes of a Zstandard body, all frames; the rest as of `decode_gzip`."""
    return _members(body, size, ZSTD)


def _members(body: bytes, size: int, magic: bytes) -> bytes:
    stream = MemberStream(ByteSource(io.BytesIO(body), "", ZSTD_WINDOW), MAX_MEMBERS)
    if stream.magic != magic:
        raise Broken("no such body")
    parts = []
    while stream.total < size and (data := stream.read()):
        parts.append(data)
    in_first = stream.members_left >= MAX_MEMBERS - 1 and (stream.member is not None or not parts)
    if stream.broken == "TooManyMembers" or (stream.broken not in ("", "Truncated") and in_first):
        raise Broken(stream.broken)
    return b"".join(parts)


def decode_deflate(body: bytes, size: int) -> bytes:
    """At most `size` bytes of a zlib or, as some servers send it, raw deflate body."""
    is_zlib = body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS).decompress(body, size)


def decode_brotli(body: bytes, size: int) -> bytes:
    """At most about `size` bytes of a brotli body; what follows its end may be garbage. Raises brotli.error."""
    data, failed = _brotli([body], size)
    if failed < 0:
        return data
    # The library says of bytes behind the end what it says of damage, and lets go of what it had decoded.
    pieces = [body[at : at + BROTLI_PIECE] for at in range(0, len(body), BROTLI_PIECE)]
    data, failed = _brotli(pieces, size)
    if failed >= 0:
        tail = pieces[failed]
        data, failed = _brotli([*pieces[:failed], *(tail[at : at + 1] for at in range(len(tail)))], size)
    if failed >= 0 or not data or not has_controls(body):  # "n" and some other letters are an empty stream
        raise brotli.error("no brotli")
    return data


def _brotli(pieces: Sequence[bytes], size: int) -> tuple[bytes, int]:
    """What pieces give up to the stream's end or about `size` bytes, and which of them is damaged (-1: none)."""
    decoder, total, parts = brotli.Decompressor(), 0, list[bytes]()
    for number, piece in enumerate(pieces):
        if total >= size or decoder.is_finished():
            break
        try:
            data = _drain(decoder, piece, size - total)
        except brotli.error:
            return b"".join(parts), number
        total += len(data)
        parts.append(data)
    return b"".join(parts), -1


def _drain(decoder: "brotli.Decompressor", piece: bytes, size: int) -> bytes:
    """What a piece gives, at most about `size` bytes. Raises brotli.error."""
    parts = [decoder.process(piece, output_buffer_limit=size)]
    total = len(parts[0])
    while total < size and not decoder.is_finished() and (data := decoder.process(b"", output_buffer_limit=size)):
        parts.append(data)
        total += len(data)
    return b"".join(parts)


DECODE_ERRORS = (Broken, zlib.error, brotli.error, zstandard.ZstdError)
DECODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "gzip": decode_gzip,
    "x-gzip": decode_gzip,
    "deflate": decode_deflate,
    "br": decode_brotli,
    "zstd": decode_zstd,
}
