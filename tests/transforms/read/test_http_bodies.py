"""Codings of HTTP bodies as fields name them, and as bytes have them."""

import gzip
import zlib
from collections.abc import Callable, Sequence

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.read.archives.http_body import DECODERS, decode_brotli, decode_zstd
from refinery.transforms.read.archives.http_message import Payload, http_page
from tests.transforms.read.http.test_media_sniffing import FOREIGN, TEXTS
from tests.transforms.read_fixtures import HTML, http

PAGE = HTML * 20
LIMIT = 100_000


def chunked(data: bytes) -> bytes:
    pieces = [data[at : at + 100] for at in range(0, len(data), 100)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def outcome(body: bytes, headers: Sequence[str] = (), kind: str = "text/html") -> bytes | str:
    """The page's bytes, or why there is none."""
    page = http_page(http(body, [f"Content-Type: {kind}", *headers]), "", LIMIT, 2 * LIMIT)
    return page.body if isinstance(page, Payload) else page.reason or "!" + page.error


TRANSFER, CONTENT = "Transfer-Encoding: ", "Content-Encoding: "
CODED: list[tuple[list[str], Callable[[bytes], bytes]]] = [
    ([TRANSFER + "gzip, chunked"], lambda page: chunked(gzip.compress(page))),
    ([TRANSFER + "gzip", TRANSFER + "chunked"], lambda page: chunked(gzip.compress(page))),
    ([TRANSFER + "deflate, gzip, chunked"], lambda page: chunked(gzip.compress(zlib.compress(page)))),
    ([TRANSFER + "gzip"], gzip.compress),
    ([TRANSFER + "chunked, gzip"], lambda page: gzip.compress(chunked(page))),
    ([TRANSFER + "identity", TRANSFER + "chunked"], chunked),
    ([TRANSFER + "chunked", TRANSFER + "identity"], chunked),
    ([TRANSFER + "chunked, chunked"], chunked),
    ([TRANSFER + "chunked", TRANSFER + "chunked"], chunked),
    ([TRANSFER + "Chunked;q=1.0"], chunked),
    ([TRANSFER + '"chunked"'], chunked),
    ([TRANSFER + "chunked"], lambda page: chunked(chunked(page))),
    ([], chunked),
    ([CONTENT + "gzip", TRANSFER + "chunked"], lambda page: chunked(gzip.compress(page))),
    ([CONTENT + "gzip"], lambda page: chunked(gzip.compress(page))),
    ([CONTENT + "gzip", TRANSFER + "gzip, chunked"], lambda page: chunked(gzip.compress(page))),
    ([CONTENT + "gzip;q=1.0"], gzip.compress),
    ([CONTENT + '"gzip"'], gzip.compress),
    ([CONTENT + "", CONTENT + "gzip"], gzip.compress),
    ([CONTENT + "identity", CONTENT + "gzip"], gzip.compress),
    ([CONTENT + "gzip", CONTENT + "identity"], gzip.compress),
    ([CONTENT + "UTF-8", CONTENT + "gzip"], gzip.compress),
    ([CONTENT + "none, GZIP"], gzip.compress),
    ([CONTENT + "br", CONTENT + "gzip"], lambda page: gzip.compress(brotli.compress(page))),
    ([CONTENT + "gzip, gzip"], gzip.compress),
    ([CONTENT + "gzip"], lambda page: gzip.compress(gzip.compress(page))),
    ([CONTENT + "br"], gzip.compress),
    ([CONTENT + "deflate"], gzip.compress),
    ([CONTENT + "gzip"], zstandard.compress),
    ([], gzip.compress),
    ([], zstandard.compress),
    ([], lambda page: gzip.compress(zstandard.compress(page))),
    ([TRANSFER + "chunked"], lambda page: chunked(gzip.compress(page))),
]


@pytest.mark.parametrize(("headers", "code"), CODED)
@pytest.mark.parametrize("kind", ["text/html", "text/plain", ""])
def test_codings_come_off(headers: list[str], code: Callable[[bytes], bytes], kind: str) -> None:
    assert outcome(code(PAGE), headers, kind) == PAGE
    if headers:  # the crawler took them off, and kept the fields
        assert outcome(PAGE, headers, kind) == PAGE


def test_codings_without_a_decoder_are_named() -> None:
    for header in (TRANSFER + "compress, chunked", CONTENT + "sdch;q=1", CONTENT + "gzip, compress"):
        assert outcome(chunked(PAGE), [header]) == "content-encoding"
    assert outcome(gzip.compress(PAGE)[:40] + b"damaged", []) == "content-encoding"
    four = gzip.compress(gzip.compress(gzip.compress(gzip.compress(PAGE))))
    assert outcome(four, []) == "content-encoding"
    assert outcome(gzip.compress(b"x" * (LIMIT + 1)), []) == "too-large"
    assert outcome(gzip.compress(b" \n"), []) == "empty"
    assert outcome(gzip.compress(PAGE), [], "application/octet-stream") == "content-type"


def test_a_plain_text_keeps_its_first_word() -> None:
    for word in (b"FACE\r\n", b"2024\r\n", b"10\n", b"0\r\n"):
        text = word + b"Otters keep a stone.\r\n" * 500
        assert outcome(text, [TRANSFER + "chunked"], "text/plain") == text
        assert outcome(text, [TRANSFER + "gzip, chunked"], "text/plain") == text
        assert outcome(text, [CONTENT + "br", TRANSFER + "chunked"], "text/plain") == text


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "text/plain", "application/xhtml+xml"])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_declared_text_that_is_another_format_is_no_page(kind: str, name: str) -> None:
    body = FOREIGN[name]
    opened = outcome(body, [], kind)
    assert opened == "content-type" or (name in ("gzip", "zstd") and isinstance(opened, bytes))
    assert outcome(gzip.compress(body), [CONTENT + "gzip"], kind) == opened
    assert outcome(gzip.compress(body), [], kind) == opened
    assert outcome(chunked(body), [TRANSFER + "chunked"], kind) == opened


