"""Words, hidden parts and open elements of a page, beside regular expressions that read it one thing at a time."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.page_rights import open_elements, page_declarations
from refinery.transforms.native import markup
from tests.transforms.rights.rights_files import PAGES

HIDING = re.compile(rb"<!--|<(script|style|template|noscript)[\s>/]", re.IGNORECASE)
HOLDERS = re.compile(
    rb"<(/?)(head|body|header|footer|aside|figure|figcaption|article|section|main|nav|div|blockquote|li|span|p|small"
    rb"|td|table|ol|ul|address|cite|em)(?:[\s/][^<>]*)?>",
    re.IGNORECASE,
)
MOST_OPEN, MOST_CLOSED = 500, 8
ALL = 2**63 - 1
Span = tuple[int, int]


class Slow:
    """The kernel's functions, in Python."""

    @staticmethod
    def places(page: str | bytes, words: Sequence[bytes], until: int, any_case: bool, most: int) -> list[int]:
        data = (page.encode() if isinstance(page, str) else page)[:until]
        data = data.lower() if any_case else data
        found = [match.start() for word in words for match in re.finditer(re.escape(word), data)]
        return found[:most]

    @staticmethod
    def hidden(page: str | bytes, until: int) -> list[Span]:
        data = page.encode() if isinstance(page, str) else page
        spans, at = [], 0
        while begin := HIDING.search(data, at, min(until, len(data))):
            close = rb"-->" if begin[1] is None else b"(?=</" + begin[1] + rb"[\s>/])"
            end = re.compile(close, re.IGNORECASE).search(data, begin.end())
            at = end.end() if end else len(data)
            spans.append((begin.start(), at))
        return spans

    @staticmethod
    def open_tags(page: str | bytes, places: Sequence[int]) -> list[list[Span]]:
        data = page.encode() if isinstance(page, str) else page
        spans = Slow.hidden(data, int(places[-1])) if len(places) else []
        tags = [tag for tag in HOLDERS.finditer(data) if not any(a <= tag.start() < b for a, b in spans)]
        return [list(Slow.open_behind([tag for tag in tags if tag.start() < place])) for place in places]

    @staticmethod
    def open_behind(tags: Sequence[re.Match[bytes]]) -> Iterator[Span]:
        stack: list[tuple[bytes, Span]] = []
        for tag in tags:
            name = tag[2].lower()
            if tag[1]:
                close(stack, name, MOST_CLOSED)
            elif len(stack) < MOST_OPEN and not tag[0].endswith(b"/>"):
                if name == b"p":
                    close(stack, b"p", 1)
                stack.append((name, tag.span()))
        return (span for _, span in stack)


def close(stack: list[tuple[bytes, Span]], name: bytes, most: int) -> None:
    for back in range(1, min(most, len(stack)) + 1):
        if stack[-back][0] == name:
            del stack[-back:]
            return


@pytest.mark.parametrize(
    ("page", "words", "until", "any_case", "most", "found"),
    [
        (b"", (b"a",), ALL, False, 9, []),
        (b"abcab", (b"ab", b"c"), ALL, False, 9, [0, 3, 2]),
        (b"abcab", (b"ab", b"c"), ALL, False, 2, [0, 3]),
        (b"abcab", (b"ab",), 4, False, 9, [0]),
        (b"aaaaa", (b"aa",), ALL, False, 9, [0, 2]),
        (b"NoAI noai nOaI", (b"noai",), ALL, True, 9, [0, 5, 10]),
        (b"NoAI noai nOaI", (b"noai",), ALL, False, 9, [5]),
        (b"A-B a\rb a-b", (b"a-b",), ALL, True, 9, [0, 8]),  # a hyphen has no other case
        (b"AB ab", (b"AB",), ALL, True, 9, []),  # looked for in small letters
        ("\u00e9noai", (b"noai",), ALL, False, 9, [2]),  # bytes of UTF-8 are counted
        (b"\xff\x00noai\xff", (b"noai",), ALL, False, 9, [2]),
    ],
)
def test_places(page: Any, words: Any, until: int, any_case: bool, most: int, found: list[int]) -> None:
    assert markup.places(page, words, until, any_case, most) == found
    assert Slow.places(page, words, until, any_case, most) == found


@given(
    st.lists(st.sampled_from([b"licen", b"LICEN", b"lxcen", b"ice", b"n", b"\xe9", b"cc" * 130, b"r"]), max_size=60),
    st.sampled_from([(b"licen",), (b"n", b"ice"), (b"c" * 64,), (b"cr", b"cc", b"c")]),
    st.integers(0, 900) | st.just(ALL),
    st.booleans(),
    st.integers(1, 30),
)
def test_places_are_those_of_a_plain_search(
    page: list[bytes], words: tuple[bytes, ...], until: int, any_case: bool, most: int
) -> None:
    given_ = b"".join(page), words, until, any_case, most
    assert markup.places(*given_) == Slow.places(*given_)


