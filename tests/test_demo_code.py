"""The demo of the lane of source code: its files are the same on every run, and each meets the rule that it is for."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.recipe.load_recipe import load_recipe
from refinery.transforms.core.document import Document, Drop, RawDocument
from tests.sampling import one_commit_in_four

ROOT = Path(__file__).parents[1]

ANSWERS = {
    "tagged.c": "MIT",
    "header.c": "Apache-2.0",
    "kernel.c": "GPL-2.0-only WITH Linux-syscall-note",
    "copyleft.c": "license-not-allowed",
    "unknown.c": "license-unknown",
    "src/gauge.gen.c": "code-generated",
    "third_party/gauge.c": "code-vendored",
    "src/tide.c": "code-encoded-data",
    "src/notes.h": "code-comments",
    "src/wide.c": "code-long-line",
    "src/same.c": "code-repeated-lines",
    "src/tiny.c": "code-too-small",
    "src/river.dat.c": "binary",
    "web/gauge.min.js": "code-minified",
    "docs/gauge.txt": "code-ending",
    "src/login.c": "MIT",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo"))


def write_demo(folder: Path) -> Path:
    subprocess.run([sys.executable, "recipes/demo_code.py", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


def records(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as lines:
        return [json.loads(line) for line in lines]


@one_commit_in_four
def test_the_same_bytes_twice(made: Path, tmp_path: Path) -> None:
    write_demo(tmp_path)
    names = sorted(path.name for path in made.iterdir())
    assert names == ["others.jsonl.gz", "project.jsonl.gz"]
    assert all((made / name).read_bytes() == (tmp_path / name).read_bytes() for name in names)


def test_the_projects_own_files_are_there(made: Path) -> None:
    found = {record["path"]: record["content"] for record in records(made / "project.jsonl.gz")}
    for name in ("transforms/native/minhash.c", "transforms/native/include/words.h", "pipelines/lanes/code.py"):
        assert found[name] == (ROOT / name).read_text()
    assert len(found) > 300


def test_each_file_meets_the_rule_that_it_is_for(made: Path) -> None:
    recipe = load_recipe(str(ROOT / "recipes" / "demo-code.yaml"))
    answers = {}
    for record in records(made / "others.jsonl.gz"):
        if record["repo"] in ("mill/unlicensed", "mill/gauges"):
            meta = {name: record[name] for name in ("path", "repo_license") if name in record}
            answer: Any = RawDocument(record["content"], False, "", "", "s", "o@0", 0, meta)
            for stage, params in recipe.active("clean"):
                if stage.judge is not None and not isinstance(answer, Drop):
                    resource = [stage.prepare(params)] if stage.prepare else []
                    answer = stage.judge(answer, *resource, params=params)
            answers[record["path"]] = answer.meta["license"] if isinstance(answer, Document) else answer.reason
    assert answers == ANSWERS


def test_a_folder_without_sources_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "recipes/demo_code.py", str(tmp_path / "out"), "--tree", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "there are no sources in it" in done.stderr