@pytest.mark.parametrize("name", TEXTS)
def test_a_declared_text_of_any_charset_is_a_page(name: str) -> None:
    assert outcome(TEXTS[name], [], "text/plain") == TEXTS[name]


TRAILING = st.one_of(
    st.sampled_from([b"\n", b"\r\n", b"\0", b"\0" * 8, b"<!-- -->"]), st.binary(min_size=1, max_size=30)
)


@given(st.integers(0, 3000), TRAILING, st.sampled_from(["gzip", "br", "zstd", "deflate"]))
def test_bytes_behind_a_body_are_forgiven(repeats: int, trailing: bytes, name: str) -> None:
    page = PAGE + b"".join(b"%d " % number for number in range(repeats))
    coders = {"gzip": gzip.compress, "br": brotli.compress, "zstd": zstandard.compress, "deflate": zlib.compress}
    assert outcome(coders[name](page) + trailing, [CONTENT + name]) == page


def test_damage_inside_a_body_is_not_forgiven() -> None:
    page = b"".join(b"%x " % (number * 7919 % 65536) for number in range(9000))
    checked = zstandard.ZstdCompressor(write_checksum=True)
    for name, code in (("gzip", gzip.compress), ("zstd", checked.compress)):  # brotli has no checksum
        coded = bytearray(code(page))
        coded[len(coded) // 2 : len(coded) // 2 + 9] = b"\xff" * 9
        assert outcome(bytes(coded), [CONTENT + name]) == "!BadEncoding"
    first = b"\x50\x2a\x4d\x18\4\0\0\0abcd"  # a skippable frame
    assert decode_zstd(first + zstandard.compress(PAGE) + b"x", LIMIT) == PAGE
    assert outcome(first + bytes(coded), [CONTENT + "zstd"]) == "!BadEncoding"


@given(st.text(min_size=1, max_size=200))
def test_a_text_is_no_brotli_whatever_letter_it_begins_with(text: str) -> None:
    for letter in b"nfv>.&6":
        body = bytes([letter]) + text.encode("utf-8", "replace") + PAGE
        if not any(byte < 32 for byte in body):
            assert outcome(body, [CONTENT + "br"]) == body


def test_a_brotli_bomb_with_a_byte_behind_it_stops_at_the_limit() -> None:
    bomb = brotli.compress(bytes(5_000_000), quality=3) + b"x"
    assert len(decode_brotli(bomb, LIMIT)) < 40 * LIMIT
    assert outcome(bomb, [CONTENT + "br"]) == "too-large"


def test_interim_responses_are_passed_over() -> None:
    final = http(PAGE)
    for interim in (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"):
        page = http_page(interim * 2 + final, "", LIMIT, LIMIT)
        assert isinstance(page, Payload)
        assert page.body == PAGE
    assert http_page(b"HTTP/1.1 100 Continue\r\n\r\n", "", LIMIT, LIMIT) == http_page(
        http(status="404 x"), "", LIMIT, LIMIT
    )


def test_fields_that_come_twice_are_one_list() -> None:
    twice = ["Content-Type: text/plain", "Content-Type: text/html; charset=big5"]
    page = http_page(http(PAGE, twice), "", LIMIT, LIMIT)
    assert isinstance(page, Payload)
    assert (page.is_html, page.charset) == (True, "big5")
    robots = ["Content-Type: text/html", "X-Robots-Tag: noindex", "X-Robots-Tag: noai", "TDM-Reservation: 0"]
    page = http_page(http(PAGE, [*robots, "tdm-reservation: 1"]), "", LIMIT, LIMIT)
    assert isinstance(page, Payload)
    assert page.notes == {"no_ai": "noai", "tdm_reservation": 1}


def test_every_decoder_is_tried_here() -> None:
    assert set(DECODERS) == {"gzip", "x-gzip", "br", "zstd", "deflate"}
