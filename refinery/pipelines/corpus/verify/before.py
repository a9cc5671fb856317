"""A version of a corpus beside the one before it: what stayed is the same, and with what went it is all there was.

Shards that the last takedown's lists name are compared in pieces, by any process (shard_before.py). The others are to
be the same files, whose checksums both manifests have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from refinery.loader.format.manifest import SPLITS, Manifest, ShardEntry
from refinery.loader.format.shard_files import read_file
from refinery.loader.format.shard_list import as_shards
from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA, Takedown, read_rows
from refinery.loader.format.written import CONTENT
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.versions.past import COLUMNS, check_places, listed_file
from refinery.loader.storage.store import Store, size_and_crc32c

Place = tuple[str, str, int]  # split, domain and index of a shard
Range = tuple[int, int]  # of rows of a list: from the first to before the second
NONE: Range = (0, 0)
NOWHERE = -1, 0  # number and size of a shard that is not there


class Compared(Protocol):
    """What a piece found: failures of the shard, and as facts `unfit` (why its lists cannot be of it, or ""), `listed`
    (failures of the documents that are listed as removed from it) and `ends` (whether that check ended early)."""

    content: list[str]
    facts: dict[str, Any]


@dataclass
class Listed:
    """A list of a takedown. rows: of each shard that it names, in the order of their first rows, a range in which all
    of them are. wrong: why rows of a split, or with "" all, cannot be believed."""

    rows: dict[Place, Range] = field(default_factory=dict)
    wrong: dict[str, Exception] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangedShard:
    """A shard that a list names. now, before: its number in the current manifest and in the one before, -1 for none.
    removed, added: where they name it. size: bytes of its documents in both versions."""

    place: Place
    now: int
    before: int
    removed: Range
    added: Range
    size: int

    @property
    def name(self) -> str:
        """Which shard it is, in messages."""
        return "/".join(map(str, self.place))


class Before:
    """The version before the last takedown of a corpus. fault: why the two cannot be compared, "" if they can."""

    def __init__(self, store: Store, manifest: Manifest, prefix: str) -> None:
        self.store, self.manifest, self.prefix = store, manifest, prefix
        self._unreadable: Exception | None = None  # what `judge` raises: the version before may be anything
        self.fault = f"--against {prefix}: no takedown made this corpus; give the version that one made"
        try:
            old = Corpus(prefix)
            self.old, self.before = old.store, old.manifest
        except (ValueError, OSError) as error:
            self.fault = f"--against {prefix}: {error}"
            return
        except Exception as error:  # noqa: BLE001 - see above
            self.fault, self._unreadable = f"--against {prefix}: {type(error).__name__}: {error}", error
            return
        if manifest.takedowns:
            found, expected = old.sha256, self.takedown.previous
            differs = f"--against {prefix}: its manifest has sha256 {found}, the version before has {expected}"
            self.fault = differs if found != expected else ""

    @property
    def takedown(self) -> Takedown:
        """The one between the two."""
        return self.manifest.takedowns[-1]

    @cached_property
    def removed(self) -> Listed:
        """What went. Cost: two reads of the list. Memory: a batch, and some 300 bytes for each shard."""
        return self._list(self.takedown.removed, REMOVED_SCHEMA)

    @cached_property
    def added(self) -> Listed:
        """What came back, as `removed`."""
        return self._list(self.takedown.added, ADDED_SCHEMA) if self.takedown.added else Listed()

    def _list(self, path: str, schema: pa.Schema) -> Listed:
        listed, row = Listed(), 0
        try:
            url, entry = self.store.url(path), listed_file(self.store, {e.path: e for e in self.manifest.files}, path)
            try:
                with self.store.open(path) as stream:
                    found = size_and_crc32c(stream)
            except FileNotFoundError:
                found = None
            if found != (entry.size, entry.crc32c):
                read_file(self.store, entry)  # says so
            with self.store.open(path) as stream:
                for batch in read_rows(stream, schema, url, COLUMNS):
                    _add_rows(listed, batch, row, url)
                    row += len(batch)
        except Exception as error:  # noqa: BLE001 - anybody may have written the list; `judge` raises it in its place
            listed.wrong[""] = error
        return listed

    @cached_property
    def changed_shards(self) -> list[ChangedShard]:
        """Shards that the lists name, of either version. None where lists or versions cannot be compared."""
        if self.fault or "" in self.removed.wrong or "" in self.added.wrong:
            return []
        try:
            return self._changed_shards()
        except Exception as error:  # noqa: BLE001 - see above
            self._unreadable = error
            return []

    def _changed_shards(self) -> list[ChangedShard]:
        named = dict.fromkeys((*self.removed.rows, *self.added.rows, *self._rewritten()))
        now, before = (_numbered(manifest, named) for manifest in (self.manifest, self.before))
        found = []
        for place in sorted({*now, *before}):
            (number, size), (old_number, old_size) = now.get(place, NOWHERE), before.get(place, NOWHERE)
            removed, added = (listed.rows.get(place, NONE) for listed in (self.removed, self.added))
            found.append(ChangedShard(place, number, old_number, removed, added, size + old_size))
        return found

    def _rewritten(self) -> Iterator[Place]:
        """Shards of texts whose files are others: counts of copies, which no list names, stand beside the texts."""
        if self.manifest.has_tokens:
            return
        known = {shard.content.path: shard.content.sha256 for shard in self.before.shards}
        for shard in self.manifest.shards:
            if known.get(shard.content.path, shard.content.sha256) != shard.content.sha256:
                yield shard.split, shard.domain, shard.index

    def judge(self, found: Mapping[Place, Compared]) -> Iterator[str]:
        """Failures of the last takedown, in an order that the two versions decide. found: of `changed_shards`. Raises
        what made a list or the version before unreadable. Cost: the checksums of all shards; memory: the names of those
        of a split."""
        if self._unreadable:
            raise self._unreadable
        if self.fault:
            yield self.fault
            return
        for split in SPLITS:
            now, before = (as_shards(manifest.shards).of(split) for manifest in (self.manifest, self.before))
            paths = [path for path, _ in before.files(CONTENT)]
            known = set(paths)
            if [path for path, _ in now.files(CONTENT) if path in known] != paths:
                yield f"{split}: its shards are not those of {self.prefix}"
                continue
            for wrong in (self.removed.wrong, self.added.wrong):
                if error := wrong.get("") or wrong.get(split):
                    raise error
            unfit = ((split, *place) for place in _places(now))
            if said := next((found[place].facts["unfit"] for place in unfit if _is_unfit(found, place)), ""):
                yield f"{self.prefix}: {said}"
                return
            others = iter(before)
            for shard in now:
                other = next(others) if shard.content.path in known else None
                compared = found.get((split, shard.domain, shard.index))
                yield from self.unchanged(shard, other) if compared is None else compared.content
        yield from self._listed(found)

    def unchanged(self, now: ShardEntry, before: ShardEntry | None) -> Iterator[str]:
        """Failures of a shard that no list names."""
        if before is None:
            if now.documents or now.token_count:
                yield self.is_new(now)
            return
        if wrong := list(same_counts(now, before, now.documents, now.token_count)):
            yield from wrong
            return
        changed = [a.path for a, b in zip(now.files, before.files, strict=True) if a.sha256 != b.sha256]
        if changed and changed != [now.provenance.path]:  # counts of copies may have changed alone
            yield f"{changed[0]}: no document was removed or reinstated, but the file differs"

    def is_new(self, shard: ShardEntry) -> str:
        """The failure of a shard that was not there, and of which not all came."""
        return f"{shard.content.path}: not in {self.prefix}, and not all of its documents are listed as reinstated"

    def _listed(self, found: Mapping[Place, Compared]) -> Iterator[str]:
        for listed in (self.removed, self.added):
            if error := listed.wrong.get(""):
                raise error
        there = _numbered(self.before, self.removed.rows)
        for place in self.removed.rows:
            if place not in there:
                name = "/".join(map(str, place))
                yield f"{self.takedown.removed}: a document of {name} is listed, but there is no such shard"
                continue
            yield from found[place].facts["listed"]
            if found[place].facts["ends"]:
                return


def same_counts(now: ShardEntry, before: ShardEntry, documents: int, tokens: int | None) -> Iterator[str]:
    """A failure unless a shard had what its lists say that it had. tokens: None of texts."""
    if (documents, tokens) != (before.documents, before.token_count):
        also = "" if tokens is None else f" and {now.tokens} tokens"
        made, were = (
            f"{count}" if tokens is None else f"{count} and {sized}"
            for count, sized in ((documents, tokens), (before.documents, before.token_count))
        )
        yield (
            f"{now.content.path}: {now.documents} documents{also} with what went and without what came make {made}, "
            f"{were} were there"
        )


def _add_rows(listed: Listed, batch: pa.RecordBatch, first: int, url: str) -> None:
    """Where the shards' rows are. first: the number of the batch's first row in the list."""
    texts = [batch.column(name).dictionary_encode() for name in COLUMNS[:2]]
    splits, domains = (each.dictionary.to_pylist() for each in texts)
    codes = [np.asarray(each.indices.to_numpy(), np.int64) for each in texts]
    numbers = np.stack([np.asarray(batch.column(name).to_numpy(), np.int64) for name in COLUMNS[2:]], axis=1)
    for code, split in enumerate(splits):
        if split in SPLITS and split not in listed.wrong:
            try:
                check_places(numbers[codes[0] == code], url)
            except ValueError as error:  # FormatError
                listed.wrong[split] = error
    keys = np.stack([*codes, numbers[:, 0]], axis=1)
    starts = np.flatnonzero(np.any(np.diff(keys, axis=0, prepend=keys[:1] - 1), axis=1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(keys)], strict=True):
        split, domain = splits[keys[start, 0]], domains[keys[start, 1]]
        if split:  # else in removals/
            place = split, domain, int(keys[start, 2])
            known = listed.rows.get(place, (first + start, 0))
            listed.rows[place] = min(known[0], first + start), max(known[1], first + stop)


def _numbered(manifest: Manifest, places: Mapping[Place, Any]) -> dict[Place, tuple[int, int]]:
    """The number in the manifest, and bytes of documents, of each of these shards that is there."""
    found, number = dict[Place, tuple[int, int]](), 0
    for run in as_shards(manifest.shards).runs:
        for (index, _), size in zip(run.numbers(), run.files(CONTENT)[1].tolist(), strict=True):
            if (place := (run.split, run.domain, index)) in places:
                found[place] = number, size
            number += 1
    return found


def _places(shards: Any) -> Iterator[tuple[str, int]]:
    return ((run.domain, index) for run in shards.runs for index, _ in run.numbers())


def _is_unfit(found: Mapping[Place, Compared], place: Any) -> bool:
    return place in found and bool(found[place].facts["unfit"])
