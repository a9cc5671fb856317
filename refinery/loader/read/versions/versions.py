"""The earlier versions of a corpus that a stream can go on in, and what it then does not deliver."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.format.takedown import ADDED_SCHEMA, REMOVED_SCHEMA, read_rows, totals_of
from refinery.loader.read.versions.past import Past
from refinery.loader.read.versions.past_source import Hidden, PastSource
from refinery.loader.storage.store import Store

_log = logging.getLogger("refinery.loader")
Finish = Callable[[Any], Any] | None


@dataclass(frozen=True)
class NotDelivered:
    """What a stream leaves out that goes on in an earlier version of its corpus, or that reads around damage.

    documents, tokens: of its shards, that went since; in every epoch their places are filled, and no label. added,
    added_tokens: added since then; only a stream that begins on the current version delivers them. damaged_tokens:
    inputs of this rank's rows that could not be read; damaged: (path of the shard, epoch, first token, end) of runs of
    them, all of them if is_complete (a state has room for some).
    """

    documents: int
    tokens: int
    added: int
    added_tokens: int
    _listings: Callable[[], Iterator[dict[str, Any]]]
    damaged_tokens: int = 0
    damaged: tuple[tuple[str, int, int, int], ...] = ()
    is_complete: bool = True

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every document that went from the shards or came, in all splits: `kind` ("removed" or "added"), id (hex),
        url, source, origin, split, domain, index (of the shard), row, token_offset, token_count, in the version before
        or after its takedown. Then each part of a document that is damaged: `kind` "damaged", and `epoch`; token_offset
        and token_count are those of the part; row is -1 and the address "" where the index is damaged, too."""
        return self._listings()


class Version(Past):
    """An earlier version of a corpus, as a stream needs it."""

    def hidden(self, domains: Sequence[Any], labels: str, then: Finish) -> Callable[[Any], Any]:
        """What finishes a batch: hides what is there no more, then does what else is asked for."""
        hide = Hidden(self, domains, labels == "unshifted")
        return hide if then is None else lambda prepared: then(hide(prepared))

    def source(self, inner: Any, fill: int) -> PastSource:
        """The tokens by their positions in this version."""
        return PastSource(inner, self, fill)

    def changes(self, number: int) -> tuple[int, int]:
        """How many documents of a shard went since, and how many came."""
        steps = [found for changes in self._steps if (found := changes.get(self._places[number]))]
        return sum(len(each.removed[0]) for each in steps), sum(len(each.added[0]) for each in steps)

    @property
    def not_delivered(self) -> NotDelivered:
        """Counts of the current shards, and the lists."""
        removed = added = 0
        for changes in self._steps:
            for place in set(self._places) & set(changes):
                removed += len(changes[place].removed[0])
                added += len(changes[place].added[0])
        gone = sum(int(sum(ends - begins)) for begins, ends in (r.gone() for r in self.runs if r is not None))
        there = sum(shard.tokens for shard in self._now)
        came = there - sum(int(r.length[r.new >= 0].sum()) if r is not None else shard.tokens
                           for r, shard in zip(self.runs, self._now, strict=True))  # fmt: skip
        return NotDelivered(removed, gone, added, came, self._rows)

    def _rows(self) -> Iterator[dict[str, Any]]:
        columns = ["id", "url", "source", "origin", "split", "domain", "index", "row", "token_offset", "token_count"]
        for takedown in self.takedowns:
            lists = (("removed", takedown.removed, REMOVED_SCHEMA), ("added", takedown.added, ADDED_SCHEMA))
            for kind, path, schema in lists:
                if path:
                    with self._store.open(path) as stream:
                        for batch in read_rows(stream, schema, self._store.url(path), columns):
                            for row in batch.to_pylist():
                                if row["split"]:
                                    yield {"kind": kind, **row, "id": row["id"].hex()}


@dataclass(frozen=True)
class Versions:
    """The current corpus. published: sha256 of its manifest."""

    store: Store
    manifest: Manifest
    published: str

    def of(self, state: Any, here: str) -> str:
        """The version that a state belongs to, `here` where it is none of this corpus."""
        given = state.get("corpus") if isinstance(state, Mapping) else None
        known = (self.published, *(takedown.previous for takedown in self.manifest.takedowns))
        return given if isinstance(given, str) and given in known else here

    def turn(
        self, version: str, shards: Sequence[ShardEntry], split: str, past: Past | None
    ) -> tuple[Version | None, list[ShardEntry]]:
        """The version, None for the published one, and the chosen shards as they are in it. past: that of `shards`.

        Says in the log what will not be delivered.
        """
        now = list(past.now) if past is not None else list(shards)
        if version == self.published:
            return None, now
        found = Version(self.store, self.manifest, version, split)
        entries = found.entries(now)
        told, totals = found.not_delivered, totals_of(found.takedowns)
        _log.warning(
            "%s: going on in an earlier version (%s): %d documents with %d tokens of these shards were taken out since "
            "and are not delivered (their places are filled, and no label); %d with %d tokens came and are not part of "
            "that version (of all splits: %d and %d documents)",
            self.store.root, version[:12], told.documents, told.tokens, told.added, told.added_tokens,
            totals["documents"], totals["added_documents"],
        )  # fmt: skip
        return found, entries
