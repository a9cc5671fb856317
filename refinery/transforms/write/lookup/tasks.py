"""What the lookup index of a corpus is made of: its files with rows of an address or an origin, a task each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.provenance import provenance_schema
from refinery.loader.storage.open_store import open_store
from refinery.transforms.write.lookup.entries import KEYS, SCHEMA, count_lookup_files, hash_rows, listed_files
from refinery.transforms.write.records import FOLDERS, record_files

PROVENANCE = provenance_schema(())
SHARD_KEYS = ("split", "domain", "shard", "path")


@dataclass(frozen=True)
class LookupTask:
    """A Parquet file whose rows are to be found. root, path: where it is. place, file: as entries name it; a file of
    -1 stands for a part of a work location, whose rows go to `count` files of the place by `record_files`."""

    root: str
    path: str
    place: str
    file: int
    count: int = 0


def dump_task(task: LookupTask) -> bytes:
    """A line of a task list; `load_task` is its inverse."""
    return orjson.dumps(asdict(task), option=orjson.OPT_SORT_KEYS)


def load_task(line: bytes) -> LookupTask:
    """Inverse of `dump_task`."""
    return LookupTask(**orjson.loads(line))


def shard_tasks(root: str, shards: pa.Table) -> Iterator[LookupTask]:
    """The provenance of shards, of `refinery.loader.format.listed.shard_table`."""
    rows = shards.filter(pc.equal(shards["kind"], "provenance"))
    for split, domain, number, path in zip(*(rows[name].to_pylist() for name in SHARD_KEYS), strict=True):
        yield LookupTask(root, path, f"{split}/{domain}", number)


def folder_tasks(root: str, files: Iterable[Mapping[str, Any]]) -> Iterator[LookupTask]:
    """Those of a corpus' other files that have such rows: of removals/ and of records."""
    yield from (LookupTask(root, path, *entry) for entry, path in listed_files(file["path"] for file in files))


def files_for(documents: int, removed: int, rejected: int, dead: int) -> int:
    """`count_lookup_files` of a corpus with so many rows; dead letters have no address."""
    return count_lookup_files(2 * (documents + removed + rejected) + dead)


def read_task(task: LookupTask) -> Iterator[pa.Table]:
    """The entries of a task's rows, unsorted, a table for each batch of rows; some may come twice.

    Raises FormatError for a file that is damaged or has no such columns. Memory: as `bounded_parquet`.
    """
    store = open_store(task.root)
    names = [name for name in KEYS if name in FOLDERS.get(task.place, PROVENANCE).names]
    types = pa.schema([(name, pa.string()) for name in names])
    with store.open(task.path) as stream, bounded_parquet(stream, store.url(task.path), names, types) as (_, batches):
        for batch in batches:
            yield from _entries(task, batch)


def _entries(task: LookupTask, batch: pa.RecordBatch) -> Iterator[pa.Table]:
    if task.file >= 0:
        yield entry_table(np.unique(hash_rows(batch)), task.place, task.file)
        return
    numbers = record_files(batch.column("origin").to_pylist(), task.count)
    for number in np.unique(numbers).tolist():
        rows = batch.filter(pa.array(numbers == number))
        yield entry_table(np.unique(hash_rows(rows)), task.place, number)


def entry_table(hashes: Any, place: str, file: int) -> pa.Table:
    """Entries of one file."""
    places, files = pa.scalar(place, pa.string()), pa.scalar(file, pa.int32())
    columns = [pa.array(hashes, pa.uint64()), pa.repeat(places, len(hashes)), pa.repeat(files, len(hashes))]
    return pa.table(columns, schema=SCHEMA)
