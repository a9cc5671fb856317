"""Publish many rejects or dead letters: rows that the jobs of a run left in parts, as files of a range of origins each.

A row's file is a hash of its origin, and rows are sorted, so the bytes depend neither on how rows were spread over
parts nor on workers and bundles.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.row_groups import write_row_groups
from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.document import hash64
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.job.report import RECORD_SCHEMAS
from refinery.transforms.core.job.task_list import TaskList, write_task_list
from refinery.transforms.core.part_errors import naming
from refinery.transforms.write.table_batches import BatchByFile, gather, publish_tables, write_files

KIND = "published-records"  # of side-output records, and the report's key
ROW_GROUP = 1 << 20  # rows: pyarrow's default
MOST_ROWS = 1_000_000  # in one file
FILE_BYTES = 256_000_000  # of the rows of one file, so a worker sorts it within about three times that
ROW_BYTES = 256  # of a row without its excerpt: names, an address, an origin
REJECTS, DEAD = (RECORD_SCHEMAS[kind][0] for kind in ("reject", "dead"))
FOLDERS: dict[str, pa.Schema] = dict(RECORD_SCHEMAS.values())


def rows_per_file(excerpt_chars: int) -> int:
    """How many rows of rejects/ or dead_letters/ are in a file, where each quotes so many characters."""
    return min(MOST_ROWS, max(1, FILE_BYTES // (ROW_BYTES + 2 * excerpt_chars)))


def count_record_files(rows: int, excerpt_chars: int = 0) -> int:
    """Number of files for so many rows; 0 for none.

    >>> count_record_files(1_000_001)
    2
    """
    return -(-rows // rows_per_file(excerpt_chars))


def record_file_name(folder: str, index: int) -> str:
    """Name of a published file of rejects/ or dead_letters/.

    >>> record_file_name("rejects", 0)
    'rejects/part-00000.parquet'
    """
    return f"{folder}/part-{index:05d}.parquet"


def record_files(origins: Sequence[str], count: int) -> npt.NDArray[np.int64]:
    """Which of `count` files holds the rows of each origin: equal ranges of a hash. int64 [n]; 1 µs each."""
    if count == 1:
        return np.zeros(len(origins), np.int64)
    return np.array([hash64("record-file", origin) * count >> 64 for origin in origins], np.int64)


def read_records(root: str, path: str, schema: pa.Schema) -> pa.Table:
    """One part of a work location, whole. Raises UnreadablePart, naming it, if it is damaged."""
    store = open_store(root)
    with store.open(path) as stream, naming(store.url(path)):
        return pq.read_table(stream, schema=schema, page_checksum_verification=True)


def write_records(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write sorted rows as Parquet: the same rows make the same bytes."""
    write_row_groups(path, tables, ROW_GROUP, compression="zstd")


def publish_file(folder: str, index: int, tables: Iterable[pa.Table], location: str) -> dict[str, Any]:
    """Publish sorted rows as file `index` of LOCATION/folder; returns it as the manifest lists it."""
    return publish_tables(record_file_name(folder, index), tables, write_records, location)


def write_record_tasks(work: str, parts: Iterable[tuple[str, str]]) -> TaskList:
    """The parts that `WriteRecords` is to read, (root of the work location, path in it) each, as a list in `work`."""
    lines = [orjson.dumps([root, path]) for root, path in parts]
    return write_task_list(work, "records", sorted(lines))


class _BatchRecords(BatchByFile):
    def __init__(self, folder: str, files: int) -> None:
        self.folder = folder
        self.files = files

    def process(self, line: bytes) -> Iterator[tuple[int, bytes]]:
        root, path = orjson.loads(line)
        table = read_records(root, path, FOLDERS[self.folder])
        yield from self.hold(table, record_files(table["origin"].to_pylist(), self.files))


def _publish(file: int, batches: Iterable[bytes], folder: str, location: str) -> Iterator[bytes]:
    yield side_output_record(KIND, **publish_file(folder, file, gather(batches), location))


@dataclass
class WriteRecords(beam.PTransform):
    """Write the rows of all parts of rejects/ or dead_letters/ to LOCATION/folder. A retried bundle writes the same
    bytes.

    parts: of `write_record_tasks`. files: `count_record_files` of their rows, at least 1. Memory of a worker: about
    three times the rows of a file, FILE_BYTES.
    """

    folder: str
    parts: TaskList
    files: int
    location: str

    def __post_init__(self) -> None:
        super().__init__(f"write-{self.folder}")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        publish = partial(_publish, folder=self.folder, location=self.location)
        deal = _BatchRecords(self.folder, self.files)
        return write_files(begin, self.parts, deal, FOLDERS[self.folder], self.files, publish)


class PublishedFiles:
    """Gathers the files that a job wrote for the manifest: a Merger of the report."""

    def __init__(self) -> None:
        self.files: list[dict[str, Any]] = []

    def add_record(self, fields: Mapping[str, Any]) -> None:
        """A file."""
        self.files.append({name: fields[name] for name in ("path", "size", "crc32c", "sha256")})

    def result(self) -> list[dict[str, Any]]:
        """All files by path; a bundle that was repeated wrote the same ones."""
        return sorted({file["path"]: file for file in self.files}.values(), key=lambda file: file["path"])
