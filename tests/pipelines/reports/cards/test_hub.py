"""The data card as Hugging Face's libraries read it. Those of `datasets` are for `make test-torch`."""

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from refinery.pipelines.reports.cards.about import About
from tests.pipelines.reports.cards.test_cards import card


def test_the_hubs_library_reads_the_front_matter(corpus: Path) -> None:
    read = DatasetCard(card(corpus, "markdown", About(license="odc-by"))).data
    assert read.pretty_name == "demo" and read.license == "odc-by"
    assert read.task_categories == ["text-generation"] and read.size_categories == ["n<1K"]
    assert read.language == ["en", "de", "fr", "es"]


@pytest.mark.filterwarnings("ignore")
def test_datasets_loads_the_provenance(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setitem(os.environ, "HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets", reason="the extra [readers] is not installed")
    prefix = shutil.copytree(corpus, tmp_path / "corpus", ignore=shutil.ignore_patterns("work"))
    (prefix / "README.md").write_text(card(corpus, "markdown"))
    loaded = datasets.load_dataset(str(prefix), "provenance", cache_dir=str(tmp_path / "cache"))
    for split in ("train", "validation"):
        ids = [id_ for path in prefix.glob(f"{split}/*/*.parquet") for id_ in pq.read_table(path)["id"].to_pylist()]
        assert sorted(loaded[split]["id"]) == sorted(ids)
