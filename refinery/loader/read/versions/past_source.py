"""Tokens by their positions in an earlier version of a corpus; what is there no more is filled, and never a label."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.loader.read.token_source import Lost, TokenRanges
from refinery.loader.read.versions.past import GONE, Runs

Range = tuple[int, int, int]
IGNORE = -100  # as in loader.stream.masks


class HasRuns(Protocol):
    """What knows where tokens of an earlier version are now. runs: by the number of their shard."""

    @property
    def runs(self) -> list[Runs | None]: ...


class PastSource:
    """A token source of the shards as they were. inner: that of the shards as they are. fill: the token that stands
    where one is there no more."""

    def __init__(self, inner: Any, past: "HasRuns", fill: int) -> None:
        self.inner = inner
        self._runs, self._fill = past.runs, fill

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        runs = self._runs[shard]
        if runs is None:
            self.inner.read_into(shard, start, out)
            return
        for begin, now, count in runs.pieces(start, start + len(out)):
            part = out[begin - start : begin - start + count]
            if now == GONE:
                part[:] = self._fill
            else:
                self.inner.read_into(shard, now, part)

    def read_pieces(self, pieces: I64, row: int, out: I64) -> Sequence[Lost] | None:
        moved: list[tuple[int, int, int, int, int]] = []
        for its, shard, start, count, place in pieces.tolist():
            runs = self._runs[shard]
            if runs is None:
                moved.append((its, shard, start, count, place))
                continue
            for begin, now, some in runs.pieces(start, start + count):
                at = place + begin - start
                if now == GONE:
                    out[its - row, at : at + some] = self._fill
                else:
                    moved.append((its, shard, now, some, at))
        found: Sequence[Lost] | None = self.inner.read_pieces(np.array(moved, np.int64).reshape(-1, 5), row, out)
        return found

    def will_need(self, ranges: TokenRanges) -> None:
        self.inner.will_need(self._now(ranges))

    def done_with(self, ranges: TokenRanges) -> None:
        self.inner.done_with(self._now(ranges))

    def close(self) -> None:
        self.inner.close()

    def _now(self, ranges: TokenRanges) -> list[Range]:
        """Where these ranges are now."""
        found: list[Range] = []
        for shard, start, stop in np.asarray(ranges, np.int64).reshape(-1, 3).tolist():
            runs = self._runs[shard]
            if runs is None:
                found.append((shard, start, stop))
            else:
                found += [(shard, now, now + count) for _, now, count in runs.pieces(start, stop) if now != GONE]
        return found


class Hidden:
    """Takes what is there no more out of the labels of finished batches. domains: of the schedule, which have
    `sample_ranges`. unshifted: a label is the input of its own place, not the token behind it."""

    def __init__(self, past: "HasRuns", domains: Sequence[Any], unshifted: bool) -> None:
        self._gone: dict[int, tuple[I64, I64]] = {
            number: runs.gone() for number, runs in enumerate(past.runs) if runs is not None
        }
        self._domains, self._unshifted = list(domains), unshifted

    def __call__(self, prepared: Any) -> Any:
        """The prepared batch, with IGNORE as label, and false in loss_mask, where the token is there no more."""
        if prepared.batch is None:
            return prepared
        rows = prepared.plan.mine[prepared.step]
        samples, which = prepared.plan.samples[rows].tolist(), prepared.plan.domains[rows].tolist()
        changed: dict[str, npt.NDArray[Any]] = {}
        for row, (real, sample, d) in enumerate(zip((rows >= 0).tolist(), samples, which, strict=True)):
            for start, stop in self._places(d, sample) if real else ():
                begin = max(0, start - (not self._unshifted))
                end = stop - (not self._unshifted)
                for name, value in (("labels", IGNORE), ("loss_mask", False)):
                    if name in prepared.batch:
                        array = changed.setdefault(name, np.array(prepared.batch[name]))
                        array[row, begin:end] = value
        return prepared._replace(batch=prepared.batch | changed) if changed else prepared

    def _places(self, d: int, sample: int) -> list[tuple[int, int]]:
        """Positions of a sample's tokens, the last label among them, that are there no more."""
        found, place = [], 0
        for shard, start, stop in self._domains[d].sample_ranges(sample, sample + 1):
            if shard in self._gone:
                gone = self.gone_in(shard, start, stop)
                found += [(place + begin - start, place + end - start) for begin, end in gone]
            place += stop - start
        return found

    def gone_in(self, shard: int, start: int, stop: int) -> list[tuple[int, int]]:
        """What of the tokens [start, stop) of a shard is there no more."""
        begins, ends = self._gone[shard]
        first, last = int(np.searchsorted(ends, start, "right")), int(np.searchsorted(begins, stop))
        pairs = zip(begins[first:last].tolist(), ends[first:last].tolist(), strict=True)
        return [(max(begin, start), min(end, stop)) for begin, end in pairs]
