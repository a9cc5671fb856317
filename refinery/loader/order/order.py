"""The order of an epoch, by arithmetic: position p in [0, n) -> sample, a bijection for every n, nothing stored.

An epoch's n samples are shuffled in two steps that keep reads long and the live part of the corpus bounded:

1. Blocks of K consecutive samples (the last may be short) are permuted by a keyed bijection. Laid end to end in that
   order they are the epoch's *sequence*, whose elements are samples.
2. The sequence is cut into C *lanes* of equal length (give or take one). Position p is element p div C of lane
   p mod C, so consecutive positions come from C distant places. Inside a lane, *windows* of W x K elements are
   shuffled by a keyed bijection. The first window of each lane is shortened by a different amount, so window ends
   are evenly spread over time: if W x K >= C, two lanes never need new blocks at the same position.

The keyed bijection is a Feistel network on ceil(log2 n) bits, at least 5 (with fewer, permutations of 5 to 8 elements
are visibly unequal in frequency), walked along its cycle until it lands below n (Black and Rogaway, "Ciphers with
arbitrary finite domains", CT-RSA 2002). The two halves differ by at most one bit; round
i replaces one of them: high ^= F(low) where i is even, low ^= F(high) where it is odd, ROUNDS = 8 as in NIST's FF3-1
(SP 800-38G). F(x) = mix((x + key[i]) ^ tweak), its top bits, where mix is the finalizer of SplitMix64 (Steele, Lea and
Flood, OOPSLA 2014; constants: Stafford's variant 13). It is a shuffle, not encryption. Keys are BLAKE2b of seed,
epoch and domain; the tweak differs between windows.

The order depends only on seed, epoch, domain, n, K, C and W: not on world size, batch size or workers.
"""

import hashlib
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.arguments import whole
from refinery.loader.native import permutation

U64 = npt.NDArray[np.uint64]
Each = U64 | np.uint64  # one per element, or one for all

ORDER_VERSION = 1  # of the arithmetic: a state of another version is rejected
ROUNDS = 8  # as in loader/native/permutation.c
GOLDEN = 0.6180339887  # 1 / golden ratio: multiples of it are spread evenly
MAX_SAMPLES = 2**52
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_MIX = tuple(map(np.uint64, (30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31)))
_TABLE = 4096  # blocks of an epoch up to which their order is kept: looked up, not computed again and again


@dataclass(frozen=True, slots=True)
class OrderParams:
    """Shape of the shuffle.

    block: samples that are read together (K); 0 chooses by `block_for`, as many as one read of an object store should
        have; None: 0 for remote corpora and 1 for local ones, whose memory map has no need of long reads.
    lanes: places of the epoch's sequence that are read at the same time (C). Should be a multiple or a divisor of the
        world size: then no two hosts read the same block.
    window: blocks that are shuffled together in a lane (W).

    About lanes x window x block samples are live at any time: the reach of the shuffle and the size of the cache.
    """

    block: int | None = None
    lanes: int = 256
    window: int = 16

    def __post_init__(self) -> None:
        for name in ("block", "lanes", "window"):
            value = getattr(self, name)
            if value is not None or name != "block":
                least = 0 if name == "block" else 1
                object.__setattr__(self, name, whole(name, value, least, 2**24))  # an int, for the state


