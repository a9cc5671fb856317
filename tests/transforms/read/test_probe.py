"""What is wrong with a source is said from its first records, in one line, before anything runs."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.transforms.read.plan import LimitParams, SourceParams, plan_sources
from refinery.transforms.read.probe import FILES, RECORDS, probe_sources
from tests.transforms.read_fixtures import page, warc_record

LIMITS = LimitParams()
GOOD = b'{"text": "a text"}\n'


def probe(folder: Path, *files: tuple[str, bytes], **keys: Any) -> str:
    """The line about a source of these files; "" for none."""
    for name, data in files:
        (folder / name).write_bytes(data)
    source = SourceParams(name="s", paths=tuple(str(folder / name) for name, _ in files), **keys)
    found = probe_sources(plan_sources([source]), LIMITS)
    assert set(found) <= {"s"}
    line = found.get("s", "")
    assert "\n" not in line
    return line


def parquet(folder: Path, table: dict[str, list[Any]]) -> bytes:
    pq.write_table(pa.table(table), folder / "made")
    data = (folder / "made").read_bytes()
    (folder / "made").unlink()
    return data


@pytest.mark.parametrize(
    ("name", "data", "keys", "words"),
    [
        ("a.jsonl", b"", {}, "a.jsonl is empty (0 bytes)"),
        ("a.jsonl", b"\n \n", {}, "a.jsonl holds no record"),
        ("a.jsonl.gz", gzip.compress(b"", mtime=0), {}, "holds no record"),
        ("a.json", b'[{"text": "x"},\n {"text": "y"}]', {}, "is a JSON array, one JSON object a line is needed"),
        ("a.json", b'[{"text": "x"}]', {}, "jq -c"),
        ("a.json", b'{\n "text": "x"\n}', {}, "a JSON object over several lines"),
        (
            "a.jsonl",
            b'{"text": broken}\n',
            {},
            "a.jsonl: the first record is not a document: BadJson 1; the first line is not JSON: column 10: Exp",
        ),
        ("a.jsonl", b'{"text": "open}\n' * 2, {}, "column 10: Unterminated string starting at"),
        ("a.jsonl", b'{"text": "\xff"}\n', {}, "BadJson 1; the first line is not JSON: byte 11 is not UTF-8"),
        ("a.jsonl", b'{"text": ' + b"[" * 99 + b"]" * 99 + b"}", {}, "the first line is not JSON: nested too deep"),
        ("a.jsonl", b'{"text": "' + b"x" * (1 << 21), {}, "the first record is not a document: BadJson 1"),
        ("a.jsonl", b'{"text": "x"}\r{"text": "y"}\r', {}, "its lines end in carriage returns alone"),
        ("a.jsonl", b'{"text": "x"}\r{"text": "y"}\r', {}, r"`tr '\r' '\n'`"),
        ("a.csv", b"text,n\rx,1\ry,2\r", {}, "its lines end in carriage returns alone"),
        ("a.csv", b'text,n\n"x,1\ny,2\n', {}, "a quote that opens in the row of line 2 is never closed"),
        ("a.csv", b'"text,n\nx,1\n', {}, "a quote that opens in the row of line 1 is never closed"),
        ("a.csv", b'text,n\n"' + b"x" * (1 << 21), {}, "a quote that opens in the row of line 2 is not closed in its"),
        ("a.csv", b'te"xt,n\nx,1\n', {}, 'is not in the header, which has te"xt, n'),
        ("a.jsonl", b'"text"\n"text"\n', {}, "its first line is a text"),
        ("a.jsonl", b"17\n", {}, "its first line is a number"),
        ("a.jsonl", b'{"body": "x", "id": 1}\n', {}, "'text' given, which in"),
        ("a.jsonl", b'{"body": "x", "id": 1}\n', {}, "is not there, there are body, id; did you mean body?"),
        ("a.jsonl", b'{"texts": "x"}\n', {}, "did you mean texts?"),
        ("a.jsonl", b'{"text": 17}\n', {}, "is a number, text is needed"),
        ("a.jsonl", b'{"text": ["x"]}\n', {}, "is an array, text is needed"),
        ("a.jsonl", b'{"text": ""}\n' * 7, {}, "none of the first 7 records is a document: empty 7"),
        ("a.jsonl", b'{"a\\u001b": 1}\n', {}, r"a\x1b"),
        ("a.jsonl", b"\x00\x01\x02" * 99, {}, "is not JSON Lines: it looks like binary data"),
        ("a.jsonl", b"once upon a time\n", {}, "it looks like plain text"),
        ("a.jsonl", b"<html><body>", {}, "it looks like HTML or XML"),
        ("a.jsonl", b"%PDF-1.7", {}, "a PDF document"),
        ("a.warc.gz", gzip.compress(GOOD, mtime=0), {}, "is not a WARC file: it looks like JSON"),
        ("a.warc", b"\x89PNG\r\n" + bytes(99), {}, "a PNG image"),
        ("a.parquet", GOOD, {}, "is not a Parquet file: it looks like JSON"),
        ("a.gz", gzip.compress(b"WARC/1.0\r\n", mtime=0), {"format": "jsonl"}, "it looks like a WARC file"),
        ("a.jsonl", GOOD.decode().encode("utf-16"), {}, "text in UTF-16, UTF-8 is needed: `iconv -f UTF-16"),
        ("a.jsonl", GOOD.decode().encode("utf-16-be"), {}, "text in UTF-16"),
        ("a.csv", "text,n\nx,1\n".encode("utf-16"), {}, "text in UTF-16"),
        ("a.csv", b"", {}, "is empty"),
        ("a.csv", b"text,n\n", {}, "holds no record"),
        ("a.csv", b"body,n\nx,1\n", {}, "is not in the header, which has body, n; did you mean body?"),
        ("a.csv", b"text;n\nx;1\n", {}, "columns are parted by ',', these look like ';'"),
        ("a.tsv", b"text,n\nx,1\n", {}, r"columns are parted by '\t', these look like ','"),
        ("a.csv", b"text,text\nx,1\n", {}, "the header has the column 'text' twice"),
        ("a.csv", b"text,n\nGr\xfc\xdfe,1\n", {}, "is not in UTF-8: `iconv"),
        ("a.csv", b"text,n\nx\n", {}, "a.csv: the header has 2 fields, the row that ends in line 2 has 1"),
        ("a.tsv", b"text\tn\n\n" + b"x\ty\tz\n" * 99, {}, "the header has 2 fields, the row that ends in line 3 has 3"),
        ("a.parquet", b"PAR1" + bytes(99) + b"PAR1", {}, "is damaged, or was cut off: it begins like a Parquet file"),
    ],
)
def test_what_a_file_is(tmp_path: Path, name: str, data: bytes, keys: dict[str, Any], words: str) -> None:
    assert words in probe(tmp_path, (name, data), **keys)


@pytest.mark.parametrize(
    ("table", "keys", "words"),
    [
        ({"body": ["x"], "n": [1]}, {}, "there are body (string), n (int64); did you mean body?"),
        ({"abstract": ["x"], "n": [1]}, {}, "did you mean abstract?"),
        ({"text": [1]}, {}, "holds no text: text (int64)"),
        ({f"column{i}": [i] for i in range(20)}, {}, "and 8 more"),
        ({"text": ["x"]}, {"format": "documents"}, "is not documents/ of an earlier run: no column url"),
        ({"text": [None, None]}, {}, "none of the first 2 records is a document: empty 2"),
    ],
)
def test_what_a_table_is(tmp_path: Path, table: dict[str, list[Any]], keys: dict[str, Any], words: str) -> None:
    assert words in probe(tmp_path, ("a.parquet", parquet(tmp_path, table)), **keys)


@pytest.mark.parametrize(
    ("files", "keys"),
    [
        ([("a.jsonl", GOOD)], {}),
        ([("a.jsonl", b"{broken\n" * (RECORDS - 1) + GOOD)], {}),
        ([("a.jsonl", b""), ("b.jsonl", b"{broken\n"), ("c.jsonl", GOOD)], {}),
        ([("a.jsonl", GOOD)], {"sample": 1e-9}),
        ([("a.jsonl", b'{"meta": {"body": "x"}}\n')], {"text_field": "meta.body"}),
        ([("a.warc", warc_record(b"GET /", "request"))], {}),  # a crawler's notes say nothing about its pages
        ([("a.warc", page(1))], {}),
        ([("a.jsonl", GOOD), ("b.parquet", b"junk")], {}),  # a format of the source that holds documents is enough
    ],
)
def test_sources_that_hold_documents_pass(tmp_path: Path, files: list[tuple[str, bytes]], keys: dict[str, Any]) -> None:
    assert probe(tmp_path, *files, **keys) == ""


def test_a_few_files_and_records_are_looked_at(tmp_path: Path) -> None:
    many = [(f"{i}.jsonl", b"{broken\n" * (RECORDS + 1) + GOOD) for i in range(FILES)]
    assert f"none of the first {FILES * RECORDS} records" in probe(tmp_path, *many, ("x.jsonl", GOOD))
    assert probe(tmp_path, *many[:-1], ("x.jsonl", GOOD)) == ""


def test_every_source_is_told_of_by_itself(tmp_path: Path) -> None:
    for name, record in (("good", {"text": "x"}), ("bad", {"body": "x"}), ("worse", {"field": 1})):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(record))
    sources = [SourceParams(name=name, paths=(str(tmp_path / f"{name}.jsonl"),)) for name in ("good", "bad", "worse")]
    assert set(probe_sources(plan_sources(sources), LIMITS)) == {"bad", "worse"}


def test_storage_that_fails_is_no_wrong_source(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    tasks = plan_sources([SourceParams(name="s", paths=(str(path),))])
    path.write_bytes(GOOD * 2)
    with pytest.raises(OSError, match="when the run was planned"):
        probe_sources(tasks, LIMITS)
