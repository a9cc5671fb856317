"""Cutting repeated lines in whole runs: what comes out, what the counts say, and what a change of it repeats."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.corpus.corpus import Corpus
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.pipelines.verify.verify import verify
from refinery.transforms.dedup.cut_lines import LineParams
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.pipelines.small_runs import JUDGES_OFF
from tests.sampling import one_commit_in_four

MENU = "Home | About us | Contact"
PAGES = 30


def pages() -> Iterator[tuple[str, str]]:
    """(what it is, text): pages under one menu, pages that are little else, pages without it."""
    for n in range(PAGES):
        body = f"Page {n} says this.\n\n" + " ".join(f"word{n * i % 97}" for i in range(1, 40))
        yield "page", f"{MENU}\n\n{body}\n\n{MENU.lower()}!\n© 2020"
        yield "stub", f"{MENU}\n\nEmpty page {n}"
        yield "plain", body.replace("says", "tells") + f" plain {n}"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    folder = tmp_path_factory.mktemp("lines")
    rows = [json.dumps({"text": text, "id": kind}) + "\n" for kind, text in pages()]
    for number in range(2):
        (folder / f"{number}.jsonl").write_text("".join(rows[number::2]))
    tokenizer = str(folder / "tokenizer.json")
    train_tokenizer([text for _, text in pages()], tokenizer, TrainTokenizerParams(vocab_size=300, held_out=0))
    data: dict[str, Any] = {
        "name": "n",
        "sources": [{"name": "s", "paths": [f"{folder}/*.jsonl"], "id_field": "id"}],
        "tokenizer": {"path": tokenizer},
        "near_dup": None,
        "line_dup": {"min_chars": 40},
        **JUDGES_OFF,
    }
    return parse_recipe(data)


def refine(recipe: Recipe, prefix: Path, **options: Any) -> list[str]:
    said: list[str] = []
    Refinement(recipe, str(prefix), Runner("local", workers=0, quiet=True), say=said.append, **options).run()
    return said


def contents(recipe: Recipe, prefix: Path) -> list[tuple[str, str, int]]:
    """(kind, text, lines cut) of every document of the corpus, sorted."""
    tokenizer = load_tokenizer(recipe.tokenizer.path)
    found = []
    for split in ("train", "validation"):
        for shard in Corpus(str(prefix)).shards(split):
            for i, meta in enumerate(shard.provenance()["meta"].to_pylist()):
                notes = json.loads(meta)
                assert "cut_lines" not in notes
                text = tokenizer.decode(shard[i][:-1].tolist())  # without the end of the document
                found.append((notes["record_id"], text, notes.get("lines_cut", 0)))
    return sorted(found)


def test_a_run_cuts_what_its_documents_share(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe, tmp_path / "cut")
    expected = [("plain", text, 0) for kind, text in pages() if kind == "plain"]
    expected += [("page", "\n".join(text.split("\n")[2:-3]), 3) for kind, text in pages() if kind == "page"]
    assert contents(recipe, tmp_path / "cut") == sorted(expected)
    (row,) = [row for row in Corpus(str(tmp_path / "cut")).manifest.funnel if row["stage"] == "lines"]
    assert (row["in"]["documents"], row["kept"]["documents"]) == (3 * PAGES, 2 * PAGES)
    assert {reason: count["documents"] for reason, count in row["dropped"].items()} == {"too-little-left": PAGES}
    assert row["kept"]["bytes"] == sum(len(text.encode()) for _, text, _ in expected)
    assert verify(str(tmp_path / "cut")).failures == []

    # Another limit repeats phases 2 and 3, not the reading of the pages.
    other = recipe.replace(line_dup=LineParams(max_documents=3 * PAGES))
    said = refine(other, tmp_path / "uncut", reuse=str(tmp_path / "cut"))
    assert contents(other, tmp_path / "uncut") == sorted((kind, text, 0) for kind, text in pages())
    assert any(line.startswith("clean: ") for line in said)
    assert not any(line.startswith("dedup: ") for line in said)


def test_phase_1_depends_only_on_whether_lines_are_counted(recipe: Recipe) -> None:
    first, *others = (
        phase_fingerprints(recipe.replace(line_dup=params), [])
        for params in (LineParams(), LineParams(max_documents=7), LineParams(min_chars=7), None)
    )
    changed = [[phase for phase in first if first[phase] != other[phase]] for other in others]
    assert changed == [["dedup", "shards"], ["dedup", "shards"], ["clean", "dedup", "shards"]]


@one_commit_in_four
def test_lines_are_cut_without_any_other_deduplication(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe.replace(exact_dup=False), tmp_path / "cut")
    assert {cut for _, _, cut in contents(recipe, tmp_path / "cut")} == {0, 3}
