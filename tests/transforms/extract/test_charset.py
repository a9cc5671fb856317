"""Bytes are read as a browser would, where that makes sense of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.charset import decode_page, utf8_or_text

GERMAN = "Über den Wolken müßte die Freiheit grenzenlos schön gewesen sein, sagte Änne."
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю."
JAPANESE = "いろはにほへと ちりぬるを。これは文字コードを判定するための、少し長めの日本語の文章です。"
CHINESE = "我能吞下玻璃而不伤身体。这是一段用来检测编码的中文文字。"


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


FINNISH = "Hyvää päivää! Tämä sivu kertoo järvestä ja jäästä, metsästä ja mäestä."
KOREAN = "오늘은 날씨가 맑고 바람이 분다. 아이들은 운동장에서 놀고 있다."
LABELS = [
    "iso-8859-1",
    "windows-1251",
    "gb2312",
    "gbk",
    "shift_jis",
    "euc-kr",
    "big5",
    "euc-jp",
    "utf-16",
    "iso-2022-jp",
]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("text", [FINNISH, CHINESE, KOREAN, "It’s a “small” page — café.", "é"])
def test_faultless_utf8_is_utf8_whatever_is_declared(text: str, label: str) -> None:
    page = f'<meta charset="{label}"><p>{text}'
    assert decode_page(page.encode(), "", is_html=True) == page
    assert decode_page(page.encode(), label, is_html=True) == page
    assert utf8_or_text(page.encode(), label) == page.encode()


@pytest.mark.parametrize("label", LABELS)
def test_a_fault_or_a_cut_costs_its_byte_and_not_the_page(label: str) -> None:
    page = f"<p>{FINNISH * 3}".encode()
    for at in (3, 40, len(page)):
        while page[at : at + 1] >= b"\x80":
            at += 1
        fault = page[:at] + b"\xe4 " + page[at:]
        assert decode_page(fault, label, is_html=True) == page[:at].decode() + "\ufffd " + page[at:].decode()
    cut = page + "ä".encode()[:1]
    assert decode_page(cut, label, is_html=True) == page.decode()
    assert decode_page("<p>A small café – ".encode() + b"\xf0\x9f", label, is_html=True) == "<p>A small café – "


@pytest.mark.parametrize(
    "data",
    [
        "It’s a “small” café. price\ufffd5 each.",
        "It’s a “small” café. \ufffd 2019 Example",
        "a few words … here. It’s small\ufffd\ufffd\ufffd",
    ],
)
def test_stray_bytes_in_a_page_with_little_beyond_ascii(data: str) -> None:
    assert decode_page(data.encode().replace("\ufffd".encode(), b"\xa9"), "", is_html=False) == data.rstrip(
        "\ufffd"
    ) + ("\ufffd\ufffd" if data.endswith("\ufffd") else "")


@pytest.mark.parametrize(("declared", "is_html"), [("", True), ("", False), ("utf-8", True), ("nonsense", True)])
def test_what_is_no_utf8_is_detected(declared: str, is_html: bool) -> None:
    assert decode_page(KOREAN.encode("cp949"), declared, is_html) == KOREAN
    assert (
        decode_page(("Kinos\xe4le;Sitzpl\xe4tze\n" * 3).encode("latin-1"), declared, is_html)
        == "Kinosäle;Sitzplätze\n" * 3
    )


@pytest.mark.parametrize("label", ["windows-949", "ks_c_5601-1989", "ksc_5601", "euc-kr"])
def test_labels_of_korean_pages(label: str) -> None:
    page = f"<meta charset={label}><p>{KOREAN}"
    assert decode_page(page.encode("cp949"), "", is_html=True) == page


@pytest.mark.parametrize("declared", ["", "utf-8", "iso-2022-jp", "latin1"])
def test_iso_2022_jp_is_ascii_with_escapes(declared: str) -> None:
    assert decode_page(JAPANESE.encode("iso2022_jp"), declared, is_html=False) == JAPANESE
    assert decode_page(b"\x1b[1mbold\x1b[0m \x1b$B", declared, is_html=False) == "\x1b[1mbold\x1b[0m \x1b$B"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("declared", ["", "utf-8", "utf-16le"])
def test_utf_16_without_a_mark(codec: str, declared: str) -> None:
    page = f"<meta charset=utf-16><p>{GERMAN}{JAPANESE}"
    assert decode_page(page.encode(codec), declared, is_html=True) == page


def test_utf_32_has_a_mark() -> None:
    assert decode_page(GERMAN.encode("utf-32"), "latin1", is_html=True) == GERMAN


def test_surrogates_in_utf8_are_joined() -> None:
    data = "smile \ud83d\ude00 é".encode("utf-8", "surrogatepass")
    assert decode_page(data, "", is_html=False) == "smile 😀 é"


@pytest.mark.parametrize("header", ["iso-8859-1", "shift_jis", "utf-8", ""])
@pytest.mark.parametrize(
    "head",
    [
        "<!-- <meta charset=koi8-r> --><meta charset=windows-1251>",
        "<meta name=description content='charset=koi8-r'><meta charset=windows-1251>",
        "<meta charset=bogus><meta charset=windows-1251>",
        "<?xml version='1.0' encoding='windows-1251'?>",
        "<meta charset=utf-8><meta charset=windows-1251>",
        "",
    ],
)
def test_russian_pages(head: str, header: str) -> None:
    page = f"{head}<p>{RUSSIAN}"
    assert decode_page(page.encode("cp1251"), header, is_html=True) == page
