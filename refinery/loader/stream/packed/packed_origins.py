"""The documents of a packed row, with their addresses."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.parquet.guarded import listed_parquet
from refinery.loader.storage.store import Store
from refinery.loader.stream.origins import Origin
from refinery.loader.stream.packed.packed_source import RowFile

LISTS = ("document_ids", "document_sources", "document_starts")


def packed_origins(store: Store, shards: Sequence[ShardEntry], file: RowFile, row: int) -> Iterator[Origin]:
    """The documents of row number `row` of a file in order. A file without the lists of documents gives their places.

    Origin.shard is the packed file, and document the row of the provenance file, -1 where that has no such document.
    Cost: a row group, and the ids of the shard's provenance.
    """
    found = _row(store, file.bin.path, row)
    starts, stops = _runs(np.array(found["doc_ids"], np.int64))
    ids, sources, firsts = (found.get(name) or [None] * len(starts) for name in LISTS)
    entry = next(shard for shard in shards if file.bin.path in [packed.path for packed in shard.packed])
    known = _provenance(store, entry, [id_ for id_ in ids if id_ is not None])
    for start, stop, id_, source, first in zip(starts, stops, ids, sources, firsts, strict=False):
        number, url, origin = known.get(id_, (-1, "", ""))
        name = "" if id_ is None else id_.hex()
        yield Origin(start, stop, file.domain, file.bin.path, number, first or 0, name, url, source or "", origin)


def _row(store: Store, path: str, row: int) -> dict[str, Any]:
    with listed_parquet(store, path) as file:
        names = [name for name in ("doc_ids", *LISTS) if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if row < rows:
                found: dict[str, Any] = file.read_row_group(group, columns=names).slice(row, 1).to_pylist()[0]
                return found
            row -= rows
    raise ValueError(f"row: {row} more than {path} has given")


def _runs(doc_ids: np.ndarray[Any, Any]) -> tuple[list[int], list[int]]:
    """First places and ends of the documents; -1 is padding."""
    cuts = np.flatnonzero(np.diff(doc_ids, prepend=-2, append=-2))
    real = [(int(a), int(b)) for a, b in pairwise(cuts) if doc_ids[a] >= 0]
    return [a for a, _ in real], [b for _, b in real]


def _provenance(store: Store, entry: ShardEntry, ids: Sequence[bytes]) -> dict[bytes | None, tuple[int, str, str]]:
    """Row, url and origin of documents by their ids."""
    found: dict[bytes | None, tuple[int, str, str]] = {}
    if entry.provenance_file is None or not ids:
        return found
    wanted, first = set(ids), 0
    path = entry.provenance_file.path
    with listed_parquet(store, path) as file:
        for group in range(file.num_row_groups):
            here = file.read_row_group(group, columns=["id"]).column("id").to_pylist()
            places = [i for i, id_ in enumerate(here) if id_ in wanted]
            if places:
                rows = file.read_row_group(group, columns=["url", "origin"]).take(places).to_pylist()
                found |= {here[i]: (first + i, row["url"], row["origin"]) for i, row in zip(places, rows, strict=True)}
            first += len(here)
    return found
