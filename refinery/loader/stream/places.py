"""Tokens of streams of other shapes under one numbering: so what one has used is known to another.

A domain is a sequence of tokens, made of pieces of shards. Here each shard that a stream reads has numbers of its own,
by its path and checksum, so the same token has the same number for a corpus, a larger one and a view of it. Sets of
tokens are spans: int64 [n, 2], starts and ends, ascending and apart.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from refinery.loader.order.arrays import I64
from refinery.loader.read.samples import Domain
from refinery.loader.read.versions.past import GONE
from refinery.loader.stream.state import StateError

NOTHING: I64 = np.empty((0, 2), np.int64)
Key = tuple[str, ...]


def spans_of(starts: I64, stops: I64) -> I64:
    """Spans of ranges in any order, which may touch and overlap; empty ones are none."""
    some = starts < stops
    starts, stops = starts[some], stops[some]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(stops[order]) if len(order) else stops
    opens = np.append(True, starts[1:] > ends[:-1])[: len(starts)]
    closes = np.append(opens[1:], True)[: len(starts)]
    return np.stack([starts[opens], ends[closes]], axis=1)


def union(one: I64, other: I64) -> I64:
    """What is in either."""
    return spans_of(*np.concatenate([one, other]).T)


def without(one: I64, other: I64) -> I64:
    """What is in the first and not in the second."""
    if not len(one) or not len(other):
        return one
    low, high = int(min(one[0, 0], other[0, 0])), int(max(one[-1, 1], other[-1, 1]))
    gaps = np.stack([np.append(low, other[:, 1]), np.append(other[:, 0], high)], axis=1)
    return within(one, gaps[gaps[:, 0] < gaps[:, 1]])


def within(one: I64, other: I64) -> I64:
    """What is in both."""
    first, last = np.searchsorted(other[:, 1], one[:, 0], "right"), np.searchsorted(other[:, 0], one[:, 1])
    counts = np.maximum(last - first, 0)
    mine = np.repeat(np.arange(len(one)), counts)
    theirs = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(mine))
    starts = np.maximum(one[mine, 0], other[theirs, 0])
    return np.stack([starts, np.minimum(one[mine, 1], other[theirs, 1])], axis=1)


class Pieces(NamedTuple):
    """Of a domain: piece i is its tokens from seq[i] to seq[i + 1], which are numbers from first[i] on."""

    seq: I64
    first: I64

    @property
    def tokens(self) -> I64:
        """The numbers of all tokens."""
        return spans_of(self.first, self.first + np.diff(self.seq))

    def numbers(self, spans: I64) -> I64:
        """The numbers of spans of the domain's tokens."""
        cuts = within(spans, np.stack([self.seq[:-1], self.seq[1:]], axis=1))
        piece = np.searchsorted(self.seq, cuts[:, 0], "right") - 1
        moved = cuts + (self.first - self.seq[:-1])[piece][:, None]
        return spans_of(*moved.T)

    def own(self, numbers: I64) -> I64:
        """The domain's tokens that have these numbers, as spans of the domain."""
        order = np.argsort(self.first, kind="stable")
        first, sizes = self.first[order], np.diff(self.seq)[order]
        cuts = within(np.stack([first, first + sizes], axis=1), numbers)
        piece = order[np.searchsorted(first, cuts[:, 0], "right") - 1]
        moved = cuts + (self.seq[:-1] - self.first)[piece][:, None]
        return spans_of(*moved.T)


class Numbering:
    """Numbers of the tokens of shards, given as they are asked for: the same for the same shards, whatever the stream.

    Where a stream has a shard several times in an epoch, as views that repeat documents have, only streams of the same
    view have the same numbers.
    """

    def __init__(self) -> None:
        self._first: dict[Key, int] = {}
        self._several: dict[Key, Key] = {}  # shards that come several times, and the view
        self._end = 0

    def _of(self, key: Key, tokens: int) -> int:
        if key not in self._first:
            self._first[key] = self._end
            self._end += tokens
        return self._first[key]

    def _more(self, tokens: int) -> int:
        """Numbers of tokens that are nowhere."""
        self._end += tokens
        return self._end - tokens

    def pieces(
        self, domains: Sequence[Domain], opened: Any, shards: Sequence[Any], runs: Sequence[Any] | None = None
    ) -> list[Pieces]:
        """The pieces of each of a stream's domains. shards: entries of the files as they are; runs: of each, where
        tokens of an earlier version, which the domains are of, are now. Cost: 0.3 us for each run of documents of a
        view."""
        names = [(str(entry.bin.path), str(entry.bin.sha256)) for entry in shards]
        numbers = [number for domain in domains for number in domain.numbers.tolist()]
        times = Counter(names[number] for number in numbers)
        for number in numbers:
            mine = ("once",) if times[names[number]] == 1 else ("several", opened.sha256)
            if self._several.setdefault(names[number], mine) != mine:
                raise StateError(
                    f"stream: {opened.path(number, shards[number])} comes several times in an epoch of one of the "
                    "views, so what was used of it has no counterpart; use the same view, and change its weights"
                )
        moved = runs or [None] * len(shards)
        return [self._pieces(domain, opened, shards, moved, names, times) for domain in domains]

    def _pieces(
        self,
        domain: Domain,
        opened: Any,
        shards: Sequence[Any],
        runs: Sequence[Any],
        names: Sequence[Key],
        times: Counter[Key],
    ) -> Pieces:
        """A piece for each run of documents; of shards that come several times, for each segment."""
        some = np.flatnonzero(np.diff(domain.starts))
        begins, ends, numbers = domain.starts[some], domain.starts[some + 1], domain.numbers[some]
        seq, first = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        is_once = np.array([times[names[number]] == 1 for number in numbers.tolist()], np.bool_)
        seen = Counter[Key]()
        for i in np.flatnonzero(~is_once).tolist():
            segment = *names[int(numbers[i])], opened.sha256, str(int(domain.labels[some[i]]))
            seen[segment] += 1
            key = *segment, str(seen[segment])
            seq.append(begins[i : i + 1])
            first.append(np.array([self._of(key, int(ends[i] - begins[i]))]))
        found = domain.cut(begins[is_once], ends[is_once])
        places, bases = begins[is_once][found[:, 0]] + found[:, 4], np.zeros(len(shards), np.int64)
        for number in numbers[is_once].tolist():
            bases[number] = self._of(names[number], shards[number].tokens)
        moved = np.array([runs[number] is not None for number in found[:, 1].tolist()], np.bool_)
        seq.append(places[~moved])
        first.append((bases[found[:, 1]] + found[:, 2])[~moved])
        for place, (_, number, start, size, _) in zip(places[moved].tolist(), found[moved].tolist(), strict=True):
            for begin, now, count in runs[number].pieces(start, start + size):
                seq.append(np.array([place + begin - start]))
                first.append(np.array([self._more(count) if now == GONE else bases[number] + now]))
        every, of = np.concatenate(seq), np.concatenate(first)
        order = np.argsort(every, kind="stable")
        return Pieces(np.append(every[order], domain.tokens), of[order])
