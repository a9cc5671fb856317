"""Copies of what goes, under other addresses: they come back, or stand behind what does, and the takedown ends."""

from pathlib import Path
from typing import Any

import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.verify import verify
from tests.pipelines.corpus.remove.corpora import remove, removed_rows, rows, write_list
from tests.pipelines.corpus.remove.families import SOURCES, Corpus, Record, sentence
from tests.pipelines.inputs import run
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled
from tests.shared import shared

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

TEXT = " ".join(sentence("story", number) for number in range(8))
STORY, COPY, LONGER = "https://web.example/story", "https://books.example/story", "https://books.example/longer"
RECORDS = [
    Record("web", STORY, TEXT),
    Record("web", "https://web.example/other", " ".join(sentence("other", number) for number in range(8))),
    Record("books", COPY, TEXT),
    Record("books", LONGER, f"{TEXT} {sentence('story', 8)}"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(folder: Path) -> None:
        Corpus(folder / "inputs", RECORDS).refine(folder / "corpus")

    return shared(tmp_path_factory, "copies", fill) / "corpus"


def listing(prefix: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    manifest = read_manifest(open_store(str(prefix)))
    found: list[dict[str, Any]] = pq.read_table(prefix / manifest.takedowns[-1].removed).to_pylist()
    return found


FLAGS = [
    ("--source", "web"),
    ("--where", "source == 'web'"),
    ("--hosts", "web.example", "--copies", "keep"),
    ("--urls", STORY, "--copies", "keep"),
]


@pytest.mark.parametrize("flags", sampled("ways to ask for a story", FLAGS, 1))
def test_the_exact_copy_stands_behind_a_longer_one_that_comes_back(
    flags: tuple[str, ...], corpus: Path, tmp_path: Path
) -> None:
    name, value, *more = flags
    value = write_list(tmp_path / "list", [value]) if name in ("--hosts", "--urls") else value
    dry = run("remove", corpus, name, value, *more, "--dry-run", "--workers", 0)
    assert "1 of their duplicates would come back" in dry.stdout
    assert "1 of their duplicates are duplicates of others now" in dry.stdout
    remove(corpus, tmp_path / "new", name, value, *more)
    there = {row["url"]: row for row in rows(tmp_path / "new")}
    assert there[LONGER]["copies"] == 2 and STORY not in there
    (left,) = removed_rows(tmp_path / "new")
    assert (left["url"], left["kept_id"], left["reason"]) == (COPY, there[LONGER]["id"], "near-duplicate")
    assert STORY in {row["url"] for row in listing(tmp_path / "new")}
    assert verify(str(tmp_path / "new"), against=str(corpus)).failures == []


def test_of_a_text_that_is_claimed_no_copy_is_left(corpus: Path, tmp_path: Path) -> None:
    remove(corpus, tmp_path / "new", "--urls", write_list(tmp_path / "list", [STORY]))
    assert {row["url"] for row in rows(tmp_path / "new")} == {"https://web.example/other", LONGER}
    assert removed_rows(tmp_path / "new") == []
    assert verify(str(tmp_path / "new"), against=str(corpus)).failures == []


def test_beside_a_source_with_a_target(tmp_path: Path) -> None:
    """Documents of other sources pass the writer's stage of targets, and those that come back do."""
    folder = tmp_path / "in"
    names = enumerate(SOURCES)
    sources = [{"name": name, "paths": [str(folder / f"{name}.jsonl")], "priority": at} for at, name in names]
    letters = [Record("letters", f"https://l.example/{n}", sentence(f"letter{n}", 0)) for n in range(8)]
    corpus = Corpus(folder, [*RECORDS, *letters], sources=[*sources[:2], {**sources[2], "target": 40}])
    corpus.refine(tmp_path / "old")
    remove(tmp_path / "old", tmp_path / "new", "--source", "web")
    assert LONGER in {row["url"] for row in rows(tmp_path / "new")}
    assert verify(str(tmp_path / "new"), against=str(tmp_path / "old")).failures == []
