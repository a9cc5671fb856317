"""Kept fields as typed columns: what Parquet had comes out as it was, and what fits no column stays JSON."""

import datetime
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import Fields
from refinery.loader.format.kept_columns import KeptColumn, kept_schema, parse_kept_columns, parse_type, plain_type
from refinery.transforms.core.data_text.json_members import to_json
from refinery.transforms.read.formats.parquet import rows_of
from refinery.transforms.write.kept_values import KeptValues, plan_columns

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 600)
ZONE = datetime.timezone(datetime.timedelta(hours=2, minutes=30))
STRUCT = pa.struct([("b", pa.int8()), ("a", pa.list_(pa.field("element", pa.float32())))])
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 127]),
    "huge": (pa.uint64(), [2**64 - 1, 0]),
    "single": (pa.float32(), [0.1, float("inf")]),
    "double": (pa.float64(), [0.1, -1e300]),
    "name": (pa.string(), ["ü\n\"'", ""]),
    "raw": (pa.binary(), [b"\xff\x00", b""]),
    "day": (pa.date32(), [WHEN.date(), datetime.date(1, 1, 1)]),
    "ms": (pa.timestamp("ms"), [WHEN.replace(microsecond=5000), None]),
    "us": (pa.timestamp("us"), [WHEN, None]),
    "ns": (pa.timestamp("ns"), [1_767_323_045_000_000_001, -1]),
    "instant": (pa.timestamp("us", "UTC"), [WHEN.replace(tzinfo=ZONE), None]),
    "far": (pa.timestamp("ms"), [10**15, -(10**14)]),  # years beyond those of Python
    "price": (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-0.01")]),
    "large": (pa.decimal256(60, 1), [Decimal("9" * 59 + ".1"), None]),
    "struct": (STRUCT, [{"b": 1, "a": [0.5, None]}, None]),
    "pairs": (pa.map_(pa.string(), STRUCT), [[("k", {"b": None, "a": []})], []]),
    "lists": (pa.list_(pa.field("element", pa.list_(pa.field("element", pa.date32())))), [[[WHEN.date()], None], []]),
}
TABLE = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})


def stored(table: pa.Table) -> pa.Table:
    """As Parquet gives it back."""
    out = io.BytesIO()
    pq.write_table(table, out, store_schema=False)
    return pq.read_table(out)


def columns_of(schema: pa.Schema) -> list[KeptColumn]:
    return [KeptColumn(field.name, field.name, parse_type(plain_type(field.type))) for field in schema]


def typed(records: list[Mapping[str, Any]], columns: list[KeptColumn]) -> tuple[pa.Table, list[str]]:
    values = KeptValues(columns)
    found = [values.split(to_json(record)[0]) for record in records]
    return pa.Table.from_pylist([row for row, _ in found], schema=pa.schema(kept_schema(columns))), [
        r for _, r in found
    ]


def test_every_type_comes_out_as_it_was() -> None:
    table = stored(TABLE)
    (batch,) = table.to_batches()
    found, rest = typed(rows_of(batch), columns_of(table.schema))
    assert rest == ["", ""]
    assert stored(found).equals(table) and stored(found).schema.equals(table.schema)


@pytest.mark.parametrize(
    ("kind", "stands_for"),
    [
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.binary(4), "binary"),
        (pa.timestamp("s", "Europe/Berlin"), "timestamp[ms, UTC]"),
        (pa.large_list(pa.int8()), {"list": "int8"}),
    ],
)
def test_types_that_are_stored_as_others(kind: pa.DataType, stands_for: Any) -> None:
    assert plain_type(kind) == stands_for and plain_type(parse_type(stands_for)) == stands_for


