"""A shard from which something went, or to which something came, beside what it was before: compared by one process."""

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import FileEntry, ShardEntry
from refinery.loader.format.parquet.batches import bounded_parquet, stored_batches
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA
from refinery.loader.order.arrays import I64
from refinery.loader.read.versions.past import COLUMNS, GONE, Change, Runs
from refinery.loader.storage.store import CHUNK, Store
from refinery.pipelines.corpus.verify.before import Before, ChangedShard, Range, same_counts
from refinery.pipelines.corpus.verify.takedown_rows import row_ids
from refinery.pipelines.published.shard_texts import shard_texts
from refinery.transforms.core.stage import Writer

Ids = npt.NDArray[np.bytes_]


class Rows(NamedTuple):
    """Rows of a list that are of one shard, in its order. places: int64 [n, 3], row, offset and length of each."""

    ids: Ids
    places: I64

    def by_row(self) -> tuple[I64, I64, I64]:
        """In the form of `Change`."""
        row, offset, length = self.places[np.argsort(self.places[:, 0], kind="stable")].T.copy()
        return row, offset, length


def compare_shard(
    pair: Before, changed: ChangedShard, facts: dict[str, Any], writer: Writer | None = None
) -> Iterator[str]:
    """Failures of the shard. facts: gets those of `Compared`. writer: of texts, where it is known.

    Cost: a read of it, and of what it was. Memory: both indexes, 16 bytes for each document of both, 200 for each that
    went or came, and two chunks of 8 MiB; of texts the files of both in place of indexes and chunks.
    """
    facts |= {"unfit": "", "listed": [], "ends": False}
    if pair.fault:
        raise FormatError(pair.fault)
    now = pair.manifest.shards[changed.now] if changed.now >= 0 else None
    before = pair.before.shards[changed.before] if changed.before >= 0 else None
    removed = _rows(pair, changed, pair.takedown.removed, changed.removed, REMOVED_SCHEMA)
    added = _rows(pair, changed, pair.takedown.added, changed.added, ADDED_SCHEMA)
    if now is not None:
        change = Change(removed.by_row(), added.by_row())
        try:
            change.check(pair.store.url(now.content.path), now.documents, now.token_count or 0)
        except FormatError as error:
            facts["unfit"] = f"{type(error).__name__}: {error}"
        else:
            yield from _told_of(now, _compare(pair, change, now, before, writer))
    if before is not None and len(removed.ids):
        try:
            facts["listed"] = list(_were_there(pair, before, removed))
        except Exception as error:  # noqa: BLE001 - the version before may be anything; the check of the list ends here
            facts |= {"listed": [f"{pair.prefix}: {type(error).__name__}: {error}"], "ends": True}


def _told_of(shard: ShardEntry, check: Iterator[str]) -> Iterator[str]:
    try:
        yield from check
    except (FormatError, CorruptShard, OSError) as error:
        yield f"{shard.content.path}: {error}"


def _rows(pair: Before, changed: ChangedShard, path: str, within: Range, schema: pa.Schema) -> Rows:
    ids, places = [np.empty(0, "S16")], [np.empty((0, 3), np.int64)]
    if within[0] < within[1]:
        columns = ["id", *COLUMNS]
        for batch in stored_batches(pair.store, path, columns, schema, np.arange(*within)):
            own = pa.array(np.ones(len(batch), np.bool_))
            for name, value in zip(COLUMNS, changed.place, strict=False):
                own = pc.and_(own, pc.equal(batch.column(name), value))
            mine = batch.filter(own)
            ids.append(row_ids(mine))
            numbers = [np.asarray(mine.column(name).to_numpy(), np.int64) for name in COLUMNS[3:]]
            places.append(np.stack(numbers, axis=1))
    return Rows(np.concatenate(ids), np.concatenate(places))


def _compare(
    pair: Before, change: Change, now: ShardEntry, before: ShardEntry | None, writer: Writer | None
) -> Iterator[str]:
    """The shard as its lists say that it was, beside what was there."""
    (gone, *_), (came, *_) = change.removed, change.added
    runs = change.runs(now.token_count or 0)
    tokens = runs.tokens if pair.manifest.has_tokens else None
    documents = now.documents - len(came) + len(gone)
    if before is None:
        if documents or tokens:
            yield pair.is_new(now)
        return
    if wrong := list(same_counts(now, before, documents, tokens)):
        yield from wrong
        return
    if wrong := list(_contents(pair, change, runs, now, before, writer)):
        yield from wrong
        return
    ids = [_ids(store, entry) for store, entry in ((pair.old, before), (pair.store, now))]
    for store, entry, found in zip((pair.old, pair.store), (before, now), ids, strict=True):
        if len(found) != entry.documents:
            url = store.url(entry.provenance.path)
            raise FormatError(f"{url}: {len(found)} rows found, {entry.documents} expected from the manifest")
    stayed, there = (np.delete(np.arange(len(i)), rows) for i, rows in zip(ids, (gone, came), strict=True))
    other = np.flatnonzero(ids[0][stayed] != ids[1][there])
    if len(other):
        row, at = stayed[other[0]], there[other[0]]
        yield f"{now.provenance.path}: row {at} is not the document that row {row} was"


