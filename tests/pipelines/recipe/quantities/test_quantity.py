"""Numbers as people write and read them."""

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.recipe.quantities import quantity
from refinery.pipelines.recipe.quantities.quantity import (
    parse_quantity,
    parse_share,
    parse_whole,
    show,
    three_digits,
    typed,
)
from refinery.pipelines.reports.plan import javascript


def test_the_examples_of_the_docstrings() -> None:
    for module in (quantity, javascript):
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0.0), ("64", 64.0), ("14.8T", 14.8e12), ("6PB", 6e15), ("6 PB", 6e15), (" 1_000k ", 1e6), (".5M", 5e5)],
)
def test_quantities(text: str, value: float) -> None:
    assert parse_quantity(text, "bytes") == value
    if "B" not in text:
        assert parse_quantity(text, "tokens") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("100B", 100e9), ("15b", 15e9), ("2B", 2e9), ("2e9", 2e9), ("2E9", 2e9), ("1.5T", 1.5e12), ("10k", 1e4)],
)
def test_b_is_billion_of_what_is_counted(text: str, value: float) -> None:
    for kind in ("tokens", "count", "number", "dollars", "tokens/s"):
        assert parse_quantity(text, kind) == value
    assert parse_whole(text, "count") == value


@pytest.mark.parametrize(("text", "number"), [("100B", "100"), ("15b", "15"), ("2 B", "2"), ("1.5B", "1.5")])
def test_a_bare_b_of_bytes_is_refused_with_both_readings(text: str, number: str) -> None:
    says = f"{number} bytes or {number} billion\\? write {number} bytes or {number} GB"
    for kind in ("bytes", "bytes/s"):
        with pytest.raises(ValueError, match=says):
            parse_quantity(text, kind)
    with pytest.raises(ValueError, match=says):
        parse_whole(text, "bytes")
    assert parse_whole(f"{number} GB", "bytes") == float(number) * 1e9


def test_whole_numbers_are_exact() -> None:
    assert parse_whole("9.007199254740993P", "count") == 9_007_199_254_740_993
    assert parse_whole("100 bytes", "bytes") == 100
    for text in ("1.5", "0.0001k", "1e999", "1e40"):
        with pytest.raises(ValueError, match="a whole number is expected"):
            parse_whole(text, "count")


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1 KiB", "1Q", "inf", "nan", "0x10", "1e999", "1e9999", "1,5", "٣", "1" * 400]
)
@pytest.mark.parametrize("kind", ["bytes", "tokens"])
def test_no_quantities(text: str, kind: str) -> None:
    with pytest.raises(ValueError, match="is expected"):
        parse_quantity(text, kind)


@pytest.mark.parametrize("text", ["14.8TB", "6 PB", "100 bytes"])
def test_bytes_are_no_counts(text: str) -> None:
    with pytest.raises(ValueError, match="is expected"):
        parse_quantity(text, "tokens")


@pytest.mark.parametrize("text", ["0", "0%", "101%", "1.01", "-0.1", "x", "", "1e-3", "5 % of it"])
def test_no_shares(text: str) -> None:
    with pytest.raises(ValueError, match="a share above 0 and up to 1"):
        parse_share(text)


@given(st.floats(0, 1e30))
def test_what_is_typed_is_read_as_it_was(value: float) -> None:
    assert parse_quantity(typed(value), "bytes") == parse_quantity(typed(value), "tokens") == value


@given(st.floats(1e-9, 1e30))
def test_three_digits_are_close(value: float) -> None:
    assert float(three_digits(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (999.6, "bytes", "1 kB"),
        (999_500.0, "bytes/s", "1 MB/s"),
        (14.8e12, "tokens", "14.8 T tokens"),
        (12.0, "tokens", "12 tokens"),
        (0.0, "bytes", "0 B"),
        (4960.3, "number", "4,960"),
        (1234567.0, "count", "1,234,567"),
        (1.0, "share", "100 %"),
        (116818.0, "dollars", "$117,000"),
        (1e22, "bytes", "10,000 EB"),
    ],
)
def test_numbers_for_people(value: float, kind: str, text: str) -> None:
    assert show(value, kind) == text


def test_typed_is_short() -> None:
    assert [typed(value) for value in (6e15, 14.8e12, 1e6, 0.056, 54.0)] == ["6P", "14.8T", "1M", "0.056", "54"]
    assert len(typed(math.pi)) <= 17
