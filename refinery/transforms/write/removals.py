"""Publish what deduplication removed: a row per removed document, with the id of the document kept instead.

Each of N files holds a range of ids, sorted, so the bytes depend neither on how documents were spread over parts
nor on workers and bundles. Texts are not read: Parquet reads single columns.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.document_fields import DOCUMENTS, names_of
from refinery.loader.format.removals import REMOVALS_SCHEMA, column_ids, removals_file, removals_name, write_removals
from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.part_errors import naming
from refinery.transforms.statistics.dropped import Dropped, Example, Least, Value, dropped_hash
from refinery.transforms.write.kept_documents import PartPair, parse_pair
from refinery.transforms.write.table_batches import BatchByFile, gather, publish_tables, write_files

ROWS_PER_FILE = 1_000_000

RemovingStages = Mapping[str, tuple[str, float | None]]

DOCUMENT_COLUMNS = [name for name in REMOVALS_SCHEMA.names if name in names_of(DOCUMENTS)]
VERDICT_COLUMNS = ["removed", *(name for name in REMOVALS_SCHEMA.names if name not in DOCUMENT_COLUMNS)]


def count_files(removed: int) -> int:
    """Number of files for so many removed documents; 0 for none."""
    return -(-removed // ROWS_PER_FILE)


def read_removals(pair: PartPair) -> Iterator[pa.Table]:
    """The removed documents of a part, a table of REMOVALS_SCHEMA for each row group that has any.

    Raises ValueError when documents and verdicts disagree on the number of rows, UnreadablePart when one is damaged.
    Memory: the part's verdicts and one row group without its texts.
    """
    store = open_store(pair.verdicts_root)
    with store.open(pair.verdicts) as stream, naming(store.url(pair.verdicts)):
        verdicts = pq.read_table(stream, columns=VERDICT_COLUMNS, page_checksum_verification=True)
    store = open_store(pair.documents_root)
    with store.open(pair.documents) as stream, naming(store.url(pair.documents)):
        documents = pq.ParquetFile(stream, page_checksum_verification=True)
        if documents.metadata.num_rows != verdicts.num_rows:
            raise ValueError(
                f"{pair.verdicts}: {verdicts.num_rows} verdicts for {documents.metadata.num_rows} documents"
            )
        start = 0
        for group in range(documents.metadata.num_row_groups):
            rows = documents.metadata.row_group(group).num_rows
            judged = verdicts.slice(start, rows)
            removed = np.flatnonzero(judged["removed"].to_numpy())
            start += rows
            if len(removed):
                known = documents.read_row_group(group, columns=DOCUMENT_COLUMNS).take(removed)
                gone = judged.take(removed)
                columns = {
                    name: (known if name in known.column_names else gone)[name] for name in REMOVALS_SCHEMA.names
                }
                yield pa.table(columns, schema=REMOVALS_SCHEMA)


class _BatchRemovals(BatchByFile):
    def __init__(self, files: int) -> None:
        self.files = files

    def process(self, line: bytes) -> Iterator[tuple[int, bytes]]:
        pair = parse_pair(line)
        if not pair.groups or not pair.verdicts:
            return
        for table in read_removals(pair):
            yield from self.hold(table, removals_file(column_ids(table["id"]), self.files))


def publish_rows(name: str, tables: Iterable[pa.Table], location: str) -> dict[str, Any]:
    """Publish sorted rows as the file `name` of `location`; returns it as the manifest lists it."""
    rows = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal rows
        for table in tables:
            rows += table.num_rows
            yield table

    published = publish_tables(name, counted(), write_removals, location)
    return {"rows": rows, **published}


def publish_removals(
    file: int, batches: Iterable[bytes], location: str, files: int, stages: RemovingStages
) -> Iterator[bytes]:
    """Sort, write and publish one file; yields its "removals" side-output record, and one of `examples_of` its rows.
    Memory: see GROUP_BYTES, however many rows it has; beyond that they are sorted on disk.
    """
    dropped = Dropped()
    tables = examples_of(gather(batches), stages, dropped) if stages else gather(batches)
    yield side_output_record("removals", **publish_rows(removals_name(file, files), tables, location))
    if dropped.examples:
        yield dropped.record()


def examples_of(tables: Iterable[pa.Table], stages: RemovingStages, dropped: Dropped) -> Iterator[pa.Table]:
    """The tables as they are; `dropped` gets the examples of each reason, with the document kept instead and how alike
    they are."""
    least: dict[str, Least] = {}
    for table in tables:
        columns = (table[name].to_pylist() for name in ("id", "reason", "source", "origin"))
        for place, (id_, reason, source, origin) in enumerate(zip(*columns, strict=True)):
            stage, threshold = stages[reason]
            number = dropped_hash(stage, reason, source, origin, id_)
            if not least.setdefault(reason, Least()).takes(number):
                continue
            values: list[Value] = [("kept instead", table["kept_id"][place].as_py().hex(), None)]
            similarity = table["similarity"][place].as_py()
            if threshold is not None or similarity < 1:
                values.append(("similarity", round(similarity, 4), threshold))
            url = table["url"][place].as_py()
            dropped.put(stage, reason, number, Example.of(source, url, origin, 0, "", values))
        yield table


@dataclass
class WriteRemovals(beam.PTransform):
    """Write the removed documents of all parts to LOCATION/removals/. A retried bundle writes the same bytes.

    pairs: as for `ReadKeptDocuments`. files: `count_files` of the documents that deduplication removed; 0 reads and
    writes nothing. All copies of a text are in one file, even ten million: a reader finds an id in one place. stages:
    reason -> the stage that removes for it, and its threshold; without them no examples are recorded.
    """

    pairs: TaskList
    files: int
    location: str
    stages: RemovingStages = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__("write-removals")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        if not self.files:
            nothing: beam.PCollection = begin | "nothing" >> beam.Create([], reshuffle=False)
            return nothing
        publish = partial(publish_removals, location=self.location, files=self.files, stages=self.stages)
        return write_files(begin, self.pairs, _BatchRemovals(self.files), REMOVALS_SCHEMA, self.files, publish)
