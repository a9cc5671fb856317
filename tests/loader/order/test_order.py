"""The order is a bijection for every n, equal to an independent implementation, and a good shuffle."""

import copy
import hashlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.native import permutation
from refinery.loader.order import order as order_module
from refinery.loader.order.order import (
    Order,
    OrderParams,
    block_for,
    expected_neighbours,
    lag_correlation,
    mix,
    neighbours,
    permute,
    round_keys,
)
from tests.sampling import examples, one_commit_in_four, scaled

MASK = 2**64 - 1
SHAPES = [(1, 1, 1), (4, 3, 2), (7, 8, 3), (64, 16, 4), (5, 1, 100), (1, 256, 16), (300, 5, 1)]  # K, C, W


def order(n: int, shape: tuple[int, int, int] = (7, 8, 3), seed: int = 1, epoch: int = 0) -> Order:
    block, lanes, window = shape
    return Order(n, seed=seed, epoch=epoch, block=block, lanes=lanes, window=window)


def is_bijection(samples: np.ndarray) -> bool:
    seen = np.zeros(len(samples), bool)
    seen[samples] = True
    return bool(seen.all())


# --- an oracle in plain integers, from the module's docstring ----------------------------------------------------


def oracle_mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def oracle_keys(*parts: object) -> list[int]:
    data = b"".join(len(str(part).encode()).to_bytes(4, "little") + str(part).encode() for part in parts)
    digest = hashlib.blake2b(data, digest_size=64, person=b"refinery-order").digest()
    return [int.from_bytes(digest[i : i + 8], "little") for i in range(0, 64, 8)]


def oracle_permute(x: int, n: int, keys: list[int], tweak: int = 0) -> int:
    bits = max((n - 1).bit_length(), 5)
    low_bits = math.ceil(bits / 2)
    high_bits = bits - low_bits
    while n > 1:
        low, high = x % 2**low_bits, x >> low_bits
        for i, key in enumerate(keys):
            if i % 2:
                low ^= oracle_mix((high + key & MASK) ^ tweak) >> 64 - low_bits
            else:
                high ^= oracle_mix((low + key & MASK) ^ tweak) >> 64 - high_bits
        x = high << low_bits | low
        if x < n:
            return x
    return 0


