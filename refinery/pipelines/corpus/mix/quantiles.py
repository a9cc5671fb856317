"""Quantiles of a column, exactly: where documents of a domain are cut into bins of equal weight.

A document stands at the middle of all that have its value: of n bins it is in number floor(n m / W), where W is the
weight of all documents (each 1, or its tokens), and m that of all with a lower value and half that of those with its
own. So documents of one value are never parted, a value that many have is in the bin where their middle is, and a bin
may be empty. Documents without a value have none of the weight and a bin of their own. All in integers: the order of
shards and documents does not matter.

The bins are cuts, found without sorting: sums of the weight by the 22 highest bits of the value, then the values alone
that are in the buckets of cuts. Memory: 64 MiB, and 16 bytes for each value that differs in these buckets.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.pipelines.corpus.mix.candidates import Table

U64 = npt.NDArray[np.uint64]
_BITS = 22
_SHIFT = np.uint64(64 - _BITS)
_SIGN = np.uint64(1 << 63)


def keys_of(values: npt.NDArray[np.float64]) -> U64:
    """uint64 [n] in the order of the values, equal where they are; of numbers alone."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def cuts_of(tables: Callable[[], Iterable[Table]], quantiles: int, by: str) -> U64:
    """uint64 [quantiles - 1], ascending: the bin of a value is the number of cuts up to its key.

    tables: the candidates, read twice. by: "tokens" or "documents". Without any value all cuts are the highest key.
    """
    sums = np.zeros(1 << _BITS, np.int64)
    for keys, weights in _weighted(tables(), by):
        np.add.at(sums, keys >> _SHIFT, weights)
    total, ends = int(sums.sum()), np.cumsum(sums)
    # Cut k: the lowest value with n m >= k W. In a bucket before that which reaches k W / n altogether there is none.
    needed = [-(-k * total // quantiles) for k in range(1, quantiles)]
    buckets = np.searchsorted(ends, np.array(needed, np.int64))
    if not total:
        return np.full(quantiles - 1, np.iinfo(np.uint64).max, np.uint64)
    values, weights = _values_of(tables(), by, np.unique(buckets).astype(np.uint64))
    inside = np.searchsorted(values >> _SHIFT, buckets.astype(np.uint64))
    stop = np.searchsorted(values >> _SHIFT, buckets.astype(np.uint64), "right")
    found = []
    for k, bucket, first, last in zip(range(1, quantiles), buckets.tolist(), inside, stop, strict=True):
        its = weights[first:last]
        before = int(ends[bucket] - sums[bucket])
        middles = 2 * (before + np.cumsum(its)) - its  # twice m
        reached = np.flatnonzero(middles >= -(-2 * k * total // quantiles))
        # Where even the highest value of the bucket is below the cut, every value of the next ones is not.
        following = min((bucket + 1) << int(_SHIFT), 2**64 - 1)
        found.append(int(values[first + reached[0]]) if len(reached) else following)
    return np.array(found, np.uint64)


def bins_by(cuts: U64, values: npt.NDArray[np.float64]) -> I64:
    """int64 [n]: the bin of each value; the last, len(cuts) + 1, for NaN."""
    found = np.searchsorted(cuts, keys_of(values), "right")
    return np.where(np.isnan(values), len(cuts) + 1, found).astype(np.int64)


def _weighted(tables: Iterable[Table], by: str) -> Iterable[tuple[U64, I64]]:
    """Keys and weights of the candidates that have a value."""
    for some in tables:
        some = some[~np.isnan(some["value"])]
        weights = some["tokens"].astype(np.int64) if by == "tokens" else np.ones(len(some), np.int64)
        yield keys_of(some["value"].astype(np.float64)), weights


def _values_of(tables: Iterable[Table], by: str, buckets: U64) -> tuple[U64, I64]:
    """The values that there are in some buckets, ascending, with the weight of each."""
    values, sums = np.empty(0, np.uint64), np.empty(0, np.int64)
    for keys, weights in _weighted(tables, by):
        mine = np.isin(keys >> _SHIFT, buckets)
        values, which = np.unique(np.concatenate([values, keys[mine]]), return_inverse=True)
        added = np.zeros(len(values), np.int64)
        np.add.at(added, which, np.concatenate([sums, weights[mine]]))
        sums = added
    return values, sums
