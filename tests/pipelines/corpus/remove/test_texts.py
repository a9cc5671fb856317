"""What goes by its text or its licence: benchmarks after the fact, and source files."""

import json
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.corpus.verify.verify import verify
from tests.pipelines.corpus.remove.conftest import Place
from tests.pipelines.corpus.remove.corpora import PAGES, remove, rows, write_list
from tests.pipelines.inputs import run
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

QUIZ = "https://site12.example/12"


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    """Two benchmarks: one item each of two pages, and one of none."""
    words = PAGES[QUIZ][1].split()
    items = [{"id": "one", "question": " ".join(words[5:24]).upper()}, {"id": "two", "question": "who knows? " * 9}]
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    other = " ".join(PAGES["https://c.example/near"][1].split()[:20])
    (tmp_path / "exam.jsonl").write_text(json.dumps({"id": "x", "question": other}) + "\n")
    return tmp_path


def test_benchmarks_are_reported_and_removed(taken: Place, quiz: Path, tmp_path: Path) -> None:
    files = quiz / "quiz.jsonl", quiz / "exam.jsonl"
    report = tmp_path / "matches.jsonl"
    done = run("remove", taken.prefix, "--benchmarks", *files, "--dry-run", "--report", report, "--workers", 0)
    assert "benchmark exam: 1 items in 1 documents" in done.stdout
    assert "benchmark quiz: 1 items in 1 documents" in done.stdout
    found = {row["url"]: row for row in map(json.loads, report.read_text().splitlines())}
    assert set(found) == {QUIZ, "https://c.example/1"}
    assert found[QUIZ]["request"] == "benchmark:quiz/one"
    assert " ".join(PAGES[QUIZ][1].split()[5:24]) in found[QUIZ]["matched"]
    assert not list(tmp_path.glob("new*"))
    remove(taken.prefix, tmp_path / "new", "--benchmarks", *files)
    gone = {row["url"] for row in rows(taken.prefix)} - {row["url"] for row in rows(tmp_path / "new")}
    assert gone == set(found)
    assert verify(str(tmp_path / "new"), against=str(taken.prefix)).failures == []
    again = run("remove", tmp_path / "new", "--benchmarks", *files, "--dry-run", "--workers", 0)
    assert again.stdout.startswith("0 documents with 0 tokens would go")


def test_benchmarks_of_a_recipe(taken: Place, quiz: Path, tmp_path: Path) -> None:
    """Its section `decontaminate`, whatever else it says."""
    text = (taken.prefix.parent / "recipe.yaml").read_text()
    (tmp_path / "with.yaml").write_text(
        f"{text}\ndecontaminate: {{benchmarks: [{quiz / 'quiz.jsonl'}], ngram: 15}}\n".replace(
            "decontaminate: false\n", ""
        )
    )
    done = run("remove", taken.prefix, "--benchmarks", tmp_path / "with.yaml", "--dry-run", "--workers", 0)
    assert "benchmark quiz: 1 items in 1 documents" in done.stdout
    (tmp_path / "without.yaml").write_text(text)
    done = run(
        "remove", taken.prefix, "--benchmarks", tmp_path / "without.yaml", "--dry-run", "--workers", 0, check=False
    )
    assert done.returncode == 2 and "no section `decontaminate`" in done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "what is to go?"),
        (["--source", "nobody", "--dry-run"], "the corpus has 'news', 'web', 'books', 'letters', 'notes'"),
        (["--source", "web"], "--output names the prefix"),
        (["--source", "web", "--dry-run", "--output", "x"], "given with --dry-run"),
        (["--benchmarks", "a.exe", "--dry-run"], "a name that ends in"),
    ],
)
def test_what_cannot_be_asked_for(flags: list[str], said: str, taken: Place) -> None:
    done = run("remove", taken.prefix, *flags, "--workers", 0, check=False)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_dry_run_writes_nothing(taken: Place, tmp_path: Path) -> None:
    before: dict[str, Any] = {path.name: path.stat().st_mtime_ns for path in taken.prefix.rglob("*")}
    list_ = write_list(tmp_path / "urls", ["https://a.example/1"])
    done = run("remove", taken.prefix, "--urls", list_, "--dry-run", "--workers", 0)
    assert "1 of their duplicates would come back" in done.stdout and "shards would be rewritten" in done.stdout
    done = run("remove", taken.prefix, "--where", "token_count >= 0", "--dry-run", "--workers", 0)
    assert "these are all its documents" in done.stdout
    assert {path.name: path.stat().st_mtime_ns for path in taken.prefix.rglob("*")} == before
