"""The same bytes from an input made for trouble: identical pages in plenty, near copies, large buckets, long chains.

With every part of deduplication on. What may not matter: workers, waves, parts, partitions, hash seed, runner, replayed
bundles, the way to components, and the order in which sources and files are listed.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.verify.verify import verify
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.runners.runner import Runner
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from refinery.transforms.dedup.near_duplicates import BUCKET_REPRESENTATIVES, band_hashes
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures
from tests.pipelines.inputs import corpus_bytes, run
from tests.pipelines.small_runs import JUDGES_OFF
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

IDENTICAL, NEAR_COPIES, TEMPLATED, WINDOWS = 3000, 400, 700, 300
IN_SOURCE = {"threshold": 0.8, "bands": 28, "rows": 4}
SOURCES = {"crawl": 3, "feed": 2, "books": 1}  # and how many files each has
Way = Callable[[Path, Path, pytest.MonkeyPatch], None]


def lines(words: list[str]) -> str:
    return "\n".join(" ".join(words[i : i + 12]) for i in range(0, len(words), 12))


def words_of(name: str, count: int) -> list[str]:
    return [f"{name}{i}" for i in range(count)]


def templated(number: int) -> str:
    """72 words that all of these pages have, 48 that none other has: a Jaccard similarity of 0.43."""
    return lines([*words_of("template", 72), *words_of(f"own{number}x", 48)])


def pages(rng: random.Random) -> Iterator[tuple[str, str]]:
    """(source, text)"""
    page = words_of("page", 120)
    for _ in range(IDENTICAL):
        yield rng.choice(["crawl", "feed"]), lines(page)
    for number in range(NEAR_COPIES):
        copy = [*page, f"visit{number}"]
        copy[rng.randrange(120)] = f"change{number}"
        yield rng.choice(list(SOURCES)), lines(copy)
    for number in range(TEMPLATED):
        yield "crawl", templated(number)
    long = words_of("long", WINDOWS * 12 + 120)
    for number in range(WINDOWS):  # each like the next, Jaccard 0.81, in another source
        yield list(SOURCES)[number % 3], lines(long[12 * number : 12 * number + 120])
    for number in range(100):
        yield "books", "one menu for all of the books\n" + lines(words_of(f"book{number}x", 60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of each source, a tokenizer, recipe.yaml."""
    folder = tmp_path_factory.mktemp("trouble")
    rng = random.Random(1)
    everything = list(pages(rng))
    rng.shuffle(everything)
    files: dict[Path, list[str]] = {}
    for number, (source, text) in enumerate(everything):
        path = folder / f"{source}-{rng.randrange(SOURCES[source])}.jsonl"
        row = {"text": text, "url": f"https://{source}.example/{number}"}
        files.setdefault(path, []).append(json.dumps(row) + "\n")
    for path, rows in files.items():
        path.write_text("".join(rows))
    settings = TrainTokenizerParams(vocab_size=400, held_out=0)
    train_tokenizer([text for _, text in everything[:200]], str(folder / "tokenizer.json"), settings)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe(folder)))
    return folder


def recipe(folder: Path, backwards: bool = False, **run: Any) -> dict[str, Any]:
    """backwards: sources, and the files of each, listed in the opposite order."""
    step = -1 if backwards else 1
    return {
        "name": "trouble",
        "sources": [
            {"name": name, "paths": [str(folder / f"{name}-{n}.jsonl") for n in range(count)][::step]}
            for name, count in list(SOURCES.items())[::step]
        ],
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "near_dup_in_source": {"crawl": IN_SOURCE, "*": {"threshold": 0.9}},
        "near_dup": {"verify": "exact"},
        "line_dup": {"min_chars": 40},
        "shards": {"target_bytes": 100_000, "validation": 0.05},
        "run": {"wave_files": 1, **run},
        **JUDGES_OFF,
    }


def refine_here(plain: dict[str, Any], prefix: Path, *flags: str) -> None:
    """In this process."""
    runner = Runner("local", workers=0, flags=flags, quiet=True)
    Refinement(parse_recipe(plain), str(prefix), runner, say=lambda _: None).run()


@pytest.fixture(scope="module")
def corpus(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("first") / "corpus"
    refine_here(recipe(folder), prefix)
    return prefix


def test_the_input_is_trouble(corpus: Path) -> None:
    signatures = compute_signatures([templated(n) for n in range(TEMPLATED)], SignatureParams())
    hashes = band_hashes(signatures, IN_SOURCE["bands"], IN_SOURCE["rows"])
    assert max(np.unique(band, return_counts=True)[1].max() for band in hashes.T) > BUCKET_REPRESENTATIVES

    removed = [row for file in sorted((corpus / "removals").iterdir()) for row in pq.read_table(file).to_pylist()]
    reasons = Counter(row["reason"] for row in removed)
    assert reasons["exact-duplicate"] == IDENTICAL - 1
    assert reasons["near-duplicate-in-source"] > 150
    assert reasons["near-duplicate"] > 300
    report = json.loads((corpus / "work" / "dedup" / "report.json").read_text())
    assert [scope["largest"] > 100 for scope in report["components"]] == [True, True, True]
    cut = {row["source"]: row for row in Corpus(str(corpus)).manifest.funnel if row["stage"] == "lines"}["crawl"]
    assert cut["in"]["bytes"] - cut["kept"]["bytes"] > TEMPLATED * 500
    assert verify(str(corpus)).failures == []


def in_other_processes(folder: Path, prefix: Path, _: pytest.MonkeyPatch) -> None:
    cut = ["run.wave_files=100", "run.part_bytes=100000", "run.components=contraction"]
    settings = [word for setting in cut for word in ("--set", setting)]
    run("refine", folder / "recipe.yaml", "--output", prefix, "--workers", 2, *settings, hash_seed=1)


def on_the_direct_runner(folder: Path, prefix: Path, _: pytest.MonkeyPatch) -> None:
    run("refine", folder / "recipe.yaml", "--output", prefix, "--runner", "DirectRunner", hash_seed=1)


def with_replayed_bundles(folder: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.pipelines.run.refine.DOCUMENTS_PER_PARTITION", 600)
    refine_here(recipe(folder, wave_files=2, part_bytes=50_000), prefix, "--direct_runner_bundle_repeat=2")


def listed_backwards(folder: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.pipelines.run.refine.DOCUMENTS_PER_PARTITION", 2000)
    refine_here(recipe(folder, backwards=True), prefix)


# And what then differs: the manifest with its listings and the claim name the recipe, which is another.
WAYS: dict[str, tuple[Way, tuple[str, ...]]] = {
    "two workers, another hash seed, few waves, components by contraction": (in_other_processes, ()),
    "DirectRunner, another hash seed": (on_the_direct_runner, ()),
    "replayed bundles, many partitions, small parts": (with_replayed_bundles, ()),
    "sources and files listed backwards": (listed_backwards, ("manifest.json", "manifests", "_run.json")),
}


@pytest.mark.parametrize("way", sampled("ways to run through trouble", WAYS, 1))
def test_same_bytes(corpus: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    run_again, differ = WAYS[way]
    run_again(folder, tmp_path / "out", monkeypatch)
    others = ("work", *differ)
    assert corpus_bytes(tmp_path / "out", others) == corpus_bytes(corpus, others)
