"""A corpus in the geometry of an earlier version of it: where its tokens were, before documents were taken out.

Between two versions a shard's tokens are runs: some are in both, one after the other in the same order, others went,
others came. So the position of every token of the earlier version is known from the lists of what went and came, and a
training run that began on it can go on: each token that is still there comes at its step, in its place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import Index
from refinery.loader.format.manifest import FileEntry, Manifest, ShardEntry
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA, Takedown, read_rows
from refinery.loader.order.arrays import I64
from refinery.loader.storage.fetch import Stop
from refinery.loader.storage.store import Store

MAX_LENGTH = 2**31 - 1  # tokens of a document: an index has them as int32
GONE = -1  # where a run of tokens is now that is there no more
COLUMNS = ("split", "domain", "index", "row", "token_offset", "token_count")
Place = tuple[str, int]  # domain and index of a shard


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Tokens of a shard: run i is [old[i], old[i] + length[i]) of the earlier version, and begins at new[i] now, or is
    GONE. old ascends without gaps, and so does new except where it is GONE. int64 [n] each."""

    old: I64
    new: I64
    length: I64

    @property
    def tokens(self) -> int:
        """Tokens of the earlier version."""
        return int(self.length.sum())

    def pieces(self, start: int, stop: int) -> Iterable[tuple[int, int, int]]:
        """(start, where it is now or GONE, tokens) of every piece of [start, stop) of the earlier version."""
        first = int(np.searchsorted(self.old, start, "right")) - 1
        while start < stop:
            inside = start - int(self.old[first])
            count = min(int(self.length[first]) - inside, stop - start)
            if count > 0:
                now = int(self.new[first])
                yield start, now + inside if now >= 0 else GONE, count
            start, first = start + max(count, 0), first + 1

    def gone(self) -> tuple[I64, I64]:
        """(starts, ends) of what is there no more, ascending."""
        which = (self.new < 0) & (self.length > 0)
        return self.old[which], self.old[which] + self.length[which]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Documents of a shard that went, by their rows, offsets and lengths before, and those that came, by the same of
    now. int64 [n] each, by row."""

    removed: tuple[I64, I64, I64]
    added: tuple[I64, I64, I64]

    def check(self, url: str, documents: int, tokens: int) -> None:
        """Raise FormatError unless a shard that has so many now can have changed like this."""
        if not self.fits(documents, tokens):
            raise FormatError(
                f"{url}: its lists of takedowns name places that a shard of {documents} documents and {tokens} tokens "
                "cannot have had"
            )

    def fits(self, documents: int, tokens: int) -> bool:
        """Whether its rows and offsets are among its own, ascend together, and no document begins inside of another."""
        (gone_rows, gone_at, gone), (came_rows, came_at, came) = self.removed, self.added
        both, both_tokens = documents - len(came), tokens - int(came.sum())
        return both >= 0 and all(
            len(rows) == len(np.unique(rows))
            and bool(np.all(rows < both + len(rows)))
            and bool(np.all(np.diff(at - _before(lengths), prepend=0, append=both_tokens) >= 0))
            for rows, at, lengths in ((gone_rows, gone_at, gone), (came_rows, came_at, came))
        )

    def runs(self, tokens: int) -> Runs:
        """Runs of the version before. tokens: of the shard now."""
        (_, gone_at, gone), (_, came_at, came) = self.removed, self.added
        both = tokens - int(came.sum())  # tokens of both versions, and below: positions among these
        gone_after, came_after = gone_at - _before(gone), came_at - _before(came)
        starts = np.unique(np.concatenate([[0], gone_after, came_after]))
        starts = starts[starts < both]
        old = starts + _sum_up_to(gone_after, gone, starts)
        new = starts + _sum_up_to(came_after, came, starts)
        length = np.diff(np.append(starts, both))
        every = np.concatenate([old, gone_at]), np.concatenate([new, np.full(len(gone), GONE)])
        return _ordered(*every, np.concatenate([length, gone]))

    def index(self, now: Index) -> Index:
        """The index of the version before."""
        lengths = np.delete(now.lengths, self.added[0])
        rows, _, gone = self.removed
        every = np.empty(len(lengths) + len(rows), np.int32)
        stays = np.ones(len(every), np.bool_)
        stays[rows] = False
        every[rows], every[stays] = gone, lengths
        ends = np.cumsum(every, dtype=np.int64) * now.dtype.itemsize
        return Index(now.dtype, every, ends - every.astype(np.int64) * now.dtype.itemsize)


def _before(lengths: I64) -> I64:
    """Sum of what comes before each."""
    return np.cumsum(lengths) - lengths


def _sum_up_to(at: I64, lengths: I64, positions: I64) -> I64:
    """Sum of the lengths of those at or before each position."""
    total = np.concatenate([[0], np.cumsum(lengths)])
    return np.asarray(total[np.searchsorted(at, positions, "right")], np.int64)


def _ordered(old: npt.NDArray[Any], new: npt.NDArray[Any], length: npt.NDArray[Any]) -> Runs:
    some = length > 0
    order = np.argsort(old[some], kind="stable")
    return Runs(*(np.asarray(each[some][order], np.int64) for each in (old, new, length)))


def compose(first: Runs, then: Runs) -> Runs:
    """Runs over two steps: `first` from the earlier version to the middle one, `then` from that to now."""
    kept = first.new >= 0
    old, middle, length = first.old[kept], first.new[kept], first.length[kept]
    if not len(middle):
        return first
    cuts = np.unique(np.concatenate([middle, then.old]))
    run = np.searchsorted(middle, cuts, "right") - 1
    inside = (run >= 0) & (cuts < (middle + length)[run])
    cuts, run = cuts[inside], run[inside]
    ends = np.minimum(np.append(cuts[1:], cuts[-1] + length[run[-1]]), (middle + length)[run])
    step = np.searchsorted(then.old, cuts, "right") - 1
    new = np.where(then.new[step] >= 0, then.new[step] + cuts - then.old[step], GONE)
    begins = old[run] + cuts - middle[run]
    gone = ~kept
    return _ordered(
        np.concatenate([begins, first.old[gone]]),
        np.concatenate([new, np.full(int(gone.sum()), GONE)]),
        np.concatenate([ends - cuts, first.length[gone]]),
    )


class Past:
    """The shards of a split as they were in the version whose manifest has the sha256 `version`.

    Reads the lists of what went and came since, one file at a time; memory: 24 bytes for each document of them in the
    split. Raises KeyError for a version that this corpus does not come from.
    """

    def __init__(self, store: Store, manifest: Manifest, version: str, split: str) -> None:
        steps = [takedown.previous for takedown in manifest.takedowns]
        self.takedowns = manifest.takedowns[steps.index(version) :] if version in steps else ()
        if not self.takedowns:
            raise KeyError(version)
        self._store = store
        files = {file.path: file for file in manifest.files}
        self._steps = [_changes(store, files, takedown, split) for takedown in self.takedowns]
        self._places: list[Place] = []
        self._now: list[ShardEntry] = []
        self.runs: list[Runs | None] = []

    def entries(self, shards: Sequence[ShardEntry]) -> list[ShardEntry]:
        """These shards with the tokens and documents that they had. Keeps their runs, by their numbers. Raises
        FormatError where what the lists say cannot have happened to them."""
        self._now, self._places, self.runs = list(shards), [(shard.domain, shard.index) for shard in shards], []
        found = []
        for shard, place in zip(shards, self._places, strict=True):
            runs, tokens, documents = None, shard.tokens, shard.documents
            for changes in reversed(self._steps):
                if change := changes.get(place):
                    change.check(self._store.url(shard.bin.path), documents, tokens)
                    step = change.runs(tokens)
                    runs = step if runs is None else compose(step, runs)
                    tokens, documents = step.tokens, documents - len(change.added[0]) + len(change.removed[0])
                elif runs is None:
                    continue
            self.runs.append(runs)
            found.append(replace(shard, token_count=tokens, documents=documents))
        return found

    @property
    def now(self) -> Sequence[ShardEntry]:
        """The shards as they are."""
        return self._now

    def index(self, number: int, stop: Stop | None = None) -> Index:
        """The index that a shard had. Raises the same errors as `load_index`."""
        index = load_index(self._store, self._now[number], stop)
        for changes in reversed(self._steps):
            if change := changes.get(self._places[number]):
                index = change.index(index)
        return index

    def document(self, number: int, row: int) -> int:
        """The row that a document of the earlier version has now, GONE if it went."""
        for changes in self._steps:
            if change := changes.get(self._places[number]):
                removed, added = change.removed[0], change.added[0]
                at = int(np.searchsorted(removed, row))
                if at < len(removed) and removed[at] == row:
                    return GONE
                row -= at
                # The k-th document that stays has the k-th row that nothing came into.
                free = added - np.arange(len(added))
                row += int(np.searchsorted(free, row, "right"))
        return row


def _changes(store: Store, files: Mapping[str, FileEntry], takedown: Takedown, split: str) -> dict[Place, Change]:
    """The changes of a takedown in a split, by shard."""
    went = _lists(store, files, takedown.removed, REMOVED_SCHEMA, split)
    came = _lists(store, files, takedown.added, ADDED_SCHEMA, split) if takedown.added else {}
    none: I64 = np.empty(0, np.int64)
    nothing = none, none, none
    return {place: Change(went.get(place, nothing), came.get(place, nothing)) for place in {*went, *came}}


def listed_file(store: Store, files: Mapping[str, FileEntry], path: str) -> FileEntry:
    """The file of a listing. Raises FormatError where the manifest does not list it among its files."""
    if path not in files:
        raise FormatError(f"{store.url(path)}: not in the manifest, which names it among its takedowns")
    return files[path]


def check_places(numbers: I64, url: str) -> None:
    """Raise FormatError for index, row, offset or length, int64 [n, 4], that none of a document are."""
    if numbers.size and (int(numbers.min()) < 0 or int(numbers[:, 3].max()) > MAX_LENGTH):
        raise FormatError(f"{url}: a place that no document can have")


def _lists(
    store: Store, files: Mapping[str, FileEntry], path: str, schema: Any, split: str
) -> dict[Place, tuple[I64, I64, I64]]:
    """(rows, offsets, lengths) of the documents of a listing, by shard and row. Memory: the file, and 48 bytes for each
    of them. Raises FormatError for numbers that none of a document are."""
    data = read_file(store, listed_file(store, files, path))
    domains: dict[str, int] = {}
    parts = [np.empty((0, 5), np.int64)]
    for batch in read_rows(pa.BufferReader(data), schema, store.url(path), COLUMNS):
        rows = pc.filter(batch, pc.equal(batch.column("split"), split))
        names = rows.column("domain").dictionary_encode()
        codes = np.array([domains.setdefault(name, len(domains)) for name in names.dictionary.to_pylist()], np.int64)
        numbers = [rows.column(name).to_numpy() for name in COLUMNS[2:]]
        parts.append(np.stack([codes[names.indices.to_numpy()], *numbers], axis=1))
    rows = np.concatenate(parts)
    rows = rows[np.lexsort(rows[:, 2::-1].T)]
    check_places(rows[:, 1:], store.url(path))
    cuts = np.flatnonzero(np.any(np.diff(rows[:, :2], axis=0), axis=1)) + 1
    of_code = list(domains)
    return {
        (of_code[int(part[0, 0])], int(part[0, 1])): (part[:, 2].copy(), part[:, 3].copy(), part[:, 4].copy())
        for part in np.split(rows, cuts)
        if len(part)
    }
