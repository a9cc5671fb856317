"""No shard is written without documents; the others are where they always were."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson

from refinery.transforms.write.document_batch import DocumentBatch, new_compressor, read_batches
from refinery.transforms.write.shard_documents import META, sort_on_disk
from refinery.transforms.write.shards import kept_texts, write_shard
from refinery.transforms.write.shuffle import order_key, shard_key
from tests.transforms.write.test_shuffle import encoded

COUNTS = {"train/web": 40}


def test_shards_without_documents_are_left_out(tmp_path: Path) -> None:
    """10 documents, 40 parts of the order: at most 10 shards, under the numbers of their parts."""
    batches: dict[int, DocumentBatch] = {}
    for number in range(10):
        doc = replace(encoded(number), meta={"copies": 1, "copy_sources": "s"})
        order = order_key(1, doc.id)
        batches.setdefault(order * 40 >> 64, DocumentBatch()).add(order, doc, b"")
    records = []
    for index in range(40):
        given = read_batches([batches.get(index, DocumentBatch()).pack(new_compressor())])
        found = list(write_shard(shard_key("train/web", index), given, str(tmp_path), COUNTS, "uint16"))
        assert bool(found) == (index in batches)
        records += [orjson.loads(record) for record in found]
    assert sum(record["documents"] for record in records if record["kind"] == "shard") == 10
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {
        f"train/web/shard-{index:05d}-of-00040.{suffix}"
        for index in batches
        for suffix in ("bin", "idx", "provenance.parquet")
    }
    assert all((tmp_path / name).stat().st_size for name in files)


def test_kept_fields_wait_on_disk() -> None:
    """Columns that were named are in no table, and come back in the order of the shard."""
    batch = DocumentBatch()
    for number in range(30):
        doc = replace(encoded(number), meta={"fields": f'{{"n":{number}}}'})
        batch.add(order_key(1, doc.id), doc, b"")
    packed = batch.pack(new_compressor())
    plain, spooled = (sort_on_disk(read_batches([packed, packed]), more) for more in ((), (META,)))
    with closing(plain), closing(spooled):
        assert META in plain.facts.column_names and META not in spooled.facts.column_names
        assert spooled.facts.equals(plain.facts.drop_columns([META]))
        metas = [orjson.loads(meta) for meta in spooled.metas()]
        assert metas == [orjson.loads(meta) for meta in plain.metas()] and len(metas) == 60
        assert [meta["fields"] for meta in metas] == list(kept_texts(spooled)) == list(kept_texts(plain))
