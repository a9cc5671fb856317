"""Values of Parquet columns that Python, or pyarrow without pandas, cannot take: none costs a document."""

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.values.arrow_values import values_of
from tests.sampling import one_commit_in_four
from tests.transforms.read_fixtures import read, summary

NANOS = 1_700_000_000_123_456_789
UTC = "2023-11-14 22:13:20.123456789"


def view(values: list[Any], kind: pa.DataType, as_: pa.DataType) -> pa.Array:
    return pa.array(values, kind).view(as_)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array([NANOS, None], pa.timestamp("ns")), [UTC, None]),
        (pa.array([NANOS], pa.timestamp("ns", "Europe/Berlin")), ["2023-11-14 23:13:20.123456789+01:00"]),
        (pa.array([NANOS], pa.timestamp("ns", "Mars/Olympus")), [f"{UTC}+00:00"]),
        (pa.array([0], pa.timestamp("us", "Mars/Olympus")), ["1970-01-01 00:00:00+00:00"]),
        (pa.array([10**12], pa.timestamp("s")), ["33658-09-27 01:46:40"]),
        (view([-(1 << 63)], pa.int64(), pa.timestamp("s")), ["-9223372036854775808 s"]),
        (pa.array([5 * 10**6], pa.date32()), ["15659-07-15"]),
        (pa.array([1500], pa.time64("ns")), ["00:00:00.000001500"]),
        (pa.array([1500], pa.duration("ns")), ["1500 ns"]),
        (pa.array([10**18], pa.duration("s")), [f"{10**18} s"]),
        (view([b"a", b"b\xff"], pa.binary(), pa.string()), ["a", "b\ufffd"]),
        (pa.array([{"t": NANOS}, None], pa.struct([("t", pa.timestamp("ns"))])), [{"t": UTC}, None]),
        (pa.array([[NANOS], []], pa.list_(pa.timestamp("ns"))), [[UTC], []]),
        (pa.array([[NANOS] * 2, None], pa.list_(pa.timestamp("ns"), 2)), [[UTC] * 2, None]),
        (pa.array([[("k", NANOS)]], pa.map_(pa.string(), pa.timestamp("ns"))), [[("k", UTC)]]),
        (pa.array([NANOS], pa.timestamp("ns")).dictionary_encode(), [UTC]),
    ],
)
def test_values_become_text(column: pa.Array, found: list[Any]) -> None:
    assert values_of(column) == (found, True)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None], pa.uint64()),
        pa.array([[1], None], pa.list_(pa.int8())),
        pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 6), None], pa.timestamp("us", "Europe/Berlin")),
        pa.array([datetime.date(2024, 1, 2)]),
        pa.array(["x", None]).dictionary_encode(),
        pa.array([{"a": 1, "b": None}]),
        pa.array([b"\xff"]),
        pa.array([datetime.timedelta(1)]),
        pa.array([1.5], pa.float16()),
    ],
)
def test_other_values_are_python_s(column: pa.Array) -> None:
    assert values_of(column) == (column.to_pylist(), False)


@given(st.lists(st.integers(-(1 << 63) + 1, (1 << 63) - 1), max_size=5), st.sampled_from(["s", "ms", "us", "ns"]))
def test_times_are_exact(values: list[int], unit: str) -> None:
    """Read back by numpy, which knows every year."""
    import numpy as np

    found, _ = values_of(pa.array(values, pa.timestamp(unit)))
    expected = [np.datetime64(value, unit) for value in values]
    assert [np.datetime64(str(text).replace(" ", "T"), unit) for text in found] == expected


