"""Numbers of JSON as they are written, null texts, and bytes that are not UTF-8 beside the text."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.fields import scalar_of
from tests.transforms.read_fixtures import read, summary


def one(folder: Path, line: str | bytes, **fields: Any) -> RawDocument:
    (record,) = read(folder / "a.jsonl", line if isinstance(line, bytes) else line.encode(), "jsonl", **fields)
    assert isinstance(record, RawDocument)
    return record


@given(st.integers(-(1 << 200), 1 << 200), st.booleans())
def test_integers_of_any_size_are_exact(number: int, other: bool) -> None:
    """In an address, an identity, a note, and inside of one; however orjson reads the rest of the line."""
    line = f'{{"text": "x", "id": {number}, "in": {{"a": [{number}]}}, "n": {"NaN" if other else 0.5}}}'
    fields: dict[str, Any] = {"url_field": "https://a.example/{id}", "id_field": "id", "meta_fields": ("id", "in")}
    with TemporaryDirectory() as folder:
        record = one(Path(folder), line, **fields)
    kept = number if -(1 << 63) <= number < 1 << 64 else str(number)
    assert record.url == f"https://a.example/{number}"
    assert dict(record.meta) == {"record_id": kept, "id": kept, "in": f'{{"a": [{number}]}}'}
    assert type(record.meta["id"]) is type(kept)


def test_ids_that_differ_make_addresses_that_differ(tmp_path: Path) -> None:
    ids = [12345678901234567890123, 12345678901234567890124, 1 << 64, (1 << 64) + 1]
    lines = "".join(f'{{"text": "x", "id": {id_}}}\n' for id_ in ids)
    records = read(tmp_path / "a.jsonl", lines.encode(), "jsonl", url_field="https://a.example/{id}")
    assert [record.url for record in records] == [f"https://a.example/{id_}" for id_ in ids]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("number", "spelt", "note"),
    [
        ("1.10", "1.10", 1.1),
        ("1.1", 1.1, 1.1),
        ("1e400", "1e400", "1e400"),
        ("-1E+999", "-1E+999", "-1E+999"),
        ("1e20", "1e20", 1e20),
        ("9" * 5000, "9" * 5000, "9" * 5000),
        ("true", True, True),
        ("false", False, False),
        ("NaN", "nan", "nan"),
        ("0", 0, 0),
        ("18446744073709551615", 18446744073709551615, 18446744073709551615),
    ],
)
def test_numbers_are_as_they_are_written(tmp_path: Path, number: str, spelt: object, note: object) -> None:
    """Identities are spelt so; notes that are no integers are numbers, where there is one."""
    line = f'{{"text": "x", "id": {number}}}'
    record = one(tmp_path, line, url_field="u/{id}", id_field="id", meta_fields=("id",))
    assert dict(record.meta) == {"record_id": spelt, "id": note}
    assert [type(value) for value in record.meta.values()] == [type(spelt), type(note)]
    assert record.url == f"u/{str(spelt).lower() if isinstance(spelt, bool) else spelt}"


def test_truth_is_no_number(tmp_path: Path) -> None:
    record = one(tmp_path, '{"text": "x", "url": true, "in": [true, null]}', meta_fields=("url", "in"))
    assert (record.url, record.meta["url"], record.meta["in"]) == ("true", True, "[true, null]")


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ('{"body": {"text": null}}', "empty"),
        ('{"body": null}', "empty"),
        ('{"body": {}}', "!MissingField"),
        ('{"body": "x"}', "!MissingField"),
        ("{}", "!MissingField"),
        ('{"body": {"text": true}}', "!BadField"),
        ('{"body": {"text": 123456789012345678901234567890}}', "!BadField"),
    ],
)
def test_a_null_text_is_empty_and_a_missing_one_is_damage(tmp_path: Path, line: str, outcome: str) -> None:
    assert summary(read(tmp_path / "a.jsonl", line.encode(), "jsonl", text_field="body.text")) == [outcome]


def test_bytes_that_are_not_utf8_cost_the_line_in_the_text_alone(tmp_path: Path) -> None:
    record = one(
        tmp_path, b'{"text": "fine \xc3\xa9", "url": "u/\xe9", "in": {"a": ["\xff"]}, "z": "\xff"}', meta_fields=("in",)
    )
    assert (record.content, record.url, record.meta["in"]) == ("fine é", "u/\ufffd", '{"a": ["\ufffd"]}')
    assert record.found == ("value-as-text/url", "value-as-text/in")
    assert one(tmp_path, b'{"text": "fine", "z": "\xff"}').found == ()
    assert summary(read(tmp_path / "a.jsonl", b'{"text": "b\xe9", "url": "u"}', "jsonl")) == ["!BadJson"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(), st.lists, max_leaves=8
    )
)
def test_anything_is_a_scalar(value: Any) -> None:
    assert type(scalar_of(value)) in (type(None), str, int, float, bool)
