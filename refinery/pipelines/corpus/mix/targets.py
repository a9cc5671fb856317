"""How often each document is delivered: caps of hosts, bins, and a target in tokens, all by integer arithmetic.

The number of times of a document is floor(t + u), where t is what its bin asks for and u in [0, 1) is a hash of its id:
so t = 2.5 delivers half of the documents twice and half three times, and t = 0.3 three in ten. Both are multiples of
1 / 65,536, so what a domain comes to is known from sums by (bin, u), without a second look at the documents.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.pipelines.corpus.mix.candidates import Part
from refinery.pipelines.corpus.mix.recipe import CapParams, MixDomainParams
from refinery.transforms.core.data_text.plain_yaml import RecipeError

UNIT = 1 << 16
_FINE = 20  # bits of the factor behind its point
_BUCKETS, _FILES = 1 << 20, 64
_WAITING = np.dtype([("host", "<u8"), ("hash", "<u8"), ("tokens", "<i8")])

Table = npt.NDArray[Any]


def share(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """u of each hash, in units of 1 / 65,536: its lowest bits, on which the order of hashes does not depend."""
    return (hashes & np.uint64(UNIT - 1)).astype(np.int64)


def bins_of(domain: MixDomainParams) -> list[int]:
    """What each bin asks for, in units of 1 / 65,536; the last is that of documents without a value."""
    if domain.upsample is None:
        return [round(domain.times * UNIT)]
    return [round(domain.times * factor * UNIT) for factor in domain.upsample.factors()]


class HostLimits:
    """The first hash of each host that is over its cap; documents of that host from it on are left out.

    Documents of a host are taken in the order of their hashes until one would go over the cap. Memory: 8 MiB, a 64th of
    the documents of capped hosts, and 16 bytes per capped host; those documents cross `folder`.
    """

    def __init__(self, parts: Sequence[Part], cap: CapParams, folder: Path) -> None:
        most = cap.documents or cap.tokens or 0
        sums = np.zeros(_BUCKETS, np.int64)
        for part in parts:
            some = part.read()
            np.add.at(sums, some["host"] >> 44, 1 if cap.documents else some["tokens"])
        files = [folder / f"hosts-{i}" for i in range(_FILES)]
        for part in parts:
            some = part.read()
            some = some[sums[some["host"] >> 44] > most]
            for i in np.unique(some["host"] >> 58).tolist():
                mine = some[some["host"] >> 58 == i]
                with files[i].open("ab") as out:
                    np.rec.fromarrays([mine[name] for name in _WAITING.names or ()], _WAITING).tofile(out)
        hosts, limits = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for path in files:
            if path.exists():
                over = _over(np.fromfile(path, _WAITING), cap, most)
                hosts.append(over["host"])
                limits.append(over["hash"])
                path.unlink()
        self._hosts, self._limits = np.concatenate(hosts), np.concatenate(limits)

    def keep(self, some: Table) -> Table:
        """The candidates that are within the cap."""
        if not len(self._hosts):
            return some
        at = np.minimum(np.searchsorted(self._hosts, some["host"]), len(self._hosts) - 1)
        kept: Table = some[(self._hosts[at] != some["host"]) | (some["hash"] < self._limits[at])]
        return kept


def _over(waiting: Table, cap: CapParams, most: int) -> Table:
    """Of each host that is over the cap the first document that is left out, by host."""
    ordered = waiting[np.lexsort((waiting["tokens"], waiting["hash"], waiting["host"]))]
    each = np.ones(len(ordered), np.int64) if cap.documents else ordered["tokens"]
    total = np.cumsum(each)
    first = np.flatnonzero(np.append(True, ordered["host"][1:] != ordered["host"][:-1]))
    before = np.repeat(total[first] - each[first], np.diff(np.append(first, len(ordered))))
    beyond = ordered[total - before > most]
    found: Table = beyond[np.append(True, beyond["host"][1:] != beyond["host"][:-1])] if len(beyond) else beyond
    return found


class Sums:
    """Tokens and documents of a domain by bin and u. Memory: 1 MiB per bin."""

    def __init__(self, bins: int) -> None:
        self.tokens = np.zeros((bins, UNIT), np.int64)

    def add(self, some: Table) -> None:
        np.add.at(self.tokens, (some["bin"], share(some["hash"])), some["tokens"])

    def total(self, times: Sequence[int]) -> int:
        """Tokens of an epoch if bins are delivered so often, in units of 1 / 65,536."""
        found = 0
        for row, each in zip(self.tokens, times, strict=True):
            whole, rest = divmod(each, UNIT)
            found += whole * int(row.sum()) + (int(row[UNIT - rest :].sum()) if rest else 0)
        return found


def fit(domain: MixDomainParams, sums: Sums) -> list[int]:
    """How often each bin is delivered, in units of 1 / 65,536, with the domain's target if it has one.

    A target is met by the largest factor of all bins that does not go over it: less by at most a 65,536th of each bin.
    Raises RecipeError for one that cannot be reached, with what can.
    """
    asked = bins_of(domain)
    if domain.tokens is None:
        return asked
    most = round(domain.most_times * UNIT)

    def scaled(factor: int) -> list[int]:
        return [min(each * factor >> _FINE, most) for each in asked]

    low, high = 0, most << _FINE  # a bin that asks for 1 / 65,536 reaches the most there
    reachable = sums.total(scaled(high))
    if reachable < domain.tokens:
        raise RecipeError(
            f"domains: {domain.name}: tokens: {domain.tokens:,} given, at most {reachable:,} can be reached; what is "
            f"chosen has {sums.total([UNIT if each else 0 for each in asked]):,}, and most_times is "
            f"{domain.most_times:g}; raise most_times, choose more, or ask for fewer"
        )
    while low < high:
        middle = (low + high + 1) // 2
        if sums.total(scaled(middle)) <= domain.tokens:
            low = middle
        else:
            high = middle - 1
    return scaled(low)


def times_of(some: Table, times: Sequence[int]) -> npt.NDArray[np.int64]:
    """How often each candidate is delivered."""
    found: npt.NDArray[np.int64] = (np.array(times, np.int64)[some["bin"]] + share(some["hash"])) >> 16
    return found
