"""Which domain a position of a mixed stream draws from, and which of its samples: random access by integer quotas.

Positions are grouped into mix blocks of Q. In each block a domain has the same number of positions in every block of a
stage, its quota: Q x weight, rounded by the method of largest remainders. A keyed bijection of the block's positions
(refinery.loader.order.order) decides which ones. A domain's positions are numbered across blocks and stages: the k-th
draws element k mod n of epoch k div n of the domain's order, where n is its number of samples. So each domain has its
own strict epochs, whatever its weight.

With MixParams.even the pattern is that of mix_params.diffused, the same in every block. Where on_limit is "renormalise"
a stage ends at the position of the first sample beyond a limit, and another begins there without that domain.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.loader.order.mix_params import MixParams, by_tokens, diffused, quotas
from refinery.loader.order.order import mix, permute, round_keys


class RepetitionLimit(Exception):
    """A domain would exceed MixParams.repeats. The message names the domain and the position."""


@dataclass(frozen=True)
class _Stage:
    start: int  # first position
    stop: int | None
    quotas: I64  # [domains]
    label: npt.NDArray[np.int32]  # [Q]: domain of each value of the bijection
    before: I64  # [domains]: positions of each domain before the stage


class Mixture:
    """The schedule of one stream over domains with `samples` samples each, at a sequence length.

    tokens: of each domain, by default its samples are full. first: samples of each domain's first epoch, if these are
    others. `end` is the number of positions, None if there is no end;
    `limited_by` is the domain whose limit determines it, or of several the last.
    Raises ValueError for a domain that the corpus does not have or that has no tokens.
    """

    def __init__(
        self,
        domains: Sequence[str],
        samples: Sequence[int],
        sequence_length: int,
        seed: int,
        params: MixParams,
        tokens: Sequence[int] | None = None,
        first: Sequence[int] | None = None,
    ) -> None:
        self.first = list(samples if first is None else first)
        self.domains, self.samples, self.params = list(domains), list(samples), params
        known = dict(zip(domains, samples, strict=True))
        limited = params.repeats if isinstance(params.repeats, Mapping) else {}
        for name in dict.fromkeys([name for stage in params.stages for name in stage.weights] + list(limited)):
            if name not in known:
                raise ValueError(f"weights: domain {name!r} given, {', '.join(map(repr, known))} is allowed")
        for stage in params.stages:
            for name, weight in stage.weights.items():
                if weight and not known[name]:
                    raise ValueError(
                        f"weights: {weight} given for {name!r}, of which no tokens are read (see split, shards and "
                        "subset); 0 is allowed"
                    )
        self._keys = round_keys("mix", seed)
        places = {name: count * sequence_length for name, count in known.items()}
        filled = places if tokens is None else dict(zip(domains, tokens, strict=True))
        self._fill = {name: filled[name] / count if count else 1.0 for name, count in places.items()}
        self._stages: list[_Stage] = []
        self.end: int | None = None
        self.limited_by: str | None = None
        position: int | None = 0
        for stage in params.stages:
            if position is not None and self.end is None:
                stop = None if stage.tokens is None else position - (-stage.tokens // sequence_length)
                position = self._add(by_tokens(stage.weights, self._fill, params), position, stop)
        self.end = position if self.end is None else self.end

    def _add(self, weights: Mapping[str, float], start: int, stop: int | None) -> int | None:
        """Add a stage, cut where a limit is reached: there the stream ends, or one without that domain follows.

        Returns where the stage ends: before `stop` if none of its domains is left, None for never.
        """
        params, left = self.params, dict(weights)
        while stop is None or start < stop:
            left = {name: weight for name, weight in left.items() if weight and not self._is_exhausted(name, start)}
            if not left:
                return start
            counts = np.array(quotas([left.get(name, 0) for name in self.domains], params.block), np.int64)
            label = diffused(counts.tolist()) if params.even else np.repeat(np.arange(len(counts)), counts)
            self._stages.append(_Stage(start, stop, counts, label.astype(np.int32), self.counts(start)))
            position, name = min(self._limits(self._stages[-1]), default=(None, None))
            if position is None:
                return stop
            self.limited_by = name
            if params.on_limit != "renormalise":
                self.end = position
                return position
            self._stages[-1] = replace(self._stages[-1], stop=position)
            start = position
        return start

    def _limit(self, name: str) -> int | None:
        """Samples of a domain that may be delivered."""
        repeats = self.params.repeats
        times = repeats.get(name) if isinstance(repeats, Mapping) else repeats
        if times is None or self.params.on_limit == "repeat":
            return None
        d = self.domains.index(name)
        return self.first[d] + (times - 1) * self.samples[d]

    def _is_exhausted(self, name: str, position: int) -> bool:
        limit = self._limit(name)
        return (
            self.params.on_limit == "renormalise"
            and limit is not None
            and int(self.counts(position)[self.domains.index(name)]) >= limit
        )

    def _limits(self, stage: _Stage) -> Iterator[tuple[int, str]]:
        """Where in a stage a domain would go beyond its limit."""
        for d, name in enumerate(self.domains):
            limit = self._limit(name)
            position = None if limit is None else self._first_beyond(stage, d, limit)
            if position is not None:
                yield position, name

    def _stage_at(self, position: int) -> _Stage:
        return next(stage for stage in reversed(self._stages) if stage.start <= position)

    def locate(self, start: int, stop: int) -> tuple[npt.NDArray[np.int32], I64]:
        """(domain, k) of positions [start, stop): int32 indices into `domains`, and how many earlier positions have the
        same domain. Cost: vectorised over positions and domains; a single position costs a mix block.
        """
        domains, ks = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        while start < stop:
            stage = self._stage_at(start)
            end = stop if stage.stop is None else min(stop, stage.stop)
            if end <= start:
                raise IndexError(f"position {start} given, 0 to {start - 1} is allowed: the last stage ends there")
            domain, k = self._inside(stage, start - stage.start, end - stage.start)
            domains.append(domain)
            ks.append(k)
            start = end
        return np.concatenate(domains), np.concatenate(ks)

    def _inside(self, stage: _Stage, start: int, stop: int) -> tuple[npt.NDArray[np.int32], I64]:
        size = self.params.block
        first, last = start // size, -(-stop // size)
        blocks = np.arange(first, last, dtype=np.uint64)
        tweak = mix(blocks + mix(np.full(1, stage.start, np.uint64) + np.uint64(1)))
        places = np.tile(np.arange(size, dtype=np.uint64), len(blocks))
        values = places if self.params.even else permute(places, np.uint64(size), self._keys, np.repeat(tweak, size))
        domain = stage.label[values.astype(np.int64)].reshape(-1, size)
        rank = np.zeros(domain.shape, np.int64)
        for d in np.flatnonzero(stage.quotas).tolist():
            mine = domain == d
            np.copyto(rank, np.cumsum(mine, axis=1) - 1, where=mine)
        base = stage.before + blocks.astype(np.int64)[:, None] * stage.quotas
        k = rank + np.take_along_axis(base, domain.astype(np.int64), axis=1)
        cut = slice(start - first * size, stop - first * size)
        return domain.ravel()[cut], k.ravel()[cut]

    def counts(self, position: int) -> I64:
        """int64 [domains]: positions of each domain before `position`. Cost: one mix block."""
        if position == 0:
            return np.zeros(len(self.domains), np.int64)
        stage = self._stage_at(position - 1)
        inside = position - stage.start
        whole = inside // self.params.block
        counts = stage.before + whole * stage.quotas
        if inside % self.params.block:
            part, _ = self._inside(stage, whole * self.params.block, inside)
            counts = counts + np.bincount(part, minlength=len(self.domains))
        return counts

    def _first_beyond(self, stage: _Stage, d: int, limit: int) -> int | None:
        """The first position of a stage that draws sample number `limit` of domain d, None if there is none."""
        quota, size = int(stage.quotas[d]), self.params.block
        if not quota:
            return None
        block = max(limit - int(stage.before[d]), 0) // quota
        domain, k = self._inside(stage, block * size, (block + 1) * size)
        position = stage.start + block * size + int(np.flatnonzero((domain == d) & (k >= limit))[0])
        return position if stage.stop is None or position < stage.stop else None

    def history(self, position: int) -> str:
        """A digest (16 hexadecimal digits) of how the positions before this one were mixed.

        A state can be continued with different stages ahead, but not with a different past.
        """
        past = [
            {
                "quotas": {self.domains[d]: int(stage.quotas[d]) for d in np.flatnonzero(stage.quotas).tolist()},
                "positions": (position if stage.stop is None else min(position, stage.stop)) - stage.start,
            }
            for stage in self._stages
            if stage.start < position
        ]
        how = [self.params.block, past, *(["even"] if self.params.even else [])]
        return hashlib.sha256(json.dumps(how, sort_keys=True).encode()).hexdigest()[:16]

    def achieved(self, position: int) -> dict[str, dict[str, float]]:
        """What was delivered before `position`: samples, share of all samples and epochs, by domain."""
        counts = self.counts(position).tolist()
        return {
            name: {"samples": count, "share": count / max(position, 1), "epochs": _epochs(count, first, n)}
            for name, first, n, count in zip(self.domains, self.first, self.samples, counts, strict=True)
        }


def _epochs(count: int, first: int, samples: int) -> float:
    """Epochs that so many samples are; the first one may have another number than the others."""
    if count < first:
        return count / first
    return 1 + (count - first) / samples if samples else 0.0
