"""The files of the new version that no shard is: removals and rejects without what went, copies of the rest, and the
listings of what went and came back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.manifest import FileEntry, Manifest
from refinery.loader.format.parquet.batches import stored_batches, stored_table
from refinery.loader.format.publish_manifest import describe_file
from refinery.loader.format.removals import FOLDER, REMOVALS_SCHEMA, column_ids, removals_file, removals_name
from refinery.loader.format.takedown import (
    ADDED_SCHEMA,
    NOWHERE,
    REMOVED_SCHEMA,
    sort_rows,
    takedown_name,
    write_rows,
)
from refinery.loader.storage.copy_object import copy_object
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.remove.request import Request
from refinery.pipelines.corpus.remove.rows import Key, Removals, Row, among, key_of, sorted_keys
from refinery.pipelines.run.publish import describe
from refinery.transforms.core.job.report import RECORD_SCHEMAS, REJECT_SCHEMA
from refinery.transforms.core.spill.sorted_tables import in_order, merged_tables
from refinery.transforms.write.records import record_file_name, record_files
from refinery.transforms.write.removals import count_files, publish_rows

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

    Files that lose and get nothing are copied, unless there are more or fewer files now. Memory: what goes and comes,
    and some row groups, however many rows a file has. Raises FormatError for rows that are not in their order.
    """
    gone = set(deleted)
    before = sum(file.rows or 0 for file in manifest.removals)
    count = count_files(before - len(gone) + len(added))
    more = pa.Table.from_pylist(
        [{name: row[name] for name in REMOVALS_SCHEMA.names} for row in added], schema=REMOVALS_SCHEMA
    )
    touched, read = set(range(count)), None
    if count == len(manifest.removals) and count:
        ids = [np.frombuffer(key[0], np.uint8) for key in gone] + [np.frombuffer(row["id"], np.uint8) for row in added]
        touched = set(removals_file(np.array(ids, np.uint8).reshape(-1, 16), count).tolist())
        read = touched  # the others have the rows that they had
    same = [file for number, file in enumerate(manifest.removals) if number not in touched and number < count]
    copy_files(old, new, same)
    files = [describe_file(file) for file in same]
    if touched:
        kept = _without(in_order(Removals(old, manifest).all(read), old.url(FOLDER)), gone)
        of_more = removals_file(column_ids(more["id"]), count)
        for number, tables in _by_file(kept, count, touched):
            extra = more.take(pa.array(np.flatnonzero(of_more == number)))
            files.append(publish_rows(removals_name(number, count), merged_tables(tables, extra), new.root))
    return sorted(files, key=lambda file: str(file["path"]))


def _without(tables: Iterable[pa.Table], gone: set[Key]) -> Iterator[pa.Table]:
    """The rows of all tables but those of these keys."""
    ids = sorted_keys(key[0] for key in gone)
    for table in tables:
        hits = np.flatnonzero(among(column_ids(table["id"]), ids))
        rows = table.take(pa.array(hits)).to_pylist()
        lost = [hit for hit, row in zip(hits.tolist(), rows, strict=True) if key_of(row) in gone]
        keep = np.ones(table.num_rows, np.bool_)
        keep[lost] = False
        yield table.filter(pa.array(keep))


