"""Removals of a whole run: as many as the funnel dropped, the same bytes however the work is cut, all traced."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.removals import REASONS
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.trace.answers import Kept, Passed, Query, Rejected, Removed
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.run.phases import remove_work
from refinery.pipelines.run.publish import check_removals
from tests.corpus_factory import tokenizer_json
from tests.pipelines.inputs import corpus_bytes, run
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

WORDS = [f"word{i}" for i in range(400)]


def words(seed: int, count: int = 150) -> list[str]:
    return random.Random(seed).sample(WORDS, count)


def changed(text: list[str], *places: int) -> list[str]:
    """A near copy: other words at these places."""
    return [f"other{i}" if i in places else word for i, word in enumerate(text)]


def make_pages() -> dict[str, list[dict[str, str]]]:
    """source -> pages: single ones, exact copies in both, near copies, copies of near copies, two near copies of a page
    in another source, and a rude pair."""
    plain: dict[str, list[list[str]]] = {"first": [words(i) for i in range(12)], "second": [words(i) for i in range(6)]}
    for i in range(4):
        near = changed(words(i), 40)
        plain["first"].append(near)
        plain["second"] += [near, near]
    plain["second"] += [changed(words(7), 30), changed(words(7), 90)]
    rude = ["swine"] * 20 + words(99)
    plain["first"] += [[*rude, "and", "more"]]
    plain["second"] += [rude]
    return {
        source: [{"text": " ".join(text), "url": f"https://{source}/{i}"} for i, text in enumerate(texts)]
        for source, texts in plain.items()
    }


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("removals")
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    sources: list[dict[str, Any]] = []
    for priority, (name, pages) in enumerate(make_pages().items()):
        for half in range(2):
            lines = [json.dumps(page) for page in pages[half::2]]
            (folder / f"{name}-{half}.jsonl").write_text("\n".join(lines))
        sources.append(
            {"name": name, "paths": [str(folder / f"{name}-*.jsonl")], "priority": priority, "domain": "web"}
        )
    (folder / "recipe.json").write_text(
        json.dumps(
            {
                "name": "removals",
                "sources": sources,
                "tokenizer": {"path": str(folder / "tokenizer.json"), "eos": None},
                "language": None,
                "heuristics": None,
                "near_dup_in_source": {"*": {}},
                "toxicity": {"words": ["swine"]},
                "rejects": {"rate": 1.0},
                "failures": {"allow_empty": ["second"]},  # all of it are copies of the first
                "run": {"wave_files": 1},
            }
        )
    )
    return folder / "recipe.json"


@pytest.fixture(scope="module")
def corpus(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("one") / "corpus"
    run("refine", recipe, "--output", prefix, "--workers", 0)
    return prefix


def removed_rows(corpus: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(corpus / "removals").to_pylist())


def test_removals_are_what_the_funnel_dropped(corpus: Path) -> None:
    dropped: Counter[tuple[str, str]] = Counter()
    for row in read_manifest(open_store(corpus)).funnel:
        for reason, count in row["dropped"].items():
            if reason in REASONS:
                dropped[reason, row["source"]] += count["documents"]
    rows = removed_rows(corpus)
    assert Counter((row["reason"], row["source"]) for row in rows) == dropped
    assert len({(row["source"], row["origin"]) for row in rows}) == len(rows) == 6 + 4 + 8 + 2 + 1
    assert {row["reason"]: row["scope"] for row in rows} == {
        "exact-duplicate": "corpus",
        "near-duplicate-in-source": "source",
        "near-duplicate": "corpus",
    }
    report = verify(str(corpus))
    assert (report.failures, report.removals, report.dropped_later) == ([], len(rows), 1)


def test_the_same_bytes_however_the_work_is_cut(corpus: Path, recipe: Path, tmp_path: Path) -> None:
    cut = ["--set", "run.wave_files=100", "--set", "run.part_bytes=1000"]
    run("refine", recipe, "--output", tmp_path / "out", "--workers", 2, *cut, hash_seed=1)
    assert corpus_bytes(tmp_path / "out") == corpus_bytes(corpus)
    assert any(name.startswith("removals/") for name in corpus_bytes(corpus))


def test_no_manifest_when_the_removals_are_not_what_the_funnel_dropped(corpus: Path) -> None:
    manifest = read_manifest(open_store(corpus))
    files = [{"rows": file.rows} for file in manifest.removals]
    assert check_removals(manifest.funnel, files) == []
    assert check_removals(manifest.funnel, [*files, {"rows": 1}]) == [
        "deduplication dropped 21 documents, 22 are in removals/"
    ]
    assert len(check_removals(manifest.funnel, [])) == 1


def test_a_foreign_file_among_the_removals_is_not_published(corpus: Path, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "removals").mkdir(parents=True)
    (tmp_path / "out" / "removals" / "mine.parquet").write_text("mine")
    shutil.copy(corpus / "_run.json", tmp_path / "out")  # the folder is the run's, or it would be refused at once
    done = run("refine", recipe, "--output", tmp_path / "out", "--workers", 0, "--reuse", corpus, check=False)
    assert done.returncode == 1 and "removals/mine.parquet was not written by this run" in done.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_every_page_is_traced_to_its_end(corpus: Path) -> None:
    pages = [page["url"] for pages in make_pages().values() for page in pages]
    found = trace(str(corpus), [Query("url", url) for url in pages])
    assert found.complete and [query.value for query, _ in found.answers] == pages
    kinds = Counter(type(answer) for _, answer in found.answers)
    assert kinds == {Kept: 12, Removed: 21, Rejected: 1}
    removed = [answer for _, answer in found.answers if isinstance(answer, Removed)]
    assert Counter(type(answer.end) for answer in removed) == {Kept: 20, Rejected: 1}
    chains = {tuple(step.reason for step in answer.steps) for answer in removed if len(answer.steps) > 1}
    in_source = "near-duplicate-in-source"
    assert chains == {("exact-duplicate", in_source), (in_source, "near-duplicate")}
    for answer in removed:
        assert all(step.kept.url.startswith("https://") for step in answer.steps)
        if isinstance(answer.end, Kept):
            assert answer.end.copies > 1


def test_without_work_only_the_lost_kept_document_is_less_known(corpus: Path, recipe: Path, tmp_path: Path) -> None:
    url = next(page["url"] for page in make_pages()["second"] if "swine" in page["text"])
    (before,) = (answer for _, answer in trace(str(corpus), [Query("url", url)]).answers)
    assert isinstance(before, Removed) and isinstance(before.end, Rejected) and before.end.stage == "toxicity"
    copy = tmp_path / "copy"
    for path in (p for p in corpus.rglob("*") if p.is_file()):
        (copy / path.relative_to(corpus)).parent.mkdir(parents=True, exist_ok=True)
        (copy / path.relative_to(corpus)).write_bytes(path.read_bytes())
    remove_work(open_store(copy / "work"))
    (after,) = (answer for _, answer in trace(str(copy), [Query("url", url)]).answers)
    assert isinstance(after, Removed) and isinstance(after.end, Passed)
    assert after.steps[0].kept.id == before.steps[0].kept.id
