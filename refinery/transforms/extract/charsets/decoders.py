"""One encoding's bytes to text, as the WHATWG Encoding Standard decodes them, with two additions.

Python's codecs differ from the standard in some places, which are corrected here: holes of windows code pages are the
controls of the same number; KOI8-U has the Belarusian letter; GBK has a euro sign at 80; EUC-JP and ISO-2022-JP have
the signs that NEC and IBM added, and the same full-width forms as Shift_JIS; 20 signs of GB18030 are not private use.
Big5's 197 signs that HKSCS of 2008 added stay undefined.

The addition: bytes 80 to 9F are controls in the parts of ISO 8859, which no page holds, and letters or quotation marks
in the windows code pages that took them over. The standard itself decodes parts 1, 9 and 11 as windows-1252, -1254 and
-874; here the other parts borrow these 32 bytes from their windows neighbours, too.
"""

import codecs
import re
from collections.abc import Callable
from functools import cache

from refinery.transforms.extract.charsets.labels import SINGLE_BYTE, UNICODE

_NEIGHBOURS = {
    "iso8859-2": "cp1250",
    "iso8859-3": "cp1252",
    "iso8859-4": "cp1257",
    "iso8859-5": "cp1251",
    "iso8859-6": "cp1256",
    "iso8859-7": "cp1253",
    "iso8859-8": "cp1255",
    "iso8859-10": "cp1257",
    "iso8859-13": "cp1257",
    "iso8859-14": "cp1252",
    "iso8859-15": "cp1252",
    "iso8859-16": "cp1250",
}
_CHANGES = {("koi8-u", 0xAE): "ў", ("koi8-u", 0xBE): "Ў", ("cp1255", 0xCA): "\u05ba"}
_FULL_WIDTH = str.maketrans("〜‖−¢£¬", "～∥－￠￡￢")
_GB18030 = str.maketrans(
    "".join(
        map(
            chr,
            (0xE5E5, *range(0xE78D, 0xE797), 0xE7C7, 0xE81E, 0xE826, 0xE82B, 0xE82C, 0xE832, 0xE843, 0xE854, 0xE864),
        )
    ),
    "　︐︒︑︓︔︕︖︗︘︙ḿ龴龵龶龷龸龹龺龻",
)
_ESCAPE = re.compile(rb"\x1b(\$[@B]|\([BIJ])")


def decode_as(data: bytes, name: str) -> str:
    """`data` under an encoding of `labels`. Never fails: what it does not define becomes U+FFFD. One pass."""
    if name in SINGLE_BYTE:
        return codecs.charmap_decode(data, "strict", table(name))[0]
    special: Callable[[bytes], str] | None = _SPECIAL.get(name)
    if special:
        return special(data)
    return data.decode(name, "replace" if name in UNICODE else "fault")


@cache
def table(name: str) -> str:
    """The 256 characters of a single-byte encoding; U+FFFD where it has none."""
    signs = [bytes([byte]).decode(name, "replace") for byte in range(256)]
    if name in _NEIGHBOURS:
        signs[0x80:0xA0] = table(_NEIGHBOURS[name])[0x80:0xA0]
    for byte in range(0x80, 0xA0):
        if signs[byte] == "\ufffd":
            signs[byte] = chr(byte)
    for (other, byte), sign in _CHANGES.items():
        if other == name:
            signs[byte] = sign
    return "".join(signs)


def _gb18030(data: bytes) -> str:
    return data.decode("gb18030", "gbk-euro").translate(_GB18030)


def _euro(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError) and error.object[error.start] == 0x80:
        return "€", error.start + 1
    return _fault(error)


def _fault(error: UnicodeError) -> tuple[str, int]:
    """U+FFFD for what is wrong, without the ASCII behind it, which may be markup (Encoding Standard, "prepend")."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    end = error.start + 1
    while end < error.end and error.object[end] >= 0x80:
        end += 1
    return "\ufffd", end


def _euc_jp(data: bytes) -> str:
    return data.decode("euc_jp", "jis-row").translate(_FULL_WIDTH)


def _row(error: UnicodeError) -> tuple[str, int]:
    """Two bytes that EUC-JP lacks, as Shift_JIS has them: rows 13 and 89 to 92 of the standard's index."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    if len(pair) == 2 and pair[0] >= 0xA1 and 0xA1 <= pair[1] <= 0xFE:
        sign = _of_row(bytes([pair[0] & 0x7F, pair[1] & 0x7F]))
        if sign != "\ufffd":
            return sign, error.start + 2
    return _fault(error)


@cache
def _of_row(pair: bytes) -> str:
    """A character of JIS X 0208 with NEC's and IBM's additions, by its two 7-bit bytes."""
    row, cell = pair[0] - 0x21, pair[1] - 0x21
    if not (0 <= row < 94 and 0 <= cell < 94):
        return "\ufffd"
    lead, trail = row // 2, cell + 94 * (row % 2)
    shifted = bytes([lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)])
    sign = shifted.decode("cp932", "replace")
    return sign if len(sign) == 1 else "\ufffd"


def _iso_2022_jp(data: bytes) -> str:
    """Its four sets, as Encoding Standard 12.2 has them; bytes above 7F are not part of it."""
    parts = _ESCAPE.split(data)
    text = [parts[0].decode("ascii", "replace")]
    for escape, part in zip(parts[1::2], parts[2::2], strict=True):
        if escape in (b"$@", b"$B"):
            text.append(_RUN.sub(_pairs, part).decode("utf-8"))
        elif escape == b"(I":
            text.append(_KATAKANA.sub(lambda found: bytes(byte | 0x80 for byte in found[0]), part).decode("cp932"))
        else:
            roman = part.decode("ascii", "replace")
            text.append(roman if escape == b"(B" else roman.replace("\\", "¥").replace("~", "‾"))
    return "".join(text)


_RUN = re.compile(rb"[\x21-\x7e]+|[^\x00-\x7f]+")
_KATAKANA = re.compile(rb"[\x21-\x5f]+")


def _pairs(found: re.Match[bytes]) -> bytes:
    run = found[0]
    return "".join(
        _of_row(run[at : at + 2]) if at + 2 <= len(run) else "\ufffd" for at in range(0, len(run), 2)
    ).encode()


_SPECIAL: dict[str, Callable[[bytes], str]] = {"gb18030": _gb18030, "euc_jp": _euc_jp, "iso2022_jp": _iso_2022_jp}

codecs.register_error("fault", _fault)
codecs.register_error("gbk-euro", _euro)
codecs.register_error("jis-row", _row)


def utf_16_without_mark(data: bytes) -> str:
    """Which UTF-16 `data` are, by where their zeros are: "utf-16-le", "utf-16-be" or "" (neither).

    Text in Latin letters has a zero in every other byte; markup in any script has many. One look at 4 kB.
    """
    head = data[:4096]
    pairs = len(head) // 2
    zeros = (head[0::2].count(0), head[1::2].count(0))
    for name, many, few in (("utf-16-be", zeros[0], zeros[1]), ("utf-16-le", zeros[1], zeros[0])):
        if many * 5 >= pairs > 1 and few * 20 <= many:
            return name
    return ""
