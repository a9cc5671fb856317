"""What is replaced in the address of a dropped document, and what is left."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refinery.transforms.redaction.redact_address import redact_address

TOKEN = "ghp_" + "i0VpEBOWfbZAVaBSo63bbH6xnAbnBEoonCrb"

CASES = {
    "": "",
    "https://example.com/a?page=2&q=cats#top": "https://example.com/a?page=2&q=cats#top",
    "https://medium.example/@writer/post": "https://medium.example/@writer/post",
    "https://anna:pw@example.com/": "https://REDACTED@example.com/",
    "https://anna@example.com:8080/": "https://REDACTED@example.com:8080/",
    "//anna:p@w@example.com/": "//REDACTED@example.com/",
    "anna:pw@example.com/a": "REDACTED@example.com/a",
    "https:\\\\anna:pw@example.com": "https:\\\\REDACTED@example.com",
    "mailto:anna@example.com": "mailto:REDACTED@example.com",
    "https://e.org/?access_token=abc&a=1": "https://e.org/?access_token=REDACTED&a=1",
    "https://e.org/?a=1&API%5FKEY=abc": "https://e.org/?a=1&API%5FKEY=REDACTED",
    "https://e.org/?X-Amz-Signature=0f&X-Amz-Date=1": "https://e.org/?X-Amz-Signature=REDACTED&X-Amz-Date=1",
    "https://e.org/#access_token=abc&state=1": "https://e.org/#access_token=REDACTED&state=REDACTED",
    "https://e.org/a;jsessionid=0f?b=1": "https://e.org/a;jsessionid=REDACTED",
    "https://e.org/?design=1&assign=2&zipcode=3": "https://e.org/?design=1&assign=2&zipcode=3",
    "https://e.org/reset/anna.b@mail.example/x": "https://e.org/reset/REDACTED/x",
    "https://e.org/?to=anna%40mail.example&b=1": "https://e.org/?to=REDACTED&b=1",
    "https://e.org/?to=anna%2540mail.example": "https://e.org/?to=REDACTED",
    "https://e.org/?next=https://anna:q7zXw91LmPa@f.org/": "https://e.org/?next=https://anna:REDACTED/",
    f"https://e.org/{TOKEN}/log": "https://e.org/REDACTED/log",
}


@pytest.mark.parametrize("url", CASES)
def test_redacted(url: str) -> None:
    assert redact_address(url) == CASES[url]


@given(
    st.lists(
        st.sampled_from(
            (
                "https://",
                "//",
                "/",
                "\\",
                "@",
                "%40",
                ":",
                "?",
                "&",
                ";",
                "#",
                "=",
                "token",
                "a",
                "e.org",
                "\ud800",
                TOKEN,
            )
        )
    ).map("".join)
    | st.text()
)
@example("@" * 50)
@example(f"{TOKEN}https://@")
def test_redacting_twice_changes_nothing(url: str) -> None:
    """`refinery trace` looks for an address as its row has it, whether an earlier stage had redacted it or not."""
    once = redact_address(url)
    assert redact_address(once) == once
    assert not re.search(rf"(?<![\w+-]){TOKEN}(?![\w/+-])", once)  # in a longer word, or base64, it is no token


def test_a_rule_that_stops_inside_a_character() -> None:
    """Rules read 512 bytes of a value; no address makes the row of a dropped document fail."""
    for length in range(500, 516):
        for text in (
            "https://e.org/x password=" + "a" * length + "é" * 40,
            "https://u:" + "é" * length + "@e.org//u:" + "é" * 600,
        ):
            assert redact_address(text)


def test_cost_grows_with_length_alone() -> None:
    """No pattern tries every beginning: a hostile address of a megabyte is one pass."""
    assert redact_address("https://e.org/" + "a" * 1_000_000) == "https://e.org/" + "a" * 1_000_000
    assert redact_address("https://e.org/" + "a." * 500_000 + "@") == "https://e.org/" + "a." * 500_000 + "@"
