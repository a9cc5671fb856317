import gzip
import json
import os
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.read_sources import ReadSources
from refinery.transforms.read.sources import (
    InputChanged,
    LimitParams,
    ReadTask,
    SourceParams,
    plan_sources,
    read_task,
    write_tasks,
)
from tests.beam import merge_side_outputs
from tests.transforms.read_fixtures import page, warc_record

FIELDS = {"name": "a", "paths": ("x",)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "A b"}, "name: 'A b' given"),
        ({"name": ""}, "name: '' given"),
        ({"name": "-a"}, "name: '-a' given"),
        ({"name": "a\n"}, "name: 'a"),
        ({"domain": "a/b"}, "domain: 'a/b' given"),
        ({"paths": ()}, "paths: .* given, one or more"),
        ({"paths": ("",)}, "paths: .* given, one or more"),
        ({"priority": 65536}, "priority: 65536 given, an integer from 0 to 65535"),
        ({"priority": -1}, "priority: -1 given"),
        ({"sample": 0.0}, "sample: 0.0 given"),
        ({"sample": 1.5}, "sample: 1.5 given"),
        ({"sample": float("nan")}, "sample: nan .* given, a finite number is allowed"),
        ({"cap": 0}, "cap: 0 given"),
        ({"text_field": ""}, "text_field: '' .* given, text that is not empty is allowed"),
    ],
)
def test_impossible_sources_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SourceParams(**{**FIELDS, **given})


@pytest.mark.parametrize(("record", "decompressed"), [(0, 5), (6, 5), (1, (1 << 30) + 1)])
def test_impossible_limits_are_refused(record: int, decompressed: int) -> None:
    with pytest.raises(ValueError, match=r"max_\w+_bytes: \d+ given"):
        LimitParams(max_record_bytes=record, max_decompressed_bytes=decompressed)


def make(folder: Path, **files: bytes) -> str:
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    return str(folder)


def plan(*paths: str, split_bytes: int = 64 << 20, **fields: Any) -> list[ReadTask]:
    return plan_sources([SourceParams(name="a", paths=paths, **fields)], split_bytes)


def brief(tasks: list[ReadTask]) -> list[tuple[str, str, int, int, int]]:
    return [(Path(t.path).name, t.format, t.file_index, t.part, t.parts) for t in tasks]


def test_files_are_listed_once_in_order_with_their_formats(tmp_path: Path) -> None:
    endings = (
        "warc",
        "warc.gz",
        "WARC.WET.GZ",
        "wet",
        "arc.gz",
        "warc.zst",
        "warc.lz4",
        "json",
        "ndjson.zst",
        "parquet",
    )
    make(tmp_path, **{f"{at}.{ending}": b"x" for at, ending in enumerate(endings)})
    tasks = plan(f"{tmp_path}/*", f"{tmp_path}/../{tmp_path.name}/0.warc", f"{tmp_path}/[01].*")
    formats = ["warc", "warc", "wet", "wet", "arc", "warc", "warc", "jsonl", "jsonl", "parquet"]
    assert [(task.format, task.file_index, task.size) for task in tasks] == [
        (name, at, 1) for at, name in enumerate(formats)
    ]


