"""Bytes are read as a browser would, where that makes sense of them."""

import codecs
import sys
from encodings.aliases import aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract import charset
from refinery.transforms.extract.charset import decode_page, python_codec, utf8_or_text

GERMAN = "Über den Wolken müßte die Freiheit grenzenlos schön gewesen sein, sagte Änne."
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю."
JAPANESE = "いろはにほへと ちりぬるを。これは文字コードを判定するための、少し長めの日本語の文章です。"
CHINESE = "我能吞下玻璃而不伤身体。这是一段用来检测编码的中文文字。"


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("UTF-8", "utf-8"),
        (" utf8 ", "utf-8"),
        ('"utf-8";', "utf-8"),
        ("latin1", "cp1252"),
        ("ISO-8859-1", "cp1252"),
        ("us-ascii", "cp1252"),
        ("iso-8859-9", "cp1254"),
        ("windows-1251", "cp1251"),
        ("koi8-r", "koi8-r"),
        ("Shift_JIS", "cp932"),
        ("x-sjis", "cp932"),
        ("EUC-JP", "euc_jp"),
        ("gb2312", "gb18030"),
        ("gbk", "gb18030"),
        ("Big5", "big5hkscs"),
        ("ks_c_5601-1987", "cp949"),
        ("tis-620", "cp874"),
        ("macintosh", "mac-roman"),
        ("utf-7", ""),
        ("iso-2022-kr", ""),
        ("hz-gb-2312", ""),
        ("zlib", ""),
        ("rot13", ""),
        ("idna", ""),
        ("unicode_escape", ""),
        ("undefined", ""),
        ("none", ""),
        ("", ""),
        ("a\0b", ""),
        ("é", ""),
        ("x" * 1000, ""),
    ],
)
def test_labels_mean_what_they_mean_to_browsers(label: str, codec: str) -> None:
    assert python_codec(label) == codec


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        (b"", "", ""),
        (b"plain", "", "plain"),
        (GERMAN.encode(), "", GERMAN),
        (GERMAN.encode(), "utf-8", GERMAN),
        (GERMAN.encode("latin-1"), "iso-8859-1", GERMAN),
        (b"\x93quoted\x94 \x80", "iso-8859-1", "“quoted” €"),
        (b"\x81 \x93x\x94", "latin1", "\x81 “x”"),
        (GERMAN.encode(), "iso-8859-1", GERMAN),  # a wrong header: valid UTF-8 is no accident
        (GERMAN.encode("latin-1"), "utf-8", GERMAN),  # a wrong header: these bytes are no UTF-8
        (RUSSIAN.encode("cp1251"), "windows-1251", RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "koi8-r", RUSSIAN),
        (JAPANESE.encode("cp932"), "shift_jis", JAPANESE),
        (JAPANESE.encode("euc_jp"), "euc-jp", JAPANESE),
        (JAPANESE.encode("iso2022_jp"), "iso-2022-jp", JAPANESE),
        (CHINESE.encode("gb18030"), "gb2312", CHINESE),
        (RUSSIAN.encode("cp1251") * 5, "", RUSSIAN * 5),
        (JAPANESE.encode("cp932") * 5, "nonsense", JAPANESE * 5),
        (b"\xef\xbb\xbfm\xc3\xb6", "iso-8859-1", "mö"),
        (b"\xff\xfem\0\xf6\0", "", "mö"),
        (b"\xfe\xff\0m\0\xf6", "utf-8", "mö"),
        (("ä" * 50).encode()[:-1], "utf-8", "ä" * 49),  # cut through the last character
        (("ä" * 50).encode() + b"\xff" + b"end.", "utf-8", "ä" * 50 + "\ufffdend."),
    ],
)
def test_evidence_counts_when_the_bytes_agree(data: bytes, declared: str, text: str) -> None:
    assert decode_page(data, declared, is_html=False) == text


@pytest.mark.parametrize(
    "meta",
    [
        '<meta charset="windows-1251">',
        "<META CHARSET=windows-1251>",
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        "<script>" + " " * 3000 + "</script><meta charset='windows-1251'>",
    ],
)
def test_pages_may_say_it_themselves(meta: str) -> None:
    page = f"<html><head>{meta}</head><body>{RUSSIAN}</body>"
    assert decode_page(page.encode("cp1251"), "", is_html=True) == page
    assert decode_page(page.encode("cp1251"), "utf-8", is_html=True) == page


def test_a_readable_meta_element_cannot_be_in_utf_16() -> None:
    page = f'<meta charset="utf-16"><p>{GERMAN}'
    assert decode_page(page.encode(), "", is_html=True) == page


@given(
    st.binary(max_size=300), st.sampled_from(["", "utf-8", "latin1", "gbk", "shift_jis", "iso-2022-jp", "utf-16", "x"])
)
def test_no_bytes_are_an_error(data: bytes, declared: str) -> None:
    decode_page(data, declared, is_html=True).encode()


@pytest.mark.parametrize("header", ["iso-8859-1", "windows-1252", "utf-8", "", "unknown"])
@pytest.mark.parametrize("meta", ["utf-8", "iso-8859-1", "windows-1251"])
def test_faultless_utf8_is_utf8_though_the_header_says_otherwise(header: str, meta: str) -> None:
    """Servers name a single-byte encoding for all files, whatever these say."""
    page = f'<meta charset="{meta}"><p>{GERMAN}'
    assert decode_page(page.encode(), header, is_html=True) == page


PIECES = [
    b"\xef\xbb\xbf", b"\xff\xfe", b'<meta charset="utf-8">', b'<meta charset="gbk">', b'<meta charset="latin1">',
    b"<p>a", b"\xf0\x9f", b"\xed\xa0\x80", GERMAN.encode(), GERMAN.encode("cp1252"), RUSSIAN.encode("koi8-r"),
    CHINESE.encode("gb18030"),
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=4)).map(b"".join),
    st.sampled_from(["", "utf-8", "gbk", "latin1"]),
)
def test_bytes_that_are_spared_decoding_are_what_it_would_give(data: bytes, declared: str) -> None:
    page = utf8_or_text(data, declared)
    text = page.decode() if isinstance(page, bytes) else page
    assert text == decode_page(data, declared, is_html=True)


def test_labels_import_nothing_and_mean_what_python_means() -> None:
    """All of Python's aliases in several spellings; a label that only a module of `encodings` knows means nothing."""

    def looked_up(label: str) -> str:
        try:
            name = charset.ALIASES.get(label) or codecs.lookup(label).name
        except LookupError:
            return ""
        name = charset.ALIASES.get(name, name)
        return name if name in charset.MULTI_BYTE | charset.SINGLE_BYTE else ""

    sys.modules.pop("encodings.punycode", None)
    assert python_codec("punycode") == python_codec("unicode_escape") == python_codec("hostile") == ""
    assert "encodings.punycode" not in sys.modules
    for name in {*aliases, *aliases.values(), *charset.ALIASES, *charset.MULTI_BYTE, *charset.SINGLE_BYTE}:
        for label in (name, name.replace("_", "-"), name.replace("_", " "), name.replace("-", ""), f"x-{name}"):
            assert python_codec(label) == looked_up(label.lower()), label