def oracle_order(n: int, shape: tuple[int, int, int], seed: int, epoch: int) -> list[int]:
    """Everything materialised: blocks, the sequence, lanes, windows."""
    block, lanes, window = shape
    count = math.ceil(n / block)
    block_keys, window_keys = oracle_keys("blocks", seed, epoch, ""), oracle_keys("windows", seed, epoch, "")
    sequence: list[int] = []
    for slot in range(count):
        first = oracle_permute(slot, count, block_keys) * block
        sequence += range(first, min(first + block, n))
    stride = max(1, round(lanes * 0.6180339887))
    while math.gcd(stride, lanes) != 1:
        stride += 1
    queues, base = [], 0
    for lane in range(lanes):
        length = n // lanes + (lane < n % lanes)
        queue, start = [], 0
        size = math.ceil((lane * stride % lanes + 1) * window * block / lanes)
        while start < length:
            size = min(size, length - start)
            tweak = oracle_mix(base + start + 0x9E3779B97F4A7C15 & MASK)
            queue += [sequence[base + start + oracle_permute(i, size, window_keys, tweak)] for i in range(size)]
            start, size = start + size, window * block
        queues.append(queue)
        base += length
    return [queues[p % lanes][p // lanes] for p in range(n)]


@given(
    st.integers(1, 400),
    st.tuples(st.integers(1, 40), st.integers(1, 20), st.integers(1, 12)),
    st.integers(0, 2**40),
    st.integers(0, 5),
)
@settings(max_examples=examples(30), deadline=None)
def test_equals_the_independent_implementation(n: int, shape: tuple[int, int, int], seed: int, epoch: int) -> None:
    assert order(n, shape, seed, epoch)[np.arange(n)].tolist() == oracle_order(n, shape, seed, epoch)


def test_pinned() -> None:
    """If this order changes, every saved state would continue with other tokens: increase ORDER_VERSION instead."""
    assert order(23, (3, 4, 2))[np.arange(23)].tolist() == PINNED
    big = Order(10**9 + 7, seed=42, epoch=3, domain="web", block=256, lanes=256, window=16)
    assert big[[0, 1, 255, 256, 10**6, 10**9 + 6]].tolist() == PINNED_BIG


PINNED = [13, 15, 16, 9, 12, 20, 6, 1, 22, 19, 17, 2, 3, 18, 7, 11, 14, 5, 8, 10, 21, 4, 0]
PINNED_BIG = [42945030, 909228967, 631509250, 42945025, 833160236, 940696158]


# --- bijection -----------------------------------------------------------------------------------------------------


def many_at_once(orders: list[Order]) -> Order:
    """Orders that differ only in n as one order of their concatenated positions: what depends on n is an array."""
    together = copy.copy(orders[0])
    lengths = [o.n for o in orders]
    for name in ("blocks", "_gap_start", "_gap", "_length", "_longer"):
        setattr(together, name, np.repeat(np.array([getattr(o, name) for o in orders], np.uint64), lengths))
    together._table = None  # computed, where a single order looks it up
    return together


MOST = scaled(5000, 1800)


def test_bijection_for_every_n() -> None:
    """Each shape is tested with every seventh n."""
    for i, shape in enumerate(SHAPES):
        sizes = [n for n in range(1, MOST + 1) if n % len(SHAPES) == i]
        for some in (sizes[k : k + 40] for k in range(0, len(sizes), 40)):
            together = many_at_once([order(n, shape) for n in some])
            samples = together._at(np.concatenate([np.arange(n, dtype=np.uint64) for n in some]))
            starts = np.cumsum(some) - some
            assert is_bijection(samples + np.repeat(starts, some)), (some, shape)
            middle = len(some) // 2
            alone = order(some[middle], shape)[np.arange(some[middle])]
            assert (alone == samples[starts[middle] :][: some[middle]]).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_bijection_for_small_n_and_around_sizes_of_the_shape(shape: tuple[int, int, int]) -> None:
    block, lanes, window = shape
    near = {k * m + d for k in (block, lanes, block * window, block * lanes) for m in (1, 2, 3) for d in (-1, 0, 1)}
    for n in sorted({*range(1, 70), *(size for size in near if 0 < size < 20_000)}):
        assert is_bijection(order(n, shape)[np.arange(n)]), n


@pytest.mark.parametrize("n", [65_537, 262_145, 2**20 - 1, 2**20, 2**20 + 1])
def test_bijection_at_awkward_n(n: int) -> None:
    found = order(n, (block_for(n, 4096), 256, 16), epoch=2)[np.arange(n)]
    assert is_bijection(found)


@one_commit_in_four
def test_no_collisions_at_a_billion() -> None:
    """A random map would send 137 of half a million positions to a sample that another one has."""
    n = 10**9 + 7
    shuffled = order(n, (256, 256, 16))
    rng = np.random.default_rng(7)
    positions = np.unique(np.concatenate([rng.integers(0, n, 2**18), np.arange(2**17), np.arange(n - 2**17, n)]))
    samples = shuffled[positions]
    assert samples.min() >= 0 and samples.max() < n
    assert len(np.unique(samples)) == len(positions)


@given(st.integers(1, 2**40), st.booleans(), st.integers(0, 2**64 - 1))
@settings(max_examples=examples(100), deadline=None)
def test_inverse(n: int, one_for_all: bool, tweak: int) -> None:
    x = np.unique(np.random.default_rng(n).integers(0, n, 50)).astype(np.uint64)
    keys = round_keys("test", n)
    size = np.uint64(n) if one_for_all else np.full(len(x), n, np.uint64)
    found = permute(x, size, keys, np.uint64(tweak))
    assert found.max() < n
    assert (permute(found, size, keys, np.uint64(tweak), inverse=True) == x).all()


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7])
def test_permutations_of_few_elements_are_equally_frequent(n: int) -> None:
    draws = 20_000
    tweaks = mix(np.arange(draws, dtype=np.uint64))
    x = np.tile(np.arange(n, dtype=np.uint64), draws)
    found = permute(x, np.uint64(n), round_keys("small"), np.repeat(tweaks, n)).reshape(draws, n).astype(np.int64)
    _, counts = np.unique(found @ n ** np.arange(n), return_counts=True)
    kinds = math.factorial(n)
    expected = draws / kinds
    chi2 = ((counts - expected) ** 2).sum() / expected + (kinds - len(counts)) * expected
    assert chi2 < kinds - 1 + 5 * math.sqrt(2 * (kinds - 1))  # five standard deviations


