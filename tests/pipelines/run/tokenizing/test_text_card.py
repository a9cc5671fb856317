"""README.md of a corpus of texts: `datasets` loads the folder as it is."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from huggingface_hub import DatasetCard

from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.provenance import Column
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.reports.cards.about import About
from refinery.pipelines.reports.cards.data_card import data_card
from refinery.pipelines.reports.cards.facts import read_card_facts
from refinery.pipelines.reports.cards.text_card import text_card
from refinery.transforms.core.document import FIELDS


@pytest.fixture(params=["texts", "lines"])
def corpus(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def configurations(card: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DatasetCard(card.decode()).data.to_dict()["configs"]
    return found


def test_its_patterns_are_the_shards_of_each_domain(corpus: Path) -> None:
    manifest = read_manifest(open_store(str(corpus)))
    for config in configurations((corpus / "README.md").read_bytes()):
        splits = {entry["split"]: set(corpus.glob(entry["path"])) for entry in config["data_files"]}
        assert splits == {
            split: {
                corpus / shard.written[0].path
                for shard in manifest.shards
                if shard.split == split and config["config_name"] in ("default", shard.domain)
            }
            for split in ("train", "validation")
        }
    assert [config["config_name"] for config in configurations(text_card(manifest))] == ["default", "notes", "web"]


def test_it_is_listed_and_says_what_the_columns_are(corpus: Path) -> None:
    card = (corpus / "README.md").read_bytes()
    manifest = read_manifest(open_store(str(corpus)))
    assert text_card(manifest) == card
    assert "README.md" in {file.path for file in manifest.files}
    for column in ("text", *manifest.row_schema.names):
        assert f"| `{column}` | ".encode() in card
    assert f"{manifest.totals['documents']} documents".encode() in card


def test_the_data_card_has_the_same_configurations(corpus: Path) -> None:
    facts = read_card_facts(str(corpus), About())
    card = data_card(facts)
    assert configurations(card) == configurations((corpus / "README.md").read_bytes())
    assert b'load_dataset("this-folder", split="train")' in card and b"deduplicated:" not in card


def test_lines_have_their_types_said(lines: Path, texts: Path) -> None:
    """Else `datasets` takes those of the first file, in which a column may have nulls alone."""
    data = DatasetCard((lines / "README.md").read_text()).data.to_dict()
    assert [info["config_name"] for info in data["dataset_info"]] == [each["config_name"] for each in data["configs"]]
    types = {
        "string": lambda value: isinstance(value, str),
        "float32": lambda value: value is None or isinstance(value, float),
        "int64": lambda value: value is None or isinstance(value, int),
        "uint32": lambda value: isinstance(value, int),
        ("string",): lambda value: all(isinstance(each, str) for each in value),
    }
    features = {f["name"]: types[f.get("dtype", (f.get("sequence"),))] for f in data["dataset_info"][0]["features"]}
    for path in lines.glob("*/*/*.jsonl.zst"):
        for line in zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read().splitlines():
            row = json.loads(line)
            assert row.keys() == features.keys() and all(features[name](value) for name, value in row.items())
    assert "dataset_info" not in DatasetCard((texts / "README.md").read_text()).data.to_dict()
    manifest = read_manifest(open_store(str(lines)))
    kept = text_card(replace(manifest, columns=(*manifest.columns, Column(FIELDS, "string"))))
    assert "dataset_info" not in DatasetCard(kept.decode()).data.to_dict() and b"are further keys" in kept


@pytest.mark.filterwarnings("ignore")
def test_datasets_loads_it(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setitem(os.environ, "HF_HOME", str(tmp_path / "home"))
    datasets = pytest.importorskip("datasets", reason="the extra [readers] is not installed")
    loaded = datasets.load_dataset(str(corpus), cache_dir=str(tmp_path / "cache"))
    manifest = read_manifest(open_store(str(corpus)))
    assert sum(map(len, loaded.values())) == manifest.totals["documents"]
    assert {"text", *manifest.row_schema.names} == set(loaded["train"].column_names)
    web = datasets.load_dataset(str(corpus), "web", split="train", cache_dir=str(tmp_path / "cache"))
    assert set(web["source"]) == {"a"}
    assert json.loads(web[0]["meta"]) if isinstance(web[0]["meta"], str) else web[0]["meta"]
