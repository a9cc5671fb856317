"""The job that writes a corpus' documents, one file for each of its shards.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
import orjson
import pyarrow as pa

from refinery.loader.format.manifest import SCHEMA_VERSION, ShardEntry, seal, unseal
from refinery.loader.format.written import MASKED
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.corpus.export.options import ExportOptions, chosen_fields
from refinery.pipelines.corpus.export.rows import CorpusFacts, TextOf, parse_entry, plain_entry, read_rows, row_schema
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList

COUNTS = ("documents", "tokens", "bytes")  # what is counted of every source
ALWAYS = ("source", "text_bytes", "token_count")  # columns that the counts need


@dataclass(frozen=True)
class TextJob:
    """What a worker must know. output: location of the export. work: where the records of finished shards go.
    fingerprint: of the export.
    """

    corpus: CorpusFacts
    output: str
    work: str
    options: ExportOptions
    fingerprint: str

    @property
    def fields(self) -> tuple[str, ...]:
        return chosen_fields(self.options, self.corpus.columns, self.corpus.writer.name == MASKED)

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.corpus.columns, self.fields, self.corpus.dtype)


def file_name(options: ExportOptions, split: str, domain: str, index: int, count: int) -> str:
    """Name of the file of a corpus' shard.

    >>> file_name(ExportOptions("jsonl"), "train", "web", 0, 16)
    'train/web/shard-00000-of-00016.jsonl.zst'
    """
    declared = options.declared
    return declared.file_name(split, domain, f"{index:05d}-of-{count:05d}", declared.suffix(options.files))


def write_rows(path: Path, job: TextJob, batches: Iterable[pa.RecordBatch]) -> None:
    """The rows in the format of the job."""
    job.options.declared.write(path, job.schema, batches, job.options.files)


class _Counted:
    """Passes batches on, with the fields that are asked for alone, and counts documents, tokens and bytes by source."""

    def __init__(self, fields: Sequence[str]) -> None:
        self.fields = list(fields)
        self.sources: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ALWAYS)
            for source, size, tokens in zip(*columns, strict=True):
                counts = self.sources[source]
                counts[0] += 1
                counts[1] += tokens
                counts[2] += size
            work_done("documents", len(batch))
            yield batch.select(self.fields)

    def plain(self) -> dict[str, dict[str, int]]:
        return {source: dict(zip(COUNTS, counts, strict=True)) for source, counts in sorted(self.sources.items())}


def describe(path: Path, name: str) -> dict[str, Any]:
    """A local file as the manifest lists it, under `name`."""
    size, crc32c, sha256 = checksums(path)
    return {"path": name, "size": size, "crc32c": crc32c, "sha256": sha256}


def record_name(split: str, domain: str, index: int) -> str:
    """Where the record of a finished shard is, in the work location."""
    return f"done/{split}/{domain}/{index:05d}.json"


def finished(store: Store, name: str, fingerprint: str) -> dict[str, Any] | None:
    """The record of a shard that an attempt of this export finished, else None."""
    if store.size(name) is None:
        return None
    found = unseal(store.read(name), store.url(name))
    return found["record"] if found.get("fingerprint") == fingerprint else None


def finish(store: Store, name: str, fingerprint: str, record: Mapping[str, Any]) -> None:
    """Note that a shard is done; a second attempt writes the same bytes."""
    store.create(name, seal({"schema_version": SCHEMA_VERSION, "fingerprint": fingerprint, "record": record}))


def export_shard(line: bytes, job: TextJob, text_of: Callable[[], TextOf] | None = None) -> bytes:
    """Write and publish the file of one shard; returns its side-output record.

    line: of `shard_tasks`. text_of: makes where its texts come from (None: from its tokens). A shard that is done
    already costs two requests. Memory: as `read_rows`; disk: the file.
    """
    entry = parse_entry(orjson.loads(line))
    work = open_store(job.work)
    record = finished(work, record_name(entry.split, entry.domain, entry.index), job.fingerprint)
    if record is None:
        counted = _Counted(job.fields)
        name = file_name(job.options, entry.split, entry.domain, entry.index, entry.count)
        with TemporaryDirectory(prefix="refinery-export-") as scratch:
            path = Path(scratch) / "shard"
            batches = read_rows(job.corpus, entry, {*job.fields, *ALWAYS}, text_of and text_of())
            write_rows(path, job, counted.watch(batches))
            open_store(job.output).create(name, path)
            record = {
                **{key: getattr(entry, key) for key in ("split", "domain", "index", "count", "documents", "tokens")},
                "sources": counted.plain(),
                "tokens_sha256": entry.bin.sha256,
                "file": describe(path, name),
            }
        finish(work, record_name(entry.split, entry.domain, entry.index), job.fingerprint, record)
    return side_output_record("shard", **record)


def shard_tasks(entries: Iterable[ShardEntry]) -> list[bytes]:
    """A line for each shard, for `write_task_list`."""
    return [orjson.dumps(plain_entry(entry), option=orjson.OPT_SORT_KEYS) for entry in entries]


@dataclass
class ExportShards(beam.PTransform):
    """Write the file of every shard of a list (of `shard_tasks`), its texts decoded from its tokens."""

    tasks: TaskList
    job: TextJob

    def __post_init__(self) -> None:
        super().__init__("export")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        write = partial(export_shard, job=self.job)
        records = begin | ReadTaskList(self.tasks) | "write" >> beam.Map(write).with_output_types(bytes)
        add_side_output(begin.pipeline, records)
        return records