def test_folders_in_between_may_be_none_and_hidden_files_are_no_input(tmp_path: Path) -> None:
    names = [
        "a.jsonl",
        "b/a.jsonl",
        "b/c/a.jsonl",
        ".a.jsonl",
        "b/._a.jsonl",
        "b/.nfs0001.jsonl",
        ".git/a.jsonl",
        "_b.jsonl",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")

    def found(pattern: str) -> list[str]:
        return [str(Path(task.path).relative_to(tmp_path)) for task in plan(f"{tmp_path}/{pattern}")]

    assert found("**/*.jsonl") == ["_b.jsonl", "a.jsonl", "b/a.jsonl", "b/c/a.jsonl"]
    assert found("b/**/a.jsonl") == ["b/a.jsonl", "b/c/a.jsonl"]
    assert found("*.jsonl") == ["_b.jsonl", "a.jsonl"]
    assert found("") == ["a.jsonl", "b/a.jsonl", "b/c/a.jsonl"]
    assert found(".git/*.jsonl") == [".git/a.jsonl"] and found(".a.jsonl") == [".a.jsonl"]
    assert found("b/.nfs*.jsonl") == ["b/.nfs0001.jsonl"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*/a.jsonl", ["b/a.jsonl", "pre-1/a.jsonl"]),
        ("**/a.jsonl", ["a.jsonl", "b/a.jsonl", "b/c/a.jsonl", "pre-1/a.jsonl"]),
        ("{b,pre-1}/a.jsonl", ["b/a.jsonl", "pre-1/a.jsonl"]),
        ("pre-*/a.jsonl", ["pre-1/a.jsonl"]),
        ("b/**/a.jsonl", ["b/a.jsonl", "b/c/a.jsonl"]),
        ("../here/*/a.jsonl", ["../here/b/a.jsonl", "../here/pre-1/a.jsonl"]),
        ("a.jsonl", ["a.jsonl"]),
    ],
)
def test_relative_patterns_are_of_the_working_directory_alone(
    pattern: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here/a.jsonl", "here/b/a.jsonl", "here/b/c/a.jsonl", "here/pre-1/a.jsonl", "there/a.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.chdir(tmp_path / "here")
    assert [task.path for task in plan(pattern)] == found


def test_paths_that_cannot_be_read_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = make(tmp_path, a__warc__gz=b"x", a__odd=b"x", a__warc__wat__gz=b"x", a__parquet__gz=b"x")
    for paths, message in [
        (("*.none",), r"source a: paths: '.*\*.none' given, no file matches it"),
        (("none.warc",), "no file matches it"),
        (
            ("a.parquet.gz",),
            r"source a: format: .*a.parquet.gz has an unknown ending, allowed are .csv, .*; or name a format",
        ),
        (("a.odd",), "a.odd has an unknown ending"),
        (("a.warc.wat.gz",), "is WAT: it holds links and headers, and no text; read the WARC or WET file"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            plan(*(f"{folder}/{path}" for path in paths))
        assert "\n" not in str(caught.value)
    assert brief(plan(f"{folder}/a.odd", format="warc")) == [("a.odd", "warc", 0, 0, 1)]
    (tmp_path / "new\nline.warc").touch()
    with pytest.raises(ValueError, match="printable names are allowed"):
        plan(f"{folder}/new*")
    with pytest.raises(ValueError, match="cannot be listed"):
        plan("nowhere://x/*.warc")
    with pytest.raises(ValueError, match="each name is allowed once"):
        plan_sources([SourceParams(name="a", paths=(folder,)), SourceParams(name="a", paths=(folder,))])


def test_a_name_with_a_globs_characters_is_a_name_too(tmp_path: Path) -> None:
    make(tmp_path, **{"a[1].warc": b"x"})
    assert brief(plan(f"{tmp_path}/a[1].warc")) == [("a[1].warc", "warc", 0, 0, 1)]


def test_large_files_are_split(tmp_path: Path) -> None:
    folder = make(tmp_path, a__jsonl=b"x" * 1000, b__jsonl__gz=b"x" * 1000, c__jsonl__gz=b"x" * 99, d__warc=b"x" * 1000)
    pq.write_table(pa.table({"text": ["words " * at for at in range(90)]}), f"{folder}/e.parquet", row_group_size=30)
    (tmp_path / "f.parquet").write_bytes(b"x" * 1000)
    parts = {Path(task.path).name: task.parts for task in plan(f"{folder}/*", split_bytes=400)}
    size = os.path.getsize(f"{folder}/e.parquet")
    assert parts == {
        "a.jsonl": 3,
        "b.jsonl.gz": 8,
        "c.jsonl.gz": 1,
        "d.warc": 1,
        "e.parquet": -(-size // 400),
        "f.parquet": 3,
    }
    assert len(plan(f"{folder}/*", split_bytes=400)) == sum(parts.values())
    damaged = [record for task in plan(f"{folder}/f*", split_bytes=400) for record in read_task(task)]
    assert [record.error for record in damaged] == ["BadParquet"]  # once, however many parts it has
    assert len([record for task in plan(f"{folder}/e*", split_bytes=400) for record in read_task(task)]) == 90
    assert {task.parts for task in plan(f"{folder}/*", split_bytes=400, cap=100)} == {1}


def test_a_cap_is_shared_among_the_files(tmp_path: Path) -> None:
    folder = make(tmp_path, a__jsonl=b"", b__jsonl=b"", c__jsonl=b"")
    assert [task.cap for task in plan(f"{folder}/*", cap=8)] == [3, 3, 2]
    assert [task.cap for task in plan(f"{folder}/*", cap=2)] == [1, 1]
    assert [task.cap for task in plan(f"{folder}/*")] == [None] * 3


def test_tasks_travel_as_json() -> None:
    task = ReadTask("gs://b/ä.jsonl", "jsonl", "a", 7, 5, 1, 2, None, 0.5, 9, "html", "t", "u", "d", "i", ("x", "y"))
    assert ReadTask.from_json(task.to_json()) == task
    assert (task.origin(5), task.position(5)) == ("gs://b/ä.jsonl@5", 7 << 40 | 5)
    assert isinstance(hash(ReadTask.from_json(task.to_json())), int)


def test_a_file_that_vanished_is_one_damage(tmp_path: Path) -> None:
    path = tmp_path / "gone.jsonl"
    with pytest.raises(InputChanged, match=r"gone\.jsonl: gone since the run was planned; put it back"):
        list(read_task(ReadTask(str(path), "jsonl", "a", 0, 11)))


def test_a_file_that_is_written_to_fails_the_job(tmp_path: Path) -> None:
    """Also where its size stays, since the planning or while it is read."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text":"a"}\n' * 3)
    (task,) = plan_sources([SourceParams(name="a", paths=(str(path),))])
    assert len(list(read_task(task))) == 3
    records = read_task(task)
    next(records)
    os.utime(path, ns=(task.changed, task.changed + 1))
    with pytest.raises(InputChanged, match="written to while it was read"):
        list(records)
    with pytest.raises(InputChanged, match="written to since the run was planned"):
        list(read_task(task))


@pytest.mark.parametrize("size", [0, 7, 21])
def test_a_file_of_another_size_than_planned_fails_the_job(tmp_path: Path, size: int) -> None:
    """Cut at a line's end it would read well, and its other lines would be missing without a trace."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes((b'{"a":1}\n' * 3)[:size])
    with pytest.raises(InputChanged, match=f"rows.jsonl: {size} bytes found, 14 when the run was planned"):
        list(read_task(ReadTask(str(path), "jsonl", "a", 0, 14)))


def test_storage_that_fails_is_raised(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        list(read_task(ReadTask(str(tmp_path), "jsonl", "a", 0, 11)))


def test_reading_in_a_pipeline_counts_every_record(tmp_path: Path) -> None:
    warc = b"".join(map(gzip.compress, [warc_record(b"", "warcinfo"), page(1), page(2)[:-40], page(3)]))
    rows = b'{"text": "one"}\n{"text": "two", "url": "\xff"}\njunk\n'
    make(tmp_path, a__warc__gz=warc, b__jsonl=rows, c__jsonl=b"")
    crawl = SourceParams(name="crawl", paths=(f"{tmp_path}/*.warc.gz",))
    books = SourceParams(name="books", paths=(f"{tmp_path}/*.jsonl",))
    tasks = plan_sources([crawl, books], split_bytes=30)

    def check(records: list[bytes]) -> None:
        found = [json.loads(record) for record in records]
        counters: dict[tuple[str, str, str], int] = {}
        for record in found:
            if record["kind"] == "counter":
                key = (record["source"], record["outcome"], record["reason"])
                counters[key] = counters.get(key, 0) + record["documents"]
        assert counters == {
            ("crawl", "in", ""): 4,
            ("crawl", "kept", ""): 2,
            ("crawl", "dropped", "record-type"): 1,
            ("crawl", "dead", "BadLength"): 1,
            ("books", "in", ""): 3,
            ("books", "kept", ""): 2,
            ("books", "found", "value-as-text"): 1,
            ("books", "found", "value-as-text/url"): 1,
            ("books", "dead", "BadJson"): 1,
        }
        assert {record["stage"] for record in found} == {"read"}

    with beam.Pipeline("FnApiRunner") as pipeline:
        docs = pipeline | ReadSources(write_tasks(str(tmp_path / "work"), tasks))
        assert docs.element_type == RawDocument
        urls = docs | beam.Map(lambda doc: doc.url or doc.content)
        assert_that(urls, equal_to(["http://a.example/1", "http://a.example/3", "one", "\ufffd"]), "urls")
        assert_that(merge_side_outputs(pipeline), check, "records")


def test_a_pattern_without_a_folder_is_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"text": "x"}\n')
    monkeypatch.chdir(tmp_path)
    tasks = plan_sources((SourceParams(name="s", paths=("*.jsonl",)),))
    assert [task.path for task in tasks] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize(
    "address",
    [
        "s3://KEY:hush-hush@bucket/a.jsonl",
        "hf://user:hush-hush@datasets/a/b@main/x.jsonl",
        "azure://x:hush-hush@host/b.jsonl",
        "https://user:hush-hush@host.invalid/*.jsonl",
        "ftp://host/x.jsonl?token=hush-hush",
        "./https://u:hush-hush@h/x?y=hush-hush",
    ],
)
@pytest.mark.parametrize("key", ["paths", "path_lists"])
def test_credentials_in_an_address_are_not_said_again(address: str, key: str) -> None:
    with pytest.raises(ValueError) as caught:
        plan_sources([SourceParams(name="a", **{key: (address,)})])
    assert "hush-hush" not in str(caught.value) and caught.value.__cause__ is None
