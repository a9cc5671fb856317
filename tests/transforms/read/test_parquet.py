import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import LimitParams, read_task
from tests.transforms.read_fixtures import read, summary, task_for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.parquet"


def write(path: Path, columns: dict[str, Any], row_group_size: int = 10, **options: Any) -> bytes:
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size, **options)
    return path.read_bytes()


def test_rows_become_documents(path: Path) -> None:
    columns = {
        "body": ["one", "", None, "x" * 60, "zwei"],
        "meta": [{"url": f"http://a.example/{at}", "depth": at} for at in range(5)],
        "score": [0.5, 1.0, None, 2.0, float("inf")],
        "unread": [1, 2, 3, 4, 5],
    }
    data = write(path, columns, 2)
    fields: dict[str, Any] = {"text_field": "body", "url_field": "meta.url", "meta_fields": ("score", "meta")}
    outcomes = read(path, data, "parquet", LimitParams(max_record_bytes=50, max_decompressed_bytes=50), **fields)
    assert summary(outcomes) == ["text", "empty", "empty", "too-large", "text"]
    assert outcomes[0] == RawDocument(
        content="one",
        is_html=False,
        charset="",
        url="http://a.example/0",
        source="src",
        origin=f"{path}@0",
        position=3 << 40,
        meta={"score": 0.5, "meta": '{"url": "http://a.example/0", "depth": 0}'},
    )
    last = outcomes[4]
    assert isinstance(last, RawDocument)
    assert (last.origin, last.position, last.meta["score"]) == (f"{path}@4", 3 << 40 | 4, "inf")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.binary()])
def test_kinds_of_text_columns(path: Path, kind: pa.DataType) -> None:
    data = write(path, {"text": pa.array(["Wörter", "mehr"], pa.string()).cast(kind)})
    contents = [one.content for one in read(path, data, "parquet") if isinstance(one, RawDocument)]
    assert contents == (["Wörter".encode(), b"mehr"] if kind == pa.binary() else ["Wörter", "mehr"])


def test_a_column_that_is_no_text(path: Path) -> None:
    assert summary(read(path, write(path, {"text": [1, 2]}), "parquet")) == ["!BadField"] * 2
    data = write(path, {"body": ["x"] * 30})
    assert summary(read(path, data, "parquet")) == ["!MissingField"]
    task = task_for(path, "parquet", parts=3)
    assert [len(list(read_task(replace(task, part=part)))) for part in range(3)] == [1, 0, 0]


def test_a_value_that_python_cannot_take_costs_its_row(path: Path) -> None:
    bad = pa.array([b"fine", b"\xff\xfe", b"fine too"], pa.binary()).view(pa.string())
    assert summary(read(path, write(path, {"text": bad}), "parquet")) == ["text", "!BadValue", "text"]


def test_parts_give_what_the_whole_gives(path: Path) -> None:
    data = write(path, {"text": [f"words {at}" for at in range(95)]}, 7)
    whole = read(path, data, "parquet", sample=0.7)
    assert len(whole) == 95 and set(summary(whole)) == {"text", "not-sampled"}
    for parts in (1, 2, 3, 14, 20):
        task = task_for(path, "parquet", sample=0.7, parts=parts)
        assert [one for part in range(parts) for one in read_task(replace(task, part=part))] == whole
    assert len([one for one in read(path, data, "parquet", cap=12) if isinstance(one, RawDocument)]) == 12


def test_damage_costs_a_row_group_or_the_file(path: Path) -> None:
    texts = ["".join(random.Random(at).choices("abcdefgh ", k=300)) for at in range(40)]
    data = write(path, {"text": texts}, 10, compression="zstd", use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    start, size = column.data_page_offset, column.total_compressed_size
    broken = data[:start] + bytes(size) + data[start + size :]
    assert summary(read(path, broken, "parquet")) == ["text"] * 10 + ["!BadRowGroup"] + ["text"] * 20
    for junk in (b"", b"PAR1", data[:-1], data[: len(data) // 2], b"\0" * 100, b"{}"):
        assert summary(read(path, junk, "parquet")) == ["!BadParquet"]


def test_flipped_bits_never_raise(path: Path) -> None:
    data = write(path, {"text": [f"some words {at}" for at in range(60)], "url": ["u"] * 60}, 20)
    rng = random.Random(3)
    for _ in range(300):
        broken = bytearray(data)
        broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        for outcome in read(path, bytes(broken), "parquet"):
            assert isinstance(outcome, RawDocument | Skipped | Damaged)


def test_documents_of_an_earlier_run_keep_their_origin(path: Path) -> None:
    columns = {
        "id": [b"0" * 16] * 4,
        "text": ["first", "second", "third", ""],
        "url": ["http://a.example/", "", None, ""],
        "source": ["crawl", "books", "crawl", "crawl"],
        "origin": ["gs://b/x.warc.gz@77", "y.jsonl@5", None, "z@1"],
        "position": [7 << 40 | 77, 5, 0, 1],
        "meta": ['{"date": "2024", "language": "en"}', "[]", "{}", "{}"],
    }
    data = write(path, columns)
    outcomes = read(path, data, "documents")
    assert outcomes[0] == RawDocument(
        content="first",
        is_html=False,
        charset="",
        url="http://a.example/",
        source="src",
        origin="gs://b/x.warc.gz@77",
        position=7 << 40 | 77,
        meta={"date": "2024", "language": "en", "source": "crawl"},
    )
    assert summary(outcomes) == ["text", "!BadJson", "!MissingField", "empty"]
    assert [one.origin for one in outcomes[1:]] == [f"{path}@1", f"{path}@2", "z@1"]
    assert summary(read(path, write(path, {"text": ["x"]}), "documents")) == ["!MissingField"]


def test_a_row_group_without_rows_is_no_damage(path: Path) -> None:
    table = pa.table({"text": pa.array([], pa.string())})
    with pq.ParquetWriter(path, table.schema) as writer:
        for rows in (table, pa.table({"text": ["one"]}), table):
            writer.write_table(rows)
    assert summary(read(path, path.read_bytes(), "parquet")) == ["text"]
