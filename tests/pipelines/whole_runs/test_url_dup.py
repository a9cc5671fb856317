"""Captures of one address through a whole run: which stays, what is published of the others, verify and trace."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.pipelines.corpus.trace.answers import Query, Removed
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.corpus.verify.verify import verify
from tests.corpus_factory import tokenizer_json
from tests.pipelines.inputs import corpus_bytes, run
from tests.pipelines.small_runs import OFF
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

# (text, address, date) of each page: three captures of one page, one of them with the text of another page; a copy of
# the kept capture elsewhere; two documents without a web address.
PAGES = (
    ("the page as it was", "http://a.example/p", "2020-01-01"),
    ("the page as it became", "https://a.example/p/", "2023-01-01"),
    ("a text of its own", "https://A.example/p?utm_source=mail", "2021-01-01"),
    ("a text of its own", "https://b.example/", "2019-01-01"),
    ("the page as it became", "https://c.example/", "2018-01-01"),
    ("one message", "list-1", "2020-01-01"),
    ("another message", "list-1", "2021-01-01"),
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    for half in range(2):
        pages = [{"text": text, "url": url, "date": date} for text, url, date in PAGES[half::2]]
        (folder / f"{half}.jsonl").write_text("\n".join(map(json.dumps, pages)))
    source = {"name": "crawl", "paths": [str(folder / "*.jsonl")], "meta_fields": ["date"]}
    tokenizer = {"path": str(folder / "tokenizer.json"), "eos": None}
    (folder / "recipe.json").write_text(
        json.dumps({"name": "captures", "sources": [source], "tokenizer": tokenizer, **OFF, "url_dup": True})
    )
    return folder / "recipe.json"


@pytest.fixture(scope="module")
def corpus(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("one") / "corpus"
    run("refine", recipe, "--output", prefix, "--workers", 0)
    return prefix


def rows(corpus: Path) -> list[dict[str, Any]]:
    return [
        {name: row[name] for name in ("reason", "url", "similarity")}
        for row in sorted(pq.read_table(corpus / "removals").to_pylist(), key=lambda row: row["url"])
    ]


def test_what_is_removed(corpus: Path) -> None:
    (exact, *others) = sorted(rows(corpus), key=lambda row: row["reason"])
    assert exact["reason"] == "exact-duplicate"
    assert others == [
        {"reason": "url-duplicate", "url": "http://a.example/p", "similarity": 0.0},
        {"reason": "url-duplicate", "url": "https://A.example/p?utm_source=mail", "similarity": 0.0},
    ]
    report = verify(str(corpus))
    assert (report.failures, report.removals, report.documents) == ([], 3, 4)


def test_captures_are_no_copies(corpus: Path) -> None:
    """What a document stands for has its text, so that weighting by copies does not weigh how often a site was read."""
    tables = [pq.read_table(path).to_pylist() for path in corpus.glob("*/*/*.provenance.parquet")]
    copies = sorted(row["copies"] for table in tables for row in table)
    assert copies == [1, 1, 1, 2]


def test_captures_are_traced(corpus: Path) -> None:
    found = trace(
        str(corpus), [Query("url", "https://A.example/p?utm_source=mail"), Query("url", "http://a.example/p")]
    )
    for _, answer in found.answers:
        assert isinstance(answer, Removed)
        assert answer.steps[0].reason == "url-duplicate"
        assert answer.end.doc.url in ("https://a.example/p/", "https://c.example/")  # the one of the two copies


def test_the_same_bytes_however_the_work_is_cut(corpus: Path, recipe: Path, tmp_path: Path) -> None:
    cut = ["--set", "run.wave_files=1", "--set", "run.part_bytes=20"]
    run("refine", recipe, "--output", tmp_path / "out", "--workers", 2, *cut, hash_seed=1)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)


def test_another_recipe_cleans_again(corpus: Path, recipe: Path, tmp_path: Path) -> None:
    """Parts without addresses are not those of a recipe that compares them; which one stays is decided later."""
    reuse = ["--reuse", corpus, "--dry-run", "--output", tmp_path / "new"]
    done = run("refine", recipe, *reuse, "--set", "url_dup=off", check=False)
    assert "url_dup is on there, off here" in done.stdout + done.stderr
    done = run("refine", recipe, *reuse, "--set", "url_dup.prefer=longest", check=False)
    assert "url_dup.prefer is 'newest' there, 'longest' here" in done.stdout + done.stderr
    assert f"clean: will be reused from {corpus}" in done.stdout + done.stderr
