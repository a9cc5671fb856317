"""The files of the new version that no shard is: removals and rejects without what went, and copies of the rest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.manifest import FileEntry, Manifest
from refinery.loader.format.publish_manifest import describe_file
from refinery.loader.format.removals import (
    REMOVALS_SCHEMA,
    column_ids,
    removals_file,
    removals_name,
    write_removals,
)
from refinery.loader.parquet.batches import stored_batches, stored_table
from refinery.loader.storage.copy_object import copy_object
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.run.publish import describe
from refinery.pipelines.takedown.request import Request
from refinery.pipelines.takedown.rows import Key, Removals, Row, among, key_of, sorted_keys
from refinery.transforms.core.report import RECORD_SCHEMAS, REJECT_SCHEMA
from refinery.transforms.spill.sorted_tables import sort_rows
from refinery.transforms.write.removals import count_files

THREADS = 16  # of copies: requests to a bucket, or links
IN_REJECTS = ("url", "source", "origin")
REJECTS = RECORD_SCHEMAS["reject"][0]


def copy_files(old: Store, new: Store, files: Sequence[FileEntry]) -> dict[str, int]:
    """Publish these files of the old version in the new one; how many came in which way."""
    ways: dict[str, int] = {}

    def copy(file: FileEntry) -> str:
        return copy_object(old, new, file.path, file.size, file.crc32c)

    with ThreadPoolExecutor(THREADS) as pool:
        for way in pool.map(copy, files):
            ways[way] = ways.get(way, 0) + 1
    return ways


def copied(files: Iterable[FileEntry], without: Iterable[str]) -> Iterator[FileEntry]:
    """Those that are not below the folders or of the names in `without`."""
    left_out = tuple(without)
    return (file for file in files if not file.path.startswith(left_out))


def rewrite_removals(
    old: Store, new: Store, manifest: Manifest, deleted: Iterable[Key], added: Sequence[Row]
) -> list[dict[str, Any]]:
    """Publish removals/ without some rows and with others; the files for the manifest.

    Files that lose and get nothing are copied, unless there are more or fewer files now. Memory: the rows of a file.
    """
    gone = set(deleted)
    before = sum(file.rows or 0 for file in manifest.removals)
    count = count_files(before - len(gone) + len(added))
    more = pa.Table.from_pylist(
        [{name: row[name] for name in REMOVALS_SCHEMA.names} for row in added], schema=REMOVALS_SCHEMA
    )
    touched = set(range(count))
    if count == len(manifest.removals) and count:
        ids = [np.frombuffer(key[0], np.uint8) for key in gone] + [np.frombuffer(row["id"], np.uint8) for row in added]
        touched = set(removals_file(np.array(ids, np.uint8).reshape(-1, 16), count).tolist())
    same = [file for number, file in enumerate(manifest.removals) if number not in touched and number < count]
    copy_files(old, new, same)
    files = [describe_file(file) for file in same]
    if touched:
        for number, table in _by_file(Removals(old, manifest), gone, more, count, touched):
            name = removals_name(number, count)
            with scratch_folder(name) as scratch:
                local = scratch / "removals.parquet"
                write_removals(local, [table])
                size, crc32c, sha256 = checksums(local)
                new.create(name, local)
            files.append({"path": name, "size": size, "crc32c": crc32c, "sha256": sha256, "rows": table.num_rows})
    return sorted(files, key=lambda file: str(file["path"]))


def _by_file(
    removals: Removals, gone: set[Key], more: pa.Table, count: int, touched: set[int]
) -> Iterator[tuple[int, pa.Table]]:
    """(number, its rows in order) of the files that change. Ids ascend through all old files, so one is held."""
    ids, place, held = sorted_keys(key[0] for key in gone), 0, [REMOVALS_SCHEMA.empty_table()]
    extra = removals_file(column_ids(more["id"]), count) if more.num_rows else np.empty(0, np.int64)

    def done(number: int) -> Iterator[tuple[int, pa.Table]]:
        if number in touched:
            yield number, sort_rows([*held, more.take(pa.array(np.flatnonzero(extra == number)))])
        held[:] = [REMOVALS_SCHEMA.empty_table()]

    for table in removals.all():
        table = _without(table, ids, gone)
        files = removals_file(column_ids(table["id"]), count)
        for number in np.unique(files).tolist():
            while place < number:
                yield from done(place)
                place += 1
            if number in touched:
                held.append(table.take(pa.array(np.flatnonzero(files == number))))
    while place < count:
        yield from done(place)
        place += 1


def _without(table: pa.Table, ids: Any, gone: set[Key]) -> pa.Table:
    hits = np.flatnonzero(among(column_ids(table["id"]), ids))
    rows = table.take(pa.array(hits)).to_pylist()
    lost = [hit for hit, row in zip(hits.tolist(), rows, strict=True) if key_of(row) in gone]
    keep = np.ones(table.num_rows, np.bool_)
    keep[lost] = False
    return table.filter(pa.array(keep))


def rewrite_rejects(
    old: Store, new: Store, manifest: Manifest, request: Request, origins: set[tuple[str, str]]
) -> tuple[list[dict[str, Any]], int, int]:
    """Publish rejects/ without the rows that are asked for; the files for the manifest, how many rows went, and how
    many are left.

    origins: (source, origin) of documents that went. Memory: the rows of a file.
    """
    files, lost, left = [], 0, 0
    for entry in (file for file in manifest.files if file.path.startswith(f"{REJECTS}/")):
        table = stored_table(old, entry.path, schema=REJECT_SCHEMA)
        columns = {name: table[name].to_pylist() for name in IN_REJECTS}
        asked = request.match(columns)
        read = zip(columns["source"], columns["origin"], strict=True)
        keep = [not found and pair not in origins for found, pair in zip(asked, read, strict=True)]
        left += sum(keep)
        if all(keep):
            copy_files(old, new, [entry])
            files.append(describe_file(entry))
            continue
        lost += keep.count(False)
        with scratch_folder(REJECTS) as scratch:
            local = scratch / "records.parquet"
            pq.write_table(table.filter(pa.array(keep)), local, compression="zstd")
            new.create(entry.path, local)
        files.append(describe(new, entry.path))
    return files, lost, left


def count_left(store: Store, files: Iterable[Mapping[str, Any]], request: Request, columns: Sequence[str]) -> int:
    """Rows of these Parquet files that the request asks for: what is left of it. columns: that the files have, and the
    request may ask for."""
    left = 0
    for file in files:
        for batch in stored_batches(store, file["path"], columns, REMOVALS_SCHEMA):
            rows = {name: batch.column(name).to_pylist() for name in columns}
            left += sum(map(bool, request.match(rows)))
    return left
