"""Counts what was delivered and compares it with an epoch: every sample once, every token of every shard.

Each rank can compute the samples of all ranks and counts them all, so all ranks have the same counters.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.loader.stream.samples import Domain

MAX_IN_STATE = 24  # domains whose digests are in a state, so that it stays below 1 KiB
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


class Usage:
    """ReadCounters of the current epoch of each domain.

    Samples: their number and digest, also across resumes. Tokens per shard: only for epochs that were not resumed (a
    state has no room for every shard).
    """

    def __init__(self, domains: Sequence[Domain]) -> None:
        self._domains = list(domains)
        self._epochs = [0] * len(self._domains)
        self._counts = [0] * len(self._domains)
        self._digests: list[int | None] = [0] * len(self._domains)
        self._tokens: list[I64 | None] = [np.zeros(len(d.numbers), np.int64) for d in self._domains]
        self._failure: UsageError | None = None

    def add(self, domains: npt.NDArray[Any], epochs: I64, samples: I64) -> None:
        """Count samples in order of delivery, [n] each, except -1. Checks every epoch that they complete.

        Raises UsageError, then again on every call. Cost: about 60 ns per sample in arrays of thousands.
        """
        if self._failure is not None:
            raise self._failure
        try:
            self._add_all(domains, epochs, samples)
        except UsageError as error:
            self._failure = error
            raise

    def _add_all(self, domains: npt.NDArray[Any], epochs: I64, samples: I64) -> None:
        real = samples >= 0
        for d in np.unique(domains[real]).tolist():
            mine = real & (domains == d)
            epoch, sample = epochs[mine], samples[mine]
            cuts = [0, *(np.flatnonzero(np.diff(epoch)) + 1).tolist(), len(epoch)]
            for start, stop in pairwise(cuts):
                self._add(d, int(epoch[start]), sample[start:stop])

    def _add(self, d: int, epoch: int, samples: I64) -> None:
        domain = self._domains[d]
        if epoch != self._epochs[d]:
            raise UsageError(
                f"{_name(domain)}: a sample of epoch {epoch} delivered after {self._counts[d]} samples of epoch "
                f"{self._epochs[d]}, {domain.samples} expected"
            )
        self._counts[d] += len(samples)
        known, tokens = self._digests[d], self._tokens[d]
        if known is not None:
            self._digests[d] = (known + digest(samples)) & _MASK
        if tokens is not None:
            tokens += domain.inputs_per_shard(samples)
        if self._counts[d] >= domain.samples:
            self._check(d)
            self._epochs[d], self._counts[d], self._digests[d] = epoch + 1, 0, 0
            self._tokens[d] = np.zeros(len(domain.numbers), np.int64)

    def _check(self, d: int) -> None:
        domain, tokens = self._domains[d], self._tokens[d]
        where = f"{_name(domain)}, epoch {self._epochs[d]}"
        if self._counts[d] != domain.samples:
            raise UsageError(f"{where}: {self._counts[d]} samples delivered, {domain.samples} expected")
        if tokens is not None:
            expected = np.diff(domain.starts)
            for i in np.flatnonzero(tokens != expected)[:1].tolist():
                raise UsageError(
                    f"{where}: {tokens[i]} tokens of shard {domain.numbers[i]} delivered, {expected[i]} expected"
                )
        if self._digests[d] not in (None, digest_of_all(domain.samples)):
            raise UsageError(f"{where}: {domain.samples} samples delivered, but some twice and some never")

    def tokens(self) -> dict[int, int]:
        """Input tokens delivered in the current epoch, by shard number; without domains resumed inside an epoch."""
        return {
            number: count
            for domain, tokens in zip(self._domains, self._tokens, strict=True)
            if tokens is not None
            for number, count in zip(domain.numbers.tolist(), tokens.tolist(), strict=True)
        }

    def state(self) -> list[str] | None:
        """Digests for a state, one per domain in hexadecimal; None if there are too many or some are unknown."""
        known = [value for value in self._digests if value is not None]
        if len(known) < len(self._digests) or len(known) > MAX_IN_STATE:
            return None
        return [f"{value:x}" for value in known]

    def restore(self, epochs: Sequence[int], counts: Sequence[int], digests: Sequence[int] | None) -> None:
        """Continue from a state: the epoch and position of each domain, and the digests that `state` returned."""
        self._epochs, self._counts, self._failure = list(epochs), list(counts), None
        for d, count in enumerate(self._counts):
            size = len(self._domains[d].numbers)
            self._tokens[d] = None if count else np.zeros(size, np.int64)
            self._digests[d] = (None if digests is None else digests[d]) if count else 0


def _name(domain: Domain) -> str:
    return f"domain {domain.name!r}" if domain.name else "corpus"
