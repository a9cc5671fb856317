"""The part of a corpus' manifest, version 2, that says what is listed where: read, and made of what jobs reported.

In version 1 the manifest itself had an entry for every shard and file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.errors import FormatError
from refinery.loader.format.entries import SPLITS, FileEntry, check_domain, file_entry
from refinery.loader.format.fields import MOST, Fields
from refinery.loader.format.listing import (
    FOLDER,
    MAX_ROWS,
    OTHER_FILES,
    PACKED,
    SCHEMA,
    Listing,
    cut_groups,
    dump_listing,
    file_row,
    rows_table,
    shard_rows,
)
from refinery.loader.format.shard_list import I64, ListedFiles, ListedRun, Listings, Shards
from refinery.loader.format.written import WrittenFiles
from refinery.loader.storage.store import checksums

SHARD_SCHEMA = pa.schema([("split", pa.string()), ("domain", pa.string()), ("count", pa.int64()), *SCHEMA])


def parse_listings(
    top: Fields, written: WrittenFiles, source: Listings
) -> tuple[Shards, ListedFiles, tuple[FileEntry, ...]]:
    """Shards, other files, and the listings of both, of a manifest. Raises FormatError for a field that is missing or
    wrong, for counts that disagree, and for a domain that is there twice."""
    runs: list[ListedRun] = []
    known: set[tuple[str, str]] = set()
    for entry in top.list("domains"):
        split, domain = _place(entry)
        if (split, domain) in known:
            raise FormatError(f"{entry.where}: {split}/{domain} found twice, once expected")
        known.add((split, domain))
        listings = [_listing(each, FOLDER) for each in entry.list("listings")]
        for name in ("shards", "documents", *(("tokens",) if written.has_tokens else ())):
            found, expected = sum(getattr(each, name) for each in listings), entry.count(name)
            if found != expected:
                raise FormatError(f"{entry.where}: listings have {found} {name}, {expected} expected from {name}")
        count = entry.count("count", 2**31 - 1)
        runs += [ListedRun(split, domain, count, listing, written, source) for listing in listings]
    files = [_listing(each, OTHER_FILES) for each in top.list("files")]
    every = (*(run.listing.file for run in runs), *(listing.file for listing in files))
    return Shards(runs), ListedFiles(files, source), every


def _place(entry: Fields) -> tuple[str, str]:
    split, domain = entry.text("split"), entry.text("domain")
    if split not in SPLITS:
        raise FormatError(f"{entry.where}: split is {split!r:.80}, {' or '.join(SPLITS)} expected")
    try:
        return split, check_domain(domain)
    except ValueError:
        raise FormatError(f"{entry.where}: domain is {domain!r:.80}, up to 64 of a-z 0-9 _ . - expected") from None


def _listing(entry: Fields, folder: str) -> Listing:
    rows = entry.count("rows", MAX_ROWS)
    shards, documents, tokens = (
        entry.count(name, most) if name in entry.value else 0
        for name, most in (("shards", rows), ("documents", MOST), ("tokens", MOST))
    )
    file = file_entry(Fields({**entry.value, "documents": 0, "tokens": 0}, entry.where))
    if not file.path.startswith(f"{folder}/"):
        raise FormatError(f"{entry.where}: path is {file.path!r:.80}, a file of {folder}/ expected")
    return Listing(FileEntry(file.path, file.size, file.crc32c, file.sha256, rows), rows, shards, documents, tokens)


@dataclass(frozen=True)
class Listed:
    """What the manifest of version 2 says of shards and files, and the listings' bytes by path."""

    fields: Mapping[str, Any]
    listings: Mapping[str, bytes]


def shard_table(shards: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Shards as jobs report them, as columns: a row for each file, those of a shard one after the other, the one with
    its documents first. Memory: some 600 bytes a shard, and 4 for each MiB of its tokens. Raises ValueError for what
    does not fit."""
    rows = (
        {"split": shard["split"], "domain": check_domain(shard["domain"]), "count": shard["count"], **row}
        for shard in shards
        for row in shard_rows(shard)
    )
    return rows_table(rows, SHARD_SCHEMA)


def shard_totals(shards: pa.Table) -> dict[str, int]:
    """Documents and tokens of all shards, of `shard_table`; no tokens of shards of text."""
    return _sums(shards.take(pa.array(first_of_shards(shards))))


def _sums(heads: pa.Table) -> dict[str, int]:
    has_tokens = not len(heads) or heads["tokens"].null_count < len(heads)
    names = ("documents", "tokens") if has_tokens else ("documents",)
    return {name: pc.sum(heads[name]).as_py() or 0 for name in names}


def list_files(shards: pa.Table, files: Sequence[Mapping[str, Any]]) -> Listed:
    """The listings of shards, of `shard_table`, and of files as jobs report them. Domains come in the order of their
    first shard.

    The bytes depend on what is given alone. Memory: the listings' bytes, and the rows of one domain.
    """
    made: dict[str, bytes] = {}
    entries = []
    for (split, domain), mine in by_domain(shards):
        starts = first_of_shards(mine)
        heads = mine.take(starts)
        entries.append(
            {
                "split": split,
                "domain": domain,
                "count": heads["count"][0].as_py(),
                "shards": len(heads),
                **_sums(heads),
                "listings": list(_listings(f"{FOLDER}/{split}/{domain}", mine.select(SCHEMA.names), starts, made)),
            }
        )
    others = rows_table(file_row(file) for file in files)
    found = list(_listings(OTHER_FILES, others, np.arange(len(others), dtype=np.int64), made))
    return Listed({"domains": entries, "files": found}, made)


def by_domain(shards: pa.Table) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """((split, domain), its rows), in the order of their first rows."""
    keys = pc.binary_join_element_wise(shards["split"], shards["domain"], "/").combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False)
    for code, key in enumerate(keys.dictionary.to_pylist()):
        split, _, domain = key.partition("/")
        yield (split, domain), shards.take(np.flatnonzero(codes == code))


def first_of_shards(rows: pa.Table) -> I64:
    """int64 [shards]: the first row of each shard, which has the number of its documents."""
    counted = pc.and_(pc.is_valid(rows["documents"]), pc.not_equal(rows["kind"], PACKED))
    return np.flatnonzero(counted.to_numpy()).astype(np.int64)


def _listings(folder: str, rows: pa.Table, starts: I64, made: dict[str, bytes]) -> Iterator[dict[str, Any]]:
    """Make the listings of a folder; their entries for the manifest. starts: the first row of each group."""
    bounds = np.append(starts, len(rows))
    sizes = np.append(0, np.cumsum(pc.fill_null(pc.binary_length(rows["block_crc32c"]), 0).to_numpy()))
    parts = list(cut_groups(np.diff(bounds).tolist(), np.diff(sizes[bounds]).tolist()))
    for i, (first, stop) in enumerate(parts):
        table = rows.slice(bounds[first], bounds[stop] - bounds[first]).combine_chunks()
        name = f"{folder}/part-{i:05d}-of-{len(parts):05d}.parquet"
        data = made[name] = dump_listing(table)
        entry = {"path": name, **checksums(data)._asdict(), "rows": len(table)}
        if folder != OTHER_FILES:
            heads = table.take(first_of_shards(table))
            entry |= {"shards": len(heads), **_sums(heads)}
        yield entry
