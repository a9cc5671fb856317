"""Which domain a position of a mixed stream draws from, and which of its samples: random access by integer quotas.

Positions are grouped into mix blocks of Q. In each block a domain has the same number of positions in every block of a
stage, its quota: Q x weight, rounded by the method of largest remainders. A keyed bijection of the block's positions
(refinery.loader.order.order) decides which ones. A domain's positions are numbered across blocks and stages: the k-th
draws element k mod n of epoch k div n of the domain's order, where n is its number of samples. So each domain has its
own strict epochs, whatever its weight.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from refinery.loader.arguments import whole
from refinery.loader.order.arrays import I64
from refinery.loader.order.order import mix, permute, round_keys


@dataclass(frozen=True)
class MixStage:
    """Weights of domains (any positive scale) for the next `tokens` input tokens; None: for the rest.

    A domain that is not named, or has weight 0, is not drawn from.
    """

    weights: Mapping[str, float]
    tokens: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise ValueError(f"weights: {self.weights!r:.80} given, numbers by domain are allowed")
        for name, weight in self.weights.items():
            if (
                isinstance(weight, bool)
                or not isinstance(weight, int | float | np.number)
                or not 0 <= weight < float("inf")
            ):
                raise ValueError(f"weights: {weight!r:.80} given for {name!r}, a finite number of 0 or more is allowed")
        if not sum(self.weights.values()) > 0:
            raise ValueError(f"weights: {dict(self.weights)} given, at least one above 0 is allowed")
        if self.tokens is not None:
            whole("tokens", self.tokens, 1)


@dataclass(frozen=True)
class MixParams:
    """A schedule of weights.

    stages: in sequence; the last may have tokens=None, otherwise the stream ends after it.
    repeats: most epochs of a domain that may be delivered, by domain or for all; None for no limit.
    on_limit: "stop" ends the stream before the first sample beyond a limit; "error" raises RepetitionLimit there.
    block: positions in a mix block (Q), the resolution of weights.
    """

    stages: Sequence[MixStage]
    repeats: Mapping[str, int] | int | None = None
    on_limit: Literal["stop", "error"] = "stop"
    block: int = 1024

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("stages: none given, at least one is allowed")
        if any(stage.tokens is None for stage in self.stages[:-1]):
            raise ValueError("stages: tokens=None given before the last stage, a number is allowed there")
        limits = self.repeats.values() if isinstance(self.repeats, Mapping) else [self.repeats]
        for limit in limits:
            if limit is not None:
                whole("repeats", limit, 1)
        if self.on_limit not in ("stop", "error"):
            raise ValueError(f"on_limit: {self.on_limit!r} given, 'stop' or 'error' is allowed")
        whole("block", self.block, 1, 2**20)


def mix_params(weights: Mapping[str, float] | Sequence[MixStage] | MixParams, epochs: int | None) -> MixParams:
    """A stream's `weights` argument as MixParams; `epochs` becomes the limit of every domain."""
    if isinstance(weights, MixParams):
        if epochs is not None:
            raise ValueError(f"epochs: {epochs} given with MixParams, None is allowed: MixParams has `repeats`")
        return weights
    stages = [MixStage(weights)] if isinstance(weights, Mapping) else weights
    if not isinstance(stages, Sequence) or not all(isinstance(stage, MixStage) for stage in stages):
        raise ValueError(f"weights: {weights!r:.80} given, numbers by domain, MixStages or MixParams are allowed")
    return MixParams(stages, repeats=epochs)


class RepetitionLimit(Exception):
    """A domain would exceed MixParams.repeats. The message names the domain and the position."""


def quotas(weights: Sequence[float], block: int) -> list[int]:
    """Positions of each domain in a mix block, by largest remainders (ties: the earlier domain). Their sum is `block`.

    Raises ValueError for a positive weight that is rounded to no position.

    >>> quotas([0.5, 0.3, 0.2], 8)
    [4, 2, 2]
    """
    total = sum(weights)
    exact = [weight * block / total for weight in weights]
    counts = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: block - sum(counts)]:
        counts[i] += 1
    for weight, count in zip(weights, counts, strict=True):
        if weight > 0 and not count:
            raise ValueError(
                f"weights: {weight} of {total} given, at least 1 position in a mix block of {block} is allowed; "
                "increase the weight or the block"
            )
    return counts


@dataclass(frozen=True)
class _Stage:
    start: int  # first position
    stop: int | None
    quotas: I64  # [domains]
    label: npt.NDArray[np.int32]  # [Q]: domain of each value of the bijection
    before: I64  # [domains]: positions of each domain before the stage


class Mixture:
    """The schedule of one stream over domains with `samples` samples each, at a sequence length.

    `end` is the number of positions, None if there is no end; `limited_by` is the domain whose limit determines it.
    Raises ValueError for a domain that the corpus does not have or that has no tokens.
    """

    def __init__(
        self, domains: Sequence[str], samples: Sequence[int], sequence_length: int, seed: int, params: MixParams
    ) -> None:
        self.domains, self.samples, self.params = list(domains), list(samples), params
        known = dict(zip(domains, samples, strict=True))
        limited = params.repeats if isinstance(params.repeats, Mapping) else {}
        for name in dict.fromkeys([name for stage in params.stages for name in stage.weights] + list(limited)):
            if name not in known:
                raise ValueError(f"weights: domain {name!r} given, {', '.join(map(repr, known))} is allowed")
        self._keys = round_keys("mix", seed)
        self._stages: list[_Stage] = []
        start = 0
        for stage in params.stages:
            for name, weight in stage.weights.items():
                if weight and not known[name]:
                    raise ValueError(f"weights: {weight} given for {name!r}, which has no tokens; 0 is allowed")
            counts = np.array(quotas([stage.weights.get(name, 0) for name in domains], params.block), np.int64)
            stop = None if stage.tokens is None else start - (-stage.tokens // sequence_length)
            label = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
            self._stages.append(_Stage(start, stop, counts, label, self.counts(start)))
            start = start if stop is None else stop
        self.end = self._stages[-1].stop
        self.limited_by: str | None = None
        self._apply_limits()

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
        values = permute(places, np.uint64(size), self._keys, np.repeat(tweak, size))
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

    def _apply_limits(self) -> None:
        repeats = self.params.repeats
        for d, (name, n) in enumerate(zip(self.domains, self.samples, strict=True)):
            times = repeats.get(name) if isinstance(repeats, Mapping) else repeats
            position = None if times is None else self._first_beyond(d, times * n)
            if position is not None and (self.end is None or position < self.end):
                self.end, self.limited_by = position, name

    def _first_beyond(self, d: int, limit: int) -> int | None:
        """The first position that draws sample number `limit` of domain d, None if there is none."""
        for stage in self._stages:
            quota, size = int(stage.quotas[d]), self.params.block
            if not quota:
                continue
            block = max(limit - int(stage.before[d]), 0) // quota
            domain, k = self._inside(stage, block * size, (block + 1) * size)
            position = stage.start + block * size + int(np.flatnonzero((domain == d) & (k >= limit))[0])
            if stage.stop is None or position < stage.stop:
                return position
        return None

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
        return hashlib.sha256(json.dumps([self.params.block, past], sort_keys=True).encode()).hexdigest()[:16]

    def achieved(self, position: int) -> dict[str, dict[str, float]]:
        """What was delivered before `position`: samples, share of all samples and epochs, by domain."""
        counts = self.counts(position).tolist()
        return {
            name: {"samples": count, "share": count / max(position, 1), "epochs": count / n if n else 0.0}
            for name, n, count in zip(self.domains, self.samples, counts, strict=True)
        }
