"""`refinery.corpus.open`: one set of methods gives the same documents of corpora, views, exports and adopted corpora,
compared with what pyarrow and numpy alone read in the files."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import refinery.corpus
from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, RUN, VIEW_KIND, Manifest, read_manifest, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.corpus.checks import kinds
from refinery.transforms.filter.rules.expression import ExpressionError
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer

VIEW = {
    "name": "half",
    "corpora": {},
    "domains": [
        {"name": "english", "parts": ["a/web"], "where": 'language == "en" and text_bytes > 900'},
        {"name": "twice", "parts": ["a/notes"], "times": 2},
    ],
}


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def manifest_of(corpus: Path) -> Manifest:
    return read_manifest(open_store(str(corpus)), whole=True)


@pytest.fixture(scope="module")
def documents(corpus: Path) -> list[dict[str, Any]]:
    """Every document as the files have it, with its place and its text."""
    manifest = manifest_of(corpus)
    tokenizer = load_tokenizer(str(corpus / manifest.tokenizer.path))
    ends = {manifest.tokenizer.bos_id, manifest.tokenizer.eos_id}
    found = []
    for shard in manifest.shards:
        tokens = np.fromfile(corpus / shard.bin.path, manifest.dtype)
        for number, row in enumerate(pq.read_table(corpus / shard.provenance.path).to_pylist()):
            ids = tokens[row["token_offset"] :][: row["token_count"]].astype(np.int64)
            text = tokenizer.decode(np.array([id_ for id_ in ids.tolist() if id_ not in ends], np.int64))
            place = {"split": shard.split, "domain": shard.domain, "document": number, "ids": ids.tolist()}
            found.append({**row, **place, "shard": shard.bin.path.removesuffix(".bin"), "text": text})
    return found


@pytest.fixture(scope="module")
def view(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("view")
    (folder / "mix.yaml").write_text(yaml.safe_dump(VIEW | {"corpora": {"a": str(corpus)}}))
    assert execute(["mix", str(folder / "mix.yaml"), "--output", str(folder / "view"), "--quiet"]) == 0
    return folder / "view"


@pytest.fixture(scope="module")
def exports(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exports")
    for name in ("jsonl", "parquet", "mds", "webdataset", "torch"):
        words = ["export", str(corpus), "--to", name, "--output", str(folder / name), "--workers", "0", "--quiet"]
        assert execute(words) == 0
    return {path.name: path for path in folder.iterdir()}


# --- a corpus -------------------------------------------------------------------------------------------------------


def test_documents_with_texts_and_places(corpus: Path, documents: list[dict[str, Any]]) -> None:
    columns = ["text", "id", "url", "quality", "split", "domain", "shard", "document", "token_count"]
    opened = refinery.corpus.open(corpus)
    assert (opened.kind, opened.name) == ("corpus", manifest_of(corpus).name)
    found = rows_of(opened.documents(columns))
    assert found == [{name: row[name] for name in columns} for row in documents]
    assert next(iter(opened.documents(columns))).schema.names == columns
    every = rows_of(opened.documents())
    names = pq.read_schema(corpus / f"{documents[0]['shard']}.provenance.parquet").names
    assert [row.keys() for row in every[:1]] == [set(names)]


def test_a_rule_a_split_and_a_domain(corpus: Path, documents: list[dict[str, Any]]) -> None:
    opened = refinery.corpus.open(corpus)
    rule = "text_bytes > 1000 and not source == 'notes'"
    want = [row["id"] for row in documents if row["text_bytes"] > 1000 and row["source"] != "notes"]
    assert want and [row["id"] for row in rows_of(opened.documents(["id"], where=rule))] == want
    some = rows_of(opened.documents(["id", "document"], where=rule, split="validation", domain="web"))
    assert some == [
        {"id": row["id"], "document": row["document"]}
        for row in documents
        if row["id"] in want and (row["split"], row["domain"]) == ("validation", "web")
    ]


def test_one_document(corpus: Path, documents: list[dict[str, Any]]) -> None:
    opened = refinery.corpus.open(corpus)
    assert isinstance(opened, refinery.corpus.PublishedCorpus)
    for row in documents[:: max(1, len(documents) // 7)]:
        (found,) = opened.find(id=row["id"])
        assert (found.place.shard, found.place.document) == (row["shard"], row["document"])
        assert opened.text(row["id"].hex()) == opened.text(found.place) == row["text"]
        assert opened.tokens(row["id"]).tolist() == row["ids"]
        assert row["id"] in [each.row["id"] for each in opened.find(origin=row["origin"])]
        if row["url"]:
            assert row["id"] in [each.row["id"] for each in opened.find(url=row["url"])]
        assert opened.row(found.place)["origin"] == row["origin"]
    assert opened.find(url="https://nowhere.invalid/") == []
    with pytest.raises(KeyError, match="no document has the id 0000"):
        opened.text(bytes(16))
    for wrong in ("12", b"12", "g" * 32):
        with pytest.raises(ValueError, match=r"id: .* given, 16 bytes or 32 hexadecimal digits"):
            opened.find(id=wrong)


def test_what_was_lost(corpus: Path) -> None:
    opened = refinery.corpus.open(corpus)
    assert isinstance(opened, refinery.corpus.PublishedCorpus)
    for folder, batches in (
        ("removals", opened.removals()),
        ("rejects", opened.rejects(["origin", "reason"])),
        ("dead_letters", opened.dead_letters()),
    ):
        files = sorted((corpus / folder).glob("*.parquet"))
        found = rows_of(batches)
        want = [row for path in files for row in pq.read_table(path).to_pylist()]
        assert found == [{name: row[name] for name in found[0]} for row in want] and found
    statistics = opened.statistics()
    assert statistics is not None and statistics.points
    assert opened.versions == () and opened.run["fingerprint"] == manifest_of(corpus).fingerprint


def test_what_is_asked_for_wrongly(corpus: Path) -> None:
    opened = refinery.corpus.open(corpus)
    with pytest.raises(ValueError, match=r"columns: 'texts' given of .*did you mean text"):
        list(opened.documents(["texts"]))
    with pytest.raises(ValueError, match="each is allowed once"):
        list(opened.documents(["id", "id"]))
    with pytest.raises(ExpressionError, match="qualty"):
        list(opened.documents(["id"], where="qualty > 0.5"))
    with pytest.raises(ValueError, match="nothing given"):
        opened.find()


def test_opening_imports_no_beam(corpus: Path) -> None:
    script = (
        "import sys, refinery.corpus; c = refinery.corpus.open(sys.argv[1]); next(c.documents(['id', 'text']));"
        "assert not {'apache_beam', 'grpc', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(corpus)], check=True)


# --- views, exports, adopted corpora ----------------------------------------------------------------------------------


def test_a_view(corpus: Path, view: Path, documents: list[dict[str, Any]]) -> None:
    opened = refinery.corpus.open(view)
    assert (opened.kind, opened.name) == ("view", "half")
    english = [
        row["id"]
        for row in documents
        if row["domain"] == "web" and row["language"] == "en" and row["text_bytes"] > 900 and row["token_count"]
    ]
    notes = [row for row in documents if row["domain"] == "notes" and row["token_count"]]
    twice = [row["id"] for row in notes] + [row["id"] for row in notes if row["split"] == "train"]
    found = rows_of(opened.documents(["id", "text", "domain", "shard"]))
    assert Counter(row["id"] for row in found) == Counter(english) + Counter(twice)
    texts = {row["id"]: row["text"] for row in documents}
    assert all(row["text"] == texts[row["id"]] and row["shard"].startswith("a/") for row in found)
    assert {row["domain"] for row in found} == {"english", "twice"}
    some = rows_of(opened.documents(["id"], split="validation", domain="english"))
    assert {row["id"] for row in some} == {
        row["id"] for row in documents if row["id"] in set(english) and row["split"] == "validation"
    }
    assert opened.text(english[0]) == texts[english[0]]
    gone = next(row for row in documents if row["domain"] == "web" and row["id"] not in set(english))
    assert opened.find(id=gone["id"]) == []
    with pytest.raises(KeyError, match="no document has the id"):
        opened.text(gone["id"])
    with pytest.raises(ValueError, match="domain: 'web' given, one of english, twice is allowed"):
        list(opened.documents(["id"], domain="web"))


@pytest.mark.parametrize("name", ["jsonl", "parquet", "mds", "webdataset"])
def test_an_export_of_texts(name: str, exports: dict[str, Path], documents: list[dict[str, Any]]) -> None:
    opened = refinery.corpus.open(exports[name])
    assert opened.kind == "export"
    found = rows_of(opened.documents(["id", "text", "url"], where="text_bytes > 1000", split="train", domain="web"))
    want = [row for row in documents if row["text_bytes"] > 1000 and (row["split"], row["domain"]) == ("train", "web")]
    assert found == [{key: row[key] for key in ("id", "text", "url")} for row in want] and want
    assert opened.text(want[0]["id"]) == want[0]["text"]
    assert [each.row["origin"] for each in opened.find(id=want[0]["id"])] == [want[0]["origin"]]
    with pytest.raises(ValueError, match="columns: 'shard' given"):
        list(opened.documents(["shard"]))


def test_an_export_of_tokens(exports: dict[str, Path], documents: list[dict[str, Any]]) -> None:
    opened = refinery.corpus.open(exports["torch"])
    found = Counter(row["id"] for row in rows_of(opened.documents(["id"])))
    assert found == Counter(row["id"] for row in documents)
    with pytest.raises(KeyError, match="no document with a text"):
        opened.text(documents[0]["id"])


def test_an_adopted_corpus(corpus: Path, documents: list[dict[str, Any]], tmp_path: Path) -> None:
    manifest = manifest_of(corpus)
    shard = next(each for each in manifest.shards if each.split == "train" and each.domain == "web")
    for entry in (shard.bin, shard.idx):
        target = tmp_path / f"corpus{Path(entry.path).suffix}"
        target.write_bytes((corpus / entry.path).read_bytes())
    words = ["adopt", str(tmp_path / "corpus"), "--tokenizer", str(corpus / manifest.tokenizer.path)]
    assert execute([*words, "--output", str(tmp_path), "--no-bos"]) == 0
    opened = refinery.corpus.open(tmp_path)
    assert opened.kind == "adopted"
    found = rows_of(opened.documents(["document", "token_count", "text"]))
    want = [row for row in documents if row["shard"] == shard.bin.path.removesuffix(".bin")]
    assert [row["token_count"] for row in found] == [row["token_count"] for row in want]
    assert [row["document"] for row in found] == list(range(len(want)))
    for call in (lambda: list(opened.documents(["url"])), lambda: opened.find(url="a"), lambda: opened.text(bytes(16))):
        with pytest.raises(FormatError, match="was adopted from files without provenance"):
            call()


# --- damage -----------------------------------------------------------------------------------------------------------


def test_what_is_no_corpus(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FormatError, match=r"is not a corpus: manifest\.json is missing"):
            refinery.corpus.open(place)


def test_a_damaged_export(exports: dict[str, Path], tmp_path: Path) -> None:
    payload = unseal((exports["jsonl"] / MANIFEST).read_bytes(), "")
    for change in ({"shards": 1}, {"shards": [{"split": "train"}]}, {"fields": None}, {"options": []}):
        (tmp_path / MANIFEST).write_bytes(seal(payload | change))
        with pytest.raises(FormatError, match="not as a run writes them"):
            list(refinery.corpus.open(tmp_path).documents())
    (tmp_path / MANIFEST).write_bytes(seal(payload | {"schema_version": 77}))
    with pytest.raises(FormatError, match="schema version 77"):
        refinery.corpus.open(tmp_path)


def test_another_run_file_than_listed(corpus: Path, tmp_path: Path) -> None:
    for path in (MANIFEST, RUN):
        (tmp_path / path).write_bytes((corpus / path).read_bytes())
    payload = unseal((corpus / RUN).read_bytes(), "")
    (tmp_path / RUN).write_bytes(seal(payload | {"name": "another"}))
    opened = refinery.corpus.PublishedCorpus(str(tmp_path))
    with pytest.raises(FormatError, match=r"_run\.json: .* found, .* expected|No such file|missing"):
        _ = opened.run


def test_the_kind_of_a_long_manifest(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(seal({"kind": VIEW_KIND, "domains": ["a domain"] * 10_000}))
    assert kinds.kind_of(str(tmp_path)) == kinds.VIEW
    with pytest.raises(FormatError, match="schema version None found"):
        refinery.corpus.open(tmp_path)


def test_sections_that_this_version_does_not_know(corpus: Path, tmp_path: Path) -> None:
    payload = unseal((corpus / MANIFEST).read_bytes(), "")
    (tmp_path / MANIFEST).write_bytes(seal(payload | {"derived_from": {"name": "x"}}))
    assert refinery.corpus.open(tmp_path).manifest.further == {"derived_from": {"name": "x"}}
    assert refinery.corpus.open(corpus).manifest.further == {}
