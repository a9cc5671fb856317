"""Attributes beside the rows: an object for each row that tools see in the file, under the row's own id."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.transforms.core.stage import Note
from refinery.transforms.read.byte_source import open_source
from refinery.transforms.read.fields import LimitParams
from refinery.transforms.read.task import ReadTask
from refinery.transforms.write.rows.attributes import attribute_key, attributes_ending, row_attributes, write_attributes
from refinery.transforms.write.rows.labels import known_labels
from refinery.transforms.write.rows.row_values import RowValues, read_row_values
from refinery.transforms.write.rows.rows import RowError
from tests.transforms.write.rows.copies import LIMITS, inflated, written

LABELS = known_labels((Note("language", str, "", category=True), Note("pii", int, "")), ["pii"])
ASKED = [LABELS[name] for name in ("duplicate", "pii", "language", "pii_spans", "duplicate_of")]
VALUES = (True, 2, "en", "1-3:email 4-6:email 7-9:national_id", "a 17")


def values_in(task: ReadTask, limits: LimitParams = LIMITS) -> list[RowValues]:
    with open_source(task.path) as source:
        return list(read_row_values(task, source, limits))


def test_what_a_row_says() -> None:
    assert row_attributes("mine", ASKED, VALUES, 30) == {
        "mine__duplicate__score": [[0, 30, 1.0]],
        "mine__pii__score": [[0, 30, 2.0]],
        "mine__language__en": [[0, 30, 1.0]],
        "mine__pii_spans__email": [[1, 3, 1.0], [4, 6, 1.0]],
        "mine__pii_spans__national_id": [[7, 9, 1.0]],
    }
    assert attribute_key("my-run 2", "reason", "near-duplicate") == "my_run_2__reason__near_duplicate"


def test_lines_have_an_object_each(tmp_path: Path) -> None:
    """Broken and empty ones, too; blank ones are no rows. Ids keep their bytes."""
    lines = [
        b'\xef\xbb\xbf{"id": "a\\u00e9", "text": "one \\ud800"}\r\n',
        b"\n",
        b'{"text": "none"}\n',
        b'{"id": 12345678901234567890123, "text": null}\n',
        b"{broken\n",
        b'{"id": "last", "text": "\xff"}',
    ]
    task = written(tmp_path, "a.jsonl.gz", gzip.compress(b"".join(lines)), id_field="id")
    at = [sum(map(len, lines[:number])) for number in range(len(lines))]
    found = values_in(task)
    assert [each.row for each in found] == [at[0], at[2], at[3], at[4], at[5]]
    assert [each.id for each in found] == [b'"a\\u00e9"', b"", b"12345678901234567890123", b"", b'"last"']
    assert [each.text for each in found] == ["one \ud800", "none", None, None, "\ufffd"]
    out = tmp_path / "out.jsonl.gz"
    assert write_attributes(task, out, "x", ASKED[:2], [(at[2], (False, 0))], LIMITS) == 5
    with gzip.open(out) as file:
        rows = [json.loads(line) for line in file]
    names = "aé", task.origin(at[2]), 12345678901234567890123, task.origin(at[4]), "last"
    assert tuple(row["id"] for row in rows) == names
    assert [len(row["attributes"]) for row in rows] == [0, 2, 0, 0, 0]
    assert attributes_ending(task) == ""


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_tables(name: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": "1", "text": 'one "two", three'}, {"id": "2", "text": ""}]
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "made", row_group_size=1)
        data = (tmp_path / "made").read_bytes()
    else:
        sign = "," if name.endswith("csv") else "\t"
        data = f'id{sign}text\n1{sign}"one ""two"", three"\n2{sign}""\n'.encode()
    task = written(tmp_path, name, data, id_field="id")
    assert [each._replace(row=0) for each in values_in(task)] == [(0, b'"1"', 'one "two", three'), (0, b'"2"', "")]
    out = tmp_path / "out.jsonl.gz"
    write_attributes(task, out, "x", ASKED[:1], [(1, (True,))], LIMITS)
    lines = gzip.decompress(out.read_bytes()).splitlines()
    assert json.loads(lines[1]) == {"id": "2", "attributes": {"x__duplicate__score": [[0, 0, 1.0]]}}
    assert attributes_ending(task) == ".jsonl.gz"


def test_nested_fields_of_parquet(tmp_path: Path) -> None:
    table = pa.table({"meta": [{"text": b"one", "id": 7}, None, {"text": None, "id": None}]})
    pq.write_table(table, tmp_path / "made")
    task = written(tmp_path, "a.parquet", (tmp_path / "made").read_bytes(), id_field="meta.id", text_field="meta.text")
    assert values_in(task) == [(0, b"7", "one"), (1, b"", None), (2, b"", None)]


def test_a_row_that_is_not_there_is_named(tmp_path: Path) -> None:
    task = written(tmp_path, "a.jsonl", b'{"text": "one"}\n')
    with pytest.raises(RowError, match=r"a\.jsonl@7: the file has no such row"):
        write_attributes(task, tmp_path / "out", "x", ASKED[:1], [(7, (True,))], LIMITS)
    assert inflated(task) == b'{"text": "one"}\n'
