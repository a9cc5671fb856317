import gzip
import zlib
from collections.abc import Sequence

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.read.archives.http_body import DECODERS, NoPage
from refinery.transforms.read.archives.http_message import Payload, http_page
from tests.transforms.read_fixtures import HTML, http

CODERS = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
LIMIT = 100_000


def outcome(body: bytes, headers: Sequence[str] = (), identified: str = "") -> bytes | str:
    """The page's bytes, or why there is none."""
    page = http_page(http(body, ["Content-Type: text/html", *headers]), identified, LIMIT, 2 * LIMIT)
    return page.body if isinstance(page, Payload) else page.reason or "!" + page.error


def raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(data) + coder.flush()


@pytest.mark.parametrize("name", list(CODERS))
def test_content_encodings(name: str) -> None:
    encoded = CODERS[name](HTML)
    header = [f"Content-Encoding: {name.upper()}"]
    assert outcome(encoded, header) == HTML
    assert outcome(HTML, header) == HTML  # decoded by the crawler, the header kept
    assert outcome(b"", header) == "empty"
    assert outcome(b"\0\1\2 neither" + bytes(range(9)), header) == "!BadEncoding"
    assert outcome(CODERS[name](b" " * 5_000_000 + b"x"), header) == "too-large"
    both = [f"Content-Encoding: {name}, gzip"]
    assert outcome(gzip.compress(encoded), both) == HTML
    cut = outcome(CODERS[name](HTML * 200)[:-3], header)
    assert cut == "empty" or (isinstance(cut, bytes) and (HTML * 200).startswith(cut))


def test_encodings_that_are_none_or_have_no_decoder() -> None:
    assert outcome(raw_deflate(HTML), ["Content-Encoding: deflate"]) == HTML
    for name in ("", "identity", "none", "utf-8", "text/html"):
        assert outcome(HTML, [f"Content-Encoding: {name}"]) == HTML
    assert outcome(HTML, ["Content-Encoding: sdch, gzip"]) == "content-encoding"
    assert outcome(HTML, ["Content-Encoding: gzip, gzip, gzip, gzip"]) == "content-encoding"
    assert outcome(gzip.compress(HTML) + b"trailing garbage", ["Content-Encoding: gzip"]) == HTML
    assert outcome(gzip.compress(HTML)[:-8] + b"checksum", ["Content-Encoding: gzip"]) == "!BadEncoding"
    assert outcome(gzip.compress(b"x" * 150_000), ["Content-Encoding: gzip"]) == "too-large"
    inner = gzip.compress(gzip.compress(b"x" * 5_000_000))
    assert outcome(inner, ["Content-Encoding: gzip, gzip"]) == "too-large"


def test_chunks_come_off_before_the_encoding() -> None:
    encoded = gzip.compress(HTML)
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(encoded), encoded)
    assert outcome(chunked, ["Content-Encoding: gzip", "Transfer-Encoding: chunked"]) == HTML
    assert outcome(b"4\r\nWiki\r\nzz\r\n", ["Transfer-Encoding: chunked"]) == "!BadChunk"


@pytest.mark.parametrize(
    ("declared", "body", "expected"),
    [
        ("text/html", b"anything", True),
        ("Application/XHTML+xml; charset=x", b"anything", True),
        ("text/plain", b"<html>", False),
        ("text/xml", b"<?xml version='1.0'?><html>", True),
        ("text/xml", b"<rss>", None),
        ("application/xml", b"some words", None),
        ("application/octet-stream", b"<html>", True),
        ("application/octet-stream", b"some words", None),
        ("application/json", b"<html>", None),
        ("", b"<html>", True),
        ("unknown/unknown", b"some words", False),
        ("", b"\x89PNG\r\n\x1a\n", None),
        ('"text/html"', b"<html>", True),  # no valid type is no type
        ("html", b"<html>", True),
        ("html", b"some words", False),
        ("text", b"\x89PNG\r\n\x1a\n", None),
    ],
)
def test_which_types_are_pages(declared: str, body: bytes, expected: bool | None) -> None:
    page = http_page(http(body, [f"Content-Type: {declared}"] if declared else []), "", LIMIT, LIMIT)
    assert (page.is_html if isinstance(page, Payload) else None) == expected
    assert isinstance(page, Payload) or page == NoPage("content-type")


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from([*DECODERS, "chunked"]), st.integers(0, 300))
def test_any_body_gives_a_page_or_a_reason(body: bytes, name: str, at: int) -> None:
    header = "Transfer-Encoding: chunked" if name == "chunked" else f"Content-Encoding: {name}"
    good = CODERS.get(name, lambda data: b"%x\r\n%s\r\n" % (len(data), data))(HTML)
    for data in (body, good[:at] + body + good[at:]):
        http_page(http(data, ["Content-Type: text/html", header]), "", LIMIT, LIMIT)
    http_page(body, "", LIMIT, LIMIT)
