"""The two jobs of a token export: count what is new by region, then write the shards that begin in each.

A shard begins at a multiple of `shard_tokens` in the split's endless row of tokens, so where it is cut depends on what
is before it and on nothing else: not on workers, regions or attempts. A region's task writes the shards that begin in
it, and reads on into the following regions for the end of the last one.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.parquet as pq

from refinery.loader.errors import CorruptShard
from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.parquet.batches import stored_table
from refinery.loader.format.provenance import PARQUET
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.export.regions import PROVENANCE, Region, count_sources, load_region, provenance_table
from refinery.pipelines.corpus.export.rows import parse_entry
from refinery.pipelines.corpus.export.text_job import describe, finish, finished
from refinery.pipelines.corpus.export.torch_file import write_torch_file
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList


@dataclass(frozen=True)
class TokenJob:
    """What a worker must know. corpus: root of the corpus. output, work: of the export. seed: of the corpus' order.
    sequence: number of the corpus in the export. shard_tokens, dtype: of a shard. fingerprint: of this step.
    """

    corpus: str
    output: str
    work: str
    seed: int
    sequence: int
    shard_tokens: int
    dtype: str
    fingerprint: str


def read_region(task: dict[str, Any], job: TokenJob) -> Region:
    """The region of a task: {"region", "regions", "entries", "earlier"}, without what the export holds already."""
    known: set[bytes] = set()
    for earlier in task["earlier"]:
        store = open_store(job.output)
        known.update(stored_table(store, earlier, ["id"])["id"].to_pylist())
    entries = [parse_entry(entry) for entry in task["entries"]]
    return load_region(job.corpus, entries, job.seed, task["region"], task["regions"], known)


def count_region(line: bytes, job: TokenJob) -> bytes:
    """A record with the counts of a region. line: a task, with its split."""
    task = orjson.loads(line)
    region = read_region(task, job)
    work_done("documents", len(region.documents))
    return side_output_record(
        "shard",
        split=task["split"],
        domain="",
        index=task["region"],
        sources=count_sources(region),
        tokens=region.tokens,
        skipped=region.skipped,
    )


class _Row:
    """A split's tokens from a position on: those left over before, then those of regions, read as they are needed."""

    def __init__(self, tasks: Sequence[dict[str, Any]], job: TokenJob, start: int) -> None:
        self.tasks, self.job, self.start = tasks, job, start
        self.regions: list[Region] = []

    def region(self, number: int) -> Region:
        while len(self.regions) <= number:
            self.regions.append(read_region(self.tasks[len(self.regions)], self.job))
        return self.regions[number]

    def read(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Counter[str]]:
        """Tokens [start, stop) of the split as the dtype of the shards, and how many are of each source."""
        parts: list[npt.NDArray[Any]] = []
        sources: Counter[str] = Counter()
        position = self.start
        for number in range(len(self.tasks)):
            if position >= stop:
                break
            region = self.region(number)
            first, end = max(start - position, 0), min(stop - position, region.tokens)
            if first < end:
                parts.append(region.read(first, end).astype(self.job.dtype))
                for document, begin, last in region.pieces(first, end):
                    sources[document.key[2]] += last - begin
            position += region.tokens
        return np.concatenate([np.empty(0, self.job.dtype), *parts]), sources


def shard_file(split: str, index: int) -> str:
    """Name of a shard.

    >>> shard_file("train", 3)
    'train/shard-00000003.pt'
    """
    return f"{split}/shard-{index:08d}.pt"


def leftover_file(split: str, sequence: int) -> str:
    """Name of the file with the tokens of a split that fill no shard after a corpus."""
    return f"leftover/{split}-{sequence:05d}.pt"


def provenance_file(split: str, sequence: int, region: int, regions: int) -> str:
    """Name of the file that says which document is where."""
    return f"provenance/{split}/{sequence:05d}-{region:05d}-of-{regions:05d}.parquet"


def done_name(split: str, sequence: int, region: int) -> str:
    """Where the record of a written region is, in the work location."""
    return f"done/{sequence:05d}/{split}/{region:05d}.json"