@pytest.mark.parametrize("n", [9, 31, 32, 33, 100])
def test_pairs_are_equally_frequent(n: int) -> None:
    draws = 20_000
    x = np.tile(np.array([0, 1, n // 2, n - 1], np.uint64), draws)
    tweaks = np.repeat(mix(np.arange(draws, dtype=np.uint64)), 4)
    found = permute(x, np.uint64(n), round_keys("pairs"), tweaks).reshape(draws, 4).astype(np.int64)
    for a, b in ((0, 1), (0, 2), (1, 3)):
        table = np.bincount(found[:, a] * n + found[:, b], minlength=n * n).reshape(n, n)
        counts = table[~np.eye(n, dtype=bool)]
        expected = draws / len(counts)
        chi2 = ((counts - expected) ** 2).sum() / expected
        assert chi2 < len(counts) + 5 * math.sqrt(2 * len(counts))


# --- quality and shape ---------------------------------------------------------------------------------------------


@one_commit_in_four
@pytest.mark.parametrize("n", [500_000, 2**20 + 1, 10**12 // 4096])
def test_neighbours_are_unrelated(n: int) -> None:
    shuffled = order(n, (block_for(n, 4096), 256, 16))
    assert abs(lag_correlation(shuffled)) < 0.005
    assert abs(lag_correlation(shuffled, 8)) < 0.005
    p = np.linspace(0, n - 1, 2**19).astype(np.int64)
    assert abs(np.corrcoef(p, shuffled[p])[0, 1]) < 0.02
    assert lag_correlation(shuffled, 256) == pytest.approx(1 / 16, abs=0.01)  # as documented


def test_lag_correlation_sees_an_unshuffled_order() -> None:
    class Unshuffled:
        n = 10**7

        def __getitem__(self, positions: np.ndarray) -> np.ndarray:
            return positions

    assert lag_correlation(Unshuffled(), pairs=1000) > 0.99


def test_seed_epoch_and_domain_change_the_order() -> None:
    orders = [
        Order(1000, seed=seed, epoch=epoch, domain=domain, block=4, lanes=8, window=4)[np.arange(1000)].tolist()
        for seed, epoch, domain in ((1, 0, ""), (2, 0, ""), (1, 1, ""), (1, 0, "web"))
    ]
    assert len({tuple(samples) for samples in orders}) == 4


@pytest.mark.parametrize("tokens", [10**9, 10**12, 10**15])
def test_a_seek_costs_what_it_delivers(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in evaluations of the network: 64 positions in the middle of 10^12 tokens cost no more than others."""
    passed: list[int] = []

    class Counted:
        @staticmethod
        def permute(*arguments: Any) -> None:
            passed.append(permutation.permute(*arguments))

    monkeypatch.setattr(order_module, "permutation", Counted)
    n = tokens // 4096
    whole = Order(n, seed=1, epoch=0, block=256, lanes=256, window=16)
    kept = whole.blocks if whole.blocks <= 4096 else 0  # the order of few blocks is a table
    assert sum(passed) <= 2 * kept + 64
    passed.clear()
    middle = whole[np.arange(n // 2, n // 2 + 64)]
    assert len(np.unique(middle)) == 64
    assert sum(passed) < 10 * 64  # two bijections, each walked fewer than two times on average
    held = [value for value in vars(whole).values() if isinstance(value, (tuple, list, np.ndarray))]
    assert sum(len(value) for value in held) == 16 + kept  # the round keys, and the table


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 50, 997, 4096])
def test_windows_and_pieces_say_what_is_read(n: int, shape: tuple[int, int, int]) -> None:
    shuffled = order(n, shape)
    windows = shuffled.windows(np.arange(n))
    samples = shuffled[np.arange(n)]
    for start, stop, last in np.unique(windows, axis=0).tolist():
        drawing = np.flatnonzero(windows[:, 0] == start)
        pieces = shuffled.pieces(start, stop)
        assert drawing.max() == last and len(drawing) == stop - start
        read = np.concatenate([np.arange(begin, end) for begin, end in pieces.tolist()])
        assert sorted(samples[drawing]) == sorted(read)
        assert len(pieces) <= (stop - start) // shape[0] + 3
    spans = np.unique(windows[:, :2], axis=0)
    together, counts = shuffled.pieces_of(spans[:, 0], spans[:, 1])
    each = [shuffled.pieces(start, stop) for start, stop in spans.tolist()]
    assert np.array_equal(together, np.concatenate(each)) and counts.tolist() == list(map(len, each))


def test_windows_end_one_after_another() -> None:
    shuffled = order(200_000, (16, 32, 8))
    lasts = np.unique(shuffled.windows(np.arange(100_000))[:, 2])
    gaps = np.diff(lasts[lasts < 90_000])
    assert gaps.min() >= 16 * 8 - 32 and gaps.max() <= 16 * 8 + 32  # K W positions apart, plus or minus one per lane


@pytest.mark.parametrize("n, block", [(20_000, 1), (140_000, 1), (140_000, 2), (1_000_000, 15), (1_000_000, 1)])
def test_neighbours_are_where_the_shape_says(n: int, block: int) -> None:
    found = neighbours(order(n, (block, 256, 16)))
    assert found == pytest.approx(expected_neighbours(n, block, 256, 16), rel=0.15, abs=0.002)
    if block == 1:
        assert found == pytest.approx(2048 / n, rel=0.1, abs=0.002)  # as by chance


def test_neighbours_of_an_order_without_a_shuffle() -> None:
    class Unshuffled:
        n = 100_000

        def __getitem__(self, positions: np.ndarray) -> np.ndarray:
            return positions

    assert neighbours(Unshuffled()) > 0.99  # type: ignore[arg-type]


def test_neighbours_equal_a_direct_count() -> None:
    shuffled = order(3000, (5, 4, 3))
    place = np.argsort(shuffled[np.arange(3000)])
    direct = (np.abs(np.diff(place)) <= 20).mean()
    assert neighbours(shuffled, reach=20, parts=200) == pytest.approx(direct, abs=0.03)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"lanes: 0 given, 1 to \d+ is allowed"):
        OrderParams(lanes=0)
    with pytest.raises(ValueError, match=r"a product to 2\^52 is allowed"):
        order(10, (2**24, 2**24, 2**24))
    with pytest.raises(ValueError, match="n: 0 given"):
        order(0)
    with pytest.raises(IndexError, match="0 to 9 is allowed"):
        order(10)[[3, 10]]
    with pytest.raises(IndexError):
        order(10)[-1]
    assert order(10)[np.empty((0, 2), np.int64)].shape == (0, 2)
