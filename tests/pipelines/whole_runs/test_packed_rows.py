"""Packed rows of whole runs: they hold the corpus' documents, the same bytes however the work is done, and verify."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from refinery.loader.format.packed import read_packed
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.published.packed_counts import packed_line
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from tests.corpus_factory import build_corpus, tokenizer_json
from tests.pipelines.small_runs import OFF
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

LENGTH = 64


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("packed")
    texts = [f"{number} " + "ab" * (number * 7 % 90) for number in range(150)]
    for name in range(2):
        rows = [json.dumps({"text": text}) + "\n" for text in texts[name::2]]
        (folder / f"{name}.jsonl").write_text("".join(rows))
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    return {
        "name": "packed",
        "sources": [{"name": f"s{name}", "domain": "web", "paths": [f"{folder}/{name}.jsonl"]} for name in range(2)],
        "tokenizer": {"path": str(folder / "tokenizer.json"), "bos": "<s>", "eos": "</s>"},
        "packed": {"length": LENGTH},
        "shards": {"target_bytes": 8000, "validation": 0.1},
        **OFF,
    }


def refine(recipe: Recipe, prefix: Path, workers: int = 0) -> Path:
    Refinement(recipe, str(prefix), Runner("local", workers=workers, quiet=True), say=lambda line: None).run()
    return prefix


@pytest.fixture(scope="module")
def corpus(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return refine(parse_recipe(data), tmp_path_factory.mktemp("corpus") / "out")


def test_rows_hold_the_shards(corpus: Path) -> None:
    """Each shard's rows have exactly its documents; no row of one split has a document of the other."""
    manifest = Corpus(str(corpus)).manifest
    layout = manifest.packed
    assert layout is not None and (layout.length, layout.pad_id) == (LENGTH, 257)
    shards = [shard for split in ("train", "validation") for shard in Corpus(str(corpus)).shards(split)]
    assert len(shards) > 2
    rows = full = 0
    for entry, shard in zip(sorted(manifest.shards, key=lambda s: s.bin.path), shards, strict=True):
        pieces: dict[bytes, list[tuple[int, list[int]]]] = defaultdict(list)
        for file in entry.packed:
            (block,) = read_packed(corpus / file.path, layout, file.path)
            made = pq.read_table(corpus / file.path, columns=["document_ids", "document_starts"]).to_pylist()
            assert (file.rows, file.documents) == (len(block), block.num_docs.sum())
            assert file.tokens == block.valid_token_count.sum()
            rows, full = rows + len(block), full + file.tokens
            for row, names in enumerate(made):
                for number, (id_, start) in enumerate(zip(*names.values(), strict=True)):
                    tokens = block.input_ids[row][block.doc_ids[row] == number].tolist()
                    pieces[id_].append((start, tokens[start > 0 :]))
        found = {id_: [token for _, part in sorted(parts) for token in part] for id_, parts in pieces.items()}
        ids = shard.provenance()["id"].to_pylist()
        assert found == {id_: np.asarray(shard[i]).tolist() for i, id_ in enumerate(ids)}
    assert full / (rows * LENGTH) > 0.95


def test_same_bytes(corpus: Path, data: dict[str, Any], tmp_path: Path) -> None:
    again = refine(parse_recipe(data), tmp_path / "again", workers=2)
    names = sorted(path.relative_to(corpus) for path in (corpus / "packed").rglob("*.parquet"))
    assert names == sorted(path.relative_to(again) for path in (again / "packed").rglob("*.parquet"))
    assert all((corpus / name).read_bytes() == (again / name).read_bytes() for name in names)


def test_shards_stay_as_they_are(corpus: Path, data: dict[str, Any], tmp_path: Path) -> None:
    """Packed rows are beside the shards, and decide phase 3 alone; off, they are no part of a fingerprint."""
    plain = refine(parse_recipe({**data, "packed": None}), tmp_path / "plain")
    assert not (plain / "packed").exists()
    assert Corpus(str(plain)).manifest.packed is None
    for path in (plain / "train").rglob("*.*"):
        assert path.read_bytes() == (corpus / path.relative_to(plain)).read_bytes()
    recipes = [parse_recipe({**data, "packed": packed}) for packed in (None, {"length": LENGTH}, {"length": 128})]
    found = [phase_fingerprints(recipe, []) for recipe in recipes]
    assert len({each["dedup"] for each in found}) == 1
    assert len({each["shards"] for each in found}) == 3


def test_verified(corpus: Path) -> None:
    report = verify(str(corpus))
    assert report.failures == [] and report.packed in report.summary_lines()


def test_a_line_says_what_rows_there_are(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows, utilisation and documents per row are those of the files."""
    tables = [pq.read_table(path) for path in sorted(corpus.rglob("rows-*.parquet"))]
    rows = sum(table.num_rows for table in tables)
    tokens, documents = (
        sum(sum(table[name].to_pylist()) for table in tables) for name in ("valid_token_count", "num_docs")
    )
    line = (
        f"{rows:,} packed rows of {LENGTH} tokens: {tokens / rows / LENGTH:.1%} full, {documents / rows:.1f} documents"
    )
    assert packed_line(Corpus(str(corpus)).manifest).startswith(line)
    assert execute(["inspect", str(corpus)]) == 0
    assert f"packed        {line}" in capsys.readouterr().out


def test_no_line_without_rows(tmp_path: Path) -> None:
    assert packed_line(Corpus(str(build_corpus(tmp_path / "corpus"))).manifest) == ""


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ({"bos": None}, "must name"),
        ({"bos": "</s>"}, "and tokenizer.eos must be different tokens"),
        ({"bos": "auto", "eos": "<s>"}, "and tokenizer.eos must be different tokens"),
    ],
)
def test_needs_bos(data: dict[str, Any], tmp_path: Path, ends: dict[str, Any], message: str) -> None:
    """Without a BOS of its own there is nothing to count documents by: said before anything runs or is written."""
    recipe = parse_recipe({**data, "tokenizer": data["tokenizer"] | ends})
    with pytest.raises(RecipeError, match=rf"^packed: packed rows given, tokenizer\.bos {message}"):
        refine(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("length", [1, 0, (1 << 20) + 1])
def test_lengths(length: int, data: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match=rf"packed.length: {length} given"):
        parse_recipe({**data, "packed": {"length": length}})
