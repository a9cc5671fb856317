"""Exports read by the libraries that their formats belong to: datasets, webdataset, torch. For `make test-torch`.

Not MosaicML's `streaming`, which needs an older google-cloud-storage than the funnel: its format is read in
test_text_formats.py by a reader of its own.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus_factory import build_corpus
from tests.pipelines.corpus.export.exporting import corpus_shards, export, read_pt, text_of

TEXTS = {
    ("train", "web"): [["one fine day", "zwei Bären – 🐻"], ["line\nline\n" * 50]],
    ("train", "code"): [["int main(void) { return 0; }"]],
    ("validation", "web"): [["held out"]],
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("libraries") / "corpus", TEXTS)


def documents(corpus: Path, split: str, domain: str = "") -> list[dict[str, Any]]:
    """Of a split, in the order of its files."""
    start = f"{split}/{domain}"
    return [document for name, shard in corpus_shards(corpus) if name.startswith(start) for document in shard]


@pytest.mark.filterwarnings("ignore")
def test_datasets_loads_the_folder(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The card alone says which files are which split, and which domain."""
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setitem(os.environ, "HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets", reason="the extra [readers] is not installed")
    export(corpus, tmp_path / "out", "huggingface", fields=("id", "text", "input_ids", "language_score"))
    options = {"cache_dir": str(tmp_path / "cache")}
    loaded = datasets.load_dataset(str(tmp_path / "out"), **options)
    assert set(loaded) == {"train", "validation"}
    for split in ("train", "validation"):
        wanted = [(d["id"].hex(), text_of(d), d["input_ids"]) for d in documents(corpus, split)]
        assert [(row["id"], row["text"], row["input_ids"]) for row in loaded[split]] == wanted
    one = datasets.load_dataset(str(tmp_path / "out"), "code", split="train", **options)
    assert one["text"][:] == [text_of(document) for document in documents(corpus, "train", "code")]
    lines = export(corpus, tmp_path / "lines", "jsonl")
    files = [str(tmp_path / "lines" / s["file"]["path"]) for s in lines["shards"] if s["split"] == "train"]
    whole = datasets.load_dataset("json", data_files=files, split="train", **options)
    assert whole["text"][:] == [text_of(document) for document in documents(corpus, "train")]


@pytest.mark.filterwarnings("ignore")
def test_webdataset_reads_the_tars(corpus: Path, tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset", reason="the extra [readers] is not installed")
    made = export(corpus, tmp_path / "out", "webdataset", fields=("id", "source", "text", "input_ids"))
    files = [str(tmp_path / "out" / shard["file"]["path"]) for shard in made["shards"] if shard["split"] == "train"]
    found = list(wds.WebDataset(files, shardshuffle=False, empty_check=False).decode())
    wanted = documents(corpus, "train")
    assert [sample["txt"] for sample in found] == [text_of(document) for document in wanted]
    assert [sample["input_ids.npy"].tolist() for sample in found] == [document["input_ids"] for document in wanted]
    assert [sample["json"] for sample in found] == [{"id": d["id"].hex(), "source": d["source"]} for d in wanted]


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_torch_loads_the_shards(corpus: Path, tmp_path: Path, dtype: str) -> None:
    """With weights_only, mapped or not; and what torch itself would write is loaded to the same."""
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    made = export(corpus, tmp_path / "out", "torch", shard_tokens=100, dtype=dtype)
    assert len(made["shards"]) == 5
    for part in [*made["shards"], *made["leftover"]]:
        path = tmp_path / "out" / part["file"]["path"]
        wanted = torch.from_numpy(read_pt(path).copy())
        for options in ({}, {"mmap": True}):
            tensor = torch.load(path, weights_only=True, **options)
            assert tensor.dtype == getattr(torch, dtype) and tensor.shape == (part["tokens"],)
            assert torch.equal(tensor, wanted)
        torch.save(wanted, tmp_path / "own.pt")
        assert torch.equal(torch.load(tmp_path / "own.pt", weights_only=True), wanted)
    train = [torch.load(tmp_path / "out" / s["file"]["path"], weights_only=True) for s in made["shards"]]
    assert np.concatenate([tensor.numpy() for tensor in train]).size == 500


@pytest.mark.filterwarnings("ignore")
def test_the_root_of_a_parquet_export_is_a_data_set(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands beside the rows begins with "_", which pyarrow skips; the folders are the splits of datasets."""
    pq = pytest.importorskip("pyarrow.parquet")
    export(corpus, tmp_path / "out", "parquet", fields=("id", "text"))
    beside = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert beside == {"_manifest.json", "_run.json"}
    wanted = {text_of(document) for split in ("train", "validation") for document in documents(corpus, split)}
    assert set(pq.read_table(tmp_path / "out")["text"].to_pylist()) == wanted
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setitem(os.environ, "HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets", reason="the extra [readers] is not installed")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == {
        split: len(documents(corpus, split)) for split in ("train", "validation")
    }
