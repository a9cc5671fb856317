"""Properties of whole runs: conservation, and independence of the order in which documents come."""

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.transforms.core.document import document_id
from tests.pipelines.small_runs import JUDGES_OFF
from tests.sampling import one_commit_in_four, scaled

WORDS = ["alpha", "beta", "gamma", "delta", "é", "日本", "\U0001f600", "a b"]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["", " ", "x", "same text", "\ufeff", "\x00", "line\nline"]),
        st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
        st.text(max_size=20),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_tokenizer([" ".join(WORDS)] * 3, str(path), TrainTokenizerParams(vocab_size=300, held_out=0))
    return str(path)


def run(folder: Path, lines: list[Any], tokenizer: str, files: int = 2, **sections: Any) -> Path:
    """All stages that judge text off: what comes out is what cleaning and deduplication leave."""
    folder.mkdir()
    for number in range(files):
        rows = (json.dumps({"text": text}) + "\n" for text in lines[number::files])
        (folder / f"{number}.jsonl").write_text("".join(rows))
    recipe = {
        "name": "n",
        "sources": [{"name": "s", "paths": [f"{folder}/*.jsonl"]}],
        "tokenizer": {"path": tokenizer},
        "shards": {"validation": 0.2, "target_bytes": 200},
        "failures": {"allow_empty": True},  # texts may be white space alone
        **JUDGES_OFF,
        **sections,
    }
    prefix = folder / "corpus"
    runner = Runner("local", workers=0, quiet=True)
    Refinement(parse_recipe(recipe), str(prefix), runner, say=lambda line: None).run()
    return prefix


def contents(prefix: Path) -> dict[bytes, tuple[str, ...]]:
    """id -> its shard, place and tokens."""
    found = {}
    for split in ("train", "validation"):
        for shard in Corpus(str(prefix)).shards(split):
            for i, id_ in enumerate(shard.provenance()["id"].to_pylist()):
                found[id_] = (shard.entry.bin.path, str(i), str(shard[i].tolist()))
    return found


RUNS = settings(max_examples=scaled(8, 2), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@RUNS
@given(texts=TEXTS)
def test_every_document_is_accounted_for(texts: list[str], tokenizer: str) -> None:
    with TemporaryDirectory() as folder:
        prefix = run(Path(folder) / "run", texts, tokenizer)  # raises when the counts do not reconcile
        manifest = Corpus(str(prefix)).manifest
        read = sum(row["in"]["documents"] for row in manifest.funnel if row["stage"] == "read")
        assert read == len(texts)
        lost = sum(
            entry["documents"]
            for row in manifest.funnel
            for what in ("dropped", "dead")
            for entry in row[what].values()
        )
        assert read == manifest.totals["documents"] + lost
        assert verify(str(prefix)).failures == []
        assert all(shard.documents and shard.bin.size for shard in manifest.shards)


@one_commit_in_four
@RUNS
@given(texts=TEXTS, seed=st.integers(0, 99))
def test_order_and_layout_of_inputs_do_not_matter(texts: list[str], seed: int, tokenizer: str) -> None:
    with TemporaryDirectory() as folder:
        first = contents(run(Path(folder) / "first", texts, tokenizer, near_dup=None))
        mixed = random.Random(seed).sample(texts, len(texts))
        second = contents(run(Path(folder) / "second", mixed, tokenizer, files=3, near_dup=None))
        assert {id_: place[2] for id_, place in first.items()} == {id_: place[2] for id_, place in second.items()}
        assert first == second


def test_kept_documents_are_the_distinct_texts(tokenizer: str, tmp_path: Path) -> None:
    texts = ["one two three", "one  two\nthree", "four", "", "four"]
    prefix = run(tmp_path / "run", texts, tokenizer, near_dup=None)
    assert set(contents(prefix)) == {document_id("one two three"), document_id("four")}
