"""A source that names no field of the text: found where one is meant, refused where it is not clear."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.transforms.code.source_text import SourceFilesParams
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.plan import LimitParams, SourceParams, plan_sources
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.text_fields import FILES, choose_text_fields, settle_tasks
from refinery.transforms.read.usual_fields import USUAL_CODE_FIELDS, USUAL_TEXT_FIELDS
from tests.import_graph import ROOT
from tests.transforms.read_fixtures import page

LIMITS = LimitParams()


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def source_of(folder: Path, files: dict[str, bytes], cls: type[SourceParams] = SourceParams, **keys: Any) -> Any:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return cls(name="s", paths=tuple(str(folder / name) for name in files), **keys)


def chosen(folder: Path, files: dict[str, bytes], **keys: Any) -> str:
    """The field that is found; "" for none."""
    source = source_of(folder, files, **keys)
    return choose_text_fields([source], plan_sources([source]), LIMITS).get("s", "")


def refusal(folder: Path, files: dict[str, bytes], **keys: Any) -> str:
    with pytest.raises(ValueError, match=r"^source s: text_field: none given") as error:
        chosen(folder, files, **keys)
    assert "\n" not in str(error.value)
    return str(error.value)


def parquet(folder: Path, table: dict[str, list[Any]]) -> bytes:
    pq.write_table(pa.table(table), folder / "made")
    return (folder / "made").read_bytes()


@pytest.mark.parametrize("name", list(USUAL_TEXT_FIELDS))
def test_every_usual_name_is_found_in_lines(tmp_path: Path, name: str) -> None:
    assert chosen(tmp_path, {"a.jsonl": line(id="1", title="t", **{name: "a text"})}) == name


@pytest.mark.parametrize("name", list(USUAL_CODE_FIELDS))
def test_source_code_has_usual_names_of_its_own(tmp_path: Path, name: str) -> None:
    record = line(repo="r", commit="c", path="p", **{name: "int x;"})
    assert chosen(tmp_path, {"a.jsonl": record}, cls=SourceFilesParams) == name
    both = line(content="int x;", text="x")
    assert chosen(tmp_path, {"a.jsonl": both}, cls=SourceFilesParams) == ""


@pytest.mark.parametrize(
    "files",
    [
        {"a.csv": b"id,body\n1,a text\n"},
        {"a.tsv": b"id\tbody\n1\ta text\n"},
        {"a.jsonl.gz": gzip.compress(line(body="x"), mtime=0)},
        {"a.jsonl": b"\xef\xbb\xbf" + line(body="x")},
        {"a.jsonl": b"{broken\n\n17\n" + line(body="x")},
        {"a.jsonl": line(body=None) + line(body="x")},
        {"a.jsonl": line(body="x" * (2 << 20))},  # longer than what is looked at of other files
        {"a.jsonl": line(body="x", content=["x"], document={"a": "x"}, article="", raw_content=None)},
        {"a.jsonl": line(body="x"), "b.jsonl": b"", "c.jsonl": b"{broken", "d.csv": b"id,body\n1,x\n"},
        {"a.jsonl": line(body="x"), "b.jsonl": line(other="x")},  # dead letters, as of any record without its text
    ],
)
def test_the_one_field_that_holds_text_is_found(tmp_path: Path, files: dict[str, bytes]) -> None:
    assert chosen(tmp_path, files) == "body"


def test_a_column_of_a_table_is_found_if_it_holds_text(tmp_path: Path) -> None:
    assert chosen(tmp_path, {"a.parquet": parquet(tmp_path, {"content": ["x"], "body": [1]})}) == "content"
    assert chosen(tmp_path, {"a.parquet": parquet(tmp_path, {"content": [None, "x"], "body": ["", None]})}) == "content"
    assert chosen(tmp_path, {"a.parquet": parquet(tmp_path, {"content": [None]})}) == ""


@pytest.mark.parametrize(
    ("files", "keys"),
    [
        ({"a.jsonl": line(text="x", content="y", body="z")}, {}),
        ({"a.jsonl": line(text=None, content="y")}, {}),  # it has a text: an empty one
        ({"a.jsonl": line(content="y") + line(text="x")}, {}),  # some have: the others are dead letters
        ({"a.jsonl": line(content="y")}, {"text_field": "text"}),
        ({"a.jsonl": line(content="y")}, {"text_field": "nowhere"}),
        ({"a.jsonl": line(content="y")}, {"format": "text"}),
        ({"a.jsonl": line(html="<p>x", title="y", code="US")}, {}),
        ({"a.jsonl": b""}, {}),
        ({"a.jsonl": b"\x00\x01" * 999}, {}),
        ({"a.csv": b"body,body\nx,y\n"}, {}),
        ({"a.parquet": b"PAR1" + bytes(99) + b"PAR1"}, {}),
        ({"a.warc": page(1)}, {}),
    ],
)
def test_nothing_is_found_where_a_field_is_named_or_there_is_none(
    tmp_path: Path, files: dict[str, bytes], keys: dict[str, Any]
) -> None:
    assert chosen(tmp_path, files, **keys) == ""


def test_several_fields_are_refused_with_their_names_and_the_key(tmp_path: Path) -> None:
    said = refusal(tmp_path, {"a.jsonl": line(id="1", body="x", content="y")})
    assert "content and body hold texts" in said
    assert "has id, body, content" in said
    assert "set `text_field`" in said
    assert "content and body" in refusal(tmp_path, {"a.jsonl": line(content="x"), "b.jsonl": line(body="x")})


def test_files_that_differ_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, {"a.jsonl": line(text="x"), "b.jsonl": line(id=1, content="x")})
    assert "a.jsonl has text" in said
    assert "b.jsonl has id, content" in said
    assert "two sources" in said


def test_names_of_fields_are_made_printable(tmp_path: Path) -> None:
    assert r"\x1b[2J\n" in refusal(tmp_path, {"a.jsonl": line(**{"\x1b[2J\n": 1}, body="x", content="y")})


def test_the_first_and_the_last_of_many_files_are_looked_at(tmp_path: Path) -> None:
    files = {f"{number:03}.jsonl": line(text="x") for number in range(5 * FILES)}
    assert chosen(tmp_path, files) == ""
    for at in (0, 5 * FILES - 1):
        refusal(tmp_path, {**files, f"{at:03}.jsonl": line(content="x")})


def test_each_source_is_decided_by_itself_and_once(tmp_path: Path) -> None:
    one = source_of(tmp_path, {"a.jsonl": line(content="x") + line(content="y")})
    other = source_of(tmp_path, {"b.jsonl": line(text="x")}).model_copy(update={"name": "t"})
    off = source_of(tmp_path, {"c.jsonl": line(content="x", body="y")}, enabled=False)
    tasks = plan_sources([one, other])
    settled = settle_tasks([one, other, off], tasks, LIMITS)
    assert [(task.source, task.text_field) for task in settled] == [("s", "content"), ("t", "text")]
    assert sum(isinstance(record, RawDocument) for task in settled for record in read_task(task)) == 3
    known = {"s": "content", "t": "text"}
    (tmp_path / "a.jsonl").unlink()  # what is known is not looked into again
    assert choose_text_fields([one, other], tasks, LIMITS, known) == {"s": "content"}


def test_a_bomb_costs_what_the_limits_say(tmp_path: Path) -> None:
    limits = LimitParams(max_record_bytes=1 << 20, max_decompressed_bytes=1 << 21)
    source = source_of(tmp_path, {"a.jsonl.gz": gzip.compress(b'{"body": "' + b"x" * (1 << 25), mtime=0)})
    assert choose_text_fields([source], plan_sources([source]), limits) == {}


def test_the_documentation_has_every_name() -> None:
    text = (ROOT.parent / "docs" / "sources" / "fields.md").read_text()
    section = text.partition("## Text fields")[2].partition("\n## ")[0]
    assert {name for name in (*USUAL_TEXT_FIELDS, *USUAL_CODE_FIELDS) if f"`{name}`" not in section} == set()
