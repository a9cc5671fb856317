"""A thousand shards, of which all but the ones that an answer needs are missing: nothing else is opened."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.storage.store import LocalStore
from refinery.pipelines.corpus.show.draw import draw_kept
from refinery.pipelines.corpus.show.texts import Texts
from refinery.pipelines.corpus.trace.answers import Kept, Query
from refinery.pipelines.corpus.trace.trace_documents import trace
from tests.corpus_factory import SEED, VALIDATION, hash64
from tests.many_shards import build_many, id_of, text_of

SHARDS = 1_000  # benchmarks/trace_shards.py counts the same of 10,000
NUMBER = next(n for n in range(100) if hash64("validation", id_of(n)) >= VALIDATION * 2**64)
SHARD = hash64("order", SEED, id_of(NUMBER)) * SHARDS >> 64


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many") / "corpus"
    return build_many(root, SHARDS, 500, lambda shard: shard == SHARD)


@contextmanager
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    names: set[str] = set()
    real: Callable[..., Any] = LocalStore.open

    def spy(store: LocalStore, name: str) -> Any:
        names.add(name)
        return real(store, name)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "open", spy)
        yield names


def test_what_each_question_opens(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Texts(str(corpus))
    assert len(texts.corpus.manifest.shards) == SHARDS
    texts.corpus.manifest.load()
    shard = f"train/web/shard-{SHARD:05d}-of-{SHARDS:05d}"
    run, clean, provenance = "_run.json", "clean.json", f"{shard}.provenance.parquet"
    with opened(monkeypatch) as names:
        ((_, answer),) = trace(str(corpus), [Query("id", id_of(NUMBER).hex())], corpus=texts.corpus).answers
    assert isinstance(answer, Kept) and answer.shard == shard
    assert names == {run, clean, provenance}
    with opened(monkeypatch) as names:
        assert texts.kept(answer).text == text_of(NUMBER)
    assert names == {f"{shard}.bin", texts.corpus.manifest.tokenizer.path}
    with opened(monkeypatch) as names:
        token = Query("token", f"{SHARD}:{answer.token_offset + 1}")
        ((_, at),) = trace(str(corpus), [token], corpus=texts.corpus).answers
    assert isinstance(at, Kept) and (at.document, at.around is not None) == (answer.document, True)
    assert names == {clean, provenance, f"{shard}.bin", texts.corpus.manifest.tokenizer.path}
    with pytest.raises(FormatError, match=r"train/web/shard-\d{5}-of-01000\.provenance\.parquet: missing"):
        trace(str(corpus), [Query("url", "https://nowhere.example/")], corpus=texts.corpus)  # all of them


def test_kept_documents_are_drawn_over_all_shards_without_reading_them(corpus: Path) -> None:
    """Where the shards that are drawn are not written, it is their names that the errors have."""
    texts = Texts(str(corpus))
    names = set()
    for seed in range(5):
        with pytest.raises(FormatError, match="missing") as error:
            list(draw_kept(texts.corpus, 20, seed))
        names.add(str(error.value).partition(": ")[0])
    assert len(names) == 5 and all(name.endswith(".provenance.parquet") for name in names)
