"""The end of every job: its side-output records come together, and one sealed report of them is published.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import apache_beam as beam
import google_crc32c
import orjson
import pyarrow as pa

from refinery.transforms.core.exchange.exchange import Delivered, Exchange, settle
from refinery.transforms.core.exchange.job_input import begin_job
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import in_global_window, take_side_outputs
from refinery.transforms.core.job.report import (
    OTHERS,
    RECORD_SCHEMAS,
    ROWS_PER_BATCH,
    ROWS_PER_PART,
    SPREAD,
    Check,
    Mergers,
    merge_records,
    no_check,
    write_part,
    write_report,
)


class _Rows:
    """Rows of one kind, until they are enough for a part."""

    def __init__(self, kind: str) -> None:
        self.folder, self.schema = RECORD_SCHEMAS[kind]
        self.rows: list[dict[str, Any]] = []
        self.tables: list[pa.Table] = []
        self.count = 0

    def add(self, fields: dict[str, Any]) -> bool:
        """Take in a row; whether a part is full."""
        self.rows.append(fields)
        self.count += 1
        if len(self.rows) >= ROWS_PER_BATCH:
            self._convert()
        return self.count >= ROWS_PER_PART

    def write(self, location: str) -> bytes:
        """Publish them as a part; its side-output record."""
        self._convert()
        tables, self.tables, self.count = self.tables, [], 0
        return write_part(location, self.folder, f"part-{uuid.uuid4().hex}", pa.concat_tables(tables))

    def _convert(self) -> None:
        rows, self.rows = self.rows, []
        self.tables.append(pa.Table.from_pylist(rows, schema=self.schema))


class _WriteRecords(beam.DoFn):
    """Writes dead letters and rejects as Parquet parts, passes every other record on."""

    def __init__(self, location: str) -> None:
        self.location = location

    def start_bundle(self) -> None:
        self.rows: dict[str, _Rows] = {}

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[bytes]:
        key, records = element
        for record in records:
            if key == OTHERS:
                yield record
                continue
            fields = orjson.loads(record)
            kind = fields.pop("kind")
            rows = self.rows.setdefault(kind, _Rows(kind))
            if rows.add(fields):
                yield rows.write(self.location)

    def finish_bundle(self) -> Iterator[Any]:
        for kind in sorted(self.rows):
            if self.rows[kind].count:
                yield in_global_window(self.rows[kind].write(self.location)).value


def _writer_of(record: bytes) -> int:
    """Who writes a row of RECORD_SCHEMAS; OTHERS for every other record."""
    if orjson.loads(record)["kind"] in RECORD_SCHEMAS:
        return 1 + int(google_crc32c.value(record)) % SPREAD
    return OTHERS


def _job(_: bytes) -> bytes:
    return side_output_record("job")


def _one_key(record: bytes) -> int:
    return 0


def _publish(
    _: int,
    records: Iterable[bytes],
    location: str,
    name: str,
    facts: Mapping[str, Any],
    mergers: Mergers,
    check: Check,
    settle: Callable[[Delivered], Delivered],
) -> None:
    report = merge_records(records, mergers)
    report["exchanges"] = settle(report["exchanges"])
    write_report(report, location, name, facts, check)


@dataclass
class WriteReport(beam.PTransform):
    """Collect every side-output record of the pipeline and publish one sealed report at LOCATION/name, last of all.

    facts: plain data that the launcher adds to the report. mergers: of kinds of records that `merge_records` does not
    know. check: is given the report before it is published, and raises where its sums do not hold.
    """

    location: str
    name: str
    facts: Mapping[str, Any]
    mergers: Mergers = field(default_factory=dict)
    check: Check = no_check

    def __post_init__(self) -> None:
        super().__init__("report")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        publish = partial(
            _publish,
            location=self.location,
            name=self.name,
            facts=dict(self.facts),
            mergers=dict(self.mergers),
            check=self.check,
        )
        job = begin_job(begin) | "job" >> beam.Map(_job).with_output_types(
            bytes
        )  # a job without documents reports, too
        write = beam.ParDo(_WriteRecords(self.location)).with_output_types(bytes)
        records = (*take_side_outputs(begin.pipeline), job)  # JSON bytes
        written = records | Exchange("records", by=_writer_of, whole=True) | "write" >> write  # JSON bytes
        every = (written, *take_side_outputs(begin.pipeline))  # JSON bytes, those of the exchange of records, too
        together = every | Exchange("report", guarded=True, by=_one_key, whole=True)
        publish = partial(publish, settle=settle(begin.pipeline))
        published = together | "publish" >> beam.MapTuple(publish)
        take_side_outputs(begin.pipeline)  # of the last exchange, which is guarded: nobody is left to report them to
        return published