@pytest.mark.parametrize("word", [b"reativecommons", b"tdm-reservation", b"noai", b"x", b"<body"])
def test_a_word_is_found_wherever_a_stretch_of_256_places_ends(word: bytes) -> None:
    for before in range(240, 275):
        for behind in (0, 1, 300):
            page = b"." * before + word + b"." * behind
            assert markup.places(page, (word,), ALL, True, 9) == [before]
            assert markup.places(page, (word,), before + len(word) - 1, True, 9) == []


PIECES = [b"<!--", b"-->", b"<!-->", b"--", b">", b"<", b"/", b" ", b"\x0b", b"<ScRipt>", b"</script ", b"</script\xe9"]
PIECES += [b"<style", b"<style/", b"</STYLE>", b"<template>", b"</template\n", b"<noscript>", b"</noscript>", b"x"]
PIECES += [b"<p>", b"<P class=a>", b"</p>", b"<div", b"<div/>", b"<div id='>", b"</div>", b"<DIV\f>", b"<li>", b"</ul>"]
PIECES += [b"<figure>", b"<figcaption>", b"</figure>", b"<em></em>", b"<body>", b"<head>", b"<header>", b"<pre>"]
MARKUP = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)


@pytest.mark.parametrize(
    ("page", "until", "spans"),
    [
        (b"a<!--b-->c<!--d", ALL, [(1, 9), (10, 15)]),
        (b"<!-->a-->", ALL, [(0, 9)]),  # a parser would end it at once; nothing is lost by looking further
        (b"<script>'</scripts>'</SCRIPT>", ALL, [(0, 20)]),
        (b"<scripts><style\n></style/", ALL, [(9, 17)]),
        (b"<!-- <script> --> <template>", ALL, [(0, 17), (18, 28)]),
        (b"<!--a--><!--b-->", 11, [(0, 8)]),
        (b"<!--a--><!--b-->", 12, [(0, 8), (8, 16)]),
    ],
)
def test_hidden(page: bytes, until: int, spans: list[Span]) -> None:
    assert markup.hidden(page, until) == Slow.hidden(page, until) == spans


@given(MARKUP, st.integers(0, 200) | st.just(ALL))
def test_hidden_is_what_a_plain_search_finds(page: bytes, until: int) -> None:
    assert markup.hidden(page, until) == Slow.hidden(page, until)


@pytest.mark.parametrize(
    ("page", "tags"),
    [
        (b"<body><p>a<p>b", [b"<body>", b"<p>"]),
        (b"<div><p>a</div>b", []),
        (b"<div/><ul><li>a<li>b", [b"<ul>", b"<li>", b"<li>"]),
        (b"<div>" * 3 + b"<em>" * 8 + b"</div>", [b"<div>"] * 3 + [b"<em>"] * 8),  # nobody forgets eight
        (b"<!-- <div> --><div <p class='a'><x>", [b"<p class='a'>"]),
        (b"<figure>a</figure><figcaption>", [b"<figcaption>"]),
        (b"<div>" * 600, [b"<div>"] * 500),
    ],
)
def test_open_tags(page: bytes, tags: list[bytes]) -> None:
    places = np.array([0, len(page)])
    found = markup.open_tags(page, places)
    assert found == Slow.open_tags(page, places.tolist())
    assert [[page[begin:end] for begin, end in spans] for spans in found] == [[], tags]


@given(MARKUP, st.lists(st.integers(0, 300), max_size=4))
def test_open_tags_are_those_of_a_plain_reading(page: bytes, places: list[int]) -> None:
    ascending = sorted(min(place, len(page)) for place in places)
    assert markup.open_tags(page, np.array(ascending, np.int64)) == Slow.open_tags(page, ascending)


DECLARED = [page.encode() for page, notes in PAGES if notes]


@given(st.lists(st.sampled_from(PIECES + DECLARED), max_size=12).map(b"".join))
def test_declarations_are_the_same_with_either(page: bytes) -> None:
    found = page_declarations.page_declarations(page)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_declarations, "markup", Slow)
        patch.setattr(open_elements, "markup", Slow)
        assert found == page_declarations.page_declarations(page)


def test_a_str_is_read_as_its_utf8() -> None:
    page = "é<!-- ü --><div>ß<p>noai"
    data, end = page.encode(), np.array([len(page.encode())])
    assert markup.places(page, (b"noai",), ALL, False, 1) == markup.places(data, (b"noai",), ALL, False, 1)
    assert markup.hidden(page, ALL) == markup.hidden(data, ALL) != []
    assert markup.open_tags(page, end) == markup.open_tags(data, end) != [[]]
    with pytest.raises(UnicodeEncodeError):
        markup.hidden("\ud800", 1)
