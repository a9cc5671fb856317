"""What the bytes of a body are, where its declared type is missing or plainly wrong.

A missing type is sniffed as WHATWG's MIME Sniffing defines it (sections 7.1 and 7.2), reduced to the question "HTML,
plain text, or neither". A declared text type is believed, but not of bytes that begin as another format does
(sections 6.1 to 6.4 and 7.1, and RTF, which has no section there) or that no text consists of.
"""

import re

_HTML_START = re.compile(
    rb"<(?:!doctype html|!--|(?:html|head|body|title|script|style|iframe|table|font|meta|link|div|h1|br|a|b|p)[\s>/])"
)
_XML_HTML = re.compile(rb"<(?:!doctype\s+html|html[\s>])")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_DECLARATION = re.compile(rb"\s*<\?xml[^>]{0,1000}>")

# How other formats begin. What letters alone can say is long enough to be no text's first word.
_FOREIGN = re.compile(
    rb"%PDF-\d|%!PS|%FDF-\d|\{\\rtf|!<arch>\n|AT&TFORM|BZh[1-9]1AY&SY|SQLite format 3\x00|"
    rb"GIF8[79]a(?:\Z|.{0,6}[\x00-\x08\x0e-\x1f\x80-\xff])|\x89PNG|\xff\xd8\xff|II\*\x00|MM\x00\*|8BPS\x00|"
    rb"BM.{4}\x00{4}|\x00\x00[\x01\x02]\x00|\x00{3}\x0cjP|R(?:IFF|F64).{4}(?:WEBP|WAVE|AVI )|FORM.{4}AIF|\x00{3}.ftyp|"
    rb"OggS\x00|fLaC\x00|ID3[\x02-\x04]\x00|MThd\x00|\x1aE\xdf\xa3|[FCZ]WS[\x01-\x32].{3}\x00|"
    rb"PK(?:\x03\x04|\x05\x06|\x07\x08)|Rar[ !]\x1a\x07|7z\xbc\xaf|\xfd7zXZ|\x1f[\x8b\x9d\xa0]|\x28\xb5\x2f\xfd|"
    rb"\x04\x22\x4d\x18|MSCF\x00|.{257}ustar|\xd0\xcf\x11\xe0|\x7fELF|MZ[\x00-\x1f\x80-\xff]|\xca\xfe\xba\xbe|\x00asm|"
    rb"wOF[F2][\x00O]|OTTO\x00|ttcf\x00|\x00\x01\x00\x00|\x93NUMPY|\xde\x12\x04\x95|\x95\x04\x12\xde",
    re.DOTALL,
)
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CONTROLS = bytes(range(9)) + b"\x0b" + bytes(range(16, 27)) + bytes(range(28, 32))  # of no text in any charset
_LEAST, _SHARE, _SHARE_OF_UTF8 = 4, 0.05, 0.3  # of random bytes every tenth is one; of faultless UTF-8 none need be
_HEAD = 4096


def sniff(body: bytes) -> str:
    """ "html", "text" or "" by the first 1,024 bytes; UTF-16 is seen through."""
    head = body[:1024]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0<\0" in head[:8] or b"<\0" in head[:4]:
        head = head.lstrip(b"\xff\xfe").replace(b"\0", b"")
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    small = head.lower()
    if declaration := _DECLARATION.match(small):
        return "html" if _XML_HTML.search(small, declaration.end()) else ""
    if _HTML_START.match(small) or (head[:1] == b"<" and _XML_HTML.search(small[:512])):
        return "html"
    return "" if _BINARY.search(head) or _FOREIGN.match(head) else "text"


def has_controls(body: bytes) -> bool:
    """Whether there is a control character among the first 1,024 bytes that plain text does not have."""
    return _BINARY.search(body, 0, 1024) is not None


def is_foreign(body: bytes) -> bool:
    """Whether a body that is declared as text is none: another format by its first bytes, or binary data.

    Looks at 4 KiB. Cost: some 4 microseconds.
    """
    head = body[:_HEAD]
    start = head.removeprefix(_MARKS[0]).lstrip()
    return _FOREIGN.match(head) is not None or _FOREIGN.match(start) is not None or _is_binary(head)


def _is_binary(head: bytes) -> bool:
    """Whether so many bytes are control characters as no text has, in UTF-16 and UTF-32 either."""
    head = head.rstrip(b"\0")  # padding of a block is not part of its text
    count = len(head) - len(head.translate(None, _CONTROLS))
    if count < _LEAST or count < _SHARE * len(head) or head.startswith(_MARKS):
        return False
    if head.count(0) > 0.4 * len(head):
        return False  # UTF-32, or Latin text in UTF-16
    if abs(2 * (len(head[::2]) - len(head[::2].translate(None, _CONTROLS))) - count) > 0.8 * count:
        return False  # high bytes of UTF-16, at every second place
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not a character that is cut at the end of what is looked at
            return True
    return count > _SHARE_OF_UTF8 * len(head)
