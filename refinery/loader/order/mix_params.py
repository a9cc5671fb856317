"""What a mixed stream is asked for: weights by stage, limits, and how weights become numbers of positions."""

import heapq
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from refinery.loader.arguments import flag, whole
from refinery.loader.order.arrays import I64

ON_LIMIT = ("stop", "error", "renormalise", "repeat")
LOW_FILL = 0.95  # share of a domain's places that are tokens, below which weights by samples are worth a warning

_log = logging.getLogger("refinery.loader")


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
    repeats: maximum epochs of a domain that may be delivered, by domain or for all; None for no limit.
    on_limit: what happens before the first sample beyond a limit. "stop" ends the stream; "error" raises
        RepetitionLimit; "renormalise" goes on without that domain, the others keeping their proportions, until none is
        left; "repeat" goes on with it.
    block: positions in a mix block (Q), the resolution of weights.
    count: what weights are shares of, "samples", padding included, or "tokens": a domain gets more samples for what
        they lack.
    even: domains take turns by error diffusion instead of by chance, and the rows that a step has of each domain are
        dealt to the ranks one by one. Costs remote reading: every rank reads from every lane.
    """

    stages: Sequence[MixStage]
    repeats: Mapping[str, int] | int | None = None
    on_limit: Literal["stop", "error", "renormalise", "repeat"] = "stop"
    block: int = 1024
    count: Literal["samples", "tokens"] = "samples"
    even: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.stages, Sequence) or not all(isinstance(stage, MixStage) for stage in self.stages):
            raise ValueError(f"stages: {self.stages!r:.80} given, a list of MixStages is allowed")
        if not self.stages:
            raise ValueError("stages: none given, at least one is allowed")
        if any(stage.tokens is None for stage in self.stages[:-1]):
            raise ValueError("stages: tokens=None given before the last stage, a number is allowed there")
        limits = self.repeats.values() if isinstance(self.repeats, Mapping) else [self.repeats]
        for limit in limits:
            if limit is not None:
                whole("repeats", limit, 1)
        if self.on_limit not in ON_LIMIT:
            raise ValueError(f"on_limit: {self.on_limit!r} given, {', '.join(map(repr, ON_LIMIT))} is allowed")
        if self.count not in ("samples", "tokens"):
            raise ValueError(f"count: {self.count!r} given, 'samples' or 'tokens' is allowed")
        flag("even", self.even)
        whole("block", self.block, 1, 2**20)

    @property
    def drawn(self) -> frozenset[str]:
        """The domains that any stage draws from."""
        return frozenset(name for stage in self.stages for name, weight in stage.weights.items() if weight)


def mix_params(weights: Mapping[str, float] | Sequence[MixStage] | MixParams, epochs: int | None) -> MixParams:
    """A stream's `weights` argument as MixParams; `epochs` becomes the limit of every domain."""
    if isinstance(weights, MixParams):
        if epochs is not None:
            raise ValueError(f"epochs: {epochs} given with MixParams, None is allowed; set `repeats` of MixParams")
        return weights
    stages = [MixStage(weights)] if isinstance(weights, Mapping) else weights
    if not isinstance(stages, Sequence) or not all(isinstance(stage, MixStage) for stage in stages):
        raise ValueError(f"weights: {weights!r:.80} given, numbers by domain, MixStages or MixParams are allowed")
    return MixParams(stages, repeats=epochs)


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


def by_tokens(weights: Mapping[str, float], fill: Mapping[str, float], params: MixParams) -> Mapping[str, float]:
    """Weights of samples from those of a stage. fill: share of each domain's places that are tokens, 0 to 1.

    Warns of domains that are padded so much that shares of samples and of tokens differ, or that cost many samples.
    """
    shares = {name: weight * fill.get(name, 1.0) for name, weight in weights.items()}
    total, tokens = sum(weights.values()), sum(shares.values())
    for name, weight in weights.items():
        if weight and 0 < fill.get(name, 1.0) < LOW_FILL:
            _log.warning(
                "domain %r: %.1f %% of its places are tokens, the others padding; %s",
                name,
                100 * fill[name],
                "count='tokens' draws more samples of it"
                if params.count == "tokens"
                else f"its weight of {weight / total:.1%} is one of samples and will be {shares[name] / tokens:.2%} of "
                "the tokens (MixParams(count='tokens') makes it one of tokens)",
            )
    if params.count == "samples":
        return weights
    return {name: weight / fill[name] if weight and fill.get(name) else weight for name, weight in weights.items()}


def diffused(counts: Sequence[int]) -> I64:
    """int64 [sum(counts)]: domains in turn, so before any place each has its share of places within one.

    Tijdeman, "The chairman assignment problem" (Discrete Mathematics 32, 1980): of the domains whose share has grown by
    1 / (2k - 2) more than they had, the one that has to come soonest is next; no domain is ever 1 - 1 / (2k - 2) of a
    place from its share, with k domains. Cost: a loop over the places.
    """
    size, used = sum(counts), [d for d, count in enumerate(counts) if count]
    if len(used) == 1:
        return np.full(size, used[0], np.int64)
    slack = 1 / (2 * len(used) - 2)
    given = [0] * len(counts)
    # When it may come, and when it must: place p is allowed from p + 1 > (given + slack) x size / count on.
    coming = sorted((slack * size / counts[d], d) for d in used)
    ready: list[tuple[float, int]] = []
    found = np.empty(size, np.int64)
    heapq.heapify(coming)
    for place in range(size):
        while coming and coming[0][0] <= place + 1 + 1e-9:
            _, d = heapq.heappop(coming)
            heapq.heappush(ready, ((given[d] + 1 - slack) * size / counts[d], d))
        _, d = heapq.heappop(ready)
        found[place] = d
        given[d] += 1
        if given[d] < counts[d]:
            heapq.heappush(coming, ((given[d] + slack) * size / counts[d], d))
    return found
