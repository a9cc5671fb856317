"""`TokenStream(packing=LengthBuckets(...))`: rows of one document each, in batches of documents of similar length.

A document is in the first bucket whose length it does not exceed. All rows of a step come from one bucket, and are as
long as that bucket says. (Khomenko et al. 2016, "Accelerating recurrent neural network training using sequence
bucketing and multi-GPU data parallelization"; Pouransari et al. 2024, "Dataset Decomposition", arXiv:2405.13226.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from refinery.loader.arguments import MOST, whole
from refinery.loader.order.arrays import I64
from refinery.loader.order.corpus_order import CorpusOrder
from refinery.loader.order.order import Order, OrderParams, block_for, permute, round_keys
from refinery.loader.packing.row_table import RowTable
from refinery.loader.read.continued_domain import RowsDomain
from refinery.loader.read.samples import Domain

SORTS = ("mixed", "ascending", "descending")


@dataclass(frozen=True)
class LengthBuckets:
    """Rows of one document each, padded to the length of its bucket; one longer than `sequence_length` is cut to rows.

    lengths: of the buckets, ascending; `sequence_length` is the last one. group: rows of a bucket that come one after
    another; None for those of a step, and for those of a state that is loaded. sort: "mixed" takes such groups of all
    buckets by chance, "ascending" the buckets one after another, shortest first, in every epoch; "descending" the
    longest first.
    """

    lengths: Sequence[int]
    group: int | None = None
    sort: Literal["mixed", "ascending", "descending"] = "mixed"

    def __post_init__(self) -> None:
        if isinstance(self.lengths, str) or not isinstance(self.lengths, Sequence) or not self.lengths:
            raise ValueError(f"lengths: {self.lengths!r:.80} given, a list of numbers is allowed")
        lengths = tuple(whole("lengths", length, 1, MOST) for length in self.lengths)
        if any(one >= other for one, other in pairwise(lengths)):
            raise ValueError(f"lengths: {lengths!r:.80} given, ascending ones are allowed")
        object.__setattr__(self, "lengths", lengths)
        if self.group is not None:
            object.__setattr__(self, "group", whole("group", self.group, 1, MOST))
        if self.sort not in SORTS:
            raise ValueError(f"sort: {self.sort!r:.80} given, {', '.join(SORTS)} is allowed")

    def up_to(self, length: int) -> tuple[int, ...]:
        """The lengths with `length` as the last one. Raises ValueError if one is longer."""
        if self.lengths[-1] > length:
            raise ValueError(f"lengths: {self.lengths[-1]} given, up to sequence_length, {length}, is allowed")
        return (*self.lengths[: len(self.lengths) - (self.lengths[-1] == length)], length)


class BucketDomain(RowsDomain):
    """The pieces of `table` as samples, by bucket, and in each in the order of the corpus; with `rows` only the first
    so many of the corpus. widths: lengths of the buckets. Memory: 12 bytes a piece."""

    def __init__(
        self, inner: Domain, table: RowTable, widths: Sequence[int], group: int, sort: str, rows: int | None = None
    ) -> None:
        self._inner, self.group, self.sort = inner, group, sort
        self._table, self.widths = table, np.array(widths, np.int64)
        sizes = np.minimum(table.reads[:rows], inner.length)
        buckets = np.searchsorted(self.widths, sizes)
        by_bucket = np.argsort(buckets, kind="stable")
        self._starts = table.starts[:rows][by_bucket]
        self._reads = table.reads[:rows][by_bucket]
        self.bounds: I64 = np.append(0, np.cumsum(np.bincount(buckets, minlength=len(widths)))).astype(np.int64)
        tokens = (
            np.diff(inner.starts) if len(sizes) == len(table.starts) else self.inputs_per_shard(np.arange(len(sizes)))
        )
        arrays = inner.numbers, tokens, inner.labels
        self._begin(inner.name, inner.length, inner.shards, int(sizes.sum()), lambda: arrays)
        self.samples = self.first = len(sizes)

    def _read(self) -> tuple[I64, I64, I64]:
        return Domain._read(self)

    @property
    def sequence(self) -> Domain:
        return self._inner

    def inputs_of(self, samples: I64) -> tuple[I64, I64]:
        starts = self._starts[samples]
        return starts, starts + np.minimum(self._reads[samples], self._inner.length)

    def first_shards(self, samples: I64) -> I64:
        at: I64 = np.searchsorted(self._inner.starts, self._starts[np.maximum(samples, 0)], "right") - 1
        return at

    def inputs_per_shard(self, samples: I64) -> I64:
        samples = samples[samples >= 0]
        starts, stops = self.inputs_of(samples)  # each is of one document, so of one shard
        found = np.bincount(self.first_shards(samples), weights=stops - starts, minlength=len(self._inner.numbers))
        return found.astype(np.int64)

    def valid(self, samples: I64) -> I64:
        found: I64 = np.where(samples < 0, 0, self._reads[np.maximum(samples, 0)]).astype(np.int64)
        return found

    def widths_of(self, samples: I64) -> I64:
        """The length that a row of each of these samples has."""
        found: I64 = self.widths[np.searchsorted(self.bounds, samples, "right") - 1]
        return found

    def order_of(self, epoch: int, seed: int, params: OrderParams, shuffle: bool = True) -> Order:
        return BucketOrder(self, epoch, seed, params, shuffle)


class BucketOrder(Order):
    """The order of an epoch: groups of rows of one bucket, inside a bucket as `Order` defines it. What is left of each
    bucket comes at the end, the shortest first. Memory: 24 bytes a group.

    A chunk is a group, or a whole bucket where the sort is not "mixed".
    """

    def __init__(self, domain: BucketDomain, epoch: int, seed: int, params: OrderParams, shuffle: bool) -> None:
        self.n, self._bounds = domain.samples, domain.bounds
        sizes = np.diff(domain.bounds)
        self._orders: list[Order | None] = []
        for number, (size, width) in enumerate(zip(sizes.tolist(), domain.widths.tolist(), strict=True)):
            block, found = params.block or block_for(size, width), None
            if size and shuffle:
                name = f"{domain.name}/{number}"
                shape: dict[str, Any] = {"block": block, "lanes": params.lanes, "window": params.window}
                found = Order(size, seed=seed, epoch=epoch, domain=name, **shape)
            elif size:
                found = CorpusOrder(size, block * params.window)
            self._orders.append(found)
        self.lanes, self.span = params.lanes, params.window
        if domain.sort == "mixed" and shuffle:
            labels, firsts = _groups(sizes, domain.group, round_keys("buckets", seed, epoch, domain.name))
        else:
            labels = np.arange(len(sizes))[:: -1 if domain.sort == "descending" else 1].copy()
            firsts = np.zeros(len(sizes), np.int64)
        self._labels, self._firsts = labels, firsts
        ends = np.append(np.flatnonzero(np.diff(np.sort(labels, kind="stable"))) + 1, len(labels))
        self._chunks = np.split(np.argsort(labels, kind="stable"), ends[:-1])  # of each bucket, ascending
        counts = np.zeros(len(labels), np.int64)
        for chunks in self._chunks:
            counts[chunks] = np.diff(np.append(firsts[chunks], sizes[labels[chunks[0]]]))
        self._begins: I64 = np.append(0, np.cumsum(counts)).astype(np.int64)

    def _places(self, p: I64) -> tuple[I64, I64]:
        """The bucket of each position, and its place in the bucket's order."""
        chunk = np.searchsorted(self._begins, p, "right") - 1
        return self._labels[chunk], self._firsts[chunk] + p - self._begins[chunk]

    def _at(self, p: npt.NDArray[np.uint64]) -> I64:
        buckets, places = self._places(p.astype(np.int64))
        found = np.empty(len(p), np.int64)
        for number, order in enumerate(self._orders):
            its = buckets == number
            if order is not None and its.any():
                found[its] = order[places[its]] + self._bounds[number]
        return found

    def windows(self, positions: npt.ArrayLike) -> I64:
        buckets, places = self._places(np.asarray(positions).astype(np.int64).ravel())
        found = np.empty((len(places), 3), np.int64)
        by_label = {int(self._labels[chunks[0]]): chunks for chunks in self._chunks}
        for number, order in enumerate(self._orders):
            its = np.flatnonzero(buckets == number)
            if order is not None and len(its):
                start, stop, last = order.windows(places[its]).T
                chunks = by_label[number]
                chunk = chunks[np.searchsorted(self._firsts[chunks], last, "right") - 1]
                position = self._begins[chunk] + last - self._firsts[chunk]
                found[its] = np.stack([start + self._bounds[number], stop + self._bounds[number], position], axis=1)
        return found

    def pieces_of(self, starts: I64, stops: I64) -> tuple[I64, I64]:
        buckets = np.searchsorted(self._bounds, starts, "right") - 1
        counts, parts, owners = np.zeros(len(starts), np.int64), [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)]
        for number, order in enumerate(self._orders):
            its, base = np.flatnonzero(buckets == number), int(self._bounds[number])
            if order is not None and len(its):
                pieces, counts[its] = order.pieces_of(starts[its] - base, stops[its] - base)
                parts.append(pieces + base)
                owners.append(np.repeat(its, counts[its]))
        return np.concatenate(parts)[np.argsort(np.concatenate(owners), kind="stable")], counts


def _groups(sizes: I64, group: int, keys: Any) -> tuple[I64, I64]:
    """Of each group the bucket and its first place in there: whole groups by chance, then what each bucket has left."""
    whole_ones = sizes // group
    numbers = np.arange(int(whole_ones.sum()), dtype=np.uint64)
    drawn = permute(numbers, np.uint64(len(numbers)), keys).astype(np.int64) if len(numbers) else np.empty(0, np.int64)
    labels = np.searchsorted(np.cumsum(whole_ones), drawn, "right")
    firsts = np.empty(len(labels), np.int64)
    for number in range(len(sizes)):
        its = labels == number
        firsts[its] = np.arange(int(its.sum())) * group
    left = np.flatnonzero(sizes % group)
    return np.append(labels, left), np.append(firsts, (whole_ones * group)[left])
