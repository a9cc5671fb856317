"""One record at its origin: the same as in a pass over the whole file, in every format, from little of the file."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from refinery.transforms.core.answers import Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read import at_origin
from refinery.transforms.read.at_origin import read_at
from refinery.transforms.read.byte_source import ByteSource
from refinery.transforms.read.plan import LimitParams, ReadTask, SourceParams, plan_source
from refinery.transforms.read.sources import read_task

LIMITS = LimitParams()
ROWS = [{"text": f"text {i} " + "x" * 40_000, "url": f"https://e.org/{i}"} for i in range(60)]
LINES = [json.dumps(row).encode() + b"\n" for row in ROWS]


def warc_record(number: int, kind: str = "response") -> bytes:
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + ROWS[number]["text"].encode()
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: https://e.org/{number}\r\nContent-Type: application/http"
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n\r\n"


def warcs() -> list[bytes]:
    return [warc_record(i, "request" if i % 5 == 0 else "response") for i in range(20)]


def parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=7)


FILES: dict[str, Callable[[Path], Any]] = {
    "a.jsonl": lambda path: path.write_bytes(b"\n".join(LINES)),
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(b"".join(LINES))),
    "a.parquet": parquet,
    "a.csv": lambda path: path.write_text("text,url\n" + "".join(f'"{r["text"]}",{r["url"]}\n' for r in ROWS)),
    "a.warc": lambda path: path.write_bytes(b"".join(warcs())),
    "a.warc.gz": lambda path: path.write_bytes(b"".join(map(gzip.compress, warcs()))),
    "whole.warc.gz": lambda path: path.write_bytes(gzip.compress(b"".join(warcs()))),
    "a.warc.zst": lambda path: path.write_bytes(b"".join(map(zstandard.compress, warcs()))),
    "a.txt": lambda path: path.write_text("\n".join(row["text"] for row in ROWS)),
}


def task_of(path: Path, **more: Any) -> ReadTask:
    (task,) = plan_source(SourceParams(name="s", paths=(str(path),), **more), 1 << 60)
    return task


@pytest.mark.parametrize("name", FILES)
def test_every_record_is_the_one_of_a_whole_pass(name: str, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    task = task_of(tmp_path / name, unit="line")
    whole = list(read_task(task, LIMITS))
    assert len(whole) >= 20
    for record in whole:
        assert read_at(task, int(record.origin.rpartition("@")[2]), LIMITS) == record


@pytest.mark.parametrize(("name", "most"), [("a.jsonl", 4 << 20), ("a.warc", 1 << 18), ("a.warc.gz", 1 << 18)])
def test_little_is_read_of_a_file_that_can_be_entered(
    name: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of 64 KiB, however long the file is."""
    FILES[name](tmp_path / name)
    task = task_of(tmp_path / name)
    last = list(read_task(task, LIMITS))[-1]
    read, view = [], ByteSource.view

    def counted(self: ByteSource, offset: int) -> memoryview:
        before = self._block
        found = view(self, offset)
        if self._block is not before:
            read.append(len(self._block))
        return found

    monkeypatch.setattr(ByteSource, "view", counted)
    assert read_at(task, int(last.origin.rpartition("@")[2]), LIMITS) == last
    assert 0 < sum(read) <= min(most, task.size)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("offset", [1, 17, 10**9, 2**62])
def test_where_no_record_begins(name: str, offset: int, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    task = task_of(tmp_path / name, unit="line")
    begins = {record.origin for record in read_task(task, LIMITS)}
    found = read_at(task, offset, LIMITS)
    assert (found is None) == (task.origin(offset) not in begins)


def test_a_record_that_the_sample_leaves_out_is_said_to_be(tmp_path: Path) -> None:
    FILES["a.warc.gz"](tmp_path / "a.warc.gz")
    task = task_of(tmp_path / "a.warc.gz", sample=0.5, seed=3)
    for record in read_task(task, LIMITS):
        found = read_at(task, int(record.origin.rpartition("@")[2]), LIMITS)
        if isinstance(record, RawDocument) or record.reason == "not-sampled":  # type: ignore[union-attr]
            assert type(found) is type(record) and found.origin == record.origin  # type: ignore[union-attr]
        assert isinstance(record, RawDocument) or isinstance(found, Skipped)


def test_damage_is_given_as_the_reader_gives_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINES[0] + b'{"text": broken\n' + LINES[1])
    (tmp_path / "a.parquet").write_bytes(b"PAR1 is no table")
    lines = task_of(tmp_path / "a.jsonl")
    assert read_at(lines, len(LINES[0]), LIMITS) == list(read_task(lines, LIMITS))[1]
    table = replace(task_of(tmp_path / "a.parquet"), format="parquet")
    assert at_origin.read_at(table, 0, LIMITS) == next(iter(read_task(table, LIMITS)))
