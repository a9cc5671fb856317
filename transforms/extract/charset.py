"""Bytes of a page to text: which encoding, and what when it is wrong.

The labels mean what the WHATWG Encoding Standard says they mean to browsers (ISO-8859-1 is windows-1252, GB2312 is
gb18030, Shift_JIS is windows-31j ...). The order of evidence follows the HTML Standard's sniffing algorithm (byte
order mark, HTTP header, meta element, detection) with two changes for a corpus, where nobody looks at the page and
notices: evidence counts only when the bytes decode under it, and bytes that are valid UTF-8 beyond ASCII are UTF-8
whatever single-byte encoding was declared, since any bytes decode under those.
"""

import codecs
import contextlib
import re
from collections.abc import Mapping
from encodings import normalize_encoding
from encodings.aliases import aliases

from resiliparse.parse.encoding import detect_encoding

from refinery.transforms.native import htmlblocks

# Python codecs that stand for encodings of the standard. Nothing else is ever looked up, since that imports the module
# of the name, and a page must not choose "zlib" or one of somebody's `encodings` package.
MULTI_BYTE = frozenset(
    ["utf-8", "utf-16-le", "utf-16-be", "cp932", "euc_jp", "iso2022_jp", "cp949", "big5hkscs", "gb18030"]
)
SINGLE_BYTE = frozenset(
    [f"cp{page}" for page in (866, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)]
    + [f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)]
    + ["koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"]
)
# Labels and Python names that mean another encoding to a browser.
ALIASES = {
    "utf_8": "utf-8",
    "unicode-1-1-utf-8": "utf-8",
    "utf-16": "utf-16-le",
    "unicode": "utf-16-le",
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "iso-8859-8-i": "iso8859-8",
    "iso-8859-8-e": "iso8859-8",
    "visual": "iso8859-8",
    "shift_jis": "cp932",
    "x-sjis": "cp932",
    "x-euc-jp": "euc_jp",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "big5": "big5hkscs",
    "x-x-big5": "big5hkscs",
    "x-cp1250": "cp1250",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "x-mac-roman": "mac-roman",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-ukrainian": "mac-cyrillic",
    "koi": "koi8-r",
    "dos-874": "cp874",
}


def _known_names() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Python's aliases of the codecs above, and its modules of them, each as `normalize_encoding` writes it -> the
    codec's name."""
    wanted = {*MULTI_BYTE, *SINGLE_BYTE, *ALIASES, "iso8859-1"}
    modules: dict[str, str] = {}
    for name in wanted:
        with contextlib.suppress(LookupError):
            key = normalize_encoding(name)
            modules[aliases.get(key, key)] = codecs.lookup(name).name
    return {alias: modules[module] for alias, module in aliases.items() if module in modules}, modules


KNOWN, MODULES = _known_names()
BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

META_BYTES = 4096  # the standard says 1,024; scripts before the meta element push it further down on real pages
META_CHARSET = re.compile(rb"<meta\s[^>]{0,1000}?charset\s{0,10}=\s{0,10}[\"']?\s{0,10}([\w.:-]{1,40})", re.IGNORECASE)

# An encoding with errors is still believed when for each there are so many characters beyond ASCII without.
SOUND_PER_ERROR = 10


def python_codec(label: str) -> str:
    """The Python codec for a WHATWG label ("" when the label is unknown, or means none): "latin1" -> "cp1252"."""
    label = label.strip(" \t\r\n\f\"';").lower()
    if not label.isascii() or not label.isprintable():
        return ""
    key = normalize_encoding(label)  # as `encodings.search_function` goes on from here
    name = ALIASES.get(label) or KNOWN.get(key) or KNOWN.get(key.replace(".", "_")) or MODULES.get(key, "")
    name = ALIASES.get(name, name)
    return name if name in MULTI_BYTE or name in SINGLE_BYTE else ""


def decode_page(data: bytes, declared: str, is_html: bool) -> str:
    """The text of `data`. Never fails: what no rule can decode becomes U+FFFD.

    declared: the charset of the HTTP header ("" for none). is_html: look for a meta element too. Cost: one pass for
    ASCII and UTF-8, a few more for other encodings; detection looks at 128 kB at most.
    """
    for mark, name in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    candidates = _declared(data, declared, is_html)
    if not any(name in MULTI_BYTE and name != "utf-8" for name in candidates):
        # Where an encoding is declared, faultless UTF-8 only: any bytes decode under a single-byte one.
        text = _decode(data, "utf-8", faults=0 if candidates else None)
        if text is not None:
            return text
    for name in candidates:
        text = _decode(data, name, faults=1)
        if text is not None:
            return text
    detected = python_codec(detect_encoding(data, max_len=1 << 17, from_html_meta=False) or "") or "cp1252"
    return _lenient(data, detected)


def utf8_or_text(data: bytes, declared: str) -> bytes | str:
    """An HTML page as UTF-8: `data` itself where `decode_page` would decode them as faultless UTF-8, else its text.

    Spares most pages two copies, one of them two bytes or four for each character.
    """
    marked = data.startswith(tuple(mark for mark, _ in BYTE_ORDER_MARKS))
    if not marked:
        other = any(name in MULTI_BYTE and name != "utf-8" for name in _declared(data, declared, is_html=True))
        if not other and htmlblocks.utf8_length(data) >= 0:
            return data
    elif data.startswith(codecs.BOM_UTF8) and htmlblocks.utf8_length(data) >= 0:
        return data[len(codecs.BOM_UTF8) :]
    return decode_page(data, declared, is_html=True)


def _declared(data: bytes, declared: str, is_html: bool) -> list[str]:
    """Codecs that the header and a meta element name, as far as they are known."""
    named = [python_codec(declared)] if declared else []
    if is_html and (meta := META_CHARSET.search(data, 0, META_BYTES)):
        # A meta element that can be read as ASCII cannot be in UTF-16 (HTML Standard, 13.2.3.3).
        codec = python_codec(meta[1].decode("ascii", "replace"))
        named.append("utf-8" if codec.startswith("utf-16") else codec)
    return [name for name in named if name]


def _decode(data: bytes, name: str, faults: int | None) -> str | None:
    """`data` under `name`, or None where it does not fit. faults: 0 allows none; 1 allows a cut through the last
    character, and both 1 and None allow one in SOUND_PER_ERROR characters beyond ASCII."""
    try:
        return data.decode(name)
    except UnicodeDecodeError:
        if faults == 0:
            return None
    text = _lenient(data, name)
    errors, cut = text.count("\ufffd"), text.endswith("\ufffd")
    sound = len(text) - errors - len(text.encode("ascii", "ignore"))
    if errors == (faults if cut else 0) or errors * SOUND_PER_ERROR <= sound:
        return text[:-1] if cut else text
    return None


def _lenient(data: bytes, name: str) -> str:
    """`data` under `name` with what is undefined there replaced: by C1 controls in windows code pages, else U+FFFD."""
    return data.decode(name, "c1-controls" if name in SINGLE_BYTE else "replace")


def _c1_controls(error: UnicodeError) -> tuple[str, int]:
    # The standard's index maps the holes of windows-125x to the controls of the same number; cleaning removes them.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    holes = error.object[error.start : error.end]
    return "".join(chr(byte) if byte < 0xA0 else "\ufffd" for byte in holes), error.end


codecs.register_error("c1-controls", _c1_controls)
