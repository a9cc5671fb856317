"""Write lookup/: the rows of all files of a corpus, by the hashes of their addresses and origins.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa

from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.job.task_list import TaskList, write_task_list
from refinery.transforms.core.spill.sorted_tables import sorted_tables
from refinery.transforms.write.lookup.entries import SCHEMA, lookup_files, lookup_name, write_entries
from refinery.transforms.write.lookup.tasks import LookupTask, dump_task, load_task, read_task
from refinery.transforms.write.records import KIND
from refinery.transforms.write.table_batches import BatchByFile, gather, publish_tables, write_files


def write_lookup_tasks(work: str, tasks: Iterable[LookupTask]) -> TaskList:
    """The tasks of `WriteLookup` as a list in `work`."""
    return write_task_list(work, "records", sorted(map(dump_task, tasks)))


def write_whole_lookup(tasks: Sequence[LookupTask], location: str) -> dict[str, Any]:
    """Publish the index of few rows as a single file, without a job; returns it as the manifest lists it. Memory: see
    `sorted_tables`."""
    return _publish_tables(0, 1, sorted_tables(_all_entries(tasks)), location)


def _all_entries(tasks: Sequence[LookupTask]) -> Iterator[pa.Table]:
    yield SCHEMA.empty_table()
    for task in tasks:
        yield from read_task(task)


def _publish_tables(file: int, files: int, tables: Iterable[pa.Table], location: str) -> dict[str, Any]:
    return publish_tables(lookup_name(file, files), tables, write_entries, location)


class _BatchEntries(BatchByFile):
    def __init__(self, files: int) -> None:
        self.files = files

    def process(self, line: bytes) -> Iterator[tuple[int, bytes]]:
        for table in read_task(load_task(line)):
            yield from self.hold(table, lookup_files(table["hash"].to_numpy(), self.files))
        work_done("files", 1)


def _publish(file: int, batches: Iterable[bytes], files: int, location: str) -> Iterator[bytes]:
    yield side_output_record(KIND, **_publish_tables(file, files, gather(batches), location))


@dataclass
class WriteLookup(beam.PTransform):
    """Write the entries of all tasks to LOCATION/lookup/. A retried bundle writes the same bytes.

    tasks: of `write_lookup_tasks`. files: `files_for` the corpus. A file's group is bounded: hashes are uniform, and a
    value has one entry a file however often it comes. Memory of a worker: about three times the rows of a file, beyond
    SORT_BYTES sorted on disk.
    """

    tasks: TaskList
    files: int
    location: str

    def __post_init__(self) -> None:
        super().__init__("write-lookup")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        publish = partial(_publish, files=self.files, location=self.location)
        return write_files(begin, self.tasks, _BatchEntries(self.files), SCHEMA, self.files, publish)
