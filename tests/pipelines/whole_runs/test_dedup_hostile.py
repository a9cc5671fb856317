"""Bad input through the whole command: huge texts, tens of thousands of equal ones, and hardly any text at all."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.training.train_tokenizer import TrainTokenizerParams, train_tokenizer
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import JUDGES_OFF
from tests.sampling import one_commit_in_four, scaled

IDENTICAL = scaled(50_000, 10_000)
MEMORY = 2 << 30  # bytes; the three runs take 0.5, 0.7 and 1.1 GB

PAGE = "\n".join(" ".join(f"page{i}" for i in range(first, first + 10)) for first in range(0, 60, 10))
HUGE = [f"{i * 2654435761 % 2**32:08x}" for i in range(scaled(1_000_000, 200_000))]
HAN = "".join(chr(0x4E00 + i * 97 % 20000) for i in range(150))


def rows() -> Iterator[tuple[str, str]]:
    """(url, text). What is to survive has a url that begins with "keep"."""
    for number, text in enumerate(["", " ", "\n\n\t", "\u200b", "\x00\ufeff"]):
        yield f"empty/{number}", text
    for number, text in enumerate(["word!", "?", "!?", "…", "\u0e01", "\U0001f600", "two words"]):
        yield f"keep/short/{number}", text
    yield "copy/word", "Word"
    yield "keep/over-and-over", "spam " * 1_000_000
    yield "copy/over-and-over", "spam " * 999
    yield "keep/huge", " ".join(HUGE)
    yield "copy/huge/0", " ".join([*HUGE[: -len(HUGE) // 20], *["changed"] * (len(HUGE) // 20 - 1)])
    yield "copy/huge/1", " ".join(HUGE[len(HUGE) // 50 :])
    yield "keep/no-spaces", f"{HAN}กขคлинияナニ"
    yield "copy/no-spaces", f"{HAN}กขคлинияナ"
    for number in range(IDENTICAL):
        yield f"page/{number}", PAGE
    yield "keep/page", f"{PAGE} longest"


def refine(forks: ForkServer, folder: Path, prefix: Path, *more: object) -> int:
    """Run the command in one process; returns its peak memory in bytes."""
    command = ["refine", folder / "recipe.yaml", "--output", prefix, "--workers", 0, "--quiet", *more]
    done = forks.run(*command)
    assert done.code == 0, done.out + done.err
    return done.peak


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    with (folder / "input.jsonl").open("w") as file:
        for url, text in rows():
            file.write(json.dumps({"text": text, "url": url}) + "\n")
    settings = TrainTokenizerParams(vocab_size=300, held_out=0)
    train_tokenizer([PAGE], str(folder / "tokenizer.json"), settings)
    recipe: dict[str, Any] = {
        "name": "hostile",
        "sources": [{"name": "s", "paths": [str(folder / "input.jsonl")]}],
        "tokenizer": {"path": str(folder / "tokenizer.json")},
        "line_dup": {"max_documents": 1, "min_chars": 0},
        "shards": {"validation": 0},
        **JUDGES_OFF,
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder


@one_commit_in_four
def test_bad_input_end_to_end(folder: Path, forks: ForkServer) -> None:
    runs: dict[str, tuple[str, ...]] = {
        "signature": (),
        "exact": ("near_dup.verify=exact",),
        "near-alone": ("exact_dup=off", "near_dup.verify=exact"),  # 50,000 equal signatures and texts
    }
    for name, settings in runs.items():
        prefix = folder / name
        reuse = ("--reuse", folder / "signature") if settings else ()
        peak = refine(forks, folder, prefix, *(word for setting in settings for word in ("--set", setting)), *reuse)
        assert peak < MEMORY
        assert forks.run("verify", prefix).code == 0  # in a process of its own, for its memory
        check(prefix, exact_copies=0 if name == "near-alone" else IDENTICAL - 1)


def check(prefix: Path, exact_copies: int) -> None:
    corpus = Corpus(str(prefix))
    kept = [row for shard in corpus.shards() for row in shard.provenance().to_pylist()]
    expected = {url: 1 for url, _ in rows() if url.startswith("keep")}
    expected |= {"keep/short/0": 2, "keep/over-and-over": 2, "keep/huge": 3, "keep/no-spaces": 2}
    assert {row["url"]: row["copies"] for row in kept} == {**expected, "keep/page": IDENTICAL + 1}
    tables = [pq.read_table(file) for file in (prefix / "removals").iterdir()]
    reasons = Counter(reason for table in tables for reason in table["reason"].to_pylist())
    stages = {row["stage"]: row for row in corpus.manifest.funnel}
    lost = {name: stages[name]["in"]["documents"] - stages[name]["kept"]["documents"] for name in stages}
    assert (lost["read"], lost["extract"]) == (3, 2)  # white space, and what is invisible
    assert lost.get("exact-duplicates", 0) == reasons["exact-duplicate"] == exact_copies
    assert lost["near-duplicates"] == reasons["near-duplicate"] == IDENTICAL + 5 - exact_copies
    assert sum(lost.values()) == IDENTICAL + 5 + 5
    assert stages["lines"]["in"] == stages["lines"]["kept"]  # no kept document shares a line with another