@pytest.mark.parametrize("kind", [pa.null(), pa.duration("s"), pa.struct([]), pa.float16(), pa.time32("s")])
def test_types_without_a_column(kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match="has no column"):
        plain_type(kind)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int8", "128"),
        ("int8", "1.0"),
        ("int64", '"1"'),
        ("int64", "true"),
        ("uint8", "-1"),
        ("float64", "9007199254740993"),
        ("float64", '"0.5"'),
        ("float32", "0.1"),
        ("string", "1.5"),
        ("binary", '"!"'),
        ("date", '"2026-13-01"'),
        ("timestamp[us]", '"2026-01-01T00:00:00Z"'),
        ("timestamp[us, UTC]", '"2026-01-01T00:00:00"'),
        ("timestamp[ms]", '"2026-01-01T00:00:00.000001"'),
        ("decimal(3, 1)", "1.25"),
        ("decimal(3, 1)", "1000"),
        ({"list": "int8"}, "[1,1000]"),
        ({"struct": [["a", "int8"]]}, '{"a":1,"b":2}'),
        ({"map": ["string", "int8"]}, '[["a"]]'),
    ],
)
def test_what_does_not_fit_stays_as_it_is_written(kind: Any, text: str) -> None:
    values = KeptValues([KeptColumn("x", "x", parse_type(kind))])
    assert values.split(f'{{"x":{text},"y":1e3}}') == ({"x": None}, f'{{"x":{text},"y":1e3}}')


def test_the_rest() -> None:
    values = KeptValues([KeptColumn("input_id", "id", pa.int64()), KeptColumn("n", "n", pa.float64())])
    assert values.split('{"id":7,"z": [1e3]}') == ({"input_id": 7, "n": None}, '{"z":[1e3]}')
    assert values.split('{"id":null,"n":1e3}') == ({"input_id": None, "n": 1000.0}, "")
    assert values.split("") == ({"input_id": None, "n": None}, "")
    assert KeptValues([]).split('{"a":1}') == ({}, '{"a":1}')


@pytest.mark.parametrize(
    "plain",
    ["int", "decimal(2, 3)", "decimal(99, 1)", {}, {"list": "int8", "map": 1}, {"struct": []}, {"map": ["int8"]}, 7,
     {"struct": [["a", "int8"], ["a", "int8"]]}, {"struct": [["a"]]}, None],
)  # fmt: skip
def test_no_types(plain: Any) -> None:
    with pytest.raises(ValueError, match="a type of a column is allowed"):
        parse_type(plain)
    deep: Any = "int8"
    for _ in range(40):
        deep = {"list": deep}
    with pytest.raises(ValueError, match="a type of a column is allowed"):
        parse_type(deep)


def source(name: str, types: dict[str, Any]) -> Any:
    return SimpleNamespace(name=name, enabled=True, field_types=types)


def test_columns_of_a_recipe() -> None:
    texts, tokens = (SimpleNamespace(counts_tokens=counts) for counts in (False, True))
    sources: Any = [source("a", {"n": "int8", "id": "int64"}), source("b", {"n": "int8", "input_id": "string"})]
    found = plan_columns(sources, (), texts)  # type: ignore[arg-type]  # all that is asked of a writer
    assert [(column.name, column.field) for column in found] == [
        ("input_input_id", "id"),
        ("input_id", "input_id"),
        ("n", "n"),
    ]
    assert plan_columns(sources, (), tokens) == ()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"source c: fields: 'n' is string, int8 in source a; give both one type"):
        plan_columns([*sources, source("c", {"n": "string"})], (), texts)  # type: ignore[arg-type]


def test_a_manifest_says_which_columns_there_are() -> None:
    columns = columns_of(stored(TABLE).schema)
    payload = json.loads(json.dumps({"kept_fields": [column.plain() for column in columns]}))
    assert list(parse_kept_columns(Fields(payload, "m"), "kept_fields", ())) == columns
    assert parse_kept_columns(Fields({}, "m"), "kept_fields", ()) == ()
    for wrong in ({"name": "a b"}, {"name": "id"}, {"type": "int"}, {"field": 7}):
        entry = {"name": "a", "field": "a", "type": "int8", **wrong}
        with pytest.raises(FormatError):
            parse_kept_columns(Fields({"kept_fields": [entry]}, "m"), "kept_fields", ("id",))
