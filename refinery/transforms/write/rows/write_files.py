"""Rows of the inputs to files of the same shape, as a PTransform: each input file is copied by one worker, beside the
rows of it that stay.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from itertools import repeat
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
from refinery.transforms.core.document import COPIES, OFFSET_BITS, Drop, RawDocument, Scalar
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.on_disk import held_bytes
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.memory import with_memory
from refinery.transforms.core.names import LABEL_ORIGINAL as ORIGINAL
from refinery.transforms.core.names import LABEL_REASON as REASON
from refinery.transforms.core.safe_text import printable
from refinery.transforms.extract.clean_text import clean_text
from refinery.transforms.extract.extract import ExtractParams, extract_document
from refinery.transforms.read.sources import read_task
from refinery.transforms.read.task import LimitParams, ReadTask
from refinery.transforms.statistics.measure import ShardTally
from refinery.transforms.statistics.tally import NO_NOTES, Measured
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.document_batch import read_batches
from refinery.transforms.write.rows.copy_rows import copy_rows
from refinery.transforms.write.rows.labels import LabelOf
from refinery.transforms.write.rows.rows import Label, Rows
from refinery.transforms.write.shard_documents import ShardDocuments, sort_on_disk
from refinery.transforms.write.shards import provenance_rows
from refinery.transforms.write.shuffle import shard_key
from refinery.transforms.write.shuffle_to_shards import HELD_BYTES, BatchDocuments, number_of_shard

SPLIT = "train"
KIND = "output"  # of the records of files, and the field of the report
MEMORY = 256 << 20  # of a worker that copies a file: what is known of its rows
NO_TEXT = ("empty",)  # reasons of a reader, and of extraction, for rows without a text
OVER_LIMITS = ("too-large", "meta-too-large")  # reasons of a reader for rows that nobody has looked at: they stay
NO_COLUMN = "MissingField"  # error of a reader of tables; a line without the field is one without a text
OF_OTHERS = "duplicate_of"  # the label that says something of another row
OFFSETS = (1 << OFFSET_BITS) - 1


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
    `ShardsJob`. labels: fields that every row gets; then all rows stay. extract: how rows without a document are judged
    for their label. beside: whether there are such rows. into: the new field of texts, None where they replace those
    that were read."""

    files: TaskList
    outputs: str
    prefix: str
    domains: Mapping[str, str]
    counts: Mapping[str, int]
    limits: LimitParams
    columns: Sequence[Column] = ()
    notes: Measured = NO_NOTES
    counted: frozenset[str] = frozenset()
    labels: Sequence[LabelOf] = ()
    extract: ExtractParams = field(default_factory=ExtractParams)
    beside: bool = True
    into: Label | None = None


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
    originals: dict[int, str] = {}
    documents = sort_on_disk(read_batches(_batches(values, lines, originals)))
    with closing(documents):
        (line,) = lines
        file = OutputFile.from_line(line)
        work_done("shards", 1)
        yield _copy(file, documents, originals, job)
        if len(documents):
            yield from _publish_provenance(file, documents, job)


def _batches(values: Iterable[bytes], lines: list[bytes], originals: dict[int, str]) -> Iterator[bytes]:
    for value in values:
        if value[:1] == b"{":  # batches are compressed, and begin otherwise
            lines.append(value)
        elif value[:1] == b"[":
            offset, name = orjson.loads(value)
            originals[offset] = name
        else:
            yield value


def _copy(file: OutputFile, documents: ShardDocuments, originals: Mapping[int, str], job: FilesJob) -> bytes:
    offsets = documents.facts["order"].to_pylist()
    written = zip(offsets, documents.values("tokens"), strict=True)
    is_changed = job.into is None and bool(documents.sizes("tokens").any())
    texts = ((offset, text.decode()) for offset, text in written if text) if is_changed else ()
    beside = dict(rows_beside(file.task, set(offsets), job)) if job.beside else {}  # few: no document was made of them
    others = {offset: reason for offset, reason in beside.items() if reason not in OVER_LIMITS}
    handed_on = [offset for offset in beside if offset not in others]
    with scratch_folder(file.path) as scratch:
        local = scratch / "rows"
        columns = (*([] if job.into is None else [job.into]), *(each.label for each in job.labels))
        labels = merge(_labels(offsets, documents, originals, job), _labels_beside(others, job))
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
        rows=len(offsets) + len(beside),
        documents=len(offsets),
        without_text=len(others),
        size=size,
        crc32c=crc32c,
        sha256=sha256,
        differs=differs,
    )


