"""`fields`: what a source keeps of its records, as it is there."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.transforms.core.document import FIELDS, RawDocument
from refinery.transforms.read.params import LimitParams, SourceParams
from refinery.transforms.read.sources import plan_sources, read_task
from refinery.transforms.read.task import ReadTask


def records(path: Path, limits: LimitParams | None = None, **source: Any) -> list[Any]:
    params = SourceParams(name="s", paths=(str(path),), **{"fields": "keep", **source})
    (task,) = plan_sources([params])
    task = ReadTask.from_json(task.to_json())
    return list(read_task(task, limits or LimitParams()))


def kept(path: Path, **source: Any) -> list[str]:
    found = records(path, **source)
    assert all(isinstance(record, RawDocument) for record in found), found
    return [str(record.meta[FIELDS]) for record in found]


def test_json_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    o = '"o":{"z":[1.10 , "\\u00fc"],"a":{}}'
    big = '"big":12345678901234567890123'
    path.write_text(f'{{"text":"a","url":"u","n": 1e3,{big},{o}}}\n{{"o":null,"text":"b"}}\n{{"text":"c"}}\n')
    assert kept(path) == [f'{{"n":1e3,{big},{o}}}', '{"o":null}', "{}"]
    assert kept(path, fields=("o", "n")) == [f'{{{o},"n":1e3}}', '{"o":null}', "{}"]
    assert kept(path, meta_fields=("n", "o.z")) == [f'{{{big},"o":{{"a":{{}}}}}}', '{"o":null}', "{}"]
    assert [record.found for record in records(path)] == [()] * 3


def test_the_text_is_not_kept_again(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"a":{"body":"secret text","n":1},"url":"u"}\n')
    assert kept(path, text_field="a.body") == ['{"a":{"n":1}}']


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"text":"a","x":NaN,"y":[-Infinity,1e400],"z":1.50}', {"x": "NaN", "y": ["-Infinity", "1e400"], "z": 1.5}),
        (b'{"text":"a","x":"\\ud800b","\\ud800":1}', {"x": "b", "": 1}),
        (b'{"text":"a","x":"\xff!"}', {"x": "\ufffd!"}),
    ],
)
def test_what_not_every_reader_takes_is_text_and_counted(tmp_path: Path, line: bytes, expected: Any) -> None:
    (tmp_path / "in.jsonl").write_bytes(line + b"\n")
    (record,) = records(tmp_path / "in.jsonl")
    assert orjson.loads(record.meta[FIELDS]) == expected
    if b"\xff" not in line:
        assert record.found == ("value-as-text/fields",)


def test_parquet(tmp_path: Path) -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 6)
    struct = pa.struct([("b", pa.int64()), ("a", pa.list_(pa.float32()))])
    table = pa.table(
        {
            "votes": pa.array([2**63 - 1, None]),
            "text": ["one", "two"],
            "when": pa.array([when, None], pa.timestamp("us")),
            "price": pa.array([Decimal("1.10"), None], pa.decimal128(9, 2)),
            "s": pa.array([{"b": 1, "a": [0.5, None]}, None], struct),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8())),
            "raw": pa.array([b"\xff", None]),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    first, second = kept(tmp_path / "in.parquet")
    assert first == (
        '{"votes":9223372036854775807,"when":"2026-01-02T03:04:05.000006","price":1.10,"s":{"b":1,"a":[0.5,null]},'
        '"m":[["k",1]],"raw":"/w=="}'
    )
    assert set(orjson.loads(second).values()) == {None} and len(orjson.loads(second)) == 6
    assert kept(tmp_path / "in.parquet", fields=("s", "none"))[0] == '{"s":{"b":1,"a":[0.5,null]}}'


def test_csv(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text,n,note\na,1,x\n")
    assert kept(tmp_path / "in.csv") == ['{"n":"1","note":"x"}']


def test_fields_count_as_notes(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "a", "x": "y" * 200}) + "\n")
    (record,) = records(tmp_path / "in.jsonl", LimitParams(max_meta_bytes=100))
    assert record.reason == "meta-too-large"


def test_a_named_field_has_its_own_column() -> None:
    with pytest.raises(ValueError, match=r"^fields: 'text' given, which has a column of its own"):
        SourceParams(name="s", paths=("x",), fields=("text", "n"))
    with pytest.raises(ValueError, match=r"^fields: 'all' \(text\) given, `keep` or a list of names is allowed"):
        SourceParams(name="s", paths=("x",), fields="all")


def test_sources_without_it_are_what_they_were() -> None:
    plain = SourceParams(name="s", paths=("x",))
    assert "fields" not in plain.told()
    task = ReadTask("p", "jsonl", "s", 0, 1)
    assert b'"fields"' not in task.to_json() and ReadTask.from_json(task.to_json()) == task
