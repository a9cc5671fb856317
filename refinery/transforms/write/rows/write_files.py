"""Rows of the inputs to files of the same shape, as a PTransform: each input file is copied by one worker, beside the
rows of it that stay.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from heapq import merge
from typing import Any

import apache_beam as beam
import orjson

from refinery.loader.format.manifest import shard_name, write_provenance
from refinery.loader.format.written import PROVENANCE
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.document import OFFSET_BITS
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.on_disk import held_bytes
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.memory import with_memory
from refinery.transforms.statistics.measure import ShardTally
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.document_batch import read_batches
from refinery.transforms.write.rows.attributes import write_attributes
from refinery.transforms.write.rows.copy_rows import copy_rows
from refinery.transforms.write.rows.files_job import FilesJob, OutputFile
from refinery.transforms.write.rows.originals import OFFSETS, SPLIT, Original, originals_of_copies
from refinery.transforms.write.rows.row_labels import OVER_LIMITS, row_labels, rows_beside
from refinery.transforms.write.rows.rows import Rows
from refinery.transforms.write.shard_documents import ShardDocuments, sort_on_disk
from refinery.transforms.write.shards import provenance_rows
from refinery.transforms.write.shuffle import shard_key
from refinery.transforms.write.shuffle_to_shards import HELD_BYTES, BatchDocuments, number_of_shard

KIND = "output"  # of the records of files, and the field of the report
MEMORY = 256 << 20  # of a worker that copies a file: what is known of its rows


class _BatchRows(BatchDocuments):
    def place(self, doc: EncodedDocument) -> tuple[bytes, int]:
        number, offset = doc.position >> OFFSET_BITS, doc.position & OFFSETS
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
    originals: dict[int, Original] = {}
    documents = sort_on_disk(read_batches(_batches(values, lines, originals)))
    with closing(documents):
        (line,) = lines
        file = OutputFile.from_line(line)
        work_done("shards", 1)
        yield _copy(file, documents, originals, job)
        if len(documents):
            yield from _publish_provenance(file, documents, job)


def _batches(values: Iterable[bytes], lines: list[bytes], originals: dict[int, Original]) -> Iterator[bytes]:
    for value in values:
        if value[:1] == b"{":  # batches are compressed, and begin otherwise
            lines.append(value)
        elif value[:1] == b"[":
            offset, name, size = orjson.loads(value)
            originals[offset] = Original(name, size)
        else:
            yield value


def _copy(file: OutputFile, documents: ShardDocuments, originals: Mapping[int, Original], job: FilesJob) -> bytes:
    offsets = documents.facts["order"].to_pylist()
    written = zip(offsets, documents.values("tokens"), strict=True)
    is_changed = job.into is None and bool(documents.sizes("tokens").any())
    texts = ((offset, text.decode()) for offset, text in written if text) if is_changed else ()
    beside = dict(rows_beside(file.task, set(offsets), job)) if job.beside else {}  # few: no document was made of them
    others = {offset: reason for offset, reason in beside.items() if reason not in OVER_LIMITS}
    handed_on = [offset for offset in beside if offset not in others]
    labels = row_labels(file.task, documents, originals, others, job)
    count, differs = len(offsets) + len(beside), list[str]()
    with scratch_folder(file.path) as scratch:
        local = scratch / "rows"
        if job.experiment:
            count = write_attributes(file.task, local, job.experiment, job.labels, labels, job.limits)
        else:
            columns = (*([] if job.into is None else [job.into]), *(each.label for each in job.labels))
            kept = list(merge(offsets, others)) if others else offsets
            rows = Rows(kept, texts, columns, labels if columns else (), handed_on)
            differs = copy_rows(file.task, local, rows, job.limits)
        size, crc32c, sha256 = checksums(local)
        open_store(job.outputs).create(file.path, local)
    return side_output_record(
        KIND,
        domain=file.domain,
        number=file.number,
        path=file.path,
        input=file.task.path,
        rows=count,
        documents=len(offsets),
        without_text=len(others),
        size=size,
        crc32c=crc32c,
        sha256=sha256,
        differs=differs,
    )


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
    batch = beam.ParDo(_BatchRows(job.domains, False, held_bytes(docs.pipeline, HELD_BYTES)))
    batches = docs | "batch rows" >> batch.with_output_types(tuple[bytes, bytes])
    lines = docs.pipeline | "files" >> ReadTaskList(job.files)
    files = lines | "keys" >> beam.Map(keyed_file).with_output_types(tuple[bytes, bytes])
    values = [batches, files]
    if any(each.of_others for each in job.labels):
        values.append(originals_of_copies(docs, job.domains))
    spread = partial(number_of_shard, counts=counts)
    return tuple(values) | Exchange("by file", True, step, spread=spread) | step
