"""The model's lexicon: which words stand in main text, and which on its frame.

A word's weight is the logarithm of how much more often it stands in blocks of main text than in others, in 1/32 (naive
Bayes; a page counts at most MOST times for a word and side). Words of few domains are left out. A page that is trained
on is described by weights that do not know its own domain, or the trees would believe the lexicon too much.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.native import htmlblocks

LEAST_DOMAINS = 10
MOST = 3  # times that a page counts for a word and side
PRIOR = 2  # times that every word is thought to have been seen on each side
UNIT, HIGHEST = 32, 127


@dataclass(frozen=True)
class PageWords:
    """Words of a page: hashes, each one's block, and what is known of each block (1: main text, 0: not, -1: none)."""

    domain: str
    hashes: NDArray[np.uint32]
    blocks: NDArray[np.int64]
    main: NDArray[np.int8]


class Lexicon:
    """Counts of words over pages: on each side, with and without a domain. Memory: 16 bytes for a word and domain."""

    def __init__(self, pages: Sequence[PageWords]) -> None:
        self._domains = {name: number for number, name in enumerate(sorted({page.domain for page in pages}))}
        counted = [_count(page, self._domains[page.domain]) for page in pages]
        keys, counts = (np.concatenate(part) for part in zip(*counted, strict=True))
        # One row for a domain and word, then one for a word: keys have the domain in their upper half.
        self._keys, place = np.unique(keys, return_inverse=True)
        self._counts = _sums(place, counts, len(self._keys))
        self._counts[:, 2] = 1  # domain
        self._words, place = np.unique(self._keys & 0xFFFFFFFF, return_inverse=True)
        self._all = _sums(place, self._counts, len(self._words))
        main, other = (int(value) for value in self._counts.sum(axis=0)[:2])
        self._odds = (main + 1) / (other + 1)

    def weights(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Hashes of the words that have a weight, ascending, and the weights."""
        weights = self._weigh(self._all)
        known = weights != 0
        return self._words[known].astype(np.uint32), weights[known]

    def said(self, page: PageWords) -> bytes:
        """What the kernel's `say` would give for the page by the words of other domains."""
        sizes = np.bincount(page.blocks, minlength=len(page.main)).astype(np.int64)
        said = np.zeros((len(page.main), 4), np.int32)
        said[:, 1] = sizes
        if len(page.hashes) and len(self._words):
            place = np.minimum(np.searchsorted(self._words, page.hashes), len(self._words) - 1)
            counts = np.where((self._words[place] == page.hashes)[:, None], self._all[place], 0)
            if page.domain in self._domains:
                own = page.hashes.astype(np.int64) | self._domains[page.domain] << 32
                place = np.minimum(np.searchsorted(self._keys, own), len(self._keys) - 1)
                counts = counts - np.where((self._keys[place] == own)[:, None], self._counts[place], 0)
            weights = self._weigh(counts)
            np.add.at(said[:, 0], page.blocks, weights)
            np.minimum.at(said[:, 2], page.blocks, weights)
            np.add.at(said[:, 3], page.blocks, weights != 0)
        return said.tobytes()

    def _weigh(self, counts: NDArray[np.int64]) -> NDArray[np.int32]:
        odds = (counts[:, 0] + PRIOR) / (counts[:, 1] + PRIOR) / self._odds
        weights = np.clip(np.rint(logarithm(odds) * UNIT), -HIGHEST, HIGHEST)
        return np.where(counts[:, 2] >= LEAST_DOMAINS, weights, 0).astype(np.int32)


def _count(page: PageWords, domain: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each word of known blocks, domain and hash; in how many blocks of main text and of others; 0."""
    known = page.main[page.blocks] >= 0
    pairs = np.unique(page.blocks[known] << 32 | page.hashes[known].astype(np.int64))
    words, place = np.unique(pairs & 0xFFFFFFFF, return_inverse=True)
    main = page.main[pairs >> 32] == 1
    sides = [np.minimum(np.bincount(place[side], minlength=len(words)), MOST) for side in (main, ~main)]
    return words | domain << 32, np.stack([*sides, np.zeros(len(words), np.int64)], axis=1).astype(np.int64)


def _sums(place: NDArray[np.int64], counts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Sums of the first two columns by row, and in the third how many rows were summed."""
    result = np.zeros((rows, 3), np.int64)
    np.add.at(result, place, np.concatenate([counts[:, :2], np.ones((len(counts), 1), np.int64)], axis=1))
    return result


def logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithm by single float operations in a fixed order: unlike a library's, the same on every machine."""
    part, power = np.frexp(values)
    y = (part - 0.75) / (part + 0.75)  # part: 0.5 to 1, so y is at most 0.2
    square = y * y
    series = 2 * y * (1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9))))
    return series + power * 0.6931471805599453 + -0.2876820724517809  # ln 2, ln 0.75


def hash_table(hashes: NDArray[np.uint32], weights: NDArray[np.int32]) -> NDArray[np.int32]:
    """The table that the kernel looks words up in; one with no free slot near its own is left out."""
    slots = htmlblocks.LEAST_SLOTS
    while slots < 2 * len(hashes):
        slots *= 2
    table = np.zeros(slots, np.uint32)
    for word, weight in zip(hashes.tolist(), weights.tolist(), strict=True):
        free = [at for probe in range(htmlblocks.PROBES) if not table[at := (word + probe) % slots]]
        if free:
            table[free[0]] = word & ~0xFF | weight & 0xFF
    return table.view(np.int32)