def block_for(samples: int, sequence_length: int) -> int:
    """The default K: about 2^20 tokens (2 MB of uint16, 4 MB of int32: one efficient read of an object store), less if
    the corpus would have fewer than 65,536 blocks, because few blocks shuffle poorly.

    >>> block_for(10**9, 4096), block_for(1_000_000, 4096), block_for(20_000, 4096)
    (256, 15, 1)
    """
    return max(1, min((1 << 20) // sequence_length, samples >> 16))


def neighbours(order: "Order", reach: int = 1024, parts: int = 64) -> float:
    """Share of samples whose next sample is delivered within `reach` positions, before or after: 2 reach / n by chance.

    Measured in `parts` places of the epoch. Cost: 5 reach positions for each.
    """
    reach = min(reach, max(order.n // 8, 1))
    near = total = 0
    for start in np.linspace(0, max(order.n - 3 * reach, 0), parts).astype(np.int64).tolist():
        samples = order[np.arange(start, min(start + 3 * reach, order.n))]
        by_number = np.argsort(samples)
        middle = np.arange(reach, min(2 * reach, len(samples)))
        at = np.minimum(np.searchsorted(samples, samples[middle] + 1, sorter=by_number), len(samples) - 1)
        found = by_number[at]
        near += int(((samples[found] == samples[middle] + 1) & (np.abs(found - middle) <= reach)).sum())
        total += len(middle)
    return near / max(total, 1)


def expected_neighbours(n: int, block: int, lanes: int, window: int, reach: int = 1024) -> float:
    """What `neighbours` measures, computed from the shape: two samples of a block are anywhere in its window."""
    by_chance = min(1.0, 2 * reach / n)
    same = (block - 1) / block
    span = min(lanes * window * block, n)
    return same * (1 - (1 - min(1.0, reach / span)) ** 2) + (1 - same) * by_chance


def round_keys(*parts: str | int) -> U64:
    """ROUNDS keys, uint64: BLAKE2b of the length-prefixed parts."""
    digest = hashlib.blake2b(digest_size=8 * ROUNDS, person=b"refinery-order")
    for part in parts:
        data = str(part).encode()
        digest.update(len(data).to_bytes(4, "little") + data)
    return np.frombuffer(digest.digest(), "<u8").astype(np.uint64)


def mix(x: U64) -> U64:
    """SplitMix64's finalizer, elementwise, in place: a bijection of 64 bits. Returns `x`."""
    first, factor, second, other, third = _MIX
    x ^= x >> first
    x *= factor
    x ^= x >> second
    x *= other
    x ^= x >> third
    return x


def permute(x: U64, n: Each, keys: U64, tweak: Each = _ZERO, inverse: bool = False) -> U64:
    """The keyed bijection of [0, n), elementwise for x < n; n and tweak may be arrays with one value per element.

    Raises ValueError for a value that is not below n, and for n above 2^52. Cost: ROUNDS rounds, repeated fewer than
    two times on average because 2^bits < 2n: 10 ns in arrays of thousands.
    """
    out = np.empty_like(x)
    sizes, tweaks = np.ascontiguousarray(n, np.uint64), np.ascontiguousarray(tweak, np.uint64)
    permutation.permute(x, sizes, keys, tweaks, inverse, out)
    return out


class Order:
    """The order of one epoch of `n` samples: `order[positions]` are samples. Immutable; at most 32 KB, whatever n is.

    domain: a name, so domains have different orders. Raises ValueError for n outside 1 to 2^52.
    """

    def __init__(self, n: int, *, seed: int, epoch: int, block: int, lanes: int, window: int, domain: str = "") -> None:
        if not 1 <= n <= MAX_SAMPLES:
            raise ValueError(f"n: {n} given, 1 to {MAX_SAMPLES} samples are allowed")
        OrderParams(whole("block", block, 1), lanes, window)
        if lanes * window * block > MAX_SAMPLES:
            raise ValueError(f"block, lanes, window: {block}, {lanes}, {window} given, a product to 2^52 is allowed")
        self.n, self.block, self.lanes = n, block, lanes
        self.span = window * block  # samples of a whole window
        self.blocks = -(-n // block)
        self._block_keys = round_keys("blocks", seed, epoch, domain)
        self._window_keys = round_keys("windows", seed, epoch, domain)
        self._table = self._permuted(np.arange(self.blocks, dtype=np.uint64)) if self.blocks <= _TABLE else None
        missing = self.blocks * block - n  # samples by which the last block is short
        slot = self._slot_of(self.blocks - 1)
        self._gap_start, self._gap = slot * block + block - missing, missing
        self._length, self._longer = divmod(n, lanes)  # length of a lane; the first `longer` lanes have one more
        self._step = coprime(round(lanes * GOLDEN), lanes)

    def __getitem__(self, positions: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Samples at `positions` (any shape, each in [0, n)), int64. O(1) each: about 0.1 us in arrays of thousands.

        Raises IndexError for a position outside.
        """
        asked = np.asarray(positions)
        if asked.size and (int(asked.min()) < 0 or int(asked.max()) >= self.n):
            raise IndexError(f"position {asked.min()} to {asked.max()} given, 0 to {self.n - 1} is allowed")
        return self._at(asked.astype(np.uint64).ravel()).reshape(asked.shape)

    def _at(self, p: U64) -> npt.NDArray[np.int64]:
        start, size, inside = self._windows(p)
        shuffled = permute(inside, size, self._window_keys, mix(start + np.uint64(_GOLDEN)))
        shuffled += start
        return self._samples(shuffled)

    def _windows(self, p: U64) -> tuple[U64, U64, U64]:
        """For each position: its window's first element in the sequence, the window's size, and the place inside it."""
        lanes = np.uint64(self.lanes)
        index = p // lanes
        lane = p - index * lanes
        length = (lane < np.uint64(self._longer)).astype(np.uint64)
        lane_start = lane * np.uint64(self._length) + np.minimum(lane, np.uint64(self._longer))
        length += np.uint64(self._length)
        # Lanes end their first windows one after another; consecutive lanes (of one host) far apart in time.
        turn = lane * np.uint64(self._step) % lanes + _ONE
        span = np.uint64(self.span)
        first = (turn * span + lanes - _ONE) // lanes  # 1 to span
        behind = index >= first
        past = index - first  # wraps around where not behind, and is not used there
        window_start = np.where(behind, first + past // span * span, np.uint64(0))
        size = np.minimum(np.where(behind, span, first), length - window_start)
        return lane_start + window_start, size, index - window_start

    def _samples(self, g: U64) -> npt.NDArray[np.int64]:
        """Samples at elements `g` of the sequence: the blocks in their permuted order, concatenated."""
        padded = g + np.where(g >= np.uint64(self._gap_start), np.uint64(self._gap), np.uint64(0))
        block = np.uint64(self.block)
        slot = padded // block
        inside = padded - slot * block
        return (self._numbers(slot) * block + inside).astype(np.int64)

    def _numbers(self, slots: U64) -> U64:
        """The blocks that are at these places of the permuted order."""
        return self._permuted(slots) if self._table is None else self._table[slots]

    def _permuted(self, slots: U64) -> U64:
        return permute(slots, np.uint64(self.blocks), self._block_keys)

    def _slot_of(self, block: int) -> int:
        """The inverse of `_numbers`."""
        if self._table is not None:
            return int(np.flatnonzero(self._table == block)[0])
        return int(permute(np.array([block], np.uint64), np.uint64(self.blocks), self._block_keys, inverse=True)[0])

    def windows(self, positions: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """int64 [len(positions), 3]: the window that each position draws from, as start and stop in the sequence and
        the last position that draws from it.

        A window's samples are those of `pieces(start, stop)`; its start identifies it within the epoch.
        """
        p = np.asarray(positions).astype(np.uint64).ravel()
        start, size, inside = self._windows(p)
        last = p + (size - _ONE - inside) * np.uint64(self.lanes)
        return np.stack([start, start + size, last], axis=1).astype(np.int64)

    def pieces(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """int64 [pieces, 2]: ranges of consecutive samples that make up elements [start, stop) of the sequence.

        At most (stop - start) / K + 2 of them, as a window may start and end inside a block.
        """
        return self.pieces_of(np.array([start]), np.array([stop]))[0]

    def pieces_of(
        self, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """`pieces` of many windows, one after another, and how many each has. None may be empty.

        Cost: 1 us for a piece in arrays of thousands.
        """
        # With the gap at the end of the short block counted, each block is K places, and a piece is a block's part.
        first, last = self._padded(starts), self._padded(stops - 1)
        counts = last // self.block - first // self.block + 1
        owner = np.repeat(np.arange(len(counts)), counts)
        slots = (first // self.block)[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin, end = np.maximum(first[owner], slots * self.block), np.minimum(last[owner] + 1, (slots + 1) * self.block)
        end -= np.where((end > self._gap_start) & (slots == self._gap_start // self.block), self._gap, 0)
        numbers = self._numbers(slots.astype(np.uint64)).astype(np.int64)
        pieces = np.stack([begin, end], axis=1) + ((numbers - slots) * self.block)[:, None]
        return pieces, counts

    def _padded(self, elements: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return elements + np.where(elements >= self._gap_start, self._gap, 0)


def coprime(near: int, n: int) -> int:
    """The smallest number from `near` upwards that is coprime to n."""
    step = max(1, near)
    while gcd(step, n) != 1:
        step += 1
    return step


def lag_correlation(order: Any, lag: int = 1, pairs: int = 1 << 20) -> float:
    """Correlation of the samples at positions p and p + lag: near 0 for a good shuffle, 1 for none.

    order: anything with `n` and `order[positions]`. Over `pairs` evenly spaced positions, or all if there are fewer;
    for random orders it is about 1 / sqrt(pairs). At multiples of the number of lanes it is about 1 / W, since a lane's
    next sample is from the same W blocks.
    """
    count = order.n - lag
    p = np.arange(count) if count <= pairs else np.linspace(0, count - 1, pairs).astype(np.int64)
    return float(np.corrcoef(order[p], order[p + lag])[0, 1])
