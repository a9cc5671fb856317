"""The files of lookup/: which files of a corpus have rows of an address or an origin. Part of the corpus format.

An entry is a 64-bit hash of an address or of an origin, and a file that has a row with it. There is one for each file
and hash, however many rows the file has of it. Equal ranges of the hash go to the N files, sorted. A reader opens one,
reads its footer and one row group, and then the files that it names, whose rows it compares by value: hashes may
collide, entries only say where to look. docs/format.md describes the format.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.format.row_groups import write_row_groups
from refinery.loader.format.shard_list import as_shards

FOLDER = "lookup"
KEYS = ("url", "origin")  # columns whose values are hashed
LISTED = (REMOVALS, "rejects", "dead_letters")  # folders beside the shards whose files have such columns
ROWS_PER_FILE = 1 << 22  # about 30 MB; some 110 MB while they are sorted
ROW_GROUP = 1 << 15  # what a lookup reads of a file is then about as large as its footer

# place: the folder of the file, such as "train/web", "removals" or "rejects". file: its number there: a shard's index,
# else its place among the folder's files by name. Sorted by all columns, in this order, each row once.
SCHEMA = pa.schema(
    [
        pa.field("hash", pa.uint64(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
    ]
)
# Differences of sorted hashes have some 33 bits at 10^9 entries, numbers of files some 14.
ENCODINGS: Mapping[str, Any] = {"hash": "DELTA_BINARY_PACKED", "file": "DELTA_BINARY_PACKED"}

Hashes = npt.NDArray[np.uint64]
Entry = tuple[str, int]  # place and file, as entries name it


def key_hash(key: str, value: str) -> int:
    """The hash of a value of a column of KEYS: the first 8 bytes of a BLAKE2b of that length, personalised by the
    column's name.

    >>> hex(key_hash("url", "https://example.org/"))
    '0x9b78830cfa186fcc'
    """
    return int.from_bytes(blake2b(value.encode(), digest_size=8, person=key.encode()).digest(), "big")


def hash_column(key: str, column: Any) -> Hashes:
    """`key_hash` of the values of an Arrow column of strings, those that are empty left out. 0.4 µs each."""
    begun = blake2b(digest_size=8, person=key.encode())  # a copy costs half as much as a new one
    digests = []
    for value in column.cast(pa.binary()).to_pylist():
        if value:
            digest = begun.copy()
            digest.update(value)
            digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


def hash_rows(rows: pa.Table | pa.RecordBatch) -> Hashes:
    """The hashes of all KEYS that the rows have, unsorted."""
    return np.concatenate([hash_column(key, rows.column(key)) for key in KEYS if key in rows.schema.names])


def count_lookup_files(keys: int) -> int:
    """Number of files for so many values of KEYS in all rows of a corpus, at least 1.

    >>> count_lookup_files(2 * 1_350_000_000)
    644
    """
    return max(1, -(-keys // ROWS_PER_FILE))


def lookup_name(index: int, count: int) -> str:
    """Name of file `index` of `count`.

    >>> lookup_name(0, 3)
    'lookup/part-00000-of-00003.parquet'
    """
    return f"{FOLDER}/part-{index:05d}-of-{count:05d}.parquet"


def lookup_files(hashes: Hashes, count: int) -> npt.NDArray[np.int64]:
    """Which of `count` files has the entries of each hash: equal ranges of its upper half. Shape as `hashes`."""
    return ((hashes >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.int64)


def listed_files(paths: Iterable[str]) -> Iterator[tuple[Entry, str]]:
    """What entries call the files of LISTED among these, and their paths."""
    known = sorted(paths)
    for folder in LISTED:
        here = (path for path in known if path.startswith(f"{folder}/"))
        yield from (((folder, number), path) for number, path in enumerate(here))


def entry_files(manifest: Manifest) -> dict[Entry, str]:
    """What entries may name in a corpus -> the path of that file."""
    shards = as_shards(manifest.shards).named("provenance")
    found = {(f"{split}/{domain}", number): path for (split, domain, _), number, path in shards}
    return found | dict(listed_files(file.path for file in manifest.files))


def write_entries(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write entries, sorted already, at least one table, as Parquet: the same entries make the same bytes, however they
    are divided into tables and how often one comes. Memory: a table and a row group."""
    options: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "version": "2.6"}
    options |= {"use_dictionary": ["place"], "column_encoding": dict(ENCODINGS), "write_statistics": ["hash"]}
    write_row_groups(path, each_once(tables), ROW_GROUP, **options, write_page_checksum=True)


def each_once(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Sorted tables without rows that are equal to the one before."""
    last = SCHEMA.empty_table()
    for table in tables:
        if not table.num_rows:
            yield table
            continue
        both = pa.concat_tables([last, table]).combine_chunks()
        new = np.ones(both.num_rows, np.bool_)
        new[1:] = entries_differ(both)
        yield table.filter(pa.array(new[last.num_rows :]))
        last = table.slice(table.num_rows - 1)


def entries_differ(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each row of one chunk but the first is another than the one before. Shape [rows - 1]."""
    places = table["place"].combine_chunks().dictionary_encode().indices
    columns = (table["hash"].to_numpy(), np.asarray(places), table["file"].to_numpy())
    return np.asarray(np.logical_or.reduce([column[1:] != column[:-1] for column in columns]))
