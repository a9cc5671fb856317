"""Find rows in the Parquet files of a corpus by url, id or origin, reading as little of them as possible."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.format.parquet.batches import check_columns
from refinery.loader.format.parquet.guarded import GuardedFile, listed_parquet
from refinery.loader.format.removals import ID_BYTES, REMOVALS_SCHEMA, removals_file
from refinery.loader.format.shard_list import as_shards
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store
from refinery.pipelines.published.placement import read_plan
from refinery.pipelines.published.scan import Say, scan, silent

Row = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What to look for: a row is found if any of its columns has one of these values."""

    url: frozenset[str] = field(default=frozenset())
    id: frozenset[bytes] = field(default=frozenset())
    origin: frozenset[str] = field(default=frozenset())

    def __bool__(self) -> bool:
        return bool(self.url or self.id or self.origin)

    def columns(self, names: Iterable[str]) -> dict[str, frozenset[Any]]:
        """Column -> wanted values, for the wanted columns that a file has."""
        return {name: getattr(self, name) for name in ("url", "id", "origin") if name in names and getattr(self, name)}


# Files, and what is wanted -> those, and maybe others, that may have some of its addresses or origins, with these.
Narrow = Callable[[Iterable[str], Wanted], Mapping[str, Wanted]]


def everywhere(paths: Iterable[str], wanted: Wanted) -> Mapping[str, Wanted]:
    """Any file may have any address or origin."""
    chosen = Wanted(wanted.url, origin=wanted.origin)
    return dict.fromkeys(paths, chosen) if chosen else {}


def find_rows(
    store: Store, path: str, wanted: Wanted, columns: Sequence[str], schema: pa.Schema | None = None
) -> Iterator[tuple[int, Row]]:
    """(number, row of these columns) of every row found in a Parquet file, in order. schema: all columns that the file
    must have.

    Row groups whose statistics rule out every value are skipped; of the others only the searched columns are read, and
    the rest where a row was found. Memory: a row group of these columns. Raises the same errors as `GuardedFile`.
    """
    with listed_parquet(store, path, schema) as file:
        check_columns(file.schema_arrow, store.url(path), columns)
        yield from _find(file, wanted, columns)


