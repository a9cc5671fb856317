"""A run never succeeds on nothing: each of these once ended with exit code 0 and a corpus that verify accepted."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, command, folder_files, rows
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

OTHER = [{"text": f"record {n} is fine", "id": n} for n in range(300)]


def make(folder: Path, name: str) -> Path:
    path = folder / name
    if name == "wrong_column.parquet":
        pq.write_table(pa.table({"abstract": [row["text"] for row in OTHER]}), path)
    elif name == "array.json":
        path.write_text(json.dumps(OTHER))
    elif name == "wrong_field.jsonl":
        path.write_text("".join(json.dumps({"html": row["text"]}) + "\n" for row in OTHER))
    else:
        path.write_bytes(b"" if name == "empty.jsonl" else bytes(range(256)) * 40)
    return path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong_column.parquet", "there are abstract (string); did you mean abstract?"),
        ("wrong_field.jsonl", "did you mean html?"),
        ("array.json", "is a JSON array"),
        ("empty.jsonl", "is empty"),
        ("junk.warc.gz", "is not a WARC file"),
        ("junk.parquet", "is not a Parquet file"),
    ],
)
def test_a_wrong_source_is_told_before_anything_runs(
    small: Path, forks: ForkServer, tmp_path: Path, name: str, words: str
) -> None:
    arguments = command(small, tmp_path / "out", "--input", make(tmp_path, name))
    done = forks.run(*arguments)
    assert done.code == 2 and words in done.err and "source s: " in done.err, done.err
    assert done.err.count("\n") == 1 and not (tmp_path / "out").exists()


def test_it_is_a_warning_where_it_is_allowed(small: Path, forks: ForkServer, tmp_path: Path) -> None:
    arguments = command(small, tmp_path / "out", "--input", make(tmp_path, "empty.jsonl"))
    done = forks.run(*arguments, "--set", "failures.allow_empty=[s]")
    assert done.code == 0 and "warning: source s: " in done.out, done.err
    assert check_corpus(folder_files(tmp_path / "out")).totals["documents"] == 0


def test_a_language_nobody_speaks(small: Path, forks: ForkServer, tmp_path: Path) -> None:
    """Nothing is left after phase 1: the run fails there, says where its records went, and goes on where that is
    allowed."""
    arguments = command(small, tmp_path / "out", "--set", "language={languages: {la: 0.9}}")
    done = forks.run(*arguments)
    assert done.code == 1, done.err
    assert "source s: none of its 15 records is kept: language" in done.err and "read BadJson 1" in done.err
    assert (tmp_path / "out/work/clean.json").exists() and not (tmp_path / "out/work/dedup.json").exists()
    done = forks.run(*arguments, "--set", "failures.allow_empty=true")
    assert done.code == 0 and "clean: complete already" in done.out, done.err
    assert "warning: language took 100.0% of the 13 documents of source s, 13 as " in done.out
    assert "warning: language took 100.0%" in forks.run("inspect", tmp_path / "out").out


def test_a_source_of_copies_alone(small: Path, forks: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "copies.jsonl").write_text(rows("copies", range(3)))
    sources = json.dumps(
        [
            {"name": "s", "paths": [str(small / "a.jsonl")]},
            {"name": "copies", "paths": [str(tmp_path / "copies.jsonl")], "priority": 9},
        ]
    )
    arguments = command(small, tmp_path / "out", "--set", f"sources={sources}")
    done = forks.run(*arguments)
    assert done.code == 1 and "source copies: none of its 3 records is kept: exact-duplicates" in done.err, done.err
    assert "source s:" not in done.err and not (tmp_path / "out/train").exists()
    assert forks.run(*arguments, "--set", "failures.allow_empty=[copies]").code == 0
