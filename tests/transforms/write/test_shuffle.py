"""The global order: uniform, seeded, and independent of how documents fall into bundles."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.document import document_id
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write import document_batch
from refinery.transforms.write import shuffle_to_shards as shuffle_module
from refinery.transforms.write.document_batch import BATCH_SCHEMA, DocumentBatch, new_compressor, read_batches
from refinery.transforms.write.shard_documents import sort_documents
from refinery.transforms.write.shuffle import ShardParams, order_key, parse_shard_key, shard_counts, shard_key, split_of
from refinery.transforms.write.shuffle_to_shards import ShuffleToShards
from tests.beam import run_and_collect


def encoded(number: int) -> EncodedDocument:
    text = f"document {number}"
    tokens = np.arange(number % 7 + 1, dtype=np.uint16)
    return EncodedDocument(document_id(text), tokens, "s", f"u{number}", f"f@{number}", len(text), {"copies": 1})


def shuffle(
    docs: Sequence[EncodedDocument], counts: dict[str, int], params: ShardParams, *flags: str
) -> dict[bytes, Any]:
    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        created = pipeline | beam.Create(docs)
        return [created | ShuffleToShards(params, counts, {"s": "web"}) | beam.MapTuple(lambda k, b: (k, list(b)))]

    (shards,) = run_and_collect(build, *flags)
    return {key: sort_documents(read_batches(batches)) for key, batches in shards}


@pytest.mark.parametrize("flags", [(), ("--direct_runner_bundle_repeat=2",)])
def test_every_document_is_in_its_shard_in_order(flags: tuple[str, ...]) -> None:
    docs = [encoded(i) for i in range(300)]
    params = ShardParams(seed=5, validation=0.1)
    counts = {"train/web": 3, "validation/web": 2}
    shards = shuffle(docs, counts, params, *flags)
    assert sorted(map(parse_shard_key, shards)) == [
        (s, "web", i) for s, n in (("train", 3), ("validation", 2)) for i in range(n)
    ]
    for split in ("train", "validation"):
        ids = [i for k in range(counts[f"{split}/web"]) for i in shards[shard_key(f"{split}/web", k)]["id"].to_pylist()]
        expected = [d.id for d in docs if split_of(d.id, 0.1) == split]
        assert ids == sorted(expected, key=lambda i: order_key(5, i)) and expected
    assert shuffle(docs[::-1], counts, params).keys() == shards.keys()
    for key, table in shuffle(docs[::-1], counts, params).items():
        assert table.equals(shards[key])


@pytest.mark.parametrize("wanted", [False, True])
def test_columns_of_tokens_come_along_where_they_are_wanted(wanted: bool) -> None:
    docs = [replace(encoded(number), columns=b"c" * (number % 3)) for number in range(9)]

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        created = pipeline | beam.Create(docs)
        moved = ShuffleToShards(ShardParams(validation=0), {"train/web": 1}, {"s": "web"}, columns=wanted)
        return [created | moved | beam.MapTuple(lambda k, b: (k, list(b)))]

    ((_, batches),) = run_and_collect(build)[0]
    table = sort_documents(read_batches(batches))
    found = dict(zip(table["id"].to_pylist(), table["columns"].to_pylist(), strict=True))
    assert found == {doc.id: doc.columns if wanted else b"" for doc in docs}


def test_an_empty_shard_is_still_a_shard() -> None:
    shards = shuffle([encoded(1)], {"train/web": 4}, ShardParams(validation=0))
    assert len(shards) == 4 and sorted(table.num_rows for table in shards.values()) == [0, 0, 0, 1]


def test_validation_depends_on_the_id_alone_and_has_its_share() -> None:
    ids = [document_id(str(i)) for i in range(20_000)]
    chosen = [i for i in ids if split_of(i, 0.01) == "validation"]
    assert 150 < len(chosen) < 250
    assert set(chosen) <= {i for i in ids if split_of(i, 0.02) == "validation"}  # a larger share only adds
    assert [split_of(ids[0], 0.0), split_of(ids[0], 0.999999)] == ["train", "validation"]


def test_order_is_pinned() -> None:
    """A change of these values would silently reorder every corpus: raise the schema version if it must be."""
    keys = [order_key(1, document_id(text)) for text in ("a", "b", "c")]
    assert [k >> 48 for k in keys] == [36496, 5915, 33708]
    assert order_key(2, document_id("a")) != keys[0]


def test_order_is_uncorrelated_with_input() -> None:
    keys = np.array([order_key(1, document_id(str(i))) / 2**64 for i in range(5000)])
    assert abs(np.corrcoef(keys[:-1], keys[1:])[0, 1]) < 0.05
    assert abs(keys.mean() - 0.5) < 0.02


@pytest.mark.parametrize(
    ("size", "target", "validation", "expected"),
    [
        (0, 10, 0.1, {}),
        (1, 10, 0.0, {"train/web": 1}),
        (10, 10, 0.0, {"train/web": 1}),
        (11, 10, 0.0, {"train/web": 2}),
        (1000, 10, 0.1, {"train/web": 90, "validation/web": 10}),
        (5, 10, 0.01, {"train/web": 1, "validation/web": 1}),
    ],
)
def test_shard_counts(size: int, target: int, validation: float, expected: dict[str, int]) -> None:
    params = ShardParams(target_bytes=target, validation=validation)
    assert shard_counts({"web": {"documents": min(size, 1), "bytes": size}}, params) == expected


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(TEXTS, TEXTS, st.binary(max_size=9)), max_size=4), max_size=4), st.booleans())
def test_batches_round_trip(layout: list[list[tuple[str, str, bytes]]], small: bool) -> None:
    """Whatever the documents and their batches, tables hold them all, in the order of the batches."""
    batches, expected = [], []
    for number, documents in enumerate(layout):
        batch = DocumentBatch()
        for url, note, columns in documents:
            doc = replace(encoded(len(expected)), url=url, origin=note, meta={"copies": number, "note": note})
            size = batch.add(2**64 - 1 - number, doc, columns)
            assert size > doc.tokens.nbytes + len(url) + 2 * len(note) + len(columns)
            meta = orjson.dumps({"copies": number, "note": note}).decode()
            values = (2**64 - 1 - number, doc.id, note, url, "s", doc.text_bytes, meta, doc.tokens.tobytes(), columns)
            expected.append(dict(zip(BATCH_SCHEMA.names, values, strict=True)))
        batches.append(batch.pack(new_compressor()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_batch, "TABLE_BYTES", 1 if small else 1 << 20)
        tables = list(read_batches(batches))
    assert len(tables) == max(1, sum(map(bool, layout)) if small else 1)
    for table in tables:
        table.validate(full=True)
        assert table.schema.equals(BATCH_SCHEMA)
    assert pa.concat_tables(tables).to_pylist() == expected


def test_a_damaged_batch_is_refused() -> None:
    batch = DocumentBatch()
    batch.add(1, encoded(1), b"")
    with pytest.raises(ValueError, match="is not a batch of documents"):
        list(read_batches([batch.pack(new_compressor())[:-3]]))


@pytest.mark.parametrize("limit", [1, 300, 1 << 30])
def test_a_full_memory_is_emptied_at_once(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """What is held stays below the limit and a document, and all documents arrive, whatever the limit."""
    collect = shuffle_module._BatchDocuments(ShardParams(validation=0), {"train/web": 7}, {"s": "web"}, False, limit)
    collect.setup()
    collect.start_bundle()
    sent = []
    for number in range(50):
        sent += collect.process(encoded(number))
        assert collect.held == sum(batch.size for batch in collect.batches.values()) < limit
    sent += [element.value for element in collect.finish_bundle()]
    assert not collect.batches
    ids = pa.concat_tables(read_batches(batch for _, batch in sent))["id"].to_pylist()
    assert sorted(ids) == sorted(encoded(number).id for number in range(50))


@pytest.mark.parametrize(("field", "value"), [("validation", 1.0), ("validation", -0.1), ("target_bytes", 0)])
def test_impossible_parameters(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        ShardParams(**{field: value})
