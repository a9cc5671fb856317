"""Rows of a corpus by id: those of removals that name one, and where in the shards a document is."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest, ShardEntry, provenance_schema
from refinery.loader.format.parquet.batches import stored_batches
from refinery.loader.format.removals import REFERENCE, REMOVALS_SCHEMA, URL_DUPLICATE, column_ids
from refinery.loader.format.takedown import KEPT, NO_TOKENS
from refinery.loader.format.written import WrittenFiles
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.remove.request import KEY
from refinery.pipelines.published.placement import Plan, read_plan

Row = dict[str, Any]
Key = tuple[bytes, str, str]
PLACED = ["id", "url", "source", "origin", "text_bytes", "token_offset", "token_count", "copies", "sources"]


def key_of(row: Mapping[str, Any]) -> Key:
    """What tells a document from all others of a run: its text's id, and where it was read."""
    return row["id"], row["source"], row["origin"]


def is_head(row: Mapping[str, Any]) -> bool:
    """Whether a row of removals is that of the one document of its id that others of this id stand behind: no exact
    copy, and no capture of an address, which went before ids were compared."""
    return bool(row["reason"] != URL_DUPLICATE and row["id"] != row["kept_id"])


def is_own(row: Mapping[str, Any]) -> bool:
    """Whether what stands for it is in this corpus, and was chosen for its text."""
    return bool(row["reason"] != URL_DUPLICATE and not row["scope"].startswith(REFERENCE))


def sorted_keys(ids: Iterable[bytes]) -> NDArray[np.bytes_]:
    """Ids as `among` takes them."""
    return np.sort(np.array(list(ids), KEY))


def among(ids: NDArray[np.uint8], known: NDArray[np.bytes_]) -> NDArray[np.bool_]:
    """Which of `ids` (uint8 [n, 16]) are in `known`."""
    keys = np.ascontiguousarray(ids).view(KEY).reshape(-1)
    if not len(known) or not len(keys):
        return np.zeros(len(keys), np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys)


@dataclass(frozen=True)
class Removals:
    """The removals of a corpus, found by the ids in them. Every call reads the two columns of ids of all files, and
    the row groups that have something. Memory: a row group, and what is found."""

    store: Store
    manifest: Manifest

    def of(self, ids: Iterable[bytes]) -> list[Row]:
        """Rows of these ids."""
        return list(self._rows("id", sorted_keys(ids)))

    def behind(self, ids: Iterable[bytes]) -> list[Row]:
        """Rows of documents that one of these ids stands for: their `kept_id`."""
        return list(self._rows("kept_id", sorted_keys(ids)))

    def _rows(self, column: str, wanted: NDArray[np.bytes_]) -> Iterator[Row]:
        for file in self.manifest.removals if len(wanted) else ():
            hits, start = [np.empty(0, np.int64)], 0
            for batch in stored_batches(self.store, file.path, [column], exactly=REMOVALS_SCHEMA):
                hits.append(start + np.flatnonzero(among(column_ids(batch.column(0)), wanted)))
                start += len(batch)
            rows = np.concatenate(hits)
            if len(rows):
                for batch in stored_batches(self.store, file.path, rows=rows, exactly=REMOVALS_SCHEMA):
                    yield from batch.to_pylist()

    def all(self, numbers: Iterable[int] | None = None) -> Iterator[pa.Table]:
        """Every row, or those of the files of these numbers, some at a time, in the order of the files."""
        files = self.manifest.removals
        for file in files if numbers is None else [files[number] for number in sorted(numbers)]:
            for batch in stored_batches(self.store, file.path, exactly=REMOVALS_SCHEMA):
                yield pa.Table.from_batches([batch])


def plan_of(manifest: Manifest) -> Plan:
    """Where documents of a corpus have to be. Raises FormatError where its recipe does not say it."""
    plan = read_plan(manifest.recipe)
    if plan is None:
        raise FormatError("manifest.json: its recipe does not say where documents are; `refinery verify` says more")
    return plan


def counts_of(manifest: Manifest) -> dict[tuple[str, str], int]:
    """(split, domain) -> how many shards it is cut into. A run leaves those out that get no document."""
    return {(entry.split, entry.domain): entry.count for entry in manifest.shards}


def locate(store: Store, manifest: Manifest, ids: Iterable[bytes]) -> list[Row]:
    """The documents of these ids that are in the shards: their provenance with split, domain, index and row. Reads the
    ids of those shards alone that a document of the id can be in."""
    plan, counts = plan_of(manifest), counts_of(manifest)
    entries = {(entry.split, entry.domain, entry.index): entry for entry in manifest.shards}
    places: dict[tuple[str, str, int], set[bytes]] = {}
    for id_ in ids:
        split, order = plan.split(id_), plan.order(id_)
        for (its_split, domain), count in counts.items():
            place = split, domain, order * count >> 64
            if its_split == split and place in entries:
                places.setdefault(place, set()).add(id_)
    found: list[Row] = []
    for place in sorted(places):
        found += rows_of(store, manifest.written, entries[place], places[place])
    return found


def rows_of(store: Store, written: WrittenFiles, entry: ShardEntry, ids: Iterable[bytes]) -> Iterator[Row]:
    """The documents of these ids in a shard. written: the files of its corpus."""
    wanted, start = sorted_keys(ids), 0
    schema = provenance_schema((), written.has_tokens)
    place = {"split": entry.split, "domain": entry.domain, "index": entry.index, "was": KEPT}
    place |= {} if written.has_tokens else NO_TOKENS
    names = [name for name in PLACED if name in schema.names]
    for batch in stored_batches(store, entry.provenance.path, names, schema):
        rows = np.flatnonzero(among(column_ids(batch.column("id")), wanted))
        for row, known in zip(rows.tolist(), batch.take(pa.array(rows)).to_pylist(), strict=True):
            yield {**known, **place, "row": start + row}
        start += len(batch)


def links_behind(removals: Removals, roots: set[bytes], went: Collection[Key] = ()) -> dict[bytes, list[Row]]:
    """kept_id -> the documents that stay removed in favour of it, for these ids and all that are behind them."""
    links: dict[bytes, list[Row]] = {}
    seen, frontier = set(roots), set(roots)
    while frontier:
        rows = [row for row in removals.behind(frontier) if is_own(row) and key_of(row) not in went]
        for row in rows:
            links.setdefault(row["kept_id"], []).append(row)
        frontier = {row["id"] for row in rows if is_head(row)} - seen
        seen |= frontier
    return links


def all_behind(links: Mapping[bytes, list[Row]], id_: bytes) -> list[Row]:
    """The documents that a document stands for, directly or by another one."""
    found: list[Row] = []
    todo = [id_]
    while todo:
        rows = links.get(todo.pop(), [])
        found += rows
        todo += [row["id"] for row in rows if is_head(row)]
    return found


def copies_of(removals: Removals, ids: set[bytes]) -> dict[bytes, tuple[int, list[str]]]:
    """id -> how many documents it stands for, itself included, and the sources of the others."""
    links = links_behind(removals, ids)
    behind = {id_: all_behind(links, id_) for id_ in ids}
    return {id_: (1 + len(rows), sorted({row["source"] for row in rows})) for id_, rows in behind.items()}
