"""The documents of one shard in global order, with their tokens on local disk: a shard is never in memory as a
whole."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from refinery.loader.storage.full_disk import naming_scratch

SPOOLED = ("tokens", "columns")  # of BATCH_SCHEMA: what waits on disk
META = "meta"  # of it, too, where it has the fields of records
BATCH_ROWS = 1024
# Equal ids (exact duplicates kept by recipe) are ordered by source and origin.
ORDER = [(name, "ascending") for name in ("order", "id", "source", "origin")]


@dataclass(frozen=True)
class Spool:
    """Values in a temporary file without a name, in the order in which they came. starts, sizes: int64 [n], in
    bytes."""

    file: IO[bytes]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> Iterator[bytes]:
        """The values of these rows, one after the other. Memory: a value, and two lists of numbers."""
        descriptor = self.file.fileno()
        for size, start in zip(self.sizes[rows].tolist(), self.starts[rows].tolist(), strict=True):
            data = os.pread(descriptor, size, start)
            if len(data) != size:
                raise OSError("a temporary file is shorter than what was written to it")
            yield data


class _Spooler:
    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="refinery-")  # noqa: SIM115  the documents close it
        self.starts: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        self.sizes: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        self.end = 0

    def add(self, column: pa.ChunkedArray) -> None:
        for chunk in column.chunks:
            offsets = np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
            data = memoryview(chunk.buffers()[2] or b"")[int(offsets[0]) : int(offsets[-1])]
            self.file.write(data)
            self.starts.append(offsets[:-1] - offsets[0] + self.end)
            self.sizes.append(np.diff(offsets))
            self.end += len(data)

    def finish(self) -> Spool:
        self.file.flush()
        return Spool(self.file, np.concatenate(self.starts), np.concatenate(self.sizes))


def sort_documents(tables: Iterable[pa.Table]) -> pa.Table:
    """All rows of tables of BATCH_SCHEMA in global order, in memory."""
    return pa.concat_tables(tables).sort_by(ORDER)


@dataclass(frozen=True)
class ShardDocuments:
    """Documents in global order. facts: all of BATCH_SCHEMA but what is spooled. rows: int64 [n], where each is in the
    spools."""

    facts: pa.Table
    rows: NDArray[np.int64]
    spools: dict[str, Spool]

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, name: str) -> Iterator[bytes]:
        """What is spooled under that name of each document, in order. Memory: a value."""
        return self.spools[name].take(self.rows)

    def metas(self) -> Iterator[bytes | str]:
        """`meta` of each document, in order."""
        if META in self.spools:
            yield from self.values(META)
            return
        for batch in self.facts.select([META]).to_batches(max_chunksize=BATCH_ROWS):
            yield from batch.column(0).to_pylist()

    def sizes(self, name: str) -> NDArray[np.int64]:
        """Bytes of one of SPOOLED of each document, in order."""
        return self.spools[name].sizes[self.rows]

    def close(self) -> None:
        """Remove what is on disk."""
        for spool in self.spools.values():
            spool.file.close()


def sort_on_disk(tables: Iterable[pa.Table], more: Sequence[str] = ()) -> ShardDocuments:
    """The documents of tables of BATCH_SCHEMA, of which there is at least one, sorted. more: columns that wait on disk
    beside SPOOLED. Memory: the facts twice, and one table. Raises DiskFull, which names the place, where there is no
    room for the tokens."""
    spooled = (*SPOOLED, *more)
    spoolers: dict[str, _Spooler] = {}
    facts: list[pa.Table] = []
    with naming_scratch(tempfile.gettempdir(), "tokens of a shard"):
        for table in tables:
            for name in spooled:
                if name not in spoolers:  # each holds an open file
                    spoolers[name] = _Spooler()
                spoolers[name].add(table[name].cast(pa.large_binary()))
            facts.append(table.drop_columns(list(spooled)))
        spools = {name: spooler.finish() for name, spooler in spoolers.items()}
    table = pa.concat_tables(facts).combine_chunks()
    facts.clear()
    rows = pc.sort_indices(table, ORDER)
    return ShardDocuments(table.take(rows), rows.to_numpy().astype(np.int64), spools)