def write_region(line: bytes, job: TokenJob) -> bytes:
    """Write and publish the shards that begin in a region, its provenance, and the leftover if that begins in it.

    line: {"split", "start" (position of the region's first token), "shards": numbers of the complete ones to write,
    "leftover": [first, end position] or null, "before": the leftover of the corpus before or null, "regions": this
    region's task and those of the following ones}. Memory: a shard, and 300 bytes a document of two regions.
    """
    task = orjson.loads(line)
    split, own = task["split"], task["regions"][0]
    work, name = open_store(job.work), done_name(split, job.sequence, own["region"])
    record = finished(work, name, job.fingerprint)
    if record is None:
        row = _Row(task["regions"], job, task["start"])
        region = row.region(0)
        work_done("documents", len(region.documents))
        if region.tokens != task["tokens"]:
            raise CorruptShard(f"region {own['region']}: {region.tokens} tokens, {task['tokens']} were counted before")
        size = job.shard_tokens
        shards = [
            _publish(task, row, job, shard_file(split, index), index * size, (index + 1) * size) | {"index": index}
            for index in task["shards"]
        ]
        rest = task["leftover"]
        record = {
            "split": split,
            "domain": "",
            "index": own["region"],
            "regions": own["regions"],
            "sources": count_sources(region),
            "skipped": region.skipped,
            "shards": shards,
            "leftover": _publish(task, row, job, leftover_file(split, job.sequence), *rest) if rest else None,
            "provenance": _publish_provenance(task, region, job),
        }
        finish(work, name, job.fingerprint, record)
    return side_output_record("shard", **record)


def _publish(task: dict[str, Any], row: _Row, job: TokenJob, name: str, start: int, stop: int) -> dict[str, Any]:
    """Write tokens [start, stop) of the split as a file of PyTorch; its entry, but for the split."""
    parts = []
    sources: Counter[str] = Counter()
    if task["before"] and start < task["start"]:
        parts.append(_read_leftover(task["before"], job))
        sources.update(task["before"]["sources"])
    tokens, counted = row.read(start, stop)
    sources.update(counted)
    whole = np.concatenate([*parts, tokens])
    if len(whole) != stop - start:
        raise CorruptShard(f"{name}: {len(whole)} tokens found, {stop - start} expected")
    with TemporaryDirectory(prefix="refinery-export-") as scratch:
        path = Path(scratch) / "shard.pt"
        offset = write_torch_file(path, whole).offset
        open_store(job.output).create(name, path)
        removed = task["before"].get("removed") if parts else None  # what was taken out of the tokens that waited
        return {
            "split": task["split"],
            "tokens": len(whole),
            "data_offset": offset,
            "sources": dict(sorted(sources.items())),
            **({"removed": removed} if removed else {}),
            "file": describe(path, name) | {"block_crc32c": block_checksums(path)},
        }


def _read_leftover(entry: dict[str, Any], job: TokenJob) -> npt.NDArray[Any]:
    store, file = open_store(job.output), entry["file"]
    data = store.read(file["path"])
    if checksums(data).sha256 != file["sha256"]:
        raise CorruptShard(f"{store.url(file['path'])}: damaged: its sha256 is not that of the manifest")
    return np.frombuffer(data, np.dtype(job.dtype), entry["tokens"], entry["data_offset"])


def _publish_provenance(task: dict[str, Any], region: Region, job: TokenJob) -> dict[str, Any]:
    own = task["regions"][0]
    name = provenance_file(task["split"], job.sequence, own["region"], own["regions"])
    with TemporaryDirectory(prefix="refinery-export-") as scratch:
        path = Path(scratch) / "provenance.parquet"
        table = provenance_table(region, task["start"])
        pq.write_table(table.cast(PROVENANCE), path, **PARQUET, use_dictionary=["source", "domain"])
        open_store(job.output).create(name, path)
        return {"rows": table.num_rows, "file": describe(path, name)}


def task_lines(tasks: Sequence[dict[str, Any]]) -> list[bytes]:
    """Tasks as lines of a task list."""
    return [orjson.dumps(task, option=orjson.OPT_SORT_KEYS) for task in tasks]


class Work(Protocol):
    """What makes a record of a task: `count_region` or `write_region`."""

    __name__: str

    def __call__(self, line: bytes, job: TokenJob) -> bytes: ...


@dataclass
class EachRegion(beam.PTransform):
    """The records that `work` makes of the regions of a list."""

    tasks: TaskList
    work: Work
    job: TokenJob

    def __post_init__(self) -> None:
        super().__init__(self.work.__name__.partition("_")[0])

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        work = beam.Map(partial(self.work, job=self.job)).with_output_types(bytes)
        records = begin | ReadTaskList(self.tasks) | "each" >> work
        add_side_output(begin.pipeline, records)
        return records
