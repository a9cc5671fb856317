"""The part of a corpus' manifest, version 2, that says what is listed where: read, and made of what jobs reported.

In version 1 the manifest itself had an entry for every shard and file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.entries import SPLITS, FileEntry, check_domain, file_entry
from refinery.loader.format.fields import MOST, Fields
from refinery.loader.format.listing import (
    FOLDER,
    MAX_ROWS,
    OTHER_FILES,
    Listing,
    cut_rows,
    dump_listing,
    file_row,
    shard_rows,
)
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.format.shard_list import ListedFiles, ListedRun, Listings, Shards
from refinery.loader.storage.store import checksums

Rows = Sequence[Mapping[str, Any]]


def parse_listings(top: Fields, lane: str, source: Listings) -> tuple[Shards, ListedFiles, tuple[FileEntry, ...]]:
    """Shards, other files, and the listings of both, of a manifest of that lane. Raises FormatError for a field that is
    missing or wrong, for counts that disagree, and for a domain that is there twice."""
    runs: list[ListedRun] = []
    known: set[tuple[str, str]] = set()
    for entry in top.list("domains"):
        split, domain = _place(entry)
        if (split, domain) in known:
            raise FormatError(f"{entry.where}: {split}/{domain} found twice, once expected")
        known.add((split, domain))
        listings = [_listing(each, FOLDER) for each in entry.list("listings")]
        for name in ("shards", "documents", "tokens"):
            found, expected = sum(getattr(each, name) for each in listings), entry.count(name)
            if found != expected:
                raise FormatError(f"{entry.where}: listings have {found} {name}, {expected} expected from {name}")
        count = entry.count("count", 2**31 - 1)
        runs += [ListedRun(split, domain, count, listing, lane != ADOPTED, source) for listing in listings]
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


def list_files(shards: Sequence[Mapping[str, Any]], files: Sequence[Mapping[str, Any]]) -> Listed:
    """The listings of shards and files as jobs report them. Domains come in the order of their first shard.

    The bytes depend on what is given alone. Memory: the rows, some 2 KB a shard.
    """
    domains: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for shard in shards:
        domains.setdefault((shard["split"], check_domain(shard["domain"])), []).append(shard)
    made: dict[str, bytes] = {}
    entries = []
    for (split, domain), mine in domains.items():
        rows = (list(shard_rows(shard)) for shard in mine)
        entries.append(
            {
                "split": split,
                "domain": domain,
                "count": mine[0]["count"],
                "shards": len(mine),
                **{name: sum(shard[name] for shard in mine) for name in ("documents", "tokens")},
                "listings": list(_listings(f"{FOLDER}/{split}/{domain}", rows, made)),
            }
        )
    others = list(_listings(OTHER_FILES, ([file_row(file)] for file in files), made))
    return Listed({"domains": entries, "files": others}, made)


def _listings(folder: str, groups: Iterator[Rows], made: dict[str, bytes]) -> Iterator[dict[str, Any]]:
    """Make the listings of a folder; their entries for the manifest."""
    parts = list(cut_rows(groups))
    for i, part in enumerate(parts):
        rows = [row for group in part for row in group]
        name = f"{folder}/part-{i:05d}-of-{len(parts):05d}.parquet"
        data = made[name] = dump_listing(rows)
        entry = {"path": name, **checksums(data)._asdict(), "rows": len(rows)}
        heads = [row for row in rows if row["kind"] == "bin"]
        if folder != OTHER_FILES:
            entry |= {"shards": len(heads), **{n: sum(row[n] for row in heads) for n in ("documents", "tokens")}}
        yield entry
