"""Bytes of a page to text: which encoding, and what when it is wrong.

Labels, decoders and the prescan of meta elements are those of the WHATWG Encoding and HTML Standards (`charsets/`). The
order of evidence is another than a browser's, since nobody looks at a page of a corpus and chooses another encoding
from a menu: a byte order mark; bytes that are UTF-8 beyond ASCII, which no other encoding's text is by accident; and
only then what is declared, as evidence beside what the words say themselves (`charsets/guess.py`).
"""

import codecs
import re

from refinery.transforms.extract.charsets.decoders import decode_as, utf_16_without_mark
from refinery.transforms.extract.charsets.guess import SOUND_PER_ERROR, guess
from refinery.transforms.extract.charsets.labels import UTF_16, python_codec
from refinery.transforms.extract.charsets.prescan import declared_in
from refinery.transforms.native import htmlblocks

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # no encoding of the standards, but its mark begins as the next one does
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SURROGATES = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
_ESCAPES = (b"\x1b$B", b"\x1b$@", b"\x1b(I")  # of ISO-2022-JP: what follows is Japanese


def decode_page(data: bytes, declared: str, is_html: bool) -> str:
    """The text of `data`. Never fails: what no rule can decode becomes U+FFFD.

    declared: the charset of the HTTP header ("" for none). is_html: look for a meta element too. Cost: two passes for
    ASCII and UTF-8; for other encodings a few more and some 3 ms.
    """
    for mark, name in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    if htmlblocks.utf8_length(data) >= 0:
        other = _other_than_utf8(data, declared)
        return decode_as(data, other) if other else data.decode()
    if name := _utf_16(data, declared):
        return _without_cut(data.decode(name, "replace"))
    text = _faulty_utf8(data)
    if text is not None:
        return text
    names = [python_codec(declared), *(declared_in(data) if is_html else ())]
    named = tuple(dict.fromkeys(name for name in names if name and name not in UTF_16))
    return _without_cut(decode_as(data, guess(data, named)))


def utf8_or_text(data: bytes, declared: str) -> bytes | str:
    """An HTML page as UTF-8: `data` itself where `decode_page` would decode them as faultless UTF-8, else its text.

    Spares most pages two copies, one of them two bytes or four for each character.
    """
    marked = data.startswith(tuple(mark for mark, _ in BYTE_ORDER_MARKS))
    if not marked:
        if htmlblocks.utf8_length(data) >= 0 and not _other_than_utf8(data, declared):
            return data
    elif data.startswith(codecs.BOM_UTF8) and htmlblocks.utf8_length(data) >= 0:
        return data[len(codecs.BOM_UTF8) :]
    return decode_page(data, declared, is_html=True)


def _other_than_utf8(data: bytes, declared: str) -> str:
    """The encoding of bytes that would be faultless UTF-8, too, or "": ISO-2022-JP is in ASCII, UTF-16 may be."""
    if b"\0" in data and (name := _utf_16(data, declared)):
        return name
    if b"\x1b" in data and data.isascii() and any(escape in data for escape in _ESCAPES):
        text = decode_as(data, "iso2022_jp")
        if "\ufffd" not in text and not text.isascii():
            return "iso2022_jp"
    return ""


def _utf_16(data: bytes, declared: str) -> str:
    """The UTF-16 that `data` without a mark are, or "": by their zeros, or as the header says where they have any."""
    if b"\0" not in data:
        return ""
    found = utf_16_without_mark(data)
    named = python_codec(declared)
    if not found and named in UTF_16 and "\ufffd" not in data[: len(data) // 2 * 2].decode(named, "replace"):
        return named
    return found


def _faulty_utf8(data: bytes) -> str | None:
    """`data` as UTF-8 with some faults, or None: one in SOUND_PER_ERROR characters beyond ASCII, or a character that
    is cut at the end, as a crawl's limit does it. Other encodings have hardly any sound character."""
    text = _SURROGATES.sub(_joined, data).decode("utf-8", "replace")
    errors = text.count("\ufffd")
    sound = len(text) - errors - len(text.encode("ascii", "ignore"))
    if errors * SOUND_PER_ERROR > sound and not (errors == 1 and sound and _cut(data)):
        return None
    return _without_cut(text)


def _joined(found: re.Match[bytes]) -> bytes:
    # CESU-8 (Unicode Technical Report 26), as some data bases export it: two surrogates for what UTF-8 has in one piece
    return found[0].decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode()


def _cut(data: bytes) -> bool:
    """Whether UTF-8 ends inside a character."""
    try:
        data[-4:].decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def _without_cut(text: str) -> str:
    return text.removesuffix("\ufffd")
