"""Counts what was delivered and compares it with an epoch: every sample once, every token of every shard.

Each rank can compute the samples of all ranks and counts them all, so all ranks have the same counters.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from refinery.loader.order.arrays import I64
from refinery.loader.order.order import Order
from refinery.loader.read.samples import Domain
from refinery.loader.stream.schedule import StepPlan

MAX_IN_STATE = 24  # domains whose digests are in a state, so it stays below 1 KiB
T = TypeVar("T")

_CHUNK = 1 << 16  # samples at a time
_FACTOR = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


class UsageError(Exception):
    """An epoch did not deliver each sample once. The message names the domain, what was found and what was expected."""


def digest(samples: I64) -> int:
    """Sum of i (i + 2^64 / golden ratio) over samples i, modulo 2^64: depends on the samples, not on their order."""
    i = samples.astype(np.uint64)
    return int((i * (i + np.uint64(_FACTOR))).sum(dtype=np.uint64))


def digest_of_all(n: int) -> int:
    """`digest` of samples 0 to n - 1, in closed form."""
    return ((n - 1) * n * (2 * n - 1) // 6 + _FACTOR * (n * (n - 1) // 2)) & _MASK


class _Counts(NamedTuple):
    """Of the current epoch of each domain. at: epoch and position of the stream up to which they go. ended: tokens by
    shard of a domain's epoch that was delivered to its end, until the next one begins."""

    epochs: tuple[int, ...]
    samples: tuple[int, ...]
    digests: tuple[int | None, ...]
    tokens: tuple[I64 | None, ...]  # by shard
    at: tuple[int, int]
    ended: tuple[I64 | None, ...]


