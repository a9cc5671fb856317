"""The shards of a corpus as a sequence that reads its listings when they are first needed.

A stream asks for columns (tokens, sizes, paths) of whole domains and for single shards: neither takes an object for
each of 100,000 shards.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError, NoTokens
from refinery.loader.format.entries import FileEntry, ShardEntry
from refinery.loader.format.listing import MAX_BYTES, Listing, arrow, file_entries, first_rows, read_listing
from refinery.loader.format.shard_files import check_bin_size, read_file
from refinery.loader.format.written import WrittenFiles
from refinery.loader.storage.store import Store

I64 = npt.NDArray[np.int64]
THREADS = 4  # that read listings: their requests overlap, and what each takes of memory adds up
RECENT, RECENT_BYTES = 64, 1 << 18  # decoded listings that a process remembers, and what one may take of memory


class Listings(Protocol):
    """Where listings are read from."""

    def read(self, file: FileEntry) -> bytes:
        """The bytes of a listing, which have the checksums of the manifest. Raises FormatError."""

    def url(self, path: str) -> str:
        """What it is called in messages."""


@dataclass(frozen=True)
class HeldListings:
    """Listings in memory, by path, that are not published yet."""

    files: Mapping[str, bytes]

    def read(self, file: FileEntry) -> bytes:
        return self.files[file.path]

    def url(self, path: str) -> str:
        return path


@dataclass(frozen=True)
class StoredListings:
    """Those of a published corpus."""

    store: Store

    def read(self, file: FileEntry) -> bytes:
        if file.size > MAX_BYTES:
            raise FormatError(f"{self.url(file.path)}: {file.size} bytes in the manifest, {MAX_BYTES} at most expected")
        data = read_file(self.store, file)
        if (found := hashlib.sha256(data).hexdigest()) != file.sha256:
            raise FormatError(f"{self.url(file.path)}: sha256 {found} found, {file.sha256} expected from the manifest")
        return data

    def url(self, path: str) -> str:
        return self.store.url(path)


class Run(Protocol):
    """Neighbouring shards of one domain of a split. What is not a count may read a listing, and raise FormatError."""

    split: str
    domain: str
    shards: int
    documents: int
    tokens: int

    @property
    def is_loaded(self) -> bool:
        """Whether all of it is in memory."""

    def load(self) -> None:
        """Read what is not in memory yet."""

    def counts(self, name: str) -> I64:
        """int64 [shards]: `documents` or `tokens` of each. Raises NoTokens where these are texts."""

    def files(self, kind: str) -> tuple[list[str], I64]:
        """Paths and sizes of the shards' files of a kind that each has: `bin`, `idx` or, with one, `provenance`;
        CONTENT is the kind with the documents. Raises NoTokens as `counts`."""

    def numbers(self) -> list[tuple[int, int]]:
        """Of each shard its number in its domain, and of how many."""

    def all_files(self) -> tuple[int, int]:
        """How many files the shards have, of all kinds, and their bytes."""

    def entries(self, first: int, stop: int) -> list[ShardEntry]:
        """Shards [first, stop)."""


class HeldRun:
    """Shards that are in memory: those of a manifest of version 1. Or files of packed rows, as a stream counts them."""

    def __init__(self, entries: Sequence[Any]) -> None:
        self._entries = list(entries)
        self.split, self.domain, self.shards = entries[0].split, entries[0].domain, len(entries)
        self.documents = sum(entry.documents for entry in entries)
        self.tokens = sum(entry.tokens for entry in entries)

    @property
    def is_loaded(self) -> bool:
        return True

    def load(self) -> None:
        return

    def counts(self, name: str) -> I64:
        return np.array([getattr(entry, name) for entry in self._entries], np.int64)

    def files(self, kind: str) -> tuple[list[str], I64]:
        found: list[FileEntry] = [getattr(entry, kind or "content") for entry in self._entries]
        return [file.path for file in found], np.array([file.size for file in found], np.int64)

    def numbers(self) -> list[tuple[int, int]]:
        return [(entry.index, entry.count) for entry in self._entries]

    def all_files(self) -> tuple[int, int]:
        sizes = [file.size for entry in self._entries for file in (*entry.files, *entry.packed)]
        return len(sizes), sum(sizes)

    def entries(self, first: int, stop: int) -> list[ShardEntry]:
        return self._entries[first:stop]


class ListedRun:
    """The shards of a listing. count: of the domain's shards, written or not. source: where the listing is read from.

    Memory, once it was read: some 200 bytes a shard, and 4 for each MiB of its tokens.
    """

    def __init__(
        self, split: str, domain: str, count: int, listing: Listing, written: WrittenFiles, source: Listings
    ) -> None:
        self.split, self.domain, self.count = split, domain, count
        self.shards, self.documents, self.tokens = listing.shards, listing.documents, listing.tokens
        self.listing, self._written, self._source = listing, written, source
        self._found: tuple[Any, I64] | None = None

    @property
    def is_loaded(self) -> bool:
        return self._found is not None

    def load(self) -> None:
        if self._found is None:
            data = self._source.read(self.listing.file)
            self._found = _decoded(data, self.listing, self._written, self._source.url(self.listing.file.path))

    def _table(self) -> tuple[Any, I64]:
        self.load()
        assert self._found is not None  # noqa: S101 - `load` has set it
        return self._found

    def counts(self, name: str) -> I64:
        if name == "tokens" and not self._written.has_tokens:
            raise NoTokens(self._source.url(self.listing.file.path))
        table, bounds = self._table()
        return np.asarray(table[name].take(arrow(bounds[:-1])).to_numpy(), np.int64)

    def files(self, kind: str) -> tuple[list[str], I64]:
        place = self._written.place(kind, self._source.url(self.listing.file.path))
        table, bounds = self._table()
        rows = arrow(bounds[:-1] + place)
        return table["path"].take(rows).to_pylist(), np.asarray(table["size"].take(rows).to_numpy(), np.int64)

    def numbers(self) -> list[tuple[int, int]]:
        table, bounds = self._table()
        return [(number, self.count) for number in table["shard"].take(arrow(bounds[:-1])).to_pylist()]

    def all_files(self) -> tuple[int, int]:
        table, _ = self._table()
        return table.num_rows, int(table["size"].to_numpy().sum())

    def entries(self, first: int, stop: int) -> list[ShardEntry]:
        table, bounds = self._table()
        base = int(bounds[first])
        rows = table.slice(base, int(bounds[stop]) - base)
        files, indices = file_entries(rows), rows["shard"].to_pylist()
        documents, tokens = (rows[name].to_pylist() for name in ("documents", "tokens"))
        found, has_provenance = [], self._written.has_provenance
        own = len(self._written.kinds)
        for begin, end in zip(bounds[first:stop].tolist(), bounds[first + 1 : stop + 1].tolist(), strict=True):
            at, mine = begin - base, files[begin - base : end - base]
            found.append(
                ShardEntry(
                    self.split, self.domain, indices[at], self.count, documents[at], tokens[at],
                    tuple(mine[: self._written.holding]), mine[own - 1] if has_provenance else None, tuple(mine[own:]),
                )
            )  # fmt: skip
        return found


# Streams are opened again and again: of validation every thousand steps, of each domain that is measured by itself. The
# bytes are read and compared each time. No lock, which a child forked meanwhile would find taken.
_recent: dict[tuple[bytes, Listing, WrittenFiles], tuple[Any, I64]] = {}


def _decoded(data: bytes, listing: Listing, written: WrittenFiles, what: str) -> tuple[Any, I64]:
    """The rows of a listing and the first row of each shard. Cost: 2 ms, once in a process for the last RECENT small
    ones. Raises FormatError."""
    key = (hashlib.sha256(data).digest(), listing, written) if len(data) <= RECENT_BYTES else None
    if key is not None and (known := _recent.get(key)) is not None:
        return known
    table = read_listing(data, listing, what, written)
    found = table, first_rows(table, listing, written, what)
    if key is not None and table.nbytes <= RECENT_BYTES:
        _recent[key] = found
        for old in list(_recent)[:-RECENT]:
            _recent.pop(old, None)
    return found


class Shards(Sequence[ShardEntry]):
    """Shards in the order of the manifest. Equal to any other sequence of the same shards.

    `in` and `==` go through all shards; `of` and the counts of runs read nothing.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = tuple(runs)
        self.ends: I64 = np.cumsum([0, *(run.shards for run in self.runs)], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1])

    @overload
    def __getitem__(self, at: int) -> ShardEntry: ...
    @overload
    def __getitem__(self, at: slice) -> list[ShardEntry]: ...
    def __getitem__(self, at: int | slice) -> ShardEntry | list[ShardEntry]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        number = at + len(self) if at < 0 else at
        if not 0 <= number < len(self):
            raise IndexError(f"shard {at} of {len(self)}")
        run = int(np.searchsorted(self.ends, number, "right")) - 1
        place = number - int(self.ends[run])
        return self.runs[run].entries(place, place + 1)[0]

    def __iter__(self) -> Iterator[ShardEntry]:
        for run in self.runs:
            yield from run.entries(0, run.shards)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(_same, self, other))

    __hash__ = None  # type: ignore[assignment]

    def of(self, split: str) -> "Shards":
        """Those of a split."""
        return Shards(run for run in self.runs if run.split == split)

    def load(self, domains: Collection[str] | None = None) -> None:
        """Read all listings (those of some domains) that were not read yet, several at a time."""
        runs = [run for run in self.runs if not run.is_loaded and (domains is None or run.domain in domains)]
        if len(runs) < 2:
            for run in runs:
                run.load()
            return
        with ThreadPoolExecutor(THREADS, "refinery-listings") as pool:
            for _ in pool.map(lambda run: run.load(), runs):
                pass

    def domains(self) -> list[str]:
        """The names of their domains, in order."""
        return list(dict.fromkeys(run.domain for run in self.runs))

    def counts(self, name: str, domains: Collection[str] | None = None) -> I64:
        """int64 [shards]: `documents` or `tokens` of each; 0 where only those of some domains are wanted."""
        return self._column(lambda run: run.counts(name), domains)

    def files(self, kind: str, domains: Collection[str] | None = None) -> Iterator[tuple[str, int]]:
        """Path and size of each file of that kind, only those of some domains."""
        self.load(domains)
        for run in self.runs:
            if domains is None or run.domain in domains:
                paths, sizes = run.files(kind)
                yield from zip(paths, sizes.tolist(), strict=True)

    def named(self, kind: str) -> Iterator[tuple[tuple[str, str, int], int, str]]:
        """((split, domain, how many), number, path of the file of that kind) of each, without an object for each."""
        for run in self.runs:
            for (number, count), path in zip(run.numbers(), run.files(kind)[0], strict=True):
                yield (run.split, run.domain, count), number, path

    def having(self, kind: str, paths: Collection[str]) -> Iterator[ShardEntry]:
        """Those whose file of that kind is one of these, without an object for each of the others."""
        every = (path for run in self.runs for path in run.files(kind)[0]) if paths else ()
        return (self[at] for at, path in enumerate(every) if path in paths)

    def all_files(self) -> tuple[int, int]:
        """How many files they have, of all kinds, and their bytes, without an object for each."""
        counts = [run.all_files() for run in self.runs]
        return sum(count for count, _ in counts), sum(size for _, size in counts)

    def sizes(self, domains: Collection[str] | None = None) -> I64:
        """int64 [shards]: bytes of each .bin, as `counts`."""
        return self._column(lambda run: run.files("bin")[1], domains)

    def _column(self, of: Callable[[Run], I64], domains: Collection[str] | None) -> I64:
        self.load(domains)
        none = np.empty(0, np.int64)
        parts = [
            of(run) if domains is None or run.domain in domains else np.zeros(run.shards, np.int64) for run in self.runs
        ]
        return np.concatenate([none, *parts])

    def paths(self) -> list[str]:
        """The .bin of each."""
        return [path for path, _ in self.files("bin")]