def test_an_optional_value_never_costs_a_document(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "text": ["one", "two", "three"],
            "url": view([b"u", b"u\xff", None], pa.binary(), pa.string()),
            "date": pa.array([NANOS, NANOS // 1000 * 1000, None], pa.timestamp("ns")),
            "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),  # Arrow cannot read it
            "blob": [b"\xff", b"ok", None],
        }
    )
    pq.write_table(table, path)
    records = read(path, path.read_bytes(), "parquet", meta_fields=("vector", "blob"))
    assert [record.content for record in records if isinstance(record, RawDocument)] == ["one", "two", "three"]
    assert [record.url for record in records] == ["u", "u\ufffd", ""]  # type: ignore[union-attr]
    assert [dict(record.meta) for record in records] == [  # type: ignore[union-attr]
        {"date": UTC, "blob": "\ufffd"}, {"date": "2023-11-14 22:13:20.123456", "blob": "ok"}, {},
    ]  # fmt: skip
    lost = "value-lost/vector"
    assert [set(record.found) for record in records] == [  # type: ignore[union-attr]
        {lost, "value-as-text/date", "value-as-text/blob"}, {lost, "value-as-text/url"}, {lost},
    ]  # fmt: skip


def test_a_part_of_a_column_that_cannot_be_read_leaves_the_text_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    kind = pa.struct([("text", pa.string()), ("vector", pa.list_(pa.int8(), 2)), ("id", pa.int64())])
    rows = [{"text": "one", "vector": [1, 2], "id": 1}, {"text": "two", "vector": None, "id": 2}]
    pq.write_table(pa.table({"body": pa.array(rows, kind)}), path)
    fields: dict[str, Any] = {"text_field": "body.text", "id_field": "body.id", "meta_fields": ("body.vector",)}
    records = read(path, path.read_bytes(), "parquet", **fields)
    assert [record.content for record in records if isinstance(record, RawDocument)] == ["one", "two"]
    assert [dict(record.meta) for record in records] == [{"record_id": 1}, {"record_id": 2}]  # type: ignore[union-attr]


@pytest.mark.parametrize(("column", "outcome"), [("text", ["!BadRowGroup", "text", "text"]), ("url", ["text"] * 4)])
@pytest.mark.parametrize("dictionary", [True, False])
def test_checksums_of_pages_are_verified(tmp_path: Path, column: str, outcome: list[str], dictionary: bool) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"words {at}" for at in range(4)], "url": [f"http://a.example/{at}" for at in range(4)]})
    pq.write_table(table, path, 2, write_page_checksum=True, compression="none", use_dictionary=dictionary,
                   write_statistics=False)  # fmt: skip
    assert summary(read(path, path.read_bytes(), "parquet")) == ["text"] * 4
    value = b"words 1" if column == "text" else b"example/1"
    broken = path.read_bytes().replace(value, value[:-1] + b"7", 1)
    records = read(path, broken, "parquet")
    assert summary(records) == outcome
    if column == "url":
        assert [record.found for record in records] == [("value-lost/url",)] * 2 + [()] * 2  # type: ignore[union-attr]


PANDAS = """
from types import SimpleNamespace as Namespace
__version__ = "3.0.0"
DataFrame = Index = Categorical = Series = type("Other", (), {})
types = Namespace(is_extension_array_dtype=lambda given: False, DatetimeTZDtype=Series)
api = Namespace(extensions=Namespace(ExtensionArray=Series, ExtensionDtype=Series), types=types)
Timestamp = Timedelta = lambda *given, **named: "made by pandas"
"""
WITH_PANDAS = """
import sys
import pyarrow as pa
from refinery.transforms.read.values.arrow_values import values_of
sys.path.insert(0, sys.argv[1])
assert pa.array([1_001], pa.timestamp("ns")).to_pylist() == ["made by pandas"]
for kind in (pa.timestamp("ns"), pa.duration("ns"), pa.timestamp("ns", "UTC")):
    print([str(value) for value in values_of(pa.array([1_000, 1_001], kind))[0]])
print(values_of(pa.array([[1_001]], pa.list_(pa.timestamp("ns"))))[0])
"""


@one_commit_in_four
def test_nothing_depends_on_pandas(tmp_path: Path) -> None:
    """Where it is installed, pyarrow makes its classes of nanoseconds."""
    (tmp_path / "pandas.py").write_text(PANDAS)
    found = subprocess.run(
        [sys.executable, "-c", WITH_PANDAS, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True
    )
    assert found.stdout.splitlines() == [
        "['1970-01-01 00:00:00.000001', '1970-01-01 00:00:00.000001001']",
        "['0:00:00.000001', '1001 ns']",
        "['1970-01-01 00:00:00.000001+00:00', '1970-01-01 00:00:00.000001001+00:00']",
        "[['1970-01-01 00:00:00.000001001']]",
    ]


def test_a_null_text_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": [{"text": None}, None, {"text": "x"}]}), path)
    assert summary(read(path, path.read_bytes(), "parquet", text_field="body.text")) == ["empty", "empty", "text"]
