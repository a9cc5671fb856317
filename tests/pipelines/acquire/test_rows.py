"""Rows of files: JSON Lines and Parquet whose licences are found among the rows themselves."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.pipelines.acquire.tree_files import LFS, RepositoryError
from tests.pipelines.acquire.repositories import APACHE, MIT, acquire, records, report

A, B = "a" * 40, "b" * 40


def row(path: str | None, content: Any, repo: str = "org/x", commit: str = A) -> dict[str, Any]:
    return {"repo": repo, "commit": commit, "path": path, "content": content}


GOOD = [
    row("src/x.c", "x\n"),  # before the licence that it is under
    row("LICENSE", MIT.decode()),
    row("lib/COPYING", APACHE.decode()),
    row("lib/y.c", "y\n") | {"repo_license": "MIT"},  # the file is nearer
    row("src/x.c", "x of another commit\n", commit=B),
    row("src/x.c", "x of another repository\n", repo="https://me:pass@example.org/z"),
    row("a.c", "its row says\n", repo="org/own") | {"repo_license": "Zlib"},
]
BAD = [
    row("../x", "x\n"),
    row("a\nb", "x\n"),
    row("short", "x\n", commit="abc"),
    row(None, "x\n"),
    row("none", None),
    row("blank", " \n"),
    row("zero", "a\0b"),
    row("lfs", LFS.decode()),
    row("large", "x" * 5000),
    row("up", "x\n", repo="../up"),
]
SKIPPED = {
    "binary": 1,
    "empty": 2,  # a null, too
    "lfs-pointer": 1,
    "path-control": 1,
    "path-unsafe": 2,
    "row-incomplete": 2,
    "too-large": 1,
}


def as_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))


def as_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    names = ("repo", "commit", "path", "content", "repo_license")
    pq.write_table(pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names])), path)


@pytest.mark.parametrize(("write", "name"), [(as_jsonl, "a.jsonl"), (as_parquet, "a.parquet")])
def test_licences_are_found_and_every_row_is_taken_or_counted(tmp_path: Path, write: Any, name: str) -> None:
    write(tmp_path / name, GOOD + BAD)
    acquire(tmp_path / "out", {"files": str(tmp_path / name), "name": "rows"}, most=4000)
    found = records(tmp_path / "out")
    assert [(one["repo"], one["commit"], one["path"], one["repo_license"]) for one in found] == [
        ("org/x", A, "src/x.c", "MIT"),
        ("org/x", A, "LICENSE", "MIT"),
        ("org/x", A, "lib/COPYING", "Apache-2.0"),
        ("org/x", A, "lib/y.c", "Apache-2.0"),
        ("org/x", B, "src/x.c", ""),
        ("example.org/z", A, "src/x.c", ""),
        ("org/own", A, "a.c", "Zlib"),
    ]
    assert report(tmp_path / "out")["skipped"] == SKIPPED
    assert report(tmp_path / "out")["entries"] == len(GOOD + BAD)


def test_files_that_changed_or_are_not_there(tmp_path: Path) -> None:
    as_jsonl(tmp_path / "a.jsonl", GOOD)
    entry = {"files": f"{tmp_path}/*.jsonl", "name": "rows"}
    assert acquire(tmp_path / "out", entry)[-2:] == acquire(tmp_path / "out", entry)[-2:]
    as_jsonl(tmp_path / "a.jsonl", GOOD[:2])
    with pytest.raises(RepositoryError, match="its files have changed"):
        acquire(tmp_path / "out", entry)
    with pytest.raises(RepositoryError, match="no file matches it"):
        acquire(tmp_path / "none", {"files": f"{tmp_path}/*.parquet"})
