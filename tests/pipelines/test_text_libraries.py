"""`train/` of a corpus of texts, opened by what people read data sets with: DuckDB, Polars, pandas, datasets. For
`make test-torch`."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import refinery.corpus
from refinery.transforms.write.text_writers import TEXT_WRITERS
from tests.pipelines.text_corpora import text_corpus

WHY = "the extra [readers] is not installed"


def texts_of(corpus: Path, split: str) -> list[str]:
    """In the order of the shards."""
    batches = refinery.corpus.open(corpus).documents(["split", "text"])
    return [row["text"] for batch in batches for row in batch.to_pylist() if row["split"] == split]


def by_duckdb(corpus: Path, pattern: str) -> list[str]:
    duckdb = pytest.importorskip("duckdb", reason=WHY)
    read = duckdb.read_parquet if pattern.endswith(".parquet") else duckdb.read_json
    return [text for (text,) in read(f"{corpus}/train/*/*{pattern}").project("text").fetchall()]


def by_polars(corpus: Path, pattern: str) -> list[str]:
    polars = pytest.importorskip("polars", reason=WHY)
    read = polars.scan_parquet if pattern.endswith(".parquet") else polars.scan_ndjson
    found: list[str] = read(f"{corpus}/train/*/*{pattern}").select("text").collect()["text"].to_list()
    return found


def by_pandas(corpus: Path, pattern: str) -> list[str]:
    pandas = pytest.importorskip("pandas", reason=WHY)
    if pattern.endswith(".parquet"):
        return list(pandas.read_parquet(corpus / "train")["text"])
    files = sorted(corpus.glob(f"train/*/*{pattern}"))
    return [text for file in files for text in pandas.read_json(file, lines=True)["text"]]


READERS: Mapping[str, Callable[[Path, str], list[str]]] = {
    "duckdb": by_duckdb,
    "polars": by_polars,
    "pandas": by_pandas,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("writer", TEXT_WRITERS)
@pytest.mark.parametrize("library", READERS)
def test_libraries_open_the_shards(library: str, writer: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As they are, by a pattern of files: every document of the split once."""
    corpus = text_corpus(tmp_path_factory, writer)
    (ending,) = TEXT_WRITERS[writer].files.values()
    found = READERS[library](corpus, ending)
    assert sorted(found) == sorted(texts_of(corpus, "train")) and found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("writer", TEXT_WRITERS)
def test_datasets_loads_the_folder(
    writer: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README.md of the corpus says which files are which split; lines whose `meta` has other keys have one type."""
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setitem(os.environ, "HF_HOME", str(tmp_path / "home"))
    datasets: Any = pytest.importorskip("datasets", reason=WHY)
    corpus = tmp_path / "corpus"
    shutil.copytree(text_corpus(tmp_path_factory, writer), corpus)
    loaded = datasets.load_dataset(str(corpus), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train", "validation"}
    for split, rows in loaded.items():
        assert rows["text"][:] == texts_of(corpus, split)
        assert {"id", "url", "source", "origin", "copies", "sources", "meta"} <= set(rows.column_names)
