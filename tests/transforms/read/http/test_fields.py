import pytest

from refinery.transforms.read.http.fields import charset_of, coding_names, content_type, media_type, parse_headers

BLOCK = b"HTTP/1.1 200 OK\r\nA: 1\r\nno colon\r\nB:\r\n two\r\n\tthree\r\na: 2\r\n four\r\nC: \xff"


def test_of_a_repeated_field_the_first_one_counts_or_all_do() -> None:
    assert parse_headers(BLOCK) == {"a": "1", "b": "two three", "c": "\ufffd"}
    assert parse_headers(BLOCK, joined=True) == {"a": "1, 2 four", "b": "two three", "c": "\ufffd"}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("gzip", ["gzip"]),
        ("GZip", ["gzip"]),
        ("gzip, chunked", ["gzip", "chunked"]),
        ("gzip;q=1.0", ["gzip"]),
        ("gzip ; q=1.0 , br;level=5", ["gzip", "br"]),
        ('"gzip"', ["gzip"]),
        ("'gzip, br'", ["gzip", "br"]),
        ('"gzip, br"', ["gzip", "br"]),
        (", identity,, gzip ,", ["identity", "gzip"]),
        ("gzip deflate", ["gzip", "deflate"]),
        ("", []),
    ],
)
def test_codings(value: str, names: list[str]) -> None:
    assert coding_names(value) == names


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (" Text/HTML ; charset=x", ("text/html", "x")),
        ("text/html charset=utf-8", ("text/html", "utf-8")),
        ("text/html", ("text/html", "")),
        ("", ("", "")),
        ("html", ("", "")),
        ('"text/html"; charset=utf-8', ("", "utf-8")),
        ("*/*", ("", "")),
        # The examples of the Fetch Standard, "extract a MIME type".
        ("text/plain;charset=gbk, text/html", ("text/html", "")),
        ("text/html;charset=gbk;a=b, text/html;x=y", ("text/html", "gbk")),
        ("text/html;charset=gbk;a=b, text/html;x=y;charset=big5", ("text/html", "big5")),
        ("text/html;x=y, */*", ("text/html", "")),
        ("text/html, no-type", ("text/html", "")),
        ("text/html;charset=gbk, x/x, text/html;x=y", ("text/html", "")),
        ('text/html;x=" , text/plain, ', ("text/plain", "")),
        ('text/html;x="a, text/plain";charset=gbk', ("text/html", "gbk")),
    ],
)
def test_content_types(value: str, found: tuple[str, str]) -> None:
    assert content_type(value) == found
    assert media_type(value) == found[0]


def test_charsets() -> None:
    values = ('a/b; CHARSET="UTF-8"', "a/b;charset = 'x-sjis'", "a/b", "charset=;")
    assert [charset_of(value) for value in values] == ["utf-8", "x-sjis", "", ""]


def test_long_values_take_no_longer_than_they_are_long() -> None:
    for value in ('"' * 100_000, ", " * 100_000, 'a/b;x="' + "\\" * 100_000, "text/html" + " " * 100_000 + "x"):
        content_type(value)
        coding_names(value)
