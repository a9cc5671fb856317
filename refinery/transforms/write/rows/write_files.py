"""Rows of the inputs to files of the same shape, as a PTransform: each input file is copied by one worker, beside the
rows of it that stay.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from typing import Any

import apache_beam as beam
import orjson

from refinery.loader.format.manifest import Column, shard_name, write_provenance
from refinery.loader.format.written import PROVENANCE
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.on_disk import held_bytes
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.memory import with_memory
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.statistics.measure import ShardTally
from refinery.transforms.statistics.tally import NO_NOTES, Measured
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.document_batch import read_batches
from refinery.transforms.write.rows.copy_rows import copy_rows
from refinery.transforms.write.rows.rows import Label, Rows
from refinery.transforms.write.rows.rows_stage import OFFSET_BITS
from refinery.transforms.write.shard_documents import ShardDocuments, sort_on_disk
from refinery.transforms.write.shards import provenance_rows
from refinery.transforms.write.shuffle import shard_key
from refinery.transforms.write.shuffle_to_shards import HELD_BYTES, BatchDocuments, number_of_shard

SPLIT = "train"
KIND = "output"  # of the records of files, and the field of the report
MEMORY = 256 << 20  # of a worker that copies a file: what is known of its rows
NO_TEXT = ("empty",)  # reasons of a reader for rows without a text
NO_FIELD = ("MissingField",)


@dataclass(frozen=True)
class OutputFile:
    """An input file and where its rows go. task: reads all of the file. path: below the outputs. number, of: its place
    among the files of its domain."""

    task: ReadTask
    domain: str
    number: int
    of: int
    path: str

    def to_line(self) -> bytes:
        """A line of the list of files; `from_line` is its inverse."""
        fields = {"domain": self.domain, "number": self.number, "of": self.of, "path": self.path}
        return orjson.dumps({**fields, "task": orjson.Fragment(self.task.to_json())}, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_line(cls, line: bytes) -> "OutputFile":
        fields = orjson.loads(line)
        return cls(**{**fields, "task": ReadTask.from_json(orjson.dumps(fields["task"]))})


@dataclass(frozen=True)
class FilesJob:
    """What copying must know of a run. files: the list of `OutputFile`s. outputs: where they go. prefix: where their
    provenance goes. domains: source -> domain. counts: files of each domain. columns, notes, counted: as of
    `ShardsJob`. labels: further columns, each from the note of its name."""

    files: TaskList
    outputs: str
    prefix: str
    domains: Mapping[str, str]
    counts: Mapping[str, int]
    limits: LimitParams
    columns: Sequence[Column] = ()
    notes: Measured = NO_NOTES
    counted: frozenset[str] = frozenset()
    labels: Sequence[Label] = field(default=())


class _BatchRows(BatchDocuments):
    def place(self, doc: EncodedDocument) -> tuple[bytes, int]:
        position = int.from_bytes(doc.columns, "big")
        number, offset = position >> OFFSET_BITS, position & ((1 << OFFSET_BITS) - 1)
        return shard_key(f"{SPLIT}/{self.domains[doc.source]}", number), offset


def keyed_file(line: bytes) -> tuple[bytes, bytes]:
    """A file's line under the key of its rows."""
    file = OutputFile.from_line(line)
    return shard_key(f"{SPLIT}/{file.domain}", file.number), line


def write_file(key: bytes, values: Iterable[bytes], job: FilesJob) -> Iterator[bytes]:
    """Copy one input file: its line, and batches of the rows that stay, among `values`, in any order. Yields the
    side-output records of the file and, where documents stay, of their provenance and statistics.

    Memory: what is known of the file's rows; texts wait on local disk. Raises what `copy_rows` raises.
    """
    lines: list[bytes] = []
    documents = sort_on_disk(read_batches(_without_lines(values, lines)))
    with closing(documents):
        (line,) = lines
        file = OutputFile.from_line(line)
        work_done("shards", 1)
        yield _copy(file, documents, job)
        if len(documents):
            yield from _publish_provenance(file, documents, job)


def _without_lines(values: Iterable[bytes], lines: list[bytes]) -> Iterator[bytes]:
    for value in values:
        if value[:1] == b"{":  # batches are compressed, and begin otherwise
            lines.append(value)
        else:
            yield value