def _contents(
    pair: Before, change: Change, runs: Runs, now: ShardEntry, before: ShardEntry, writer: Writer | None
) -> Iterator[str]:
    """A failure unless what stayed has the same tokens or texts in both."""
    if not pair.manifest.has_tokens:
        if writer is not None:  # else the check of the manifest says so
            yield from _texts(pair, change, now, before, writer)
        return
    index = load_index(pair.store, now)
    if not np.array_equal(change.index(index).lengths, load_index(pair.old, before).lengths):
        yield f"{now.idx.path}: with what went and without what came, documents do not have their former lengths"
        return
    files = (pair.old, before.bin), (pair.store, now.bin)
    yield from _tokens(files, runs.pieces(0, runs.tokens), index.dtype.itemsize)


def _texts(pair: Before, change: Change, now: ShardEntry, before: ShardEntry, writer: Writer) -> Iterator[str]:
    """A failure for the first document that stayed with another text. Memory: the files of both."""
    gone, came = (set(rows.tolist()) for rows in (change.removed[0], change.added[0]))
    was = (text for row, text in enumerate(shard_texts(pair.old, writer, before, whole=True)) if row not in gone)
    has = ((row, text) for row, text in enumerate(shard_texts(pair.store, writer, now, whole=True)) if row not in came)
    for former, (row, text) in zip(was, has, strict=True):
        if former != text:
            yield f"{now.content.path}: the text of row {row} is not the one that it had before"
            return


def _tokens(files: tuple[tuple[Store, FileEntry], ...], pieces: Any, width: int) -> Iterator[str]:
    """A failure unless the pieces of `Runs` that stayed have the same tokens in both. Raises the same errors as
    `read_file`, which is asked for its words where a file is not what its manifest lists."""
    for store, entry in files:
        if store.size(entry.path) is None:
            read_file(store, entry)
    (old_store, old), (store, new) = files
    wrong = ""
    with old_store.open(old.path) as before, store.open(new.path) as now:
        readers = _Forward(before), _Forward(now)
        for start, at, count in pieces:
            if at != GONE and not _same(readers, start * width, at * width, count * width):
                wrong = f"{new.path}: tokens {at} to {at + count} are not those of before, from {start} on"
                break
        found = [reader.finish() for reader in readers]
    for (where, entry), sums in zip(files, found, strict=True):
        if sums != (entry.size, entry.crc32c):
            read_file(where, entry)
    if wrong:
        yield wrong


class _Forward:
    """Bytes of a file, from its begin to its end, and their checksum."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._at, self._crc32c = stream, 0, 0

    def take(self, at: int, size: int) -> bytes:
        """`size` bytes at a place that is not behind that of the last ones; fewer at the end."""
        while self._at < at and self._read(min(CHUNK, at - self._at)):
            pass
        parts = []
        while size and (part := self._read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def finish(self) -> tuple[int, str]:
        """Size and CRC-32C of the file."""
        while self._read(CHUNK):
            pass
        return self._at, f"{self._crc32c:08x}"

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._at += len(data)
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        return data


def _same(readers: tuple[_Forward, _Forward], start: int, at: int, size: int) -> bool:
    for done in range(0, size, CHUNK):
        part = min(CHUNK, size - done)
        if readers[0].take(start + done, part) != readers[1].take(at + done, part):
            return False
    return True


def _were_there(pair: Before, before: ShardEntry, removed: Rows) -> Iterator[str]:
    """Failures of the documents that are listed as removed: each was in its row."""
    ids, rows = _ids(pair.old, before), removed.places[:, 0]
    wrong = (rows < 0) | (rows >= len(ids))
    wrong[~wrong] = ids[rows[~wrong]] != removed.ids[~wrong]
    if wrong.any():
        first = rows[wrong][0]
        yield (
            f"{pair.takedown.removed}: {int(wrong.sum())} documents are listed that were not in their rows; the first: "
            f"row {first}"
        )


def _ids(store: Store, entry: ShardEntry) -> Ids:
    path = entry.provenance.path
    with store.open(path) as stream, bounded_parquet(stream, path, ["id"], REMOVED_SCHEMA) as (_, batches):
        return np.concatenate([np.empty(0, "S16"), *map(row_ids, batches)])