def rows_beside(task: ReadTask, known: set[int], job: FilesJob) -> Iterator[tuple[int, str]]:
    """Rows of a file of which no document was made, since they have no text or exceed the limits; ascending, with the
    reason. With labels, also those of which extraction made none. known: rows that stay in any case. Cost: the file is
    read once more. Raises ValueError for a table without the column of texts: nothing says which rows stay."""
    for one in read_task(task, job.limits):
        offset = one.origin.rpartition("@")[2]
        if not offset.isdigit() or int(offset) in known:
            continue
        if isinstance(one, Skipped):
            reason = one.reason if one.reason in (*NO_TEXT, *OVER_LIMITS) else ""
        elif isinstance(one, Damaged):
            if one.error == NO_COLUMN:
                raise ValueError(
                    f"{printable(task.path)}: no column {task.text_field!r}; name the one of the texts (`text_field`), "
                    "or leave the file out"
                )
            reason = ""
        elif job.labels:
            reason = _extraction(one, job.extract)
        else:
            is_empty = isinstance(one.content, str) and not one.is_html and not clean_text(one.content, from_html=False)
            reason = NO_TEXT[0] if is_empty else ""
        if reason:
            yield int(offset), reason


def _extraction(raw: RawDocument, params: ExtractParams) -> str:
    """Why no text was made of a record; "" for one that has a text."""
    try:
        found = extract_document(raw, params)
    except Exception as error:  # noqa: BLE001 - a dead letter of that stage
        return type(error).__name__
    return found.reason if isinstance(found, Drop) else ""


def _labels(
    offsets: Sequence[int], documents: ShardDocuments, originals: Mapping[int, str], job: FilesJob
) -> Iterator[tuple[int, tuple[Scalar, ...]]]:
    texts = repeat(()) if job.into is None else ((text.decode(),) for text in documents.values("tokens"))
    for offset, meta, text in zip(offsets, documents.facts["meta"].to_pylist(), texts, strict=False):
        noted = orjson.loads(meta)
        if offset in originals:
            noted[ORIGINAL] = originals[offset]
        yield offset, (*text, *(each.value(noted) for each in job.labels))


def _labels_beside(others: Mapping[int, str], job: FilesJob) -> Iterator[tuple[int, tuple[Scalar, ...]]]:
    text = () if job.into is None else ("",)
    for offset, reason in others.items():
        yield offset, (*text, *(each.value({REASON: reason}) for each in job.labels))


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


def name_original(doc: EncodedDocument) -> Iterator[tuple[bytes, bytes]]:
    """Under the id of a document that stays for others: its own id or its place. Under that of the one that stays for
    it: where a copy is."""
    if ORIGINAL in doc.meta:
        copy = {"source": doc.source, "number": doc.position >> OFFSET_BITS, "offset": doc.position & OFFSETS}
        yield bytes.fromhex(str(doc.meta[ORIGINAL])), orjson.dumps(copy)
    elif int(doc.meta[COPIES]) > 1:
        yield doc.id, orjson.dumps(str(doc.meta.get("record_id") or doc.origin))


def hand_out_name(key: bytes, values: Iterable[bytes], domains: Mapping[str, str]) -> Iterator[tuple[bytes, bytes]]:
    """A document's name to all of its copies, under the keys of their files. Memory: the copies' places."""
    found = [orjson.loads(value) for value in values]
    name = min((each for each in found if isinstance(each, str)), default=key.hex())
    for each in found:
        if isinstance(each, dict):
            place = shard_key(f"{SPLIT}/{domains[each['source']]}", each["number"])
            yield place, orjson.dumps([each["offset"], name])


def write_rows_back(docs: beam.PCollection, job: FilesJob) -> beam.PCollection:
    """Documents of the stage `rows` -> a file for each input file. Texts that changed cross one exchange."""
    counts = {f"{SPLIT}/{domain}": count for domain, count in job.counts.items()}
    step = with_memory(CopyFiles(job), MEMORY)
    batch = beam.ParDo(_BatchRows(job.domains, False, held_bytes(docs.pipeline, HELD_BYTES)))
    batches = docs | "batch rows" >> batch.with_output_types(tuple[bytes, bytes])
    lines = docs.pipeline | "files" >> ReadTaskList(job.files)
    files = lines | "keys" >> beam.Map(keyed_file).with_output_types(tuple[bytes, bytes])
    values = [batches, files]
    if any(each.label.name.endswith(OF_OTHERS) for each in job.labels):
        named = docs | "originals" >> beam.FlatMap(name_original).with_output_types(tuple[bytes, bytes])
        hand = beam.FlatMapTuple(partial(hand_out_name, domains=dict(job.domains)))
        values.append(named | Exchange("by original") | "name originals" >> hand.with_output_types(tuple[bytes, bytes]))
    spread = partial(number_of_shard, counts=counts)
    return tuple(values) | Exchange("by file", True, step, spread=spread) | step
