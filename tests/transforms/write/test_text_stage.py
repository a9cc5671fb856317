"""The last stage of a lane of texts, and what such a lane has to end with."""

from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from refinery.pipelines.lanes.web import LANE as WEB
from refinery.transforms.core.document import TEXT_ID, Document, document_id
from refinery.transforms.core.stage import Writer
from refinery.transforms.tokenize.encode import ENCODE
from refinery.transforms.write.document_batch import DocumentBatch, new_compressor, read_batches
from refinery.transforms.write.shards import write_shard
from refinery.transforms.write.shuffle import order_key, shard_key
from refinery.transforms.write.text_stage import TEXT, TextParams, finish_text
from tests.testing.test_writers import LINES

META = {"copies": 1, "copy_sources": "s"}
TEXTS = tuple(TEXT if stage is ENCODE else stage for stage in WEB.shards)


def document(text: str, id_: bytes = b"") -> Document:
    return Document(id_ or document_id(text), text, "https://e.example/", "s", "a@0", 0, META)


def test_a_text_becomes_its_utf8() -> None:
    done = finish_text(document("naïve 中"), TextParams())
    assert done.tokens.tobytes() == "naïve 中".encode()
    assert (done.text_bytes, done.meta) == (len("naïve 中".encode()), META)


def test_a_text_of_another_id_is_noted() -> None:
    done = finish_text(document("cut", document_id("cut and more")), TextParams())
    assert done.id == document_id("cut and more") and done.meta == {**META, TEXT_ID: document_id("cut").hex()}


def test_a_lone_surrogate_is_an_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        finish_text(replace(document("a"), text="\ud800"), TextParams())


def test_a_shard_of_texts(tmp_path: Path) -> None:
    """Its report states kinds and no tokens; its provenance has no column of these."""
    docs = [finish_text(document(f"text {at}"), TextParams()) for at in range(9)]
    batch = DocumentBatch()
    for doc in docs:
        batch.add(order_key(1, doc.id), doc, b"")
    tables = read_batches([batch.pack(new_compressor())])
    made = write_shard(shard_key("train/web", 0), tables, str(tmp_path), {"train/web": 1}, "", writer=LINES)
    report = orjson.loads(next(made))
    assert (report["documents"], report["kinds"]) == (9, ["text", "provenance"]) and "tokens" not in report
    assert report["files"]["text"]["path"] == "train/web/shard-00000-of-00001.jsonl"
    table = pq.read_table(tmp_path / report["files"]["provenance"]["path"])
    assert not {"token_offset", "token_count"} & {*table.column_names}
    lines = (tmp_path / report["files"]["text"]["path"]).read_bytes().splitlines()
    texts = [orjson.loads(line)["text"] for line in lines]
    assert [document_id(text) for text in texts] == table["id"].to_pylist()


def test_a_lane_ends_with_what_its_writer_takes() -> None:
    assert replace(WEB, name="t", shards=TEXTS, writer=LINES).funnel[-1] == "text"
    with pytest.raises(ValueError, match="lane web: the writer lines writes texts, `text` as last stage is needed"):
        replace(WEB, writer=LINES)
    with pytest.raises(ValueError, match="lane web: the writer megatron writes tokens, `encode` as last stage is"):
        replace(WEB, shards=TEXTS)
    for writer in (LINES, WEB.writer):
        assert isinstance(writer, Writer)
        with pytest.raises(ValueError, match="lane web: it ends with documents, `encode` or `text` as last stage"):
            replace(WEB, shards=WEB.shards[:-1], writer=writer)
