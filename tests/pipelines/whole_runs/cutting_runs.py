"""Whole runs of recipes that cut passages out of documents: small inputs, a run, and what its corpus holds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.pipelines.small_runs import JUDGES_OFF


def cutting_recipe(folder: Path, pages: Sequence[tuple[str, str]], **sections: Any) -> Recipe:
    """A recipe over two files of (kind, text), without near-duplicates and judges, with a tokenizer of these texts."""
    rows = [json.dumps({"text": text, "id": kind}) + "\n" for kind, text in pages]
    for number in range(2):
        (folder / f"{number}.jsonl").write_text("".join(rows[number::2]))
    tokenizer = str(folder / "tokenizer.json")
    train_tokenizer([text for _, text in pages], tokenizer, TrainTokenizerParams(vocab_size=300, held_out=0))
    source = {"name": "s", "paths": [f"{folder}/*.jsonl"], "id_field": "id"}
    base = {"name": "n", "sources": [source], "tokenizer": {"path": tokenizer}, "near_dup": None}
    return parse_recipe({**base, **sections, **JUDGES_OFF})


def refine(recipe: Recipe, prefix: Path, **options: Any) -> list[str]:
    """Runs a recipe in this process; what it said."""
    said: list[str] = []
    Refinement(recipe, str(prefix), Runner("local", workers=0, quiet=True), say=said.append, **options).run()
    return said


def contents(recipe: Recipe, prefix: Path, amount: str, cuts: str) -> list[tuple[str, str, int]]:
    """(kind, text, how much was cut) of every document of the corpus, sorted.

    amount: the note that says how much. cuts: the note of the cuts themselves, which is not published.
    """
    tokenizer = load_tokenizer(recipe.tokenizer.path)
    found = []
    for split in ("train", "validation"):
        for shard in Corpus(str(prefix)).shards(split):
            for i, meta in enumerate(shard.provenance()["meta"].to_pylist()):
                notes = json.loads(meta)
                assert cuts not in notes
                text = tokenizer.decode(shard[i][:-1].tolist())  # without the end of the document
                found.append((notes["record_id"], text, notes.get(amount, 0)))
    return sorted(found)
