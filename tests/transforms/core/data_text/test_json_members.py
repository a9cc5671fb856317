"""Members of JSON objects as they are written."""

import datetime
import json
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.data_text.json_members import (
    apart,
    is_readable,
    joined,
    map_texts,
    raw_members,
    to_json,
    without,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_members_are_slices_of_the_text(record: dict[str, Any], indent: int | None, ascii_: bool) -> None:
    text = json.dumps(record, indent=indent, ensure_ascii=ascii_)
    found = raw_members(f" {text}\t")
    assert list(found) == list(record) and all(value in text for value in found.values())
    assert {name: json.loads(value) for name, value in found.items()} == record
    assert json.loads(joined(found)) == record
    upper = map_texts(text, str.upper)
    assert json.loads(upper) == json.loads(json.dumps(_upper(record)))
    assert map_texts(text, str) == text


def _upper(value: Any) -> Any:
    if isinstance(value, dict):
        return {name.upper(): _upper(inner) for name, inner in value.items()}
    return (
        [_upper(each) for each in value] if isinstance(value, list) else value.upper() if type(value) is str else value
    )


@given(VALUES)
def test_values_of_python(value: Any) -> None:
    text, is_exact = to_json(value)
    assert json.loads(text) == value and is_exact


def test_numbers_and_spaces_stay() -> None:
    text = '{"a":1e3 , "b" :123456789012345678901234,"a": [1.10 ,{"z":0,"y":0}] }'
    assert raw_members(text) == {"b": "123456789012345678901234", "a": '[1.10 ,{"z":0,"y":0}]'}
    with pytest.raises(ValueError, match="no JSON object"):
        raw_members("[1]")


@pytest.mark.parametrize(
    ("value", "text", "is_exact"),
    [
        (float("nan"), '"nan"', False),
        ("a\ud800", '"a"', False),
        (b"\xff\x00", '"/wA="', True),
        (Decimal("1.10"), "1.10", True),
        (Decimal("Infinity"), '"Infinity"', False),
        (datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC), '"2026-01-02T03:00:00+00:00"', True),
        ([("k", 1)], '[["k",1]]', True),
        ({"a\ud800": 1}, '{"a":1}', False),
        (datetime.timedelta(1), '"1 day, 0:00:00"', False),
    ],
)
def test_values_that_json_has_not(value: Any, text: str, is_exact: bool) -> None:
    assert to_json(value) == (text, is_exact)
    assert is_readable(text)


@pytest.mark.parametrize("text", ["NaN", "1e400", '"\\ud800"', "", "{"])
def test_what_not_every_reader_takes(text: str) -> None:
    assert not is_readable(text)


def test_without() -> None:
    members = raw_members('{"a":{"b":1, "c":{"d":2,"e":3}},"a.b":4,"f":5}')
    assert "a.b" not in without(members, "a.b") and without(members, "a.b")["a"] == members["a"]
    assert orjson.loads(without(members, "a.c.d")["a"]) == {"b": 1, "c": {"e": 3}}
    assert without(members, "f.g") == without(members, "x.y") == members


def test_names_apart() -> None:
    assert apart("id", ()) == "id" and apart("id", {"id", "input_id"}) == "input_input_id"
