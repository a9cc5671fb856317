"""Bytes are decoded as the Encoding Standard says, and bytes 80 to 9F of ISO 8859 as the windows page beside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.charsets.decoders import decode_as, table, utf_16_without_mark
from refinery.transforms.extract.charsets.labels import MULTI_BYTE, SINGLE_BYTE


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("cp1252", b"\x80 \x81 \x93x\x94", "€ \x81 “x”"),  # holes are controls
        ("iso8859-2", b"\xa3\xf3d\x9f", "Łódź"),
        ("iso8859-2", b"\xb1\x84\xb6\x94", "ą„ś”"),
        ("iso8859-13", b"\x96\xe0", "–ą"),
        ("iso8859-5", b"\x93\xd0\x94", "“а”"),
        ("iso8859-15", b"\x8a\xa4\x92", "Š€’"),
        ("cp1253", b"\xaa\xc1", "\ufffdΑ"),
        ("cp1255", b"\xca", "\u05ba"),
        ("koi8-u", b"\xae\xbe", "ўЎ"),
        ("koi8-r", b"\xae\xbe", "╝╬"),
        ("gb18030", b"\xbc\xdb\xb8\xf1\x80\xff5", "价格€\ufffd5"),
        ("gb18030", b"\xa3\xa0\xa8\xbc", "　ḿ"),
        ("euc_jp", b"\xad\xa1\xa1\xc1\xfc\xe2\x8e\xb1\x8f\xb0\xa1", "①～髙ｱ丂"),
        *[(name, b"\x81<p>\x81", "\ufffd<p>\ufffd") for name in ("gb18030", "cp949", "big5hkscs", "cp932", "euc_jp")],
        ("iso2022_jp", b"a\x1b$B$\x22-!\n$$\x1b(Bb\x1b(J\\~\x1b(I1\x1b(B", "aあ①\nいb¥‾ｱ"),
        ("iso2022_jp", b"\x1b$@$\x22$", "あ\ufffd"),
        ("iso2022_jp", b"\x1b$B$\xa2\x1b(B\xe9", "\ufffd\ufffd\ufffd"),
        ("cp932", b"\x87@\x87\x8a\x81`\xee\xe0", "①㈱～髙"),
        ("cp949", b"\xb0\xa1\x8c\x63", "가똠"),
    ],
)
def test_what_differs_from_python(name: str, data: bytes, text: str) -> None:
    assert decode_as(data, name) == text


@pytest.mark.parametrize("name", sorted(SINGLE_BYTE))
def test_a_table_is_pythons_where_python_has_a_character(name: str) -> None:
    assert len(table(name)) == 256
    for byte in [*range(0x80), *range(0xA0, 0x100)]:
        sign = bytes([byte]).decode(name, "replace")
        assert table(name)[byte] == sign or name == "koi8-u" or sign == "\ufffd"
    if name.startswith("iso8859"):
        assert sum(sign.isprintable() for sign in table(name)[0x80:0xA0]) > 13


@pytest.mark.parametrize("name", sorted(MULTI_BYTE - {"utf-8", "utf-16-le", "utf-16-be"}))
def test_what_python_decodes_is_decoded_alike_up_to_full_width_forms(name: str) -> None:
    text = "日本語 ABC" if name not in ("big5hkscs", "cp949") else "日本 ABC"
    assert decode_as(text.encode(name), name) == text


@given(st.binary(max_size=60), st.sampled_from(sorted(MULTI_BYTE | SINGLE_BYTE)))
def test_no_bytes_are_an_error(data: bytes, name: str) -> None:
    decode_as(data, name).encode("utf-8", "surrogatepass")


@given(st.text("aé<>ж日 \n", min_size=8))
def test_zeros_tell_utf_16(text: str) -> None:
    marked = f"<p>{text}</p>" * 4
    assert utf_16_without_mark(marked.encode("utf-16-le")) == "utf-16-le"
    assert utf_16_without_mark(marked.encode("utf-16-be")) == "utf-16-be"
    assert utf_16_without_mark(marked.encode()) == ""


@pytest.mark.parametrize("data", [b"", b"a", b"\0", b"a\0b caf\xc3\xa9 and more", bytes(100)])
def test_a_stray_zero_is_no_utf_16(data: bytes) -> None:
    assert utf_16_without_mark(data) == ""
