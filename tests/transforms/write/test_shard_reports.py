"""Shards in a report: the same text whatever the order of records, and what earlier versions listed."""

import random
from typing import Any

import pytest

from refinery.loader.format.entries import shard_name
from refinery.loader.format.listed import list_files, shard_table
from refinery.transforms.write import shard_reports
from refinery.transforms.write.shard_reports import KIND, MergeShards, reported_shards


def made(split: str, domain: str, index: int, packed: int = 0) -> dict[str, Any]:
    """A shard as a job reports it."""
    name, chance = shard_name(split, domain, index, 12_000), random.Random(f"{split}{domain}{index}")

    def file(suffix: str) -> dict[str, Any]:
        sums = {"crc32c": chance.randbytes(4).hex(), "sha256": chance.randbytes(32).hex()}
        return {"path": f"{name}{suffix}", "size": 2 * 900 + index, **sums}

    files = {"bin": file(".bin") | {"block_crc32c": "AAAAAA=="}, "idx": file(".idx"), "provenance": file(".parquet")}
    place = {"split": split, "domain": domain, "index": index, "count": 12_000, "documents": 7, "tokens": 900 + index}
    rows = [file(f"-{i}") | {"rows": 1, "documents": 2, "tokens": 3, "block_crc32c": ""} for i in range(packed)]
    return {**place, "files": files, **({"packed": rows} if packed else {})}


SHARDS = [
    *(made("train", "a", index, packed=index % 3) for index in (0, 2, 11, 11_999)),
    *(made("train", "b-c", index) for index in (0, 1)),
    made("validation", "a", 0),
]


@pytest.mark.parametrize("chunk", [4, 1 << 20])
def test_the_order_of_records_does_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_reports, "CHUNK_ROWS", chunk)
    expected = list_files(shard_table(SHARDS), [])
    texts = set()
    for seed in range(4):
        merger, records = MergeShards(), random.Random(seed).sample(SHARDS, len(SHARDS))
        for record in records:
            merger.add_record({"kind": KIND, **record})
        texts.add(merger.result())
    (text,) = texts
    for report in ({KIND: text}, {"shards": SHARDS}):  # the second: of an earlier version
        assert reported_shards(report).equals(shard_table(SHARDS))
        assert list_files(reported_shards(report), []) == expected
    names = [(entry["split"], entry["domain"], entry["shards"]) for entry in expected.fields["domains"]]
    assert names == [("train", "a", 4), ("train", "b-c", 2), ("validation", "a", 1)]


def test_a_job_without_shards() -> None:
    assert len(reported_shards({KIND: MergeShards().result()})) == 0


def test_a_domain_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"domain: '\.\./up' given"):
        shard_table([{**SHARDS[0], "domain": "../up"}])
