import http.client
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.read.http.chunks import dechunk, whole_chunks

PAGE = b"<html><p>Otters keep a stone.</p></html>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n", b"Wikipedia"),
        (b"4;name=value\r\nWiki\r\n0\r\nTrailer: x\r\n\r\n", b"Wiki"),
        (b"4\nWiki\n005 \npedia\n0\n\n", b"Wikipedia"),
        (b"000000000004\r\nWiki\r\n00000000000000000005\r\npedia\r\n0000000000\r\n\r\n", b"Wikipedia"),
        (b"<html>not chunked</html>", b"<html>not chunked</html>"),
        (b"", b""),
        (b"0\r\n\r\n", b""),
        (b"0\r\nTrailer: x\r\n\r\n", b""),
        (b"4\r\nWi", b"Wi"),
        (b"4\r\nWiki", b"Wiki"),
        (b"4\r\nWiki\r\n", b"Wiki"),
        (b"4\r\nWiki\r\n5", b"Wiki"),
        (b"4\r\nWiki\r\n5\r\n", b"Wiki"),
        (b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\nHTTP/1.1 200 OK", b"Wikipedia"),
        (b"4\r\nWiki\r\nzz\r\npedia\r\n0\r\n\r\n", None),
        (b"4\r\nWiki\r\n5\r\npedia\r\nzz", None),
        (b"2\r\nWiki\r\n0\r\n\r\n", None),
        (b"2\r\nWiki\r\n5\r\npedia\r\n", None),
        (b"ffffffff\r\nWiki", b"Wiki"),
        (b"ffffffffffffffff\r\nWiki", b"Wiki"),
        (b"\r\n4\r\nWiki\r\n0\r\n\r\n", b"Wiki"),
        (b"\r\n4\r\nWi", b"\r\n4\r\nWi"),  # nothing but a whole body says that the empty line is no text
    ],
)
def test_chunks(body: bytes, expected: bytes | None) -> None:
    assert dechunk(body) == expected


PLAIN = b"A word that reads as a number began this text, which a crawler stored decoded.\n" * 30


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "word", [b"FACE", b"Decade", b"2024", b"10", b"1", b"bad", b"ACE", b"0", b"00", b"e3b0c44298fc1c149afbf4c8996fb924"]
)
def test_a_text_that_begins_with_a_hexadecimal_word_keeps_it(word: bytes, newline: bytes) -> None:
    text = word + newline + PLAIN.replace(b"\n", newline)
    assert dechunk(text, is_plain=True) == text


def test_lists_of_numbers_are_no_chunks() -> None:
    for newline in (b"\n", b"\r\n"):
        numbers = newline.join(b"%d" % number for number in range(10, 3000, 10))
        assert dechunk(numbers, is_plain=True) == numbers
    subtitles = b"1\r\n00:00:01,000 --> 00:00:02,000\r\nHello.\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nBye.\r\n"
    assert dechunk(subtitles, is_plain=True) == subtitles


@pytest.mark.parametrize("word", [b"2024", b"10", b"0"])
def test_a_decoded_page_that_begins_with_a_number_is_as_it_is(word: bytes) -> None:
    page = word + b"\n" + PAGE * 300
    assert dechunk(page) == page


def test_what_a_first_chunk_that_was_cut_off_holds_tells_it_from_a_word() -> None:
    assert dechunk(b"fffff\r\n" + PAGE, is_plain=True) == PAGE
    assert dechunk(b"fffff\r\n\x1f\x8b\x08\0\0\0\0\0\0\3xy", is_plain=True) == b"\x1f\x8b\x08\0\0\0\0\0\0\3xy"
    assert dechunk(b"fffff\r\n", is_plain=True) == b""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"4\r\nWiki\r\n0\r\n\r\n", b"Wiki"),
        (b"0000000004;x=y\r\nWiki\r\n0\r\nEtag: x\r\n\r\n", b"Wiki"),
        (b"4\r\nWiki\r\n", b"4\r\nWiki\r\n"),
        (b"4\nWiki\n0\n\n", b"4\nWiki\n0\n\n"),
        (b"4\r\nWiki\r\n0\r\n\r\nmore", b"4\r\nWiki\r\n0\r\n\r\nmore"),
        (b"0\r\n\r\n", b"0\r\n\r\n"),
        (b"FACE\r\n", b"FACE\r\n"),
        (b"", b""),
    ],
)
def test_a_body_without_a_word_about_chunks_is_chunked_as_a_whole_or_not(body: bytes, expected: bytes) -> None:
    assert whole_chunks(body) == expected


SIZES = st.tuples(st.integers(0, 12), st.booleans(), st.sampled_from([b"", b";a=b", b' ; q="x y"']))


def chunked(chunks: list[tuple[bytes, tuple[int, bool, bytes]]]) -> bytes:
    def line(size: int, zeros: int, upper: bool, extension: bytes) -> bytes:
        digits = b"0" * zeros + b"%x" % size
        return (digits.upper() if upper else digits) + extension + b"\r\n"

    return b"".join(line(len(data), *how) + data + b"\r\n" for data, how in chunks)


class Socket:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, *args: Any) -> io.BytesIO:
        return io.BytesIO(self.data)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), SIZES), min_size=1, max_size=8), st.integers(0, 400))
def test_bodies_are_joined_as_pythons_own_client_joins_them(
    chunks: list[tuple[bytes, tuple[int, bool, bytes]]], at: int
) -> None:
    body = chunked(chunks) + b"0\r\n\r\n"
    response = http.client.HTTPResponse(Socket(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body))  # type: ignore[arg-type]
    response.begin()
    content = response.read()
    assert dechunk(body) == dechunk(body, is_plain=True) == whole_chunks(body) == content
    cut = dechunk(body[:at])
    assert cut is None or content.startswith(cut) or cut == body[:at]


@given(st.text(alphabet="0123456789abcdefABCDEF\r\n ;xyz", max_size=80))
def test_no_text_is_lost_but_for_sizes(text: str) -> None:
    """Whatever comes off consists of hexadecimal digits, extensions and ends of lines."""
    body = text.encode()
    content = dechunk(body, is_plain=True)
    if content is not None and content != body:
        assert len(content) < len(body)
        left = iter(body)
        assert all(byte in left for byte in content)  # a subsequence
