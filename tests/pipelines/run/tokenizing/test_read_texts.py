"""Text shards as they come back: documents as they came to the writer, and nothing that the run did not write."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.entries import ShardEntry
from refinery.loader.format.provenance import Column
from refinery.loader.format.takedown import STAGE, STAGE_OF_TEXTS
from refinery.loader.storage.store import checksums
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.run.tokenizing.carried import carried_rows, carried_stages
from refinery.pipelines.run.tokenizing.read_texts import (
    TextFormat,
    carry_file,
    document_of,
    dump_file,
    dump_shard,
    load_shard,
    read_texts,
    text_format,
)
from refinery.pipelines.run.tokenizing.text_corpus import open_texts
from refinery.transforms.core.document import document_id
from refinery.transforms.write.document_batch import batch_table
from refinery.transforms.write.shards import provenance_rows
from refinery.transforms.write.text_stage import TextParams, finish_text
from refinery.transforms.write.text_writers import TEXT_WRITERS

COLUMNS = (Column("language", "string"), Column("quality", "float"), Column("pii", "integer"))


def opened(texts: Path) -> tuple[TextFormat, list[ShardEntry]]:
    corpus = PublishedCorpus(str(texts))
    return text_format(str(texts), corpus.manifest, corpus.writer, frozenset({"pii"})), list(corpus.manifest.shards)


@pytest.fixture(params=["texts", "lines"])
def corpus(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def test_a_shard_gives_its_documents_in_order(corpus: Path) -> None:
    form, shards = opened(corpus)
    for shard in shards:
        assert load_shard(dump_shard(shard)) == shard
        docs = list(read_texts(dump_shard(shard), form))
        rows = pq.read_table(corpus / shard.provenance.path).to_pylist()
        names = ("id", "url", "source", "origin")
        assert [[getattr(doc, name) for name in names] for doc in docs] == [
            [row[name] for name in names] for row in rows
        ]


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"language": "en", "quality": 0.1234, "pii": 2, "title": "x", "score": 1 / 3},
        {"quality": -0.0, "when": "2020-01-01", "pii": 0},
    ],
)
def test_rows_of_a_document_read_back_are_the_same(meta: Mapping[str, Any]) -> None:
    """What a stage did not note is not there again; numbers of 32 bits are those that were noted."""
    text = "some words, that were cut"
    row = {"id": document_id("some words"), "url": "u", "source": "s", "origin": "f@1"}
    given = {**meta, "copies": 2, "copy_sources": "s,t"}
    form = TextFormat(
        "", TEXT_WRITERS["text"], pa.schema([]), {"language": False, "quality": True, "pii": False},
        frozenset({"pii"}), frozenset({"s"}),
    )  # fmt: skip

    def rows_of(doc: Any) -> list[dict[str, Any]]:
        table = batch_table([(1, finish_text(doc, TextParams()))])
        return list(provenance_rows(table, None, COLUMNS, {"pii"}))

    nothing = {"meta": "{}", "copies": 1, "sources": ["s"], "language": "", "quality": None, "pii": 0}
    first = document_of({**row, **nothing}, "some words", form)
    written = rows_of(replace(first, text=text, meta=given))
    again = document_of({**written[0], "quality": _stored(written[0]["quality"])}, text, form)
    assert rows_of(again) == written
    assert {name: again.meta[name] for name in meta if meta[name]} == {n: v for n, v in meta.items() if v}


def _stored(value: float | None) -> Any:
    return pa.array([value], pa.float32())[0].as_py()


def forged(texts: Path, folder: Path, change: Any, again: bool = True) -> tuple[bytes, TextFormat]:
    """The first shard with changed rows; again: and a listing that says so."""
    form, shards = opened(texts)
    shard = shards[0]
    table = change(pq.read_table(texts / shard.provenance.path))
    path = folder / shard.provenance.path
    path.parent.mkdir(parents=True)
    pq.write_table(table, path, write_page_checksum=True)
    entry = replace(shard.provenance, **checksums(path)._asdict()) if again else shard.provenance
    return dump_shard(replace(shard, written=(entry,), provenance_file=entry)), replace(form, root=str(folder))


def with_first(table: pa.Table, name: str, value: Any) -> pa.Table:
    column = pa.array([value, *table[name].to_pylist()[1:]], table.schema.field(name).type)
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: with_first(table, "text", "another text"), "row 0: its text has the id"),
        (lambda table: with_first(table, "meta", '{"text_id": "' + "0" * 32 + '"}'), "row 0: its text has the id"),
        (lambda table: with_first(table, "meta", "{"), "row 0: unexpected end of data"),
        (lambda table: with_first(table, "source", "elsewhere"), "row 0: source 'elsewhere' found, one of the recipe"),
        (lambda table: table.slice(1), "texts found, "),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "more texts found, "),
        (lambda table: table.drop_columns(["url"]), "its columns are not those of the format"),
    ],
)
def test_a_forged_shard_is_refused(change: Any, message: str, texts: Path, tmp_path: Path) -> None:
    line, form = forged(texts, tmp_path, change)
    with pytest.raises(FormatError, match=message):
        list(read_texts(line, form))


def test_a_shard_that_is_not_the_listed_one_is_not_parsed(texts: Path, tmp_path: Path) -> None:
    line, form = forged(texts, tmp_path, lambda table: table.slice(1), again=False)
    with pytest.raises(CorruptShard, match="crc32c"):
        list(read_texts(line, form))
    with pytest.raises(FormatError, match="missing, "):
        list(read_texts(line, replace(form, root=str(tmp_path / "nowhere"))))


def test_files_are_copied_as_they_are_listed(texts: Path, tmp_path: Path) -> None:
    corpus = PublishedCorpus(str(texts))
    (removals,) = corpus.files("removals")
    records = list(carry_file(dump_file(removals), str(texts), str(tmp_path), "removals"))
    assert (tmp_path / removals.path).read_bytes() == (texts / removals.path).read_bytes() and len(records) == 1
    (rejects,) = corpus.files("rejects")
    assert list(carry_file(dump_file(rejects), str(texts), str(tmp_path), "removals")) == []
    assert not (tmp_path / rejects.path).exists()
    with pytest.raises(CorruptShard, match="sha256"):
        list(carry_file(dump_file(replace(rejects, sha256="0" * 64)), str(texts), str(tmp_path), "removals"))


def test_what_the_stage_of_texts_lost_stays_in_the_funnel(texts: Path, inputs: Path) -> None:
    """A text that cannot be written, such as one with lone surrogates, is a dead letter of that stage."""
    opened_texts = open_texts(str(texts), {"path": str(inputs / "tokenizer.json")})
    manifest = opened_texts.corpus.manifest
    assert "text" not in {row["stage"] for row in carried_rows(manifest)}
    dead = {"UnicodeEncodeError": {"documents": 1, "bytes": 3}}
    funnel = tuple({**row, "dead": dead} if row["stage"] == "text" else row for row in manifest.funnel)
    taken = {**funnel[-1], "stage": STAGE, "dead": {}}
    stages = (*manifest.stages, replace(manifest.stages[-1], name=STAGE))
    lossy = replace(manifest, funnel=(*funnel, taken), stages=stages)
    assert [row["stage"] for row in carried_rows(lossy)][-1:] == [STAGE_OF_TEXTS]
    names = [stage["name"] for stage in carried_stages(lossy, opened_texts.recipe)]
    assert names[-3:] == ["text", STAGE_OF_TEXTS, "encode"]
