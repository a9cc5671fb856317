"""Parts of the loader benchmark that need no peers: the generated corpus, checks, own loaders and the table."""

import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.loader import MASKS, Turn, check_batch, figure, goals, ours, run_pass, table
from benchmarks.loader_corpus import BATCH, EOS, SEQUENCE, Corpus, document_lengths, make_corpus
from benchmarks.loader_peers import numpy_rows, textbook
from refinery.loader.format.manifest import IndexedReader

TOKENS = 9 * BATCH * SEQUENCE + 17


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("work") / "corpus", TOKENS)


def pair(batch: Any) -> tuple[Any, Any]:
    return (batch["input_ids"], batch["labels"]) if isinstance(batch, dict) else batch


@pytest.mark.parametrize("tokens", [1, 499, 10_000, 1_000_000])
def test_documents_make_up_the_tokens(tokens: int) -> None:
    lengths = document_lengths(tokens)
    assert lengths.sum() == tokens
    assert lengths.min() >= 1
    if tokens == 1_000_000:
        assert 450 < lengths.mean() < 550


def test_every_document_ends_with_the_only_eos(corpus: Corpus) -> None:
    documents = IndexedReader(corpus.bin)
    assert len(documents) == corpus.documents
    assert all(documents[i][-1] == EOS for i in range(len(documents)))
    assert (corpus.open() == EOS).sum() == corpus.documents
    assert len(corpus.open()) == TOKENS


def test_an_existing_corpus_is_reused_or_rejected(corpus: Corpus) -> None:
    before = corpus.bin.stat().st_mtime_ns
    assert make_corpus(corpus.folder, TOKENS) == corpus
    assert corpus.bin.stat().st_mtime_ns == before
    with pytest.raises(SystemExit, match="exists"):
        make_corpus(corpus.folder, TOKENS + 1)


def test_a_small_vocabulary_is_uint16(corpus: Corpus, tmp_path: Path) -> None:
    small = make_corpus(tmp_path, TOKENS, 1_000)
    assert (small.dtype, corpus.dtype) == (np.uint16, np.int32)
    assert small.bin.stat().st_size * 2 == corpus.bin.stat().st_size
    assert (small.open() == 999).sum() == small.documents == corpus.documents
    assert make_corpus(tmp_path, TOKENS, 1_000) == small
    with pytest.raises(SystemExit, match="100000 requested"):
        make_corpus(tmp_path, TOKENS)


SIDES = {
    "sequential": lambda corpus: numpy_rows(corpus, shuffled=False),
    "random": lambda corpus: numpy_rows(corpus, shuffled=True),
    "textbook": textbook,
    "ours": lambda corpus: ours(corpus, prefetch=0),
    "ours-masks": lambda corpus: ours(corpus, prefetch=0, **MASKS),
}


@pytest.mark.parametrize("name", SIDES)
def test_loaders_give_whole_batches_and_resume_in_the_middle(corpus: Corpus, name: str) -> None:
    start, middle = SIDES[name](corpus), corpus.steps // 2
    found = []
    for batch in islice(start(0), corpus.steps):
        check_batch(name, batch)
        found.append([np.array(array) for array in pair(batch)])
    for again, before in zip(islice(start(middle), 2), found[middle:], strict=False):
        assert all(np.array_equal(a, b) for a, b in zip(pair(again), before, strict=True))


def test_the_limits_cover_an_epoch(corpus: Corpus) -> None:
    for shuffled in (False, True):
        batches = numpy_rows(corpus, shuffled)(0)
        rows = np.concatenate([np.array(pair(batch)[0]) for batch in islice(batches, corpus.steps)])
        cut = corpus.open()[: len(rows) * SEQUENCE].reshape(-1, SEQUENCE)
        assert np.array_equal(np.sort(rows[:, 0]), np.sort(cut[:, 0]))
        assert np.array_equal(rows, cut) != shuffled
        check_batch("next epoch", next(batches))


def good_batch() -> tuple[Any, Any]:
    rows = np.arange(BATCH * (SEQUENCE + 1)).reshape(BATCH, -1)
    return rows[:, :-1], rows[:, 1:]


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda x, y: (x.astype(np.int32), y), "int32"),
        (lambda x, y: (x[:4], y[:4]), "shape"),
        (lambda x, y: (x, x), "shifted by one"),
        (lambda x, y: (x * 0, y * 0), "shifted by one"),
        (lambda x, y: (x, y * 0 - 100), "shifted by one"),
    ],
)
def test_wrong_batches_are_refused(spoil: Any, message: str) -> None:
    check_batch("good", good_batch())
    with pytest.raises(SystemExit, match=message):
        check_batch("bad", spoil(*good_batch()))


def test_a_pass_ends_with_the_epoch_or_the_time() -> None:
    batches = iter(range(100))
    assert run_pass(batches, limit=7, seconds=60.0)[0] == 7
    assert next(batches) == 7  # no batch was dropped
    assert run_pass(batches, limit=50, seconds=0.0)[0] == 1
    assert run_pass(batches, limit=1000, seconds=60.0)[0] == 91


def test_table_and_goals() -> None:
    found: dict[str, Turn | str] = {
        "ours": Turn(first=4.0, middle=5.0, cpu=650.0, later=800.0, wall=600.0),
        "ours-masks": Turn(51.0, 5.0, 250.0, math.nan, 240.0),
        "megatron": Turn(9.0, 5.0, 65.0, math.nan, 60.0),
        "mosaic": "cannot be used: ImportError: no",
    }
    lines = table(found)
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2] == "| ours | 650 | 800 | 600 | 4.0 | 5.0 | 1 | 0.38 |"
    assert lines[4] == "| megatron | 65.0 |  | 60.0 | 9.0 | 5.0 | 10.0 | 3.8 |"
    assert "ImportError" in lines[5]
    lines = goals(found)
    assert [line.split("(")[1].split(")")[0] for line in lines] == ["reached", "missed", "reached", "missed"]
    assert lines[0].count("reached") == 2
    assert not any("megatron-documents" in line for line in lines)
    assert goals({"mosaic": "cannot be used"}) == []


@pytest.mark.parametrize(
    "value, shown", [(math.nan, ""), (1234.5, "1234"), (99.4, "99.4"), (2.54, "2.5"), (0.38, "0.38")]
)
def test_figures(value: float, shown: str) -> None:
    assert figure(value) == shown
