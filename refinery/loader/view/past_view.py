"""A view as it was before documents were taken out of its corpora: its samples in their order, without what went.

A view that is made again after a takedown keeps the earlier one's manifest and selection below `earlier/`. Both are
about the corpora as they were; where their tokens are now follows from the takedowns' lists.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import Index
from refinery.loader.format.manifest import SPLITS, Manifest, ShardEntry, unseal
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.format.takedown import Takedown
from refinery.loader.format.view import earlier_folder, read_view
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.token_source import TokenSource
from refinery.loader.read.versions.past import Runs, listed_file
from refinery.loader.read.versions.past_source import Hidden, PastSource
from refinery.loader.read.versions.versions import Finish, NotDelivered, Version
from refinery.loader.storage.fetch import ReadCounters, Stop
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Store
from refinery.loader.view.opened_view import OpenedView

_log = logging.getLogger("refinery.loader")


class PastCorpus:
    """A corpus as it was in an earlier version of it. manifest: with the shards that it had, and what they had. places:
    of each of these, the split's `Past` and its number there."""

    def __init__(self, store: Store, manifest: Manifest, version: str) -> None:
        known = [takedown.previous for takedown in manifest.takedowns]
        if version not in known:
            raise FormatError(f"{store.root}: no later version of the corpus whose manifest has sha256 {version}")
        came = new_shards(store, manifest, manifest.takedowns[known.index(version) :])
        found: list[tuple[int, ShardEntry, Version, int]] = []
        for split in SPLITS:
            past = Version(store, manifest, version, split)
            mine = [(number, entry) for number, entry in enumerate(manifest.shards) if entry.split == split]
            then = past.entries([entry for _, entry in mine])
            for place, ((number, now), entry) in enumerate(zip(mine, then, strict=True)):
                if now.bin.path not in came:
                    found.append((number, entry, past, place))
        found.sort(key=lambda each: each[0])
        self.manifest = replace(manifest, shards=tuple(entry for _, entry, _, _ in found))
        self.places = [(past, place) for _, _, past, place in found]


def new_shards(store: Store, manifest: Manifest, takedowns: Sequence[Takedown]) -> set[str]:
    """Paths of the .bin that takedowns added, as their proofs say. Raises FormatError for a proof that is none."""
    files, found = {file.path: file for file in manifest.files}, set[str]()
    for takedown in takedowns:
        url = store.url(takedown.proof)
        proof = unseal(read_file(store, listed_file(store, files, takedown.proof)), url)
        try:
            found |= {str(each["path"]) for each in proof["shards"]["rewritten"] if each["before"] is None}
        except (KeyError, TypeError) as error:
            raise FormatError(f"{url}: shards: {type(error).__name__}: {error}") from None
    return found


