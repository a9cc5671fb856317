"""What a job reports of its shards, as columns in one field: there may be 100,000 of them, with three files each."""

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from refinery.loader.format.listed import SHARD_SCHEMA, shard_table
from refinery.loader.format.listing import CHUNK_ROWS
from refinery.loader.format.provenance import PARQUET

KIND = "shard"  # of the records, and the field of the report
ORDER = [("split", "ascending"), ("domain", "ascending"), ("shard", "ascending"), ("row", "ascending")]


class MergeShards:
    """Collects the records of shards: the table of `shard_table`, in order, as Parquet in base64. Memory: some 600
    bytes a shard, and 4 for each MiB of its tokens."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._few: list[Mapping[str, Any]] = []

    def add_record(self, fields: Mapping[str, Any]) -> None:
        self._few.append(fields)
        if len(self._few) >= CHUNK_ROWS // 4:
            self._tables.append(shard_table(self._few))
            self._few = []

    def result(self) -> str:
        table = pa.concat_tables([*self._tables, shard_table(self._few)])
        return dump_shards(in_order(table))


def in_order(table: pa.Table) -> pa.Table:
    """Shards by split, domain and number; the files of each as they are."""
    row = pa.array(np.arange(len(table), dtype=np.int64))
    return table.take(pc.sort_indices(table.append_column("row", row), ORDER)).combine_chunks()


def dump_shards(table: pa.Table) -> str:
    """Columns as a field of a report: the same rows make the same text."""
    out = io.BytesIO()
    pq.write_table(table, out, use_dictionary=["split", "domain", "kind"], **PARQUET)
    return base64.b64encode(out.getvalue()).decode()


def reported_shards(report: Mapping[str, Any]) -> pa.Table:
    """The shards of a report, of `shard_table`: by this version, or by one before it, which listed them."""
    if KIND not in report:
        return shard_table(report["shards"])
    table = pq.read_table(pa.BufferReader(base64.b64decode(report[KIND])))
    return table.cast(SHARD_SCHEMA)
