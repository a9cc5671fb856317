"""Every format holds the documents of the corpus, all of them, in their order, with the text that was encoded."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from refinery.loader.format.manifest import MANIFEST, unseal
from refinery.pipelines.corpus.checks.verify_export import verify_export
from refinery.pipelines.corpus.export.options import all_fields
from refinery.pipelines.corpus.export.read_documents import read_documents
from refinery.pipelines.corpus.export.rows import TextDiffers
from tests.corpus_factory import COLUMNS, build_corpus, edit_manifest
from tests.pipelines.corpus.export.exporting import (
    corpus_shards,
    export,
    files_of,
    read_jsonl,
    read_mds,
    read_tar,
    text_of,
)
from tests.sampling import sampled

EVERY = ",".join(all_fields(COLUMNS))
FIELDS = (EVERY, "text", "id,input_ids", "source,language_score,text,token_count")
READERS: dict[str, Any] = {
    "jsonl": read_jsonl,
    "parquet": lambda path: pq.read_table(path).to_pylist(),
    "huggingface": lambda path: pq.read_table(path).to_pylist(),
    "webdataset": read_tar,
    "mds": read_mds,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("export") / "corpus")


def expected(document: dict[str, Any], fields: str, format_: str) -> dict[str, Any]:
    """What a reader must find of a document of the corpus."""
    whole = {**document, "id": document["id"].hex(), "text": text_of(document)}
    if format_ not in ("parquet", "huggingface"):
        whole["meta"] = json.loads(whole["meta"])
    return {name: whole[name] for name in fields.split(",")}


CELLS = list(product(READERS, FIELDS))


@pytest.mark.parametrize(("format_", "fields"), sampled("formats of exports", CELLS, 7, lambda cell: cell))
def test_every_document_with_its_text(corpus: Path, tmp_path: Path, format_: str, fields: str) -> None:
    manifest = export(corpus, tmp_path / "out", format_, fields=tuple(fields.split(",")))
    for shard, (name, documents) in zip(manifest["shards"], corpus_shards(corpus), strict=True):
        assert f"{shard['split']}/{shard['domain']}/{shard['index']:05d}" == name
        path = tmp_path / "out" / shard["file"]["path"]
        wanted = [expected(document, fields, format_) for document in documents]
        found = READERS[format_](path)
        if documents:
            assert found == wanted
        assert len(found) == len(wanted)
        with path.open("rb") as stream:  # and what verify reads is the same
            again = [dict(document) for document in read_documents(stream, path.name, format_, fields.split(","))]
        assert [document.get("text") for document in again] == [document.get("text") for document in wanted]
    report = verify_export(str(tmp_path / "out"))
    assert report.failures == []
    assert report.documents == 9 and report.encoded == (9 if "text" in fields else 0)
    assert manifest["totals"] == {"shards": 5, "documents": 9, "tokens": 1107, "bytes": 1089}
    assert set(files_of(tmp_path / "out")) == {
        *(entry["file"]["path"] for entry in manifest["shards"]),
        *(entry["path"] for entry in manifest["files"]),
        "_manifest.json" if format_ == "parquet" else "manifest.json",
        "_run.json",
    }


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_one_file_for_each_split(corpus: Path, tmp_path: Path, compression: str) -> None:
    manifest = export(corpus, tmp_path / "out", "jsonl", compression=compression, single_file=True)
    suffix = {"none": "", "gzip": ".gz", "zstd": ".zst"}[compression]
    assert [shard["file"]["path"] for shard in manifest["shards"]] == [
        f"train.jsonl{suffix}",
        f"validation.jsonl{suffix}",
    ]
    for split in ("train", "validation"):
        wanted = [text_of(d) for name, documents in corpus_shards(corpus) for d in documents if name.startswith(split)]
        found = read_jsonl(tmp_path / "out" / f"{split}.jsonl{suffix}")
        assert [document["text"] for document in found] == wanted
    assert verify_export(str(tmp_path / "out")).failures == []
    assert not [name for name in files_of(tmp_path / "out") if "shard-" in name]


def test_the_same_bytes_wherever_the_corpus_is_and_whoever_runs(corpus: Path, tmp_path: Path) -> None:
    """Another place, another moment, another runner; a card and a tar, which know the time elsewhere."""
    other = build_corpus(tmp_path / "elsewhere")
    for format_ in ("huggingface", "webdataset"):
        export(corpus, tmp_path / "one" / format_, format_)
        export(other, tmp_path / "two" / format_, format_, runner="DirectRunner")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_the_card(corpus: Path, tmp_path: Path) -> None:
    export(corpus, tmp_path / "out", "huggingface")
    text = (tmp_path / "out" / "README.md").read_text()
    front = yaml.safe_load(text.split("---\n")[1])
    assert [entry["config_name"] for entry in front["configs"]] == ["default", "code", "web"]
    for entry in front["configs"]:
        for part in entry["data_files"]:
            files = list((tmp_path / "out").glob(part["path"]))
            assert files and all(part["split"] in file.name for file in files)
    assert {part["split"] for part in front["configs"][1]["data_files"]} == {"train"}  # code has no validation split
    assert front["size_categories"] == ["n<1K"]
    assert "| crawl | 8 | 1,077 | 1,061 |" in text and "not-allowed 2" in text
    assert "in/*" not in text  # where inputs were is nobody's business


def test_a_text_that_is_not_that_of_its_tokens_ends_the_export(tmp_path: Path) -> None:
    """A provenance that promises another size: damaged, but with a valid manifest."""
    corpus = build_corpus(tmp_path / "corpus")
    path = corpus / "train/web/shard-00000-of-00003.provenance.parquet"
    table = pq.read_table(path)
    sizes = table["text_bytes"].to_pylist()
    changed = table.set_column(
        table.schema.get_field_index("text_bytes"), table.schema.field("text_bytes"), [[9, *sizes[1:]]]
    )
    pq.write_table(changed, path)
    edit_manifest(corpus)
    with pytest.raises(
        RuntimeError, match=r"document 0 \([0-9a-f]{32}\): its text does not encode to its tokens"
    ) as caught:
        export(corpus, tmp_path / "out", "jsonl")
    assert TextDiffers.__name__ in str(caught.value) or isinstance(caught.value, TextDiffers)
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_damaged_tokens_end_the_export(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path / "corpus")
    path = corpus / "train/web/shard-00001-of-00003.bin"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(Exception, match=r"shard-00001-of-00003\.bin: .*crc32c"):
        export(corpus, tmp_path / "out", "jsonl")


WRONG = [
    ({"fields": ("text", "colour")}, "jsonl", "--fields: 'colour' given, some of id, url"),
    ({"compression": "gzip"}, "parquet", "--compression: given with --format parquet, it is for --format jsonl"),
    ({"shard_tokens": 5}, "mds", "--shard-tokens: given with --format mds, it is for --format torch"),
    ({"fields": ("text",)}, "torch", "--fields: given with --format torch"),
    ({"compression": "lz4"}, "jsonl", "--compression: 'lz4' given"),
    ({"shard_tokens": 0}, "torch", "--shard-tokens: 0 given, 1 to 2147483647 is allowed"),
    ({"dtype": "uint16"}, "torch", "--dtype: 'uint16' given, int64 or int32 is allowed"),
    ({}, "csv", "--format: 'csv' given"),
]


@pytest.mark.parametrize(("options", "format_", "message"), WRONG)
def test_options_that_do_not_fit(corpus: Path, tmp_path: Path, options: Any, format_: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export(corpus, tmp_path / "out", format_, **options)
    assert not (tmp_path / "out").exists()


def test_workers_elsewhere_need_a_bucket(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="given with --runner DataflowRunner, whose workers need gs://"):
        export(corpus, tmp_path / "out", "jsonl", runner="DataflowRunner")


def test_a_place_that_holds_something_else_stays_as_it_is(corpus: Path, tmp_path: Path) -> None:
    export(corpus, tmp_path / "out", "jsonl")
    before = files_of(tmp_path / "out")
    for place, format_, message in (
        (
            "out",
            "parquet",
            "holds another export and stays as it is: format of options is 'jsonl' there, 'parquet' here. C",
        ),
        ("full", "jsonl", "holds notes.txt, no export; choose another --output"),
        ("corpus", "jsonl", "holds a corpus, no export; choose another --output"),
        ("file", "jsonl", "is a file, not a folder"),
    ):
        (tmp_path / "full").mkdir(exist_ok=True)
        (tmp_path / "full" / "notes.txt").write_text("mine")
        (tmp_path / "file").write_text("mine")
        where = corpus if place == "corpus" else tmp_path / place
        with pytest.raises(RuntimeError, match=message):
            export(corpus, where, format_)
    assert files_of(tmp_path / "out") == before
    assert unseal(before[MANIFEST], "")["kind"] == "refinery-export"
    export(corpus, tmp_path / "out", "jsonl")  # once more: nothing to do
    assert files_of(tmp_path / "out") == before


def test_an_export_inside_its_corpus_is_refused(tmp_path: Path) -> None:
    """The corpus' own commands remove what they do not know in there."""
    corpus = build_corpus(tmp_path / "corpus", {("train", "web"): [["a page"]]})
    before = files_of(corpus)
    for inside in ("corpus/sub", "corpus/work/documents", "elsewhere/../corpus/train/x"):
        with pytest.raises(ValueError, match="which is inside the corpus"):
            export(corpus, tmp_path / inside, "jsonl")
    assert files_of(corpus) == before
