"""Which records and published rows are looked at, and the rows on disk until the records of their file are read."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest
from refinery.loader.format.parquet.batches import check_columns
from refinery.loader.format.parquet.guarded import listed_parquet
from refinery.loader.format.removals import REMOVALS_SCHEMA
from refinery.loader.format.takedown import REMOVED_SCHEMA, REPLACED
from refinery.loader.storage.store import Store
from refinery.pipelines.published.shard_tokens import shard_path
from refinery.transforms.core.document import hash64
from refinery.transforms.core.job.report import DEAD_SCHEMA, REJECT_SCHEMA
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.sources import POISON_FILE, POISON_RECORD
from refinery.transforms.write.targets import slice_of

KEPT, REMOVED, REJECTED, DEAD, TAKEN = "kept", "removed", "rejected", "failed", "taken out"
POISON = (POISON_FILE, POISON_RECORD)
BUCKETS = 256
HELD_ROWS = 20_000  # of rows that wait in memory

Row = dict[str, Any]
ROWS = {REMOVED: REMOVALS_SCHEMA, REJECTED: REJECT_SCHEMA, DEAD: DEAD_SCHEMA, TAKEN: REMOVED_SCHEMA}


@dataclass(frozen=True)
class Sample:
    """rate: share of records, 0 to 1. seed: which ones."""

    rate: float
    seed: int = 0

    def has(self, source: str, origin: str) -> bool:
        """Whether the record, and all that is published of it, is looked at."""
        if self.rate >= 1:
            return True
        return hash64("audit", self.seed, source, printable(origin)) < self.rate * 2**64


@dataclass(frozen=True)
class PublishedFile:
    """A Parquet file of the corpus with rows about documents. shard: the name of its shard, of provenance; the number
    of the takedown, of a listing of one."""

    kind: str
    path: str
    shard: str = ""


def published_files(manifest: Manifest) -> list[PublishedFile]:
    """All of them."""
    found = [PublishedFile(KEPT, shard.provenance.path, shard_path(shard)) for shard in manifest.shards]
    folders = {"removals": REMOVED, "rejects": REJECTED, "dead_letters": DEAD}
    for file in manifest.files:
        kind = folders.get(file.path.split("/")[0])
        if kind:
            found.append(PublishedFile(kind, file.path))
    listings = enumerate((takedown.removed for takedown in manifest.takedowns), 1)
    return found + [PublishedFile(TAKEN, path, str(number)) for number, path in listings]


def chosen_rows(
    store: Store, manifest: Manifest, file: PublishedFile, sample: Sample, targets: Mapping[str, int]
) -> tuple[list[Row], dict[str, int]]:
    """The chosen rows of a file, with its kind and shard; and of sources with a target the last slice that is kept.

    Ids are hexadecimal; `row` is the place of a kept document in its shard. Memory: a row group. Raises the same errors
    as `GuardedFile`.
    """
    schema = {**ROWS, KEPT: manifest.row_schema}[file.kind]
    rows: list[Row] = []
    slices: dict[str, int] = {}
    start = 0
    url = store.url(file.path)
    exactly = {**ROWS, KEPT: manifest.provenance_schema, REJECTED: None, DEAD: None}[file.kind]
    with listed_parquet(store, file.path, exactly) as parquet:
        check_columns(parquet.schema_arrow, url, schema.names, schema)
        for group in range(parquet.num_row_groups):
            keys = without_nulls(parquet.read_row_group(group, columns=["source", "origin"], use_threads=False), url)
            pairs = zip(keys["source"].to_pylist(), keys["origin"].to_pylist(), strict=True)
            places = [place for place, pair in enumerate(pairs) if sample.has(*pair)]
            if file.kind == KEPT and targets:
                ids = parquet.read_row_group(group, columns=["id"], use_threads=False)["id"].to_pylist()
                for source, id_ in zip(keys["source"].to_pylist(), ids, strict=True):
                    if source in targets:
                        slices[source] = max(slices.get(source, -1), slice_of(id_))
            if file.kind == DEAD:  # what killed its readers says so whatever the sample
                errors = parquet.read_row_group(group, columns=["error"], use_threads=False)["error"].to_pylist()
                places = sorted({*places, *(place for place, error in enumerate(errors) if error in POISON)})
            if places:
                table = parquet.read_row_group(group, columns=schema.names, use_threads=False).take(places)
                without_nulls(table.select([each.name for each in schema if not each.nullable]), url)
                for place, row in zip(places, table.to_pylist(), strict=True):
                    if file.kind == TAKEN and row["why"] == REPLACED:  # it went from a shard into removals/
                        continue
                    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
                    own = {"row": start + place} if file.kind == KEPT else {}
                    rows.append({**plain, **own, "kind": file.kind, "shard": file.shard})
            start += keys.num_rows
    return rows, slices


def without_nulls(table: pa.Table, url: str) -> pa.Table:
    """The table. Raises FormatError where a column of it has nulls."""
    for name in table.column_names:
        if table[name].null_count:
            raise FormatError(f"{url}: nulls in column {name}, none expected")
    return table


def file_of(row: Mapping[str, Any], earlier: frozenset[str]) -> str:
    """The input file of a row, as a key. earlier: sources that read documents of earlier runs, whose origins are those
    of that run; their rows are one group."""
    source = str(row["source"])
    return f"{source}\n" if source in earlier else f"{source}\n{str(row['origin']).rpartition('@')[0]}"


class Buckets:
    """Chosen rows on disk, by a hash of their input file. Each gets a number, in the order in which it comes.

    Memory: HELD_ROWS rows, or those of one bucket.
    """

    def __init__(self, folder: Path, earlier: frozenset[str]) -> None:
        self.folder, self.earlier = folder, earlier
        folder.mkdir(exist_ok=True)
        self.rows = 0
        self._waiting: dict[int, list[bytes]] = {}
        self._held = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            row["number"] = self.rows
            row["origin"] = printable(row["origin"])
            self.rows += 1
            self._held += 1
            self._waiting.setdefault(self._bucket(file_of(row, self.earlier)), []).append(orjson.dumps(row))
        if self._held > HELD_ROWS:
            self.flush()

    def flush(self) -> None:
        """Everything to disk."""
        for bucket, lines in sorted(self._waiting.items()):
            with (self.folder / str(bucket)).open("ab") as stream:
                stream.writelines(line + b"\n" for line in lines)
        self._waiting, self._held = {}, 0

    def of_file(self, key: str) -> list[Row]:
        """The rows of an input file. key: of `file_of`."""
        return [row for row in self._read(self._bucket(key)) if file_of(row, self.earlier) == key]

    def __iter__(self) -> Iterator[Row]:
        for bucket in range(BUCKETS):
            yield from self._read(bucket)

    def _read(self, bucket: int) -> Iterator[Row]:
        path = self.folder / str(bucket)
        if path.exists():
            with path.open("rb") as stream:
                yield from map(orjson.loads, stream)

    @staticmethod
    def _bucket(key: str) -> int:
        return zlib.crc32(key.encode("utf-8", "replace")) % BUCKETS