def _copy(file: OutputFile, documents: ShardDocuments, job: FilesJob) -> bytes:
    offsets = documents.facts["order"].to_pylist()
    empty: list[int] = []
    texts = ((offset, text.decode()) for offset, text in zip(offsets, documents.values("tokens"), strict=True) if text)
    with scratch_folder(file.path) as scratch:
        local = scratch / "rows"
        rows = merge(offsets, rows_without_text(file.task, set(offsets), job.limits, empty))
        columns = tuple(job.labels)
        labels = _labels(offsets, documents, columns) if columns else ()
        copy_rows(file.task, local, Rows(rows, texts, columns, labels), job.limits)
        size, crc32c, sha256 = checksums(local)
        open_store(job.outputs).create(file.path, local)
    return side_output_record(
        KIND,
        domain=file.domain,
        number=file.number,
        path=file.path,
        input=file.task.path,
        rows=len(offsets) + len(empty),
        documents=len(offsets),
        without_text=len(empty),
        size=size,
        crc32c=crc32c,
        sha256=sha256,
    )


def rows_without_text(task: ReadTask, known: set[int], limits: LimitParams, found: list[int]) -> Iterator[int]:
    """Rows of a file that are no document since they have no text, ascending; also put into `found`. known: rows that
    stay in any case. Cost: the file is read once more."""
    for one in read_task(task, limits):
        offset = int(one.origin.rpartition("@")[2]) if one.origin.rpartition("@")[2].isdigit() else -1
        if offset in known or offset < 0:
            continue
        if isinstance(one, Skipped):
            is_empty = one.reason in NO_TEXT
        elif isinstance(one, Damaged):
            is_empty = one.error in NO_FIELD
        else:
            is_empty = isinstance(one.content, str) and not one.is_html and not clean_text(one.content, from_html=False)
        if is_empty:
            found.append(offset)
            yield offset


def _labels(
    offsets: Sequence[int], documents: ShardDocuments, columns: Sequence[Label]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    for offset, meta in zip(offsets, documents.facts["meta"].to_pylist(), strict=True):
        noted = orjson.loads(meta)
        yield offset, tuple(noted.get(column.name, column.empty) for column in columns)


def _publish_provenance(file: OutputFile, documents: ShardDocuments, job: FilesJob) -> Iterator[bytes]:
    tally, name = ShardTally(job.notes), shard_name(SPLIT, file.domain, file.number, file.of)
    kind, ending = PROVENANCE
    with scratch_folder(name) as scratch:
        local = scratch / f"shard{ending}"
        rows = provenance_rows(documents.facts, None, job.columns, job.counted, tally)
        write_provenance(local, rows, job.columns, has_tokens=False)
        size, crc32c, sha256 = checksums(local)
        open_store(job.prefix).create(f"{name}{ending}", local)
    entry = {"path": f"{name}{ending}", "size": size, "crc32c": crc32c, "sha256": sha256}
    place = {"split": SPLIT, "domain": file.domain, "index": file.number, "count": file.of}
    yield side_output_record("shard", **place, documents=len(documents), files={kind: entry}, kinds=[kind])
    yield tally.record(name)


class MergeOutputs:
    """Collects the records of files, by domain and number."""

    def __init__(self) -> None:
        self._found: list[dict[str, Any]] = []

    def add_record(self, fields: Mapping[str, Any]) -> None:
        self._found.append({name: value for name, value in fields.items() if name != "kind"})

    def result(self) -> list[dict[str, Any]]:
        return sorted(self._found, key=lambda file: (file["domain"], file["number"]))


@dataclass
class CopyFiles(beam.PTransform):
    """(shard key, a file's line and batches of its rows) -> files. A retried bundle writes the same bytes."""

    job: FilesJob

    def __post_init__(self) -> None:
        super().__init__("copy-files")

    def expand(self, files: beam.PCollection) -> beam.PCollection:
        write = beam.FlatMapTuple(partial(write_file, job=self.job))
        written = files | "write" >> write.with_output_types(bytes)
        add_side_output(files.pipeline, written)
        return written


def write_rows_back(docs: beam.PCollection, job: FilesJob) -> beam.PCollection:
    """Documents of the stage `rows` -> a file for each input file. Texts that changed cross one exchange."""
    counts = {f"{SPLIT}/{domain}": count for domain, count in job.counts.items()}
    step = with_memory(CopyFiles(job), MEMORY)
    batch = beam.ParDo(_BatchRows(job.domains, True, held_bytes(docs.pipeline, HELD_BYTES)))
    batches = docs | "batch rows" >> batch.with_output_types(tuple[bytes, bytes])
    lines = docs.pipeline | "files" >> ReadTaskList(job.files)
    files = lines | "keys" >> beam.Map(keyed_file).with_output_types(tuple[bytes, bytes])
    spread = partial(number_of_shard, counts=counts)
    return (batches, files) | Exchange("by file", True, step, spread=spread) | step
