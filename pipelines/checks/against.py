"""A version of a corpus beside the one before it: what stayed is the same, and with what went it is all there was."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import SPLITS, Manifest, ShardEntry, load_manifest
from refinery.loader.format.removals import column_ids
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.format.takedown import REMOVED_SCHEMA
from refinery.loader.parquet.batches import bounded_parquet
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.loader.takedown.past import GONE, Past
from refinery.pipelines.checks.takedowns import listed_rows


def check_against(store: Store, manifest: Manifest, prefix: str) -> Iterator[str]:
    """Failures of the last takedown, with the version before it at `prefix`. Cost: the rewritten shards of both are
    read; of the others the checksums are compared. Memory: a shard of each."""
    try:
        old = open_store(prefix)
        before, data = load_manifest(old)
    except (ValueError, OSError) as error:
        yield f"--against {prefix}: {error}"
        return
    if not manifest.takedowns:
        yield f"--against {prefix}: nothing was taken out of this corpus; give the version that a takedown made"
        return
    last = manifest.takedowns[-1]
    found = hashlib.sha256(data).hexdigest()
    if found != last.previous:
        yield f"--against {prefix}: its manifest has sha256 {found}, the version before has {last.previous}"
        return
    for split in SPLITS:
        now, then = ([s for s in m.shards if s.split == split] for m in (manifest, before))
        old_entries = {s.bin.path: s for s in then}
        if [s.bin.path for s in now if s.bin.path in old_entries] != [s.bin.path for s in then]:
            yield f"{split}: its shards are not those of {prefix}"
            continue
        past = Past(store, manifest, last.previous, split)
        entries = past.entries(now)
        for number, (new, seen) in enumerate(zip(now, entries, strict=True)):
            if new.bin.path not in old_entries:
                if seen.documents or seen.tokens:
                    yield f"{new.bin.path}: not in {prefix}, and not all of its documents are listed as reinstated"
                continue
            try:
                yield from _check_shard(store, old, past, number, (new, old_entries[new.bin.path], seen))
            except (FormatError, CorruptShard, OSError) as error:
                yield f"{new.bin.path}: {error}"
    yield from _check_listed(store, old, manifest, before)


def _check_shard(
    store: Store, old: Store, past: Past, number: int, entries: tuple[ShardEntry, ShardEntry, ShardEntry]
) -> Iterator[str]:
    """A shard now, before, and as its lists say that it was."""
    new, before, seen = entries
    if (seen.documents, seen.tokens) != (before.documents, before.tokens):
        yield (
            f"{new.bin.path}: {new.documents} documents and {new.tokens} tokens with what went and without what came "
            f"make {seen.documents} and {seen.tokens}, {before.documents} and {before.tokens} were there"
        )
        return
    runs = past.runs[number]
    if runs is None:
        changed = [a.path for a, b in zip(new.files, before.files, strict=True) if a.sha256 != b.sha256]
        if changed and changed != [new.provenance.path]:  # counts of copies may have changed alone
            yield f"{changed[0]}: nothing went or came, and yet it is another file"
        return
    index = past.index(number)
    if not np.array_equal(index.lengths, load_index(old, before).lengths):
        yield f"{new.idx.path}: with what went and without what came, documents have other lengths than before"
        return
    tokens = [np.frombuffer(read_file(s, e.bin), index.dtype) for s, e in ((old, before), (store, new))]
    for start, now, count in runs.pieces(0, runs.tokens):
        if now != GONE and not np.array_equal(tokens[0][start : start + count], tokens[1][now : now + count]):
            yield f"{new.bin.path}: tokens {now} to {now + count} are not those of before, from {start} on"
            return
    ids = [_ids(s, e) for s, e in ((old, before), (store, new))]
    for row in range(len(ids[0])):
        at = past.document(number, row)
        if at != GONE and ids[0][row] != ids[1][at]:
            yield f"{new.provenance.path}: row {at} is another document than row {row} was"
            return


def _ids(store: Store, entry: ShardEntry) -> Any:
    path = entry.provenance.path
    with store.open(path) as stream, bounded_parquet(stream, path, ["id"]) as (_, batches):
        ids = [np.ascontiguousarray(column_ids(batch.column("id"))).view("S16").reshape(-1) for batch in batches]
    return np.concatenate([np.empty(0, "S16"), *ids])


def _check_listed(store: Store, old: Store, manifest: Manifest, before: Manifest) -> Iterator[str]:
    """Every document that is listed as removed from a shard was in its row there."""
    shards = {(s.split, s.domain, s.index): s for s in before.shards}
    rows: dict[tuple[str, str, int], list[tuple[int, bytes]]] = {}
    path = manifest.takedowns[-1].removed
    for row in listed_rows(store, path, REMOVED_SCHEMA, ("id", "split", "domain", "index", "row")):
        if row["split"]:
            place = row["split"], row["domain"], row["index"]
            rows.setdefault(place, []).append((row["row"], row["id"]))
    for place, listed in rows.items():
        if place not in shards:
            yield f"{path}: a document of {'/'.join(map(str, place))} is listed, and there is no such shard"
            continue
        ids = _ids(old, shards[place])
        wrong = [row for row, id_ in listed if not 0 <= row < len(ids) or ids[row].ljust(16, b"\0") != id_]
        if wrong:
            yield f"{path}: {len(wrong)} documents are listed that were not in their rows; the first: row {wrong[0]}"
