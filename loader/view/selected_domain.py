"""Samples of a view's domain: ranges of tokens of its segments, which are runs of documents of the corpora's shards.

Everything that a stream does with a domain (order, epochs, counts, states) is arithmetic on the view's own tokens; this
module says which tokens of which shards these are, for many samples at a time.
"""

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.selection import Selection
from refinery.loader.order.arrays import I64
from refinery.loader.tokens.samples import Domain


class SelectedDomain(Domain):
    """Segments [first, stop) of a selection. numbers: the source's number of each segment's shard; sizes: tokens of
    that shard. labels: as Domain's. fetched: tokens in a block that remote reading fetches.

    Memory: 40 bytes per segment; runs are looked up in the selection. Raises FormatError where a run ends outside of
    its shard, when it is first looked up.
    """

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
        self._is_whole: npt.NDArray[np.bool_] = selection.segments["runs"][first:stop] == 0
        self._last: tuple[I64, tuple[I64, I64, I64, I64, I64]] | None = None

    @property
    def block(self) -> int:
        """Fewer samples than of a corpus, by the share of the shards that is chosen, so that as many bytes are read."""
        return max(1, int(super().block * self.tokens / max(int(self._sizes.sum()), 1)))

    def locate(self, samples: I64) -> tuple[I64, I64, I64, npt.NDArray[np.bool_]]:
        first = samples * self.length
        valid = np.clip(self.tokens - first, 0, self.length + 1)
        valid[samples < 0] = 0
        rows, shard, start, size, _ = self.pieces(samples)
        found = np.zeros((3, len(samples)), np.int64)
        its, at = np.unique(rows, return_index=True)  # the first piece of each row
        found[:, its] = shard[at], start[at], size[at]
        return found[0], found[1], valid, found[2] == self.length + 1

    def pieces(self, samples: I64) -> tuple[I64, I64, I64, I64, I64]:
        last = self._last
        if last is not None and np.array_equal(last[0], samples):
            return last[1]
        begins = np.maximum(samples, 0) * self.length
        ends = np.where(samples < 0, begins, np.minimum(begins + self.length + 1, self.tokens))
        found = self.cut(begins, ends)
        self._last = samples.copy(), found
        return found

    def ranges(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        stop = min(stop, self.tokens)
        if first >= stop:
            return []
        _, shard, start, size, _ = self.cut(np.array([first]), np.array([stop]))
        found: list[tuple[int, int, int]] = list(
            zip(shard.tolist(), start.tolist(), (start + size).tolist(), strict=True)
        )
        return found

    def ranges_of(self, first: I64, stop: I64) -> tuple[I64, I64]:
        """What is fetched, and later released, for many spans of tokens, and how many ranges each has: `_spans`."""
        each = [self._spans(begin, end) for begin, end in zip(first.tolist(), stop.tolist(), strict=True)]
        found = np.array([span for spans in each for span in spans], np.int64).reshape(-1, 3)
        return found, np.array([len(spans) for spans in each], np.int64)

    def _spans(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        """As `ranges`, with the gaps between runs that are shorter than a fetched block, for blocks are read whole.

        A gap belongs to the run before it, and ends next to longer ones are those of blocks: so the spans of a turn,
        put together, have every block that any of them touches as a whole, and it is released after the last of them.
        """
        found: list[tuple[int, int, int]] = []
        stop = min(stop, self.tokens)
        segment = int(np.searchsorted(self.starts, first, "right")) - 1
        while first < stop:
            end = min(int(self.starts[segment + 1]), stop)
            number = int(self.numbers[segment])
            if self._is_whole[segment]:
                base = int(self.starts[segment])
                found.append((number, first - base, end - base))
            else:
                begins, ends = self._spans_inside(segment, first, end)
                found += zip([number] * len(begins), begins.tolist(), ends.tolist(), strict=True)
            first, segment = end, segment + 1
        return found

    def _spans_inside(self, segment: int, first: int, stop: int) -> tuple[I64, I64]:
        """Begins and ends in the shard of the spans for tokens [first, stop) of this domain, all in one segment."""
        selection, its = self._selection, segment + self._first
        here = np.array([its])
        a = int(selection.block_at(np.array([first + self._base]), here)[0])
        z = int(selection.block_at(np.array([stop - 1 + self._base]), here)[0])
        last_block = int(selection.first_block[its + 1]) - 1
        first_block = int(selection.first_block[its])
        blocks = np.arange(max(a - 1, first_block), min(z + 1, last_block) + 1)  # with the runs before and behind
        _, tokens, starts, lengths = self._runs(blocks, np.full(len(blocks), segment))
        some = lengths > 0
        tokens, starts, lengths = tokens[some], starts[some], lengths[some]
        ends, size, unit = starts + lengths, int(self._sizes[segment]), self._fetched
        following = np.append(starts[1:], size)
        up, down = np.minimum(-(-ends // unit) * unit, size), starts // unit * unit
        until = np.where(following - ends < unit, following, up)
        before = np.append(0, ends[:-1])
        since = np.where(starts - before < unit, starts, down)
        if blocks[0] == first_block and starts[0] < unit:
            since[0] = 0
        mine = (tokens + lengths > first) & (tokens < stop)
        begin = np.where(tokens < first, starts + first - tokens, since)[mine]
        end = np.where(tokens + lengths > stop, starts + stop - tokens, until)[mine]
        joined = begin[1:] == end[:-1]
        return begin[np.append(True, ~joined)], end[np.append(~joined, True)]

    def cut(self, begins: I64, ends: I64) -> tuple[I64, I64, I64, I64, I64]:
        """Cost: vectorised; a pass for each block of a row."""
        rows, position = np.flatnonzero(begins < ends), begins.copy()
        parts: list[I64] = [np.empty((5, 0), np.int64)]
        while len(rows):
            at = position[rows]
            segments = np.searchsorted(self.starts, at, "right") - 1
            until = np.minimum(self.starts[segments + 1], ends[rows])
            whole = self._is_whole[segments]
            some, its = rows[whole], segments[whole]
            parts.append(
                np.stack(
                    [
                        some,
                        self.numbers[its],
                        at[whole] - self.starts[its],
                        until[whole] - at[whole],
                        at[whole] - begins[some],
                    ]
                )
            )
            if not whole.all():
                cut = ~whole
                blocks = self._selection.block_at(at[cut] + self._base, segments[cut] + self._first)
                last, tokens, starts, lengths = self._runs(blocks, segments[cut])
                until[cut] = np.minimum(last, until[cut])
                parts.append(
                    self._overlaps(rows[cut], segments[cut], at[cut], until[cut], begins, tokens, starts, lengths)
                )
            position[rows] = until
            rows = rows[until < ends[rows]]
        found = np.concatenate(parts, axis=1)
        found = found[:, np.lexsort((found[4], found[0]))]
        return found[0], found[1], found[2], found[3], found[4]

    def _overlaps(
        self, rows: I64, segments: I64, at: I64, until: I64, begins: I64, tokens: I64, starts: I64, lengths: I64
    ) -> I64:
        """int64 [5, n]: pieces of tokens [at, until) of each row in the runs [n, 64] of a block."""
        first = np.maximum(tokens, at[:, None])
        stop = np.minimum(tokens + lengths, until[:, None])
        i, j = np.nonzero(first < stop)
        begin = first[i, j]
        return np.stack(
            [
                rows[i],
                self.numbers[segments[i]],
                starts[i, j] + begin - tokens[i, j],
                stop[i, j] - begin,
                begin - begins[rows[i]],
            ]
        )

    def _runs(self, blocks: I64, segments: I64) -> tuple[I64, I64, I64, I64]:
        """Of blocks: the domain's token behind each, and of their runs first token in the domain and in the shard, and
        tokens. Raises FormatError for runs that end outside of their shard."""
        found = self._selection.runs(blocks, segments + self._first)
        tokens = found.tokens - self._base
        wrong = (found.starts + found.lengths).max(axis=1, initial=0, where=found.lengths > 0) > self._sizes[segments]
        if wrong.any():
            raise FormatError(
                f"{self._selection.what}: block {int(blocks[wrong][0])} has runs outside of its shard of "
                f"{int(self._sizes[segments[wrong][0]])} tokens: damaged or forged"
            )
        return tokens[:, -1] + found.lengths[:, -1], tokens, found.starts, found.lengths
