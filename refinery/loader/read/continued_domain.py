"""A domain whose first epoch has what is left of one that another stream began; its later epochs are whole."""

from collections.abc import Iterator

import numpy as np

from refinery.loader.order.arrays import I64
from refinery.loader.read.samples import Domain

_CHUNK = 1 << 16  # rows that are counted at a time


class RowsDomain(Domain):
    """Rows of the given spans of a domain's tokens, int64 [n, 2]: each span is cut into rows from its beginning on.

    The last row of a span may be shorter; then its last token has no label. Where Domain counts in tokens of one
    sequence (`ranges`, `ranges_of`), this counts in places of rows. Memory: 16 bytes a row.
    """

    def __init__(self, inner: Domain, spans: I64) -> None:
        self._inner = inner
        counts = -(-(spans[:, 1] - spans[:, 0]) // inner.length)
        of = np.repeat(np.arange(len(spans)), counts)
        number = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._starts = spans[of, 0] + number * inner.length
        self._stops = np.minimum(self._starts + inner.length, spans[of, 1])
        self._begin(inner.name, inner.length, inner.shards, int((spans[:, 1] - spans[:, 0]).sum()), inner._read)
        self.samples = len(of)

    def _read(self) -> tuple[I64, I64, I64]:
        return self._inner._read()

    def inputs_of(self, samples: I64) -> tuple[I64, I64]:
        return self._starts[samples], self._stops[samples]

    def valid(self, samples: I64) -> I64:
        starts, stops = self.inputs_of(np.maximum(samples, 0))
        has_label = (stops - starts == self.length) & (stops < self._inner.tokens)
        found: I64 = np.where(samples < 0, 0, stops - starts + has_label)
        return found

    def first_shards(self, samples: I64) -> I64:
        at: I64 = np.searchsorted(self.starts, self.inputs_of(np.maximum(samples, 0))[0], "right") - 1
        return at

    def pieces(self, samples: I64) -> I64:
        starts = self.inputs_of(np.maximum(samples, 0))[0]
        return self._inner.cut(starts, starts + self.valid(samples))

    def ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        found, _ = self.ranges_of(np.array([first]), np.array([stop]))
        return [(number, begin, end) for number, begin, end in found.tolist()]

    def ranges_of(self, first: I64, stop: I64) -> tuple[I64, I64]:
        """Tokens of the rows of many spans of places, and how many ranges each has. A span ends with a row, or with the
        first place behind one, which counts as none."""
        begin = first // self.length
        end = np.clip(-(-(stop - 1) // self.length), begin, np.maximum(begin, self.samples))
        counts = end - begin
        rows = np.repeat(end - np.cumsum(counts), counts) + np.arange(int(counts.sum()))
        found, each = self._inner.ranges_of(*self.inputs_of(rows))
        of = np.repeat(np.arange(len(counts)), counts)
        return found, np.bincount(of, weights=each, minlength=len(counts)).astype(np.int64)

    def inputs_per_shard(self, samples: I64) -> I64:
        starts, stops = self.inputs_of(samples[samples >= 0])
        before = np.searchsorted(self.starts, starts, "right") - 1
        after = np.searchsorted(self.starts, stops, "left") - 1
        found = np.zeros(len(self.numbers), np.int64)
        inside = before == after
        np.add.at(found, before[inside], (stops - starts)[inside])
        for start, stop in zip(starts[~inside].tolist(), stops[~inside].tolist(), strict=True):
            edges = np.clip(self.starts, start, stop)
            found += np.diff(edges)
        return found


class ContinuedDomain(Domain):
    """`full` in all epochs but the first, which has the rows of `rest`, in an order of its own."""

    def __init__(self, full: Domain, rest: Domain) -> None:
        self.full, self.rest = full, rest
        self._begin(full.name, full.length, full.shards, full.tokens, full._read)
        self.samples, self.periods, self.is_concatenated = full.samples, full.periods, full.is_concatenated
        self.first = rest.samples
        self.base = full.samples * full.periods  # number of the rest's first row, behind those of all epochs
        self._per_shard: I64 | None = None

    def _read(self) -> tuple[I64, I64, I64]:
        return self.full._read()

    @property
    def sequence(self) -> Domain:
        return self.full.sequence

    @property
    def block(self) -> int:
        return self.full.block

    def first_of(self, epoch: int) -> int:
        return self.base if epoch == 0 else self.full.first_of(epoch)

    def has(self, sample: int) -> bool:
        return 0 <= sample < self.base + self.first

    def tokens_in(self, epoch: int) -> I64:
        if epoch:
            return self.full.tokens_in(epoch)
        if self._per_shard is None:
            found = np.zeros(len(self.numbers), np.int64)
            for first in range(0, self.first, _CHUNK):
                found += self.rest.inputs_per_shard(np.arange(first, min(first + _CHUNK, self.first)))
            self._per_shard = found
        return self._per_shard

    def _each(self, samples: I64) -> Iterator[tuple[Domain, I64, I64]]:
        """(domain, which of the samples are of it, their numbers there)."""
        of_rest = samples >= self.base
        for domain, mine, base in ((self.full, ~of_rest, 0), (self.rest, of_rest, self.base)):
            which = np.flatnonzero(mine)
            if len(which):
                yield domain, which, samples[which] - base

    def _joined(self, samples: I64, method: str) -> I64:
        found = np.zeros(len(samples), np.int64)
        for domain, which, own in self._each(samples):
            found[which] = getattr(domain, method)(own)
        return found

    def valid(self, samples: I64) -> I64:
        return self._joined(samples, "valid")

    def first_shards(self, samples: I64) -> I64:
        return self._joined(samples, "first_shards")

    def inputs_of(self, samples: I64) -> tuple[I64, I64]:
        parts = [domain.inputs_of(own) for domain, _, own in self._each(samples)]
        none = np.empty(0, np.int64)
        return tuple(np.concatenate([none, *(part[i] for part in parts)]) for i in range(2))  # type: ignore[return-value]

    def pieces(self, samples: I64) -> I64:
        parts = [np.empty((0, 5), np.int64)]
        for domain, which, own in self._each(samples):
            found = np.array(domain.pieces(own))
            found[:, 0] = which[found[:, 0]]
            parts.append(found)
        pieces = np.concatenate(parts)
        return pieces[np.argsort(pieces[:, 0], kind="stable")]

    def cut(self, begins: I64, ends: I64) -> I64:
        return self.full.cut(begins, ends)

    def ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        behind = self.base * self.length
        return self.full.ranges(first, stop) if first < behind else self.rest.ranges(first - behind, stop - behind)

    def ranges_of(self, first: I64, stop: I64) -> tuple[I64, I64]:
        behind, counts = self.base * self.length, np.zeros(len(first), np.int64)
        parts, owners = [np.empty((0, 3), np.int64)], [np.empty(0, np.int64)]
        for domain, mine, base in ((self.full, first < behind, 0), (self.rest, first >= behind, behind)):
            which = np.flatnonzero(mine)
            if len(which):
                found, counts[which] = domain.ranges_of(first[which] - base, stop[which] - base)
                parts.append(found)
                owners.append(np.repeat(which, counts[which]))
        return np.concatenate(parts)[np.argsort(np.concatenate(owners), kind="stable")], counts

    def inputs_per_shard(self, samples: I64) -> I64:
        found = np.zeros(len(self.numbers), np.int64)
        for domain, _, own in self._each(samples):
            found += domain.inputs_per_shard(own)
        return found