class PastView(OpenedView):
    """The view that `now` was made again of, whose manifest has the sha256 `version`. Raises FormatError where it is
    not there, damaged, or of corpora that are no earlier versions of those of `now`."""

    def __init__(self, now: OpenedView, version: str, remote: RemoteParams | None = None) -> None:
        store = open_store(earlier_folder(now.store.root, version))
        if isinstance(store, RemoteStore) and remote is not None:
            store.params = remote.fetch
        view, data = read_view(store)
        if (found := hashlib.sha256(data).hexdigest()) != version:
            raise FormatError(f"{store.root}: its manifest has sha256 {found}, {version} expected; it is damaged")
        places = {link.name: number for number, link in enumerate(now.view.corpora)}
        corpora: list[Corpus] = []
        self.pasts: list[PastCorpus | None] = []
        self.digests: list[str] = []
        for link in view.corpora:
            if link.name not in places:
                raise FormatError(f"{now.store.root}: its earlier view has a corpus {link.name!r:.80}, and it has none")
            corpus = now.corpora[places[link.name]]
            digest = now.view.corpora[places[link.name]].manifest_sha256
            past = None
            if digest != link.manifest_sha256:
                past = PastCorpus(corpus.store, corpus.manifest, link.manifest_sha256)
            corpora.append(corpus if past is None else corpus.with_manifest(past.manifest))
            self.pasts.append(past)
            self.digests.append(digest)
        self._settle(store, view, version, corpora, remote)

    def _place(self, number: int) -> tuple[Version, int] | None:
        """Where shard `number` of the stream is in the lists of takedowns; None in a corpus that is as it was."""
        corpus, shard = self._chosen[number]
        past = self.pasts[corpus]
        return None if past is None else past.places[shard]

    @property
    def runs(self) -> list[Runs | None]:
        """Of each chosen shard, where its tokens are now."""
        return [None if (at := self._place(n)) is None else at[0].runs[at[1]] for n in range(len(self._chosen))]

    def entries_now(self, entries: Sequence[ShardEntry]) -> list[ShardEntry]:
        """The entries of the chosen shards in the corpus as it is. entries: theirs in the earlier version."""
        places = (self._place(number) for number in range(len(entries)))
        return [entry if at is None else at[0].now[at[1]] for entry, at in zip(entries, places, strict=True)]

    def _digest(self, corpus: int) -> str:
        return self.digests[corpus]

    def index(self, number: int, stop: Stop | None = None) -> Index:
        """The index that a shard had. Raises the same errors as `load_index`."""
        at = self._place(number)
        corpus, shard = self._chosen[number]
        store, manifest = self.corpora[corpus].store, self.corpora[corpus].manifest
        return load_index(store, manifest.shards[shard], stop) if at is None else at[0].index(at[1], stop)

    def document(self, number: int, row: int) -> int:
        """The row that a document has now, GONE if it went."""
        at = self._place(number)
        return row if at is None else at[0].document(at[1], row)

    def index_loader(self, shards: Sequence[ShardEntry], stop: Stop) -> Callable[[int], Index]:
        return lambda number: self.index(number, stop)

    def source(
        self,
        shards: Sequence[ShardEntry],
        remote: RemoteParams | None,
        counters: ReadCounters,
        drawn: Collection[str] | None = None,
        tolerant: bool = False,
    ) -> TokenSource:
        inner = super().source(self.entries_now(shards), remote, counters, drawn, tolerant)
        return PastSource(inner, self, self.manifest.tokenizer.eos_id or 0)

    def hidden(self, domains: Sequence[Any], labels: str, then: Finish) -> Callable[[Any], Any]:
        """As of `Version`."""
        hide = HiddenPieces(self, domains, labels == "unshifted")
        return hide if then is None else lambda prepared: then(hide(prepared))

    @property
    def not_delivered(self) -> NotDelivered:
        """Counts of the shards that the view draws from, whether or not it had taken a document, and the lists."""
        removed = added = gone = came = 0
        for number, runs in enumerate(self.runs):
            at = self._place(number)
            if at is None:
                continue
            documents, more = at[0].changes(at[1])
            removed, added = removed + documents, added + more
            if runs is not None:
                begins, ends = runs.gone()
                gone += int((ends - begins).sum())
                came += at[0].now[at[1]].tokens - int(runs.length[runs.new >= 0].sum())
        return NotDelivered(removed, gone, added, came, self._rows)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for past in self.pasts:
            if past is not None and past.places:
                yield from past.places[0][0].not_delivered.rows()


class HiddenPieces(Hidden):
    """`Hidden`, of domains whose samples are pieces of many documents."""

    def _places(self, d: int, sample: int) -> list[tuple[int, int]]:
        domain, found = self._domains[d], []
        first = sample * domain.length
        ends = np.array([min(first + domain.length + 1, domain.tokens)], np.int64)
        for _, shard, start, count, place in domain.cut(np.array([first], np.int64), ends).tolist():
            if shard in self._gone:
                for begin, end in self.gone_in(shard, start, start + count):
                    found.append((place + begin - start, place + end - start))
        return found


class ViewVersions:
    """The current view, and those that it replaces."""

    def __init__(self, opened: OpenedView, remote: RemoteParams | None) -> None:
        self.opened, self.remote = opened, remote

    def of(self, state: Any, here: str) -> str:
        """The version that a state belongs to, `here` where it is none of this view."""
        given = state.get("corpus") if isinstance(state, Mapping) else None
        known = (self.opened.sha256, *self.opened.view.previous)
        return given if isinstance(given, str) and given in known else here

    def turn(self, version: str) -> tuple[OpenedView, PastView | None]:
        """The view in that version."""
        if version == self.opened.sha256:
            return self.opened, None
        past = PastView(self.opened, version, self.remote)
        return past, past

    def say(self, past: PastView | None) -> None:
        """Say in the log what will not be delivered."""
        if past is not None:
            told = past.not_delivered
            _log.warning(
                "%s: continuing in an earlier view (%s): %d documents with %d tokens of its shards were removed since "
                "and are not delivered (their places are padding without labels); %d with %d tokens were added and are "
                "not part of that view",
                self.opened.store.root, past.sha256[:12], told.documents, told.tokens, told.added, told.added_tokens,
            )  # fmt: skip


__all__ = ["PastCorpus", "PastView", "ViewVersions"]
