"""Rows under a key of 16 bytes, spread over partitions by a hash of it: what pieces of a check leave to be joined.

A run is a file of rows of one table in order of their partitions, after the place at which each partition begins. So a
partition is one range of every run, written by whatever process, and is read without the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.storage.store import Store, size_and_crc32c

Rows = npt.NDArray[Any]

_PLACE = [("shard", "<u4"), ("row", "<u4")]  # numbers of the shard in the manifest, and of the row in its provenance
_EDGE = [("key", "S16"), ("other", "S16"), ("order", "<u8"), ("flags", "u1")]

# Of a corpus' documents: ids and addresses (with a hash of the record); of its removals: (id, kept_id) by either. Where
# something was taken out: of all documents, and of removals, id and record, and those of what went or came back.
TABLES: Mapping[str, np.dtype[Any]] = {
    "ids": np.dtype([("key", "S16"), *_PLACE]),
    "addresses": np.dtype([("key", "S16"), ("record", "<u8"), *_PLACE]),
    "removed": np.dtype(_EDGE),
    "kept": np.dtype(_EDGE),
    "present": np.dtype([("key", "S16"), ("record", "<u8"), *_PLACE]),
    "gone": np.dtype([("key", "S16"), ("record", "<u8"), ("step", "<u4"), ("flags", "u1")]),
}
REFERENCE, CAPTURE = 1, 2  # flags of an edge: kept_id is in a reference corpus; captures of one address

PARTITION_ROWS = 1 << 22  # joined at once: about 400 MB
PARTITIONS = 1 << 14  # at most: each costs 8 bytes in every run
RUN_BYTES = 64 << 20


def table_rows(table: str, **columns: Any) -> Rows:
    """Rows of a table from its columns; a single value stands for all."""
    rows = np.zeros(len(columns["key"]), TABLES[table])
    for name, values in columns.items():
        rows[name] = values
    return rows


def halves(keys: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Keys "S16" as [n, 2] numbers, as they are in memory."""
    both: npt.NDArray[np.uint64] = np.ascontiguousarray(keys).view("<u8").reshape(-1, 2)
    return both


def hashed(keys: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A hash of each key, uniform also over keys that somebody chose alike: SplitMix64's finalizer of both halves."""
    both = halves(keys)
    x: npt.NDArray[np.uint64] = both[:, 0] ^ (both[:, 1] * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def partitions_for(rows: int) -> int:
    """Partitions of that many rows in all tables; beyond PARTITIONS they are joined in several parts."""
    return min(PARTITIONS, max(1, -(-rows // PARTITION_ROWS)))


@dataclass(frozen=True)
class Run:
    """A file of rows. name: in its store."""

    table: str
    name: str
    size: int
    crc32c: str


@dataclass
class RunWriter:
    """Writes rows as runs, `<stem>-<table>-<number>.rows` in `folder`. Memory: three times RUN_BYTES."""

    folder: Path
    stem: str
    partitions: int
    runs: list[Run] = field(default_factory=list)
    _held: dict[str, list[Rows]] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, table: str, rows: Rows) -> None:
        """Take rows of `TABLES[table]`."""
        if not len(rows):
            return
        self._held.setdefault(table, []).append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= RUN_BYTES:
            self.flush()

    def flush(self) -> list[Run]:
        """Write what is held. -> all runs so far."""
        for table, parts in self._held.items():
            rows = np.concatenate(parts)
            owners = hashed(rows["key"]) % np.uint64(self.partitions)
            starts = np.zeros(self.partitions + 1, "<u8")
            starts[1:] = np.cumsum(np.bincount(owners.astype(np.int64), minlength=self.partitions))
            path = self.folder / f"{self.stem}-{table}-{len(self.runs):05d}.rows"
            with path.open("xb") as stream:
                stream.write(starts.tobytes())
                stream.write(rows[np.argsort(owners, kind="stable")].tobytes())
            self.runs.append(Run(table, path.name, *size_and_crc32c(path)))
        self._held, self._bytes = {}, 0
        return self.runs


@dataclass(frozen=True)
class Tables:
    """All runs of a check. bound: rows that `parts` gives at once, about."""

    store: Store
    partitions: int
    runs: Sequence[Run]
    bound: int = PARTITION_ROWS

    def parts(self, partition: int) -> Iterator[dict[str, Rows]]:
        """Rows by table, in several parts where they are more than `bound`; rows of a key are always in one part."""
        places = [(run, *self._range(run, partition)) for run in self.runs]
        places = [place for place in places if place[1] < place[2]]
        parts = max(1, -(-sum(stop - start for _, start, stop in places) // self.bound))
        for part in range(parts):
            yield {table: self._rows(table, places, part, parts) for table in TABLES}

    def _range(self, run: Run, partition: int) -> tuple[int, int]:
        start, stop = np.frombuffer(self.store.read(run.name, 8 * partition, 16), "<u8").tolist()
        return start, stop

    def _rows(self, table: str, places: Sequence[tuple[Run, int, int]], part: int, parts: int) -> Rows:
        dtype, head = TABLES[table], 8 * (self.partitions + 1)
        found = [np.empty(0, dtype)]
        for run, start, stop in places:
            if run.table == table:
                data = self.store.read(run.name, head + start * dtype.itemsize, (stop - start) * dtype.itemsize)
                rows = np.frombuffer(data, dtype)
                if parts > 1:
                    rows = rows[(hashed(rows["key"]) >> np.uint64(32)) % np.uint64(parts) == part]
                found.append(rows)
        return np.concatenate(found)
