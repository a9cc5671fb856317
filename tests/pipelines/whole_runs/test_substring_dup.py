"""Cutting repeated substrings in whole runs: what comes out, what the counts say, and what a change of it repeats."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.corpus.corpus import Corpus
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.pipelines.verify.verify import verify
from refinery.transforms.dedup.cut_substrings import SubstringParams
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.pipelines.small_runs import JUDGES_OFF
from tests.pipelines.whole_runs.test_line_dup import refine
from tests.sampling import one_commit_in_four

GROUPS = 12


def words(name: str, count: int) -> str:
    rng = random.Random(name)
    return " ".join(f"{rng.choice('bdfgklmnprst')}{rng.choice('aeiou')}{rng.randrange(99)}" for _ in range(count))


def pages() -> Iterator[tuple[str, str]]:
    """(what it is, text): in each group a long page with a passage, one that quotes it, one that is little else, one
    that quotes too little of it.
    """
    for n in range(GROUPS):
        passage = words(f"passage {n}", 60)
        yield "first", f"{words(f'a{n}', 150)}.\n\n{passage}.\n\n{words(f'b{n}', 100)}."
        yield "quote", f"{words(f'c{n}', 80)}.\n\n{passage.upper()}!\n\n{words(f'd{n}', 40)}."
        yield "stub", f"{words(f'e{n}', 5)}.\n\n{passage}."
        yield "short", f"{words(f'f{n}', 60)}.\n\n{' '.join(passage.split()[:49])}."


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    folder = tmp_path_factory.mktemp("substrings")
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
        "substring_dup": {"min_chars": 100},
        "line_dup": {},  # finds nothing here; both may be on
        **JUDGES_OFF,
    }
    return parse_recipe(data)


def contents(recipe: Recipe, prefix: Path) -> list[tuple[str, str, int]]:
    """(kind, text, characters cut) of every document of the corpus, sorted."""
    tokenizer = load_tokenizer(recipe.tokenizer.path)
    found = []
    for split in ("train", "validation"):
        for shard in Corpus(str(prefix)).shards(split):
            for i, meta in enumerate(shard.provenance()["meta"].to_pylist()):
                notes = json.loads(meta)
                assert "cut_substrings" not in notes
                text = tokenizer.decode(shard[i][:-1].tolist())  # without the end of the document
                found.append((notes["record_id"], text, notes.get("chars_cut", 0)))
    return sorted(found)


def dropped(prefix: Path) -> dict[str, int]:
    manifest = Corpus(str(prefix)).manifest
    (row,) = [row for row in manifest.funnel if row["stage"] == "substrings"]
    counts = {reason: count["documents"] for reason, count in row["dropped"].items()}
    assert row["in"]["documents"] == row["kept"]["documents"] + sum(counts.values()) == 4 * GROUPS
    assert verify(str(prefix)).failures == []
    return counts


def test_a_run_cuts_what_its_documents_repeat(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe, tmp_path / "cut")
    texts = sorted(pages())
    expected = [(kind, text, 0) for kind, text in texts if kind in ("first", "short")]
    for _, text in (page for page in texts if page[0] == "quote"):
        before, passage, after = text.split("\n\n")
        expected.append(("quote", f"{before}\n\n{after}", len(passage) - 1))
    assert contents(recipe, tmp_path / "cut") == sorted(expected)
    assert dropped(tmp_path / "cut") == {"too-little-left": GROUPS}

    # Another action repeats phases 2 and 3, not the reading of the pages.
    other = recipe.replace(substring_dup=SubstringParams(action="drop"))
    said = refine(other, tmp_path / "drop", reuse=str(tmp_path / "cut"))
    assert contents(other, tmp_path / "drop") == sorted((kind, text, 0) for kind, text in texts if kind != "stub")
    assert dropped(tmp_path / "drop") == {"mostly-repeated": GROUPS}
    assert any(line.startswith("clean: ") for line in said)
    assert not any(line.startswith("dedup: ") for line in said)


def test_phase_1_depends_only_on_whether_substrings_are_looked_for(recipe: Recipe) -> None:
    first, *others = (
        phase_fingerprints(recipe.replace(substring_dup=params), [])
        for params in (SubstringParams(), SubstringParams(min_words=60), SubstringParams(action="drop"), None)
    )
    changed = [[phase for phase in first if first[phase] != other[phase]] for other in others]
    assert changed == [["dedup", "shards"], ["dedup", "shards"], ["clean", "dedup", "shards"]]


@one_commit_in_four
def test_substrings_are_cut_without_any_other_deduplication(recipe: Recipe, tmp_path: Path) -> None:
    refine(recipe.replace(exact_dup=False, line_dup=None), tmp_path / "cut")
    assert len([chars for _, _, chars in contents(recipe, tmp_path / "cut") if chars]) == GROUPS