def _find(file: GuardedFile, wanted: Wanted, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    values = wanted.columns(file.schema_arrow.names)
    known = {name: _Values(chosen, file.schema_arrow.field(name).type) for name, chosen in values.items()}
    start = 0
    for group in range(file.metadata.num_row_groups):
        facts = file.metadata.row_group(group)
        chunks = {facts.column(i).path_in_schema: facts.column(i) for i in range(facts.num_columns)}
        possible = [name for name, chosen in known.items() if chosen.may_be_in(chunks[name].statistics)]
        found = np.zeros(facts.num_rows, np.bool_)
        if possible:
            table = file.read_row_group(group, columns=possible, use_threads=False)
            for name in possible:
                found |= pc.is_in(table[name], value_set=known[name].array).to_numpy()
        rows = np.flatnonzero(found)
        if len(rows):
            table = file.read_row_group(group, columns=list(columns), use_threads=False).take(rows)
            yield from zip((start + rows).tolist(), table.to_pylist(), strict=True)
        start += facts.num_rows


class _Values:
    """Values of one column, comparable with the statistics of a row group."""

    def __init__(self, values: Iterable[Any], kind: pa.DataType) -> None:
        chosen = list(values)
        self.array = pa.array(chosen, kind)
        self.sorted = sorted(_bytes(value) for value in chosen)

    def may_be_in(self, statistics: Any) -> bool:
        """False only where no value lies between the least and the greatest of the row group."""
        if statistics is None or not statistics.has_min_max:
            return True
        place = bisect_left(self.sorted, _bytes(statistics.min))
        return place < len(self.sorted) and self.sorted[place] <= _bytes(statistics.max)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def ids_by_shard(manifest: Manifest, ids: Iterable[bytes]) -> dict[str, set[bytes]]:
    """Provenance file -> the ids that it may hold: one shard of each domain, where the recipe says where ids belong;
    all of a split, where documents are in input order."""
    plan = read_plan(manifest.recipe)
    sets: dict[tuple[str, str, int], dict[int, list[str]]] = {}
    for of_set, number, path in as_shards(manifest.shards).named("provenance"):
        sets.setdefault(of_set, {}).setdefault(number, []).append(path)
    found: dict[str, set[bytes]] = {}
    for id_ in ids:
        split = plan.split(id_) if plan else ""
        order = plan.order(id_) if plan and not plan.by_input else None
        for (its_split, _, count), paths in sets.items():
            places = list(paths) if order is None else [order * count >> 64]
            for place in places if its_split == split or not plan else ():
                for path in paths.get(place, ()):
                    found.setdefault(path, set()).add(id_)
    return found


def find_kept(
    corpus: Corpus, wanted: Wanted, narrow: Narrow = everywhere, say: Say = silent
) -> Iterator[tuple[ShardEntry, int, Row]]:
    """(shard, document, provenance row) of every match. An id is searched only in the shards that may hold it."""
    columns, schema = [name for name in corpus.schema.names if name != "meta"], corpus.manifest.provenance_schema
    if not wanted:
        return
    listed = as_shards(corpus.manifest.shards)
    paths = (path for _, _, path in listed.named("provenance"))
    chosen = both(narrow(paths, wanted), ids_by_shard(corpus.manifest, wanted.id) if wanted.id else {})
    tasks = [(shard, chosen[shard.provenance.path]) for shard in listed.having("provenance", chosen)]

    def look(task: tuple[ShardEntry, Wanted]) -> list[tuple[int, Row]]:
        return list(find_rows(corpus.store, task[0].provenance.path, task[1], columns, schema))

    for (shard, _), rows in zip(tasks, scan(look, tasks, "shards", say), strict=True):
        yield from ((shard, number, row) for number, row in rows)


def both(places: Mapping[str, Wanted], ids: Mapping[str, set[bytes]]) -> dict[str, Wanted]:
    """What to look for in each file: the addresses and origins of `places`, and these ids."""
    nothing = Wanted()
    return {
        path: replace(places.get(path, nothing), id=frozenset(ids.get(path, ())))
        for path in dict.fromkeys([*places, *ids])
    }


def find_removed(corpus: Corpus, wanted: Wanted, narrow: Narrow = everywhere, say: Say = silent) -> Iterator[Row]:
    """Matching removals. An id is searched only in the file that may hold it."""
    files = [file.path for file in corpus.manifest.removals]
    by_file: dict[str, set[bytes]] = {}
    if files and wanted.id:
        ids = sorted(wanted.id)
        raw = np.frombuffer(b"".join(ids), np.uint8).reshape(-1, ID_BYTES)
        for id_, index in zip(ids, removals_file(raw, len(files)).tolist(), strict=True):
            by_file.setdefault(files[index], set()).add(id_)
    chosen = both(narrow(files, wanted), by_file)
    tasks = [(path, chosen[path]) for path in files if path in chosen]

    def look(task: tuple[str, Wanted]) -> list[Row]:
        return [row for _, row in find_rows(corpus.store, *task, REMOVALS_SCHEMA.names, REMOVALS_SCHEMA)]

    for rows in scan(look, tasks, "files of removals", say):
        yield from rows


def find_records(
    corpus: Corpus,
    folder: str,
    wanted: Wanted,
    columns: Sequence[str],
    narrow: Narrow = everywhere,
    say: Say = silent,
) -> Iterator[Row]:
    """Matching rows of rejects/ or dead_letters/."""
    paths = [file.path for file in corpus.files(folder)]

    def look(task: tuple[str, Wanted]) -> list[Row]:
        return [row for _, row in find_rows(corpus.store, *task, columns)]

    chosen = narrow(paths, wanted)
    tasks = [(path, chosen[path]) for path in paths if path in chosen]
    for rows in scan(look, tasks, f"files of {folder}/", say):
        yield from rows
