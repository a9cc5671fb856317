"""Chunked bodies (RFC 9112, section 7.1), also cut off, damaged, or decoded by a crawler that kept the header."""

import re

from refinery.transforms.read.http.media_sniffing import sniff

# A size has as many digits as its server likes (1*HEXDIG). The bound is for texts: a line of 4,096 digits is not a
# size.
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,4096})[ \t]*(?:;[^\n]{0,1024}?)?(\r?\n)")
_HALF_CHUNK_SIZE = re.compile(rb"[ \t]*[0-9a-fA-F]{0,4096}[ \t]*(?:;[^\n]{0,1024})?\r?")
_TRAILERS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\n]*\n)*(?:\r?\n)*")
_ENDS_CHUNKED = re.compile(rb"\n0+[ \t]*\r?\n\r?\n\Z")
_SIZE_LINE = re.compile(rb"\r\n[0-9a-fA-F]{1,16}\r\n")
_NEWLINE = re.compile(rb"\r?\n")

MAX_TRAILERS = 1 << 16  # bytes


def dechunk(body: bytes, is_plain: bool = False) -> bytes | None:
    """The content of a chunked body; as far as it goes if cut off, None if a chunk's size is damaged.

    A body that does not start with a chunk that ends where its size says is returned as it is: crawlers store bodies
    decoded but keep the header, and some texts begin with "2024" or "FACE". is_plain: whether it may be such a text; of
    HTML, what is longer than the body is a chunk that was cut off.
    """
    content = bytearray()  # chunks may be of a byte each, and objects of their own would take forty times as much
    at = count = 0
    while size := _CHUNK_SIZE.match(body, at):
        length, start = int(size[1], 16), size.end()
        if not length:
            return bytes(content) if count or _is_end(body, start) else body
        if not count and start + length > len(body) and not _is_cut(body[start : start + 1024], size[2], is_plain):
            return body
        content += memoryview(body)[start : start + length]
        at, count = min(start + length, len(body)), count + 1
        newline = _NEWLINE.match(body, at)
        if newline:
            at = newline.end()
        elif count == 1:
            break  # it ends with the body, or not where it says
    if not count:
        bare = body.lstrip(b"\r\n")
        found = whole_chunks(bare)
        return body if found is bare else found
    if at == len(body) or ((newline or count > 1) and _HALF_CHUNK_SIZE.fullmatch(body, at)):
        return bytes(content)
    ends_well = newline is not None and (newline[0] == b"\r\n" or not is_plain)
    is_damaged = count > 1 or ends_well or _ENDS_CHUNKED.search(body, max(0, len(body) - 64))
    return None if is_damaged or (not is_plain and _SIZE_LINE.search(body, at)) else body


def _is_cut(rest: bytes, newline: bytes, is_plain: bool) -> bool:
    """Whether a first line that is longer than the body is a chunk's size, and not a text's first word."""
    return not rest or sniff(rest) != "text" or (newline == b"\r\n" and not is_plain)


def whole_chunks(body: bytes) -> bytes:
    """The content of a body that is chunked from its first byte to its last, without any fault; any other as it is."""
    content = bytearray()
    at = 0
    while size := _CHUNK_SIZE.match(body, at):
        length, at = int(size[1], 16), size.end()
        if not length:
            return bytes(content) if content and _is_end(body, at) else body
        content += memoryview(body)[at : at + length]
        at += length
        if size[2] != b"\r\n" or not body.startswith(b"\r\n", at):
            return body
        at += 2
    return body


def _is_end(body: bytes, at: int) -> bool:
    """Whether nothing but trailers follows the last chunk's size (RFC 9112, section 7.1.2)."""
    return len(body) - at <= MAX_TRAILERS and _TRAILERS.fullmatch(body, at) is not None
