"""Samples of a view's domain: ranges of tokens of its segments, which are runs of documents of the corpora's shards.

Everything that a stream does with a domain (order, epochs, counts, states) is arithmetic on the view's own tokens; this
module says which tokens of which shards these are, for many samples at a time.
"""

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.selection import Selection
from refinery.loader.native import runs
from refinery.loader.order.arrays import I64
from refinery.loader.read.samples import Domain

_TOGETHER = 512  # spans whose blocks are unpacked at a time, about 2 MB


class SelectedDomain(Domain):
    """Segments [first, stop) of a selection. numbers: the source's number of each segment's shard; sizes: tokens of
    that shard. labels: as Domain's. fetched: tokens in a block that remote reading fetches.

    Memory: 40 bytes per segment; runs are looked up in the selection. Raises FormatError where a run ends outside of
    its shard, when it is first looked up.
    """

    is_concatenated = False

    def __init__(
        self,
        name: str,
        selection: Selection,
        first: int,
        stop: int,
        *,
        numbers: I64,
        sizes: I64,
        labels: I64,
        sequence_length: int,
        fetched: int,
    ) -> None:
        tokens = selection.segments["tokens"][first:stop].astype(np.int64)
        super().__init__(name, zip(numbers.tolist(), tokens.tolist(), strict=True), sequence_length, labels.tolist())
        self._selection, self._first, self._sizes, self._fetched = selection, first, sizes, fetched
        self._base = int(selection.starts[first])
        self._counts: I64 = selection.segments["runs"][first:stop].astype(np.int64)
        self._blocks: I64 = selection.first_block[first : stop + 1]

    @property
    def block(self) -> int:
        """Fewer samples than of a corpus, by the share of the shards that is chosen, so as many bytes are read."""
        return max(1, int(super().block * self.tokens / max(int(self._sizes.sum()), 1)))

    def pieces(self, samples: I64) -> I64:
        begins = np.maximum(samples, 0) * self.length
        return self.cut(begins, begins + self.valid(samples))

    def ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        stop = min(stop, self.tokens)
        if first >= stop:
            return []
        _, shard, start, size, _ = self.cut(np.array([first]), np.array([stop])).T
        found: list[tuple[int, int, int]] = list(
            zip(shard.tolist(), start.tolist(), (start + size).tolist(), strict=True)
        )
        return found

    def ranges_of(self, first: I64, stop: I64) -> tuple[I64, I64]:
        """What is fetched, and later released, for many spans of tokens, and how many ranges each has: `_spans`.

        Cost: 15 us per span, vectorised; a loop over the spans that are in several segments, or in a whole one.
        """
        stop = np.minimum(stop, self.tokens)
        segment = np.minimum(np.searchsorted(self.starts, first, "right") - 1, len(self.numbers) - 1)
        simple = (first < stop) & (stop <= self.starts[segment + 1]) & (self._counts[segment] > 0)
        counts = np.zeros(len(first), np.int64)
        parts, owners = [np.empty((0, 3), np.int64)], [np.empty(0, np.int64)]
        chosen = np.flatnonzero(simple)
        for begin in range(0, len(chosen), _TOGETHER):
            some = chosen[begin : begin + _TOGETHER]
            found, counts[some] = self._spans_inside(segment[some], first[some], stop[some])
            parts.append(found)
            owners.append(np.repeat(some, counts[some]))
        for i in np.flatnonzero(~simple).tolist():
            parts.append(np.array(self._spans(int(first[i]), int(stop[i])), np.int64).reshape(-1, 3))
            counts[i] = len(parts[-1])
            owners.append(np.full(counts[i], i))
        return np.concatenate(parts)[np.argsort(np.concatenate(owners), kind="stable")], counts

    def _spans(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        """As `ranges`, with the gaps between runs that are shorter than a fetched block, for blocks are read whole.

        A gap belongs to the run before it, and ends next to longer ones are those of blocks: so the spans of a turn,
        put together, have every block that any of them touches as a whole, and it is released after the last of them.
        """
        found: list[tuple[int, int, int]] = []
        segment = int(np.searchsorted(self.starts, first, "right")) - 1
        while first < stop:
            end = min(int(self.starts[segment + 1]), stop)
            if self._counts[segment]:
                spans, _ = self._spans_inside(np.array([segment]), np.array([first]), np.array([end]))
                found += [(number, begin, until) for number, begin, until in spans.tolist()]
            elif first < end:
                base = int(self.starts[segment])
                found.append((int(self.numbers[segment]), first - base, end - base))
            first, segment = end, segment + 1
        return found

    def _spans_inside(self, segments: I64, first: I64, stop: I64) -> tuple[I64, I64]:
        """Of spans of tokens [first, stop) of this domain, each in one segment with runs: (number, begin, end) in its
        shard, int64 [n, 3], one after another, and how many each has."""
        selection, its = self._selection, segments + self._first
        low = np.maximum(selection.block_at(first + self._base, its) - 1, self._blocks[segments])
        high = np.minimum(selection.block_at(stop - 1 + self._base, its) + 1, self._blocks[segments + 1] - 1)
        many = high - low + 1  # with the runs before and behind
        span = np.repeat(np.arange(len(segments)), many)
        blocks = np.repeat(low - (np.cumsum(many) - many), many) + np.arange(len(span))
        _, tokens, starts, lengths = self._runs(blocks, segments[span])
        some = lengths > 0
        span = np.broadcast_to(span[:, None], some.shape)[some]
        tokens, starts, lengths = tokens[some], starts[some], lengths[some]
        ends, size, unit = starts + lengths, self._sizes[segments][span], self._fetched
        is_first = np.append(True, span[1:] != span[:-1])
        following = np.where(np.append(is_first[1:], True), size, np.append(starts[1:], 0))
        before = np.where(is_first, 0, np.append(0, ends[:-1]))
        up, down = np.minimum(-(-ends // unit) * unit, size), starts // unit * unit
        until = np.where(following - ends < unit, following, up)
        since = np.where(starts - before < unit, starts, down)
        since[is_first & (low == self._blocks[segments])[span] & (starts < unit)] = 0
        mine = (tokens + lengths > first[span]) & (tokens < stop[span])
        begin = np.where(tokens < first[span], starts + first[span] - tokens, since)[mine]
        end = np.where(tokens + lengths > stop[span], starts + stop[span] - tokens, until)[mine]
        span = span[mine]
        joined = (begin[1:] == end[:-1]) & (span[1:] == span[:-1])
        opens, closes = np.append(True, ~joined), np.append(~joined, True)
        found = np.stack([self.numbers[segments][span[opens]], begin[opens], end[closes]], axis=1)
        return found, np.bincount(span[opens], minlength=len(segments))

    def cut(self, begins: I64, ends: I64) -> I64:
        """Domain.pieces of the tokens [begins, ends) of each row. Cost: 0.3 us for each block that a row is in."""
        found = runs.cut(
            begins, ends, self.starts, self._blocks, self._counts, self._sizes, self.numbers,
            *self._selection.blocks, self._base,
        )  # fmt: skip
        if isinstance(found, int):
            segment = int(np.searchsorted(self._blocks, found, "right")) - 1
            self._runs(np.array([found]), np.array([segment]))  # says what is wrong
            raise FormatError(f"{self._selection.what}: block {found} is not in order; it is damaged or forged")
        return np.frombuffer(found, np.int64).reshape(-1, 5)

    def _runs(self, blocks: I64, segments: I64) -> tuple[I64, I64, I64, I64]:
        """Of blocks: the domain's token behind each, and of their runs first token in the domain and in the shard, and
        tokens. Raises FormatError for runs that end outside of their shard."""
        found = self._selection.runs(blocks, segments + self._first)
        tokens = found.tokens - self._base
        wrong = (found.starts + found.lengths).max(axis=1, initial=0, where=found.lengths > 0) > self._sizes[segments]
        if wrong.any():
            raise FormatError(
                f"{self._selection.what}: block {int(blocks[wrong][0])} has runs outside of its shard of "
                f"{int(self._sizes[segments[wrong][0]])} tokens; it is damaged or forged"
            )
        return tokens[:, -1] + found.lengths[:, -1], tokens, found.starts, found.lengths