def _same(one: Any, other: Any) -> bool:
    return bool(one == other)


def as_shards(entries: Sequence[Any]) -> Shards:
    """The same shards, with columns."""
    if isinstance(entries, Shards):
        return entries
    return Shards(HeldRun(list(run)) for _, run in groupby(entries, lambda entry: (entry.split, entry.domain)))


def check_bin_sizes(store: Store, shards: Shards, dtype: npt.DTypeLike, domains: Collection[str] | None = None) -> None:
    """Raise FormatError unless the sizes of the .bin fit their numbers of tokens."""
    expected = shards.counts("tokens", domains).astype(np.float64) * np.dtype(dtype).itemsize
    for number in np.flatnonzero(shards.sizes(domains) != expected).tolist():
        check_bin_size(store, shards[number], dtype)


class Bins(Sequence[FileEntry]):
    """The .bin of shards, each looked up when it is asked for."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def __len__(self) -> int:
        return len(self._shards)

    @overload
    def __getitem__(self, at: int) -> FileEntry: ...
    @overload
    def __getitem__(self, at: slice) -> list[FileEntry]: ...
    def __getitem__(self, at: int | slice) -> FileEntry | list[FileEntry]:
        return [entry.bin for entry in self._shards[at]] if isinstance(at, slice) else self._shards[at].bin


class ListedFiles(Sequence[FileEntry]):
    """The files that no shard has, read when they are first needed."""

    def __init__(self, listings: Sequence[Listing], source: Listings) -> None:
        self._listings, self._source = tuple(listings), source
        self._found: tuple[FileEntry, ...] | None = None

    def _files(self) -> tuple[FileEntry, ...]:
        if self._found is None:
            self._found = tuple(file for listing in self._listings for file in self._of(listing))
        return self._found

    def _of(self, listing: Listing) -> list[FileEntry]:
        what = self._source.url(listing.file.path)
        table = read_listing(self._source.read(listing.file), listing, what)
        if table["shard"].null_count != len(table) or set(table["kind"].to_pylist()) - {""}:
            raise FormatError(f"{what}: a file of a shard found, files of no shard expected")
        return file_entries(table)

    def __len__(self) -> int:
        return sum(listing.rows for listing in self._listings)

    @overload
    def __getitem__(self, at: int) -> FileEntry: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[FileEntry, ...]: ...
    def __getitem__(self, at: int | slice) -> FileEntry | tuple[FileEntry, ...]:
        return self._files()[at]

    def __iter__(self) -> Iterator[FileEntry]:
        return iter(self._files())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._files() == tuple(other)

    __hash__ = None  # type: ignore[assignment]