def _by_file(kept: Iterable[pa.Table], count: int, touched: Iterable[int]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """(number, tables with the rows of `kept`) of the files that change, in their order, a table of each at least. They
    are read before those of the next file are asked for."""
    by_number = itemgetter(0)
    every = ((number, REMOVALS_SCHEMA.empty_table()) for number in sorted(touched))
    wanted = set(touched)
    for number, parts in groupby(merge(every, _cut(kept, count), key=by_number), key=by_number):
        if number in wanted:
            yield number, (table for _, table in parts)


def _cut(tables: Iterable[pa.Table], count: int) -> Iterator[tuple[int, pa.Table]]:
    """(number of its file, rows) of each table, where `count` files divide it."""
    for table in tables:
        files = removals_file(column_ids(table["id"]), count)
        for number in np.unique(files).tolist():
            yield number, table.take(pa.array(np.flatnonzero(files == number)))


def rewrite_rejects(
    old: Store,
    new: Store,
    manifest: Manifest,
    request: Request,
    origins: set[tuple[str, str]],
    lost: Sequence[Row] = (),
) -> tuple[list[dict[str, Any]], int, int]:
    """Publish rejects/ without the rows that are asked for, and with those of documents that were `lost` now; the files
    for the manifest, how many rows went, and how many are there.

    origins: (source, origin) of documents that went. Memory: the rows of a file.
    """
    entries = [file for file in manifest.files if file.path.startswith(f"{REJECTS}/")]
    names = [entry.path for entry in entries] or ([record_file_name(REJECTS, 0)] if lost else [])
    more = pa.Table.from_pylist(list(lost), schema=REJECT_SCHEMA)
    of_more = record_files([row["origin"] for row in lost], len(names)) if lost else np.empty(0, np.int64)
    files, gone, left = [], 0, 0
    for number, name in enumerate(names):
        table = stored_table(old, name, schema=REJECT_SCHEMA) if entries else REJECT_SCHEMA.empty_table()
        columns = {column: table[column].to_pylist() for column in IN_REJECTS}
        asked = request.match(columns)
        read = zip(columns["source"], columns["origin"], strict=True)
        keep = [not found and pair not in origins for found, pair in zip(asked, read, strict=True)]
        extra = more.take(pa.array(np.flatnonzero(of_more == number)))
        left += sum(keep) + extra.num_rows
        if all(keep) and not extra.num_rows:
            copy_files(old, new, [entries[number]])
            files.append(describe_file(entries[number]))
            continue
        gone += keep.count(False)
        rows = pa.concat_tables([table.filter(pa.array(keep, pa.bool_())), extra])
        order = [(column, "ascending") for column in REJECT_SCHEMA.names]
        with scratch_folder(REJECTS) as scratch:
            local = scratch / "records.parquet"
            pq.write_table(rows.sort_by(order) if extra.num_rows else rows, local, compression="zstd")
            new.create(name, local)
        files.append(describe(new, name))
    return files, gone, left


def count_left(store: Store, files: Iterable[Mapping[str, Any]], request: Request, columns: Sequence[str]) -> int:
    """Rows of these Parquet files that the request asks for: what is left of it. columns: that the files have, and the
    request may ask for."""
    left = 0
    for file in files:
        for batch in stored_batches(store, file["path"], columns, REMOVALS_SCHEMA):
            rows = {name: batch.column(name).to_pylist() for name in columns}
            left += sum(map(bool, request.match(rows)))
    return left


def removed_table(gone: Iterable[Row], deleted: Iterable[Row]) -> pa.Table:
    """What went, of rows with `was`, `why` and `request`."""
    names = REMOVED_SCHEMA.names
    rows = [{name: row[name] for name in names} for row in (*gone, *deleted)]
    return sort_rows(pa.Table.from_pylist(rows, schema=REMOVED_SCHEMA))


def elsewhere(row: Row, why: str, request: str) -> Row:
    """A row of removals/ as one of what went."""
    place = {"split": "", "domain": "", "index": NOWHERE, "row": NOWHERE, "token_offset": NOWHERE}
    return {**row, **place, "was": row["reason"], "why": why, "request": request, "token_count": 0, "text_bytes": 0}


def publish_listing(store: Store, number: int, file: str, table: pa.Table) -> dict[str, Any]:
    """Write a listing of the takedown of that number; its file for the manifest."""
    name = takedown_name(number, file)
    with scratch_folder(name) as scratch:
        local = scratch / "rows.parquet"
        write_rows(local, table)
        store.create(name, local)
    return describe(store, name)


def added_table(found: Iterable[Mapping[str, Any]]) -> pa.Table:
    """What came back."""
    return sort_rows(pa.Table.from_pylist([dict(row) for row in found], schema=ADDED_SCHEMA))
