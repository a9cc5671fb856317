"""Benchmarks as files: every format and compression, fields, and what is wrong with a file in a line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from refinery.transforms.filter.benchmarks import BenchmarkParams, Benchmarks
from refinery.transforms.filter.decontaminate import DecontaminateParams, load_benchmarks
from refinery.transforms.filter.ngram_index import Item

ROWS = [
    {
        "task_id": "t/1",
        "question": "What is one?",
        "choices": {"text": ["one", "two"], "label": ["A", "B"]},
        "level": 3,
    },
    {"task_id": "t/2", "question": "What is two?", "choices": {"text": ["two"], "label": ["A"]}, "level": 4},
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
ITEMS = [
    Item(0, "t/1", ("What is one?",), ("t/1", "one", "two", "A", "B")),
    Item(0, "t/2", ("What is two?",), ("t/2", "two", "A")),
]

WRITE: dict[str, Callable[[Path], object]] = {
    "items.jsonl": lambda path: path.write_bytes(b"\xef\xbb\xbf" + LINES + b"\n"),
    "items.jsonl.gz": lambda path: path.write_bytes(gzip.compress(LINES)),
    "items.jsonl.zst": lambda path: path.write_bytes(zstandard.compress(LINES)),
    "items.json": lambda path: path.write_text(json.dumps(ROWS)),
    "items.json.gz": lambda path: path.write_bytes(gzip.compress(json.dumps({"examples": ROWS, "n": 2}).encode())),
    "items.parquet": lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path),
}


def read(path: Path, **fields: object) -> tuple[list[Item], list[str]]:
    found = Benchmarks((BenchmarkParams(path=str(path), **fields),))  # type: ignore[arg-type]
    return list(found.read()), list(found.names)


@pytest.mark.parametrize("name", WRITE)
def test_formats(name: str, tmp_path: Path) -> None:
    WRITE[name](tmp_path / name)
    assert read(tmp_path / name) == (ITEMS, ["items"])


def test_paragraphs_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("First\nitem.\n\n\nSecond.\n")
    items, _ = read(tmp_path / "items.txt")
    assert [(item.name, item.questions[0].strip()) for item in items] == [("1", "First\nitem."), ("2", "Second.")]


def test_fields_and_names(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(LINES)
    items, names = read(tmp_path / "x.jsonl", fields=("choices", "question"), id_field="level", name_field="task_id")
    assert [(item.name, item.benchmark, item.questions, item.others) for item in items] == [
        ("3", 0, ("one", "two", "A", "B"), ("What is one?",)),
        ("4", 1, ("two", "A"), ("What is two?",)),
    ]
    assert names == ["t-1", "t-2"]  # a slash parts a benchmark from its items
    assert read(tmp_path / "x.jsonl", name="mine")[1] == ["mine"]


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("x.jsonl", b"{}\n{", "cannot be read .line 2: "),
        ("x.jsonl", b"[1]\n", "line 1: list found, an object expected"),
        ("x.jsonl", b"\n", "which has no items"),
        ("x.jsonl.gz", gzip.compress(LINES)[:-20], "cannot be read"),
        ("x.jsonl.zst", zstandard.compress(LINES)[:-9], "cannot be read|no items"),
        ("x.parquet", b"PAR1", "cannot be read"),
        ("x.txt", b"\xff\xfe", "cannot be read"),
        ("x.json", b"[", "cannot be read"),
    ],
)
def test_a_damaged_file_is_an_error_of_one_line(name: str, data: bytes, line: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=line) as error:
        read(tmp_path / name)
    assert "\n" not in str(error.value) and name in str(error.value)


def test_other_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path: 'x\.csv' given, a name that ends in"):
        BenchmarkParams(path="x.csv")
    with pytest.raises(ValueError, match="cannot be read"):
        read(tmp_path / "none.jsonl")
    (tmp_path / "x.jsonl").write_bytes(LINES)
    with pytest.raises(ValueError, match="item 1 has no field 'prompt'"):
        read(tmp_path / "x.jsonl", fields=("prompt",))
    with pytest.raises(ValueError, match="2 items given, at least one with something to find is needed"):
        load_benchmarks(DecontaminateParams.model_validate({"benchmarks": [str(tmp_path / "x.jsonl")]}))
