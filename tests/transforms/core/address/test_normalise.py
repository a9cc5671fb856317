"""Spellings of one address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.address.normalise import (
    ADDRESS_BYTES,
    MAX_ADDRESS,
    TRACKING,
    address_hash,
    normalise_address,
)

SAME = {
    "https://example.com/": (
        "http://example.com",
        "HTTPS://EXAMPLE.com",
        "https://example.com:443/",
        "http://example.com:0080",
        "https://user:password@example.com/",
        "https://example.com.",
        "  https://example.com/\n",
        "https://exam\tple.com//",
        "https:\\\\example.com\\",
        "https://ex%61mple.com",
        "https://example.com/#top",
        "https://example.com/?",
        "https://example.com/?&&utm_source=a&FBCLID=b",
        "https://example.com/a/..",
        "https://example.com/../..",
    ),
    "https://example.com/a/b": (
        "https://example.com/a/b/",
        "https://example.com/a/./b",
        "https://example.com/a/c/%2e%2E/b",
        "https://example.com/a/b;jsessionid=1A530637289A03B07199A44E8D531427",
        "https://example.com/(S(4hqa0555fwsecu455xqckv45))/a/b",
        "https://example.com/a/b?PHPSESSID=3wxh1ky2f3pxyl4hqa0555fwsecu455x",
        "https://example.com/a/b?sid=4hqa0555fwsecu455xqckv454hqa0555&CFTOKEN=5367289",
    ),
    "https://example.com/~a%20b%2Fc%C3%BC": (
        "https://example.com/%7Ea b%2fcü",
        "https://example.com/~a%20b%2Fc%c3%bc",
    ),
    "https://example.com/?a=1&a=0&b&c=x%20y": (
        "https://example.com/?c=x+y&b&a=1&a=0",
        "https://example.com?a=1&b&c=x%20y&a=0&utm%5Fid=7",
    ),
    "https://example.com/?p=%2525%25zz%2B": ("https://example.com/?p=%2525%zz%2b",),
    "https://example.com:8080/#!/page": ("http://example.com:8080#!/page",),
    "https://xn--exmple-cua.com/": ("https://exämple.com", "https://EXÄMPLE.com", "https://ex%C3%A4mple.com"),
    "https://[2001:db8::1]/": ("http://[2001:0DB8:0:0:0:0:0:1]:80",),
}

NONE = (
    *("", "example.com/page", "mailto:a@example.com", "ftp://example.com/a", "urn:isbn:0451450523", "doc-17"),
    *(
        "https://",
        "https:///",
        "https://:80/",
        "https://a b/",
        "https://example.com:http/",
        "https://[::1",
        "https://a%2fb",
    ),
    "https://example.com:123456/",
    "https://example.com/" + "a" * MAX_ADDRESS,
)

APART = (
    ("https://example.com/a", "https://example.com/A"),
    ("https://example.com/a", "https://www.example.com/a"),
    ("https://example.com/a", "https://example.com/a/index.html"),
    ("https://example.com/a%2Fb", "https://example.com/a/b"),
    ("https://example.com/?a=1&a=2", "https://example.com/?a=2&a=1"),
    ("https://example.com/?id=1", "https://example.com/?id=2"),
    ("https://example.com/?sid=12", "https://example.com/?sid=13"),  # no session: too short for one
    ("https://example.com:8080/", "https://example.com/"),
    ("https://example.com/#!a", "https://example.com/#!b"),
)


@pytest.mark.parametrize(("url", "normal"), [(url, normal) for normal, urls in SAME.items() for url in (normal, *urls)])
def test_one_spelling(url: str, normal: str) -> None:
    assert normalise_address(url) == normal


@pytest.mark.parametrize("url", NONE)
def test_no_web_address(url: str) -> None:
    assert normalise_address(url) == ""
    assert address_hash(url) == bytes(ADDRESS_BYTES)


@pytest.mark.parametrize(("one", "other"), APART)
def test_other_pages_stay_apart(one: str, other: str) -> None:
    assert normalise_address(one) != normalise_address(other)
    assert address_hash(one) != address_hash(other)


def test_tracking_names_are_compared_in_lower_case() -> None:
    assert {name.lower() for name in TRACKING} == TRACKING


PIECES = st.sampled_from(
    (
        *(
            "http://",
            "https://",
            "//",
            "/",
            "\\",
            "..",
            ".",
            "%2e",
            "%",
            "%4",
            "41",
            "%25",
            ";jsessionid=",
            "?",
            "&",
            "=",
        ),
        *(
            "#",
            "#!",
            "utm_source",
            "sid=",
            "+",
            "a",
            "Ä",
            "ß",
            "\u0130",
            "\ud800",
            ":80",
            ":",
            "@",
            "[",
            "]",
            "::1",
            " ",
        ),
        *("\t", "(S(4hqa0555fwsecu455xqckv45))", "xn--", "example.com", "。", "\u200d", "%C3", "x" * 70),
    )
)
HOSTILE = st.one_of(
    st.text(), st.lists(PIECES).map("".join), st.lists(PIECES).map(lambda p: "https://a.b/" + "".join(p))
)


@given(HOSTILE)
def test_normalising_twice_changes_nothing(url: str) -> None:
    normal = normalise_address(url)
    assert normalise_address(normal) == normal
    assert normal.isascii()
    assert normal.isprintable()
    assert len(address_hash(url)) == ADDRESS_BYTES


@given(st.text(st.characters(exclude_characters="#", codec="utf-8"), max_size=50))
def test_what_follows_the_visitor_changes_nothing(value: str) -> None:
    assert normalise_address(f"https://a.b/c?d=e&fbclid={value.replace('&', '')}") == "https://a.b/c?d=e"
