"""pii.matching: datatrove. Expectations follow FineWeb's patterns by hand; docs/conformance.md has the comparison."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.filter.pii import PiiParams, find_pii

KINDS = ("phone", "mac", "iban", "card", "imei", "ssn", "national_id", "user_path")


def taken(text: str, **on: Any) -> list[str]:
    """What is taken as an e-mail or IP address, in order."""
    params = PiiParams(**{**dict.fromkeys(KINDS, False), "matching": "datatrove", **on})
    return [text[span.start : span.end] for span in find_pii(text, params)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mail dev@example.org.", ["dev@example.org"]),
        ("https://host/list/dev@example.org/thread", ["host/list/dev@example.org"]),  # a path is an atom there
        ("icon@2x.png, pip@1.3.1", ["icon@2x.png", "pip@1.3.1"]),
        ("name at example.org, name (at) example.org", []),
        ("a..b@x.co, .c@x.co, d.@x.co", ["b@x.co", "c@x.co"]),  # no empty atoms
        ("=?q@x.co", ["q@x.co"]),  # begins at the edge of a word
        ("so!q@x.co", ["so!q@x.co"]),
        ("éab@x.co é.ab@x.co", ["ab@x.co"]),  # é is a letter of the word that ends in ab
        ("日本ab-c@x.co", ["-c@x.co"]),
        ("@x.co, a@, a@b, a@-b.co, a@b-.co", []),
        ("a@b@c.co d@e.co@f.co", ["b@c.co", "d@e.co"]),  # an address that was taken is the floor of the next
        ("u@[8.8.8.8] u@[8.8.8.a-b:] u@[8.8.8]", ["u@[8.8.8.8]", "u@[8.8.8.a-b:]"]),
        ("u@x.co_y u@x.co9", ["u@x.co", "u@x.co9"]),  # no edge is asked for at the end
        ("ANSI 4.9.6.2 and v8.8.8.8.1", ["4.9.6.2", "8.8.8.8"]),
        ("8.8.8.256 and 300.8.8.8", ["8.8.8.25"]),  # pieces; "00" is no number of an address
        ("192.168.0.1, 127.0.0.1, 2a00:1450:4001:81b::200e", []),
        ("8.8.4.4@x.co 8.8.4.4", ["8.8.4.4@x.co", "8.8.4.4"]),
    ],
)
def test_matches(text: str, found: list[str]) -> None:
    assert taken(text) == found


def test_switches() -> None:
    text = "8.8.4.4@x.co 10.0.0.1"
    assert taken(text, email=False) == ["8.8.4.4"]
    assert taken(text, email=False, private_ip=True) == ["8.8.4.4", "10.0.0.1"]
    assert taken(text, ip=False) == ["8.8.4.4@x.co"]


@given(st.text(st.sampled_from("a1.@-_!é [:]\n"), max_size=30))
def test_addresses_have_one_at_and_spans_are_in_order(text: str) -> None:
    spans = find_pii(text, PiiParams(matching="datatrove"))
    assert all(text[span.start : span.end].count("@") == 1 for span in spans if span.kind == "email")
    assert all(a.end <= b.start for a, b in pairwise(spans))


def test_runs_of_signs_cost_linear_time() -> None:
    """A search that went back to the last sign at every @ would not end."""
    assert taken("!" * 200_000 + "@" * 200_000 + "a." * 200_000 + "@") == []