class Usage:
    """Counters of the current epoch of each domain.

    Samples: their number and digest, also across resumes. Tokens per shard: only for epochs that were not resumed (a
    state has no room for every shard).
    """

    def __init__(self, domains: Sequence[Domain]) -> None:
        self._domains = list(domains)
        self._failure: UsageError | None = None
        self._now: _Counts
        self.restore([(0, 0)] * len(self._domains), None, (0, 0))

    def add(self, plan: StepPlan, stop: int) -> None:
        """Count what the plan delivers before position `stop`, except what was counted. Checks epochs that it ends.

        All of it or, if it is interrupted, nothing. Raises UsageError, then again on every call. Cost: about 60 ns per
        sample in arrays of thousands.
        """
        if self._failure is not None:
            raise self._failure
        epoch, position = self._now.at
        start = max(position, plan.start) if epoch == plan.epoch else plan.start
        if start >= stop:
            return
        part = slice(start - plan.start, stop - plan.start)
        try:
            self._now = self._with(plan.domains[part], plan.epochs[part], plan.samples[part])._replace(
                at=(plan.epoch, stop)
            )
        except UsageError as error:
            self._failure = error
            raise

    def _with(self, domains: I64, epochs: I64, samples: I64) -> _Counts:
        now = self._now
        for d in np.unique(domains).tolist():
            mine = domains == d
            epoch, sample = epochs[mine], samples[mine]
            cuts = [0, *(np.flatnonzero(np.diff(epoch)) + 1).tolist(), len(epoch)]
            for start, stop in pairwise(cuts):
                now = self._with_epoch(now, d, int(epoch[start]), sample[start:stop])
        return now

    def _with_epoch(self, now: _Counts, d: int, epoch: int, samples: I64) -> _Counts:
        """With samples of one domain in one of its epochs."""
        domain = self._domains[d]
        if epoch != now.epochs[d]:
            raise UsageError(
                f"{_name(domain)}: a sample of epoch {epoch} delivered after {now.samples[d]} samples of epoch "
                f"{now.epochs[d]}, {domain.samples_in(now.epochs[d])} expected"
            )
        count, known, tokens = now.samples[d] + len(samples), now.digests[d], now.tokens[d]
        known = None if known is None else (known + digest(samples - domain.first_of(epoch))) & _MASK
        tokens, ended = None if tokens is None else tokens + domain.inputs_per_shard(samples), None
        if count >= domain.samples_in(epoch):
            self._check(d, epoch, count, known, tokens)
            ended = tokens
            epoch, count, known, tokens = epoch + 1, 0, 0, np.zeros(domain.shards, np.int64)
        return _Counts(
            _with_item(now.epochs, d, epoch),
            _with_item(now.samples, d, count),
            _with_item(now.digests, d, known),
            _with_item(now.tokens, d, tokens),
            now.at,
            _with_item(now.ended, d, ended),
        )

    def _check(self, d: int, epoch: int, count: int, known: int | None, tokens: I64 | None) -> None:
        domain = self._domains[d]
        where, samples = f"{_name(domain)}, epoch {epoch}", domain.samples_in(epoch)
        if count != samples:
            raise UsageError(f"{where}: {count} samples delivered, {samples} expected")
        if tokens is not None:
            expected = domain.tokens_in(epoch)
            for i in np.flatnonzero(tokens != expected)[:1].tolist():
                raise UsageError(
                    f"{where}: {tokens[i]} tokens of shard {domain.numbers[i]} delivered, {expected[i]} expected"
                )
        if known not in (None, digest_of_all(samples)):
            raise UsageError(f"{where}: {samples} samples delivered, but some twice and some never")

    def tokens(self) -> list[tuple[Domain, I64]]:
        """Input tokens of each domain delivered in the current epoch, by its shards; without domains resumed inside an
        epoch. After an epoch's last sample it is the current one until the next one begins."""
        now = self._now
        found = [now.tokens[d] if ended is None else ended for d, ended in enumerate(now.ended)]
        return [(d, tokens) for d, tokens in zip(self._domains, found, strict=True) if tokens is not None]

    def all_tokens(self, order: Callable[[int, int], Order]) -> list[tuple[Domain, I64]]:
        """Input tokens of each domain delivered in all epochs so far, by its shards. order: of a domain's epoch.

        Of a domain that was resumed inside an epoch, what that epoch had delivered is counted once, by its order.
        """
        now = self._now
        known = []
        for d, tokens in enumerate(now.tokens):
            domain, there = self._domains[d], order(d, now.epochs[d]) if tokens is None else None
            if tokens is None and there is not None:
                tokens = np.zeros(domain.shards, np.int64)
                for begin in range(0, now.samples[d], _CHUNK):
                    some = np.arange(begin, min(begin + _CHUNK, now.samples[d]))
                    tokens += domain.inputs_per_shard(there[some] + domain.first_of(now.epochs[d]))
            known.append(tokens)
        self._now = now._replace(tokens=tuple(known))
        return [
            (domain, tokens + (domain.tokens_in(0) + (epoch - 1) * np.diff(domain.starts) if epoch else 0))
            for domain, epoch, tokens in zip(self._domains, now.epochs, known, strict=True)
            if tokens is not None
        ]

    def state(self) -> list[str] | None:
        """Digests for a state, one per domain in hexadecimal; None if there are too many or some are unknown."""
        known = [value for value in self._now.digests if value is not None]
        if len(known) < len(self._now.digests) or len(known) > MAX_IN_STATE:
            return None
        return [f"{value:x}" for value in known]

    def restore(self, reached: Sequence[tuple[int, int]], digests: Sequence[int] | None, at: tuple[int, int]) -> None:
        """Continue from a state: the epoch and samples of each domain, the digests that `state` returned, and the
        epoch and position of the stream."""
        self._failure = None
        self._now = _Counts(
            tuple(epoch for epoch, _ in reached),
            tuple(count for _, count in reached),
            tuple((None if digests is None else digests[d]) if count else 0 for d, (_, count) in enumerate(reached)),
            tuple(
                None if count else np.zeros(domain.shards, np.int64)
                for domain, (_, count) in zip(self._domains, reached, strict=True)
            ),
            at,
            (None,) * len(self._domains),
        )

    def forget_tokens(self) -> None:
        """Tokens per shard of epochs that have begun are unknown from here on: some were passed over."""
        now = self._now
        tokens = tuple(None if n else t for n, t in zip(now.samples, now.tokens, strict=True))
        self._now = now._replace(tokens=tokens, ended=(None,) * len(self._domains))


def _with_item(values: tuple[T, ...], i: int, value: T) -> tuple[T, ...]:
    return *values[:i], value, *values[i + 1 :]


def _name(domain: Domain) -> str:
    return f"domain {domain.name!r}" if domain.name else "corpus"
