"""Checks of lookup/: a file's entries, and that those of all files are the ones that the rows of the corpus have.

Every piece gives the number of its entries, and sums of two mixes of them: of the files that have rows, and of the
index. They do not depend on order, so nothing is joined, and a missing, foreign or wrong entry changes them. They are
sums of 64 bits: checksums, not signatures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.format.manifest import FileEntry, Manifest
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.storage.store import Store
from refinery.transforms.core.document import hash64
from refinery.transforms.write.lookup.entries import (
    FOLDER,
    SCHEMA,
    Entry,
    Hashes,
    entry_files,
    lookup_files,
    lookup_name,
)

Sums = dict[str, list[int]]  # place -> entries, and two sums, each below 2^64
FACT = "lookup"  # of a finding: its Sums
MASK = (1 << 64) - 1


def mixed(x: Hashes) -> Hashes:
    """SplitMix64's finalizer: a permutation of 64-bit numbers."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def sum_entries(place: str, files: npt.NDArray[Any], hashes: Hashes) -> list[int]:
    """Number and sums of entries of one place. files: of each."""
    salts = mixed(np.uint64(hash64("lookup", place)) ^ files.astype(np.uint64))
    once = mixed(hashes ^ salts)
    return [len(hashes), int(once.sum()), int(mixed(once ^ salts * np.uint64(3)).sum())]


def sum_rows(entry: Entry, hashes: Sequence[Hashes]) -> Sums:
    """Sums of the entries that a file has to have. hashes: of its rows, in any order, some many times."""
    place, number = entry
    each = np.unique(np.concatenate([np.empty(0, np.uint64), *hashes]))
    return {place: sum_entries(place, np.full(len(each), number), each)}


def add_sums(many: Sequence[Sums]) -> Sums:
    """The sums of several pieces as one; places without entries are left out."""
    total: Sums = {}
    for sums in many:
        for place, found in sums.items():
            before = total.setdefault(place, [0, 0, 0])
            before[:] = [(a + b) & MASK for a, b in zip(before, found, strict=True)]
    return {place: found for place, found in total.items() if found[0]}


@dataclass
class LookupFiles:
    """The index of a corpus: its files, none in corpora of older versions, and what entries may name."""

    manifest: Manifest
    names: dict[str, int] = field(init=False)  # path -> number

    def __post_init__(self) -> None:
        paths = sorted(file.path for file in self.manifest.files if file.path.startswith(f"{FOLDER}/"))
        self.names = {path: number for number, path in enumerate(paths)}

    @cached_property
    def rows(self) -> Mapping[str, Entry]:
        """Path of each file with rows -> what entries call it; none in a corpus without an index."""
        return {path: entry for entry, path in entry_files(self.manifest).items()} if self.names else {}

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Place -> numbers of its files are below this."""
        found: dict[str, int] = {}
        for place, number in self.rows.values():
            found[place] = max(found.get(place, 0), number + 1)
        return found

    def fault(self) -> str:
        """What is wrong with the set of files, "" if nothing."""
        count = len(self.names)
        if list(self.names) == [lookup_name(number, count) for number in range(count)]:
            return ""
        return f"{FOLDER}/: {list(self.names)} found, files 0 to {count - 1} of {count} expected"


def check_lookup_file(store: Store, file: FileEntry, files: LookupFiles, facts: dict[str, Any]) -> Iterator[str]:
    """Failures of the entries of one file, whose checksum is right. facts: gets FACT, the sums of its entries, where it
    could be read to its end. Memory: a batch."""
    faults: dict[str, list[int]] = {}  # kind -> how many, and the first row
    sums: list[Sums] = []
    last, seen = SCHEMA.empty_table(), 0

    def add(kind: str, wrong: npt.NDArray[np.bool_]) -> None:
        if wrong.any():
            known = faults.setdefault(kind, [0, seen + int(np.argmax(wrong))])
            known[0] += int(wrong.sum())

    with store.open(file.path) as stream, bounded_parquet(stream, file.path, exactly=SCHEMA) as (_, batches):
        for batch in batches:
            if nulls := [name for name in SCHEMA.names if batch.column(name).null_count]:
                yield f"{file.path}: nulls in {', '.join(nulls)}, none expected"
                return
            table = pa.Table.from_batches([batch])
            if not len(batch):
                continue
            add("entries out of order, or repeated", out_of_order(pa.concat_tables([last, table]), last.num_rows))
            hashes = table["hash"].to_numpy()
            add(
                "entries that belong to the range of another file",
                lookup_files(hashes, len(files.names)) != files.names[file.path],
            )
            unknown = np.ones(len(batch), np.bool_)
            numbers = table["file"].to_numpy()
            for place, count in files.counts.items():
                here = np.asarray(pc.equal(batch.column("place"), place)) & (numbers >= 0) & (numbers < count)
                unknown &= ~here
                sums.append({place: sum_entries(place, numbers[here], hashes[here])})
            sums = [add_sums(sums)]
            add("entries that name no file of the corpus", unknown)
            last, seen = table.slice(table.num_rows - 1), seen + table.num_rows
    yield from (f"{file.path}: {count} {kind}; the first: row {first}" for kind, (count, first) in faults.items())
    facts[FACT] = add_sums(sums)


def out_of_order(table: pa.Table, before: int) -> npt.NDArray[np.bool_]:
    """Of each row behind the first `before`, 0 or 1, whether it does not come behind the one before it."""
    table = table.combine_chunks()
    hashes = table["hash"].to_numpy()
    wrong = np.zeros(table.num_rows, np.bool_)
    wrong[1:] = hashes[1:] < hashes[:-1]
    same = np.flatnonzero(hashes[1:] == hashes[:-1])
    if len(same):
        first, second = (table.take(pa.array(same + step)).drop_columns(["hash"]).to_pylist() for step in (0, 1))
        pairs = zip(first, second, strict=True)
        wrong[same + 1] = [(a["place"].encode(), a["file"]) >= (b["place"].encode(), b["file"]) for a, b in pairs]
    return wrong[before:]


def compare_sums(found: Sums, expected: Sums) -> Iterator[str]:
    """Failures where the index does not have the entries of the rows. Sums of either."""
    nothing = [0, 0, 0]
    for place in sorted(found.keys() | expected.keys()):
        there, wanted = found.get(place, nothing), expected.get(place, nothing)
        if there[0] != wanted[0]:
            yield f"{FOLDER}/: {there[0]} entries of {place} found, {wanted[0]} expected from its files"
        elif there != wanted:
            yield f"{FOLDER}/: the {there[0]} entries of {place} are not those of the rows in its files"
