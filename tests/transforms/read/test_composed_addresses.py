"""Addresses put together of several fields, as those of files of repositories are, in every format that has fields."""

from pathlib import Path
from typing import Any

import pytest

from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.fields import address_of
from tests.pipelines.code_runs import write_records
from tests.transforms.read_fixtures import read

FORM = "{repo}@{commit}/{path}"
NOTES = ("repo", "commit", "path", "repo_license")
FILE = {"repo": "madler/zlib", "commit": "ab12", "path": "src/zlib.h", "content": "int a;"}


@pytest.mark.parametrize("format_", ["jsonl", "parquet", "csv"])
def test_a_record_is_a_file(tmp_path: Path, format_: str) -> None:
    """A field that a record does not have is no note, and makes no address where it is part of one."""
    records = [FILE, {**FILE, "repo_license": "Zlib"}, {**FILE, "commit": None}]
    path = write_records(tmp_path / f"files.{format_}", records)
    found = read(path, path.read_bytes(), format_, text_field="content", url_field=FORM, meta_fields=NOTES)
    assert [type(each) for each in found] == [RawDocument] * 3
    assert [each.url for each in found] == ["madler/zlib@ab12/src/zlib.h"] * 2 + [""]
    notes = [{key: value for key, value in each.meta.items() if value} for each in found]
    assert notes[0] == {name: FILE[name] for name in NOTES[:3]}
    assert notes[1]["repo_license"] == "Zlib" and "commit" not in notes[2]


@pytest.mark.parametrize(
    ("form", "url"),
    [
        ("path", "src/zlib.h"),
        ("{path}", "src/zlib.h"),
        ("https://host/{repo}/{path}?{number}", "https://host/madler/zlib/src/zlib.h?7"),
        ("{inner.deep}", "x"),
        ("{gone}", ""),
        ("{repo}/{inner.gone}", ""),
        ("{}", ""),
        ("", ""),
    ],
)
def test_forms(form: str, url: str) -> None:
    record: dict[str, Any] = {**FILE, "number": 7, "inner": {"deep": "x"}}
    assert address_of(record, form) == url


def test_a_value_is_not_read_as_a_form() -> None:
    assert address_of({"repo": "{path}", "path": "\\1"}, "{repo}/{path}") == "{path}/\\1"
