"""Keys chosen against hashes without a key, such as anybody can compute: what the kernels must not be slow on."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
SEED = np.uint64(0x243F6A8885A308D3)
WORD_PRIME, LINE_PRIME = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
KEY_PRIME = np.uint64(0xC2B2AE3D27D4EB4F)
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
SHIFTS = [np.uint64(shift) for shift in range(65)]


def mix(key: Hashes) -> Hashes:
    """The fixed mixer that chose slots in the tables of heuristics."""
    key = (key ^ key >> SHIFTS[32]) * LINE_PRIME
    key = (key ^ key >> SHIFTS[29]) * WORD_PRIME
    return key ^ key >> SHIFTS[32]


def words_in_one_slot(prime: np.uint64, bits: int, letters: int = 5) -> list[str]:
    """All words of so many letters whose fixed hash ends in `bits` zeros once mixed: of 26^5 by 12 bits about 2,900."""
    hashes, codes = np.array([SEED]), LETTERS.astype(np.uint64)
    with np.errstate(over="ignore"):
        for _ in range(letters):
            hashes = ((hashes[:, None] ^ codes[None, :]) * prime).ravel()
        found = np.flatnonzero(mix(hashes) << SHIFTS[64 - bits] == 0)
    places = [found // 26**place % 26 for place in reversed(range(letters))]
    return ["".join(chr(97 + letter) for letter in word) for word in zip(*places, strict=True)]


def pairs_in_one_slot(limit: int, bits: int, hash_: Callable[[Hashes], Hashes], most: int) -> list[tuple[int, int]]:
    """Up to `most` pairs of numbers below `limit` whose fixed hash ends in `bits` zeros."""
    found: list[tuple[int, int]] = []
    low = np.arange(limit, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for high in range(limit):
            hashes = hash_(np.uint64(high) << SHIFTS[32] | low)
            found += [(high, int(i)) for i in np.flatnonzero(hashes << SHIFTS[64 - bits] == 0)]
            if len(found) >= most:
                break
    return found[:most]


def mix_of_merges(pair: Hashes) -> Hashes:
    """The fixed mixer that chose slots in the table of merges."""
    pair = (pair ^ pair >> SHIFTS[32]) * WORD_PRIME
    return pair ^ pair >> SHIFTS[29]


def pieces_in_one_slot(count: int) -> list[str]:
    """Words of six letters that share one of the 2^18 sets of slots for short pieces, as " word"."""
    found: list[str] = []
    for head in itertools.product(map(chr, LETTERS), repeat=2):
        start = int.from_bytes((" " + "".join(head)).encode(), "little")
        tails = np.arange(26**4, dtype=np.uint64)
        word = np.full(26**4, start, np.uint64)
        for place in range(4):
            word |= (tails // np.uint64(26**place) % np.uint64(26) + np.uint64(97)) << SHIFTS[24 + 8 * place]
        with np.errstate(over="ignore"):
            hashes = (word ^ np.uint64(7 << 56) * KEY_PRIME) * WORD_PRIME  # " word" is one word, the other its length
            hashes = (hashes ^ hashes >> SHIFTS[32]) * LINE_PRIME
        for i in np.flatnonzero(hashes >> SHIFTS[46] == 0):
            found.append(int(word[i]).to_bytes(8, "little")[:7].decode())
        if len(found) >= count:
            return found[:count]
    raise AssertionError("too few pieces")


def steps_of_one_slot(keys: int) -> int:
    """Steps of linear probing when so many keys have the same slot."""
    return keys * (keys - 1) // 2


def quadruples_in_one_slot(count: int, bits: int, generator: np.random.Generator) -> NDArray[Any]:
    """uint32 [count, 4] of values whose hash in the index of cluster representatives begins with `bits` zeros."""
    found = np.empty((0, 4), np.uint32)
    while len(found) < count:
        values = generator.integers(0, 2**32, (1 << 16, 4), np.uint32)
        words = values.view(np.uint64)
        key = np.zeros(len(words), np.uint64)
        with np.errstate(over="ignore"):
            for place in range(2):
                key = (key ^ words[:, place]) * WORD_PRIME
                key ^= key >> SHIFTS[32]
            key *= np.uint64(0xD1342543DE82EF95)
        found = np.concatenate([found, values[key >> SHIFTS[64 - bits] == 0]])
    return found[:count]
