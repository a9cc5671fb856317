"""The corpus of the demo's crawl in every format: a learned tokenizer, several sources, redacted text."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refinery.loader.format.manifest import read_manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.checks.verify_export import verify_export
from refinery.pipelines.corpus.export.export_format import TOKENS
from refinery.pipelines.corpus.export.options import format_names
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.pipelines.corpus.export.exporting import corpus_shards, export
from tests.sampling import sampled


@pytest.mark.parametrize("format_", sampled("formats of the demo's exports", format_names(), 1))
def test_the_demos_corpus_in_every_format(corpus: Path, tmp_path: Path, format_: str) -> None:
    options = {"shard_tokens": 1000} if format_ == TOKENS else {}
    made = export(corpus, tmp_path / "out", format_, **options)
    report = verify_export(str(tmp_path / "out"))
    assert report.failures == []
    manifest = read_manifest(open_store(corpus))
    assert {name: made["totals"][name] for name in manifest.totals} == dict(manifest.totals)
    encoded = [row for row in manifest.funnel if row["stage"] == manifest.stages[-1].name]
    kept = {row["source"]: row["kept"]["documents"] for row in encoded if row["kept"]["documents"]}
    assert {source: counts["documents"] for source, counts in made["sources"].items()} == kept


def test_its_texts_encode_to_its_tokens(corpus: Path, tmp_path: Path) -> None:
    """By the tokenizer's own means, without what the export checks itself."""
    made = export(corpus, tmp_path / "out", "parquet", fields=("id", "text"))
    tokenizer = load_tokenizer(str(corpus / "tokenizer" / "tokenizer.json"))
    ends = {tokenizer.bos_id(), tokenizer.eos_id()}
    texts = 0
    for shard, (_, documents) in zip(made["shards"], corpus_shards(corpus), strict=True):
        rows = pq.read_table(tmp_path / "out" / shard["file"]["path"]).to_pylist()
        for row, document in zip(rows, documents, strict=True):
            assert row["id"] == document["id"].hex()
            assert tokenizer.encode(row["text"]).tolist() == [t for t in document["input_ids"] if t not in ends]
            texts += 1
    assert texts > 20
