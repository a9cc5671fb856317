"""A union-find forest of links between documents, in the memory of one worker.

Links are folded in some at a time, so memory is that of the linked documents, however many links they have.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.memory import GROUP_BYTES
from refinery.transforms.dedup.records.record_batch import LINK, LINKS, Rows, gather, starts_of

# Distinct locators, ascending, and for each the index of the least locator of its component.
Forest = tuple[NDArray[np.uint64], NDArray[np.uint32]]

FOLD_BYTES = 64 << 20  # of links that are folded at once: 4 million links, about 0.5 GB of working space
STEP = 1 << 20  # indices that are looked up at once: indexing converts them to 64 bits
FOREST_MOST = 2**32  # indices in a forest are 32-bit numbers
# Memory of `fold_links`: per linked document (12 bytes, 32 while it folds links in), and in addition, for FOLD_BYTES of
# links.
FOREST_BYTES, FOLD_SPACE = 32, 500_000_000
# Up to this many documents, 31 million, one worker folds the links under one key: within GROUP_BYTES even if every
# document has one, of half a gigabyte then.
FOREST_DOCUMENTS = (GROUP_BYTES - FOLD_SPACE) // FOREST_BYTES


def dense(values: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(distinct values, ascending; place of each given value among them). Several times as fast as np.unique."""
    order = np.argsort(values)
    ordered = values[order]
    first = starts_of(ordered)
    places = np.empty(len(values), np.uint64)
    places[order] = np.cumsum(first, dtype=np.uint64) - np.uint64(1)
    return ordered[first], places


def grow_forest(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> Forest:
    """The forest of these edges, the same for any order of them.

    Each round hooks the larger root of every edge under the least root that it is joined with, then halves all paths
    until they are flat; it ends when no edge joins two roots. Time: rounds * edges, rounds about log2(locators);
    memory: about 100 bytes per edge.
    """
    nodes, places = dense(np.concatenate([first, second]))
    roots = np.arange(len(nodes), dtype=np.int64)
    left, right = places[: len(first)].astype(np.int64), places[len(first) :].astype(np.int64)
    while len(left):
        low, high = np.minimum(left, right), np.maximum(left, right)
        np.minimum.at(roots, high, low)
        while True:
            shorter = roots[roots]
            if np.array_equal(shorter, roots):
                break
            roots = shorter
        left, right = roots[left], roots[right]
        apart = left != right
        left, right = left[apart], right[apart]
    return nodes, roots.astype(np.uint32)


def join_forests(forest: Forest, other: Forest) -> Forest:
    """The forest of the edges of both. Time: linear in both, plus a binary search for each node of `other`, which is
    best the smaller one.

    Memory: 32 bytes per locator of `forest`, the two forests among them, and about 100 per locator of `other`.
    """
    nodes, roots = forest
    more, more_roots = other
    if not len(nodes):
        return other
    place = np.searchsorted(nodes, more)
    new = nodes[np.minimum(place, len(nodes) - 1)] != more
    # from here on `place` is the index among the locators of both
    place += np.cumsum(new) - new
    old = np.ones(len(nodes) + np.count_nonzero(new), np.bool_)
    old[place[new]] = False
    merged = np.empty(len(old), np.uint64)
    merged[old], merged[place[new]] = nodes, more[new]
    moved = np.flatnonzero(old).astype(np.uint32)
    joined = np.arange(len(old), dtype=np.uint32)
    joined[old] = look_up(moved, roots)

    left, right = joined[place], joined[place[more_roots]]
    apart = left != right
    if apart.any():
        touched, new_roots = grow_forest(left[apart].astype(np.uint64), right[apart].astype(np.uint64))
        joined[touched] = touched[new_roots]
        joined = look_up(joined, joined)
    return merged, joined


def look_up(table: NDArray[np.uint32], places: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """table[places], without a 64-bit copy of all places."""
    found = np.empty(len(places), np.uint32)
    for start in range(0, len(places), STEP):
        found[start : start + STEP] = table[places[start : start + STEP]]
    return found


def fold_links(batches: Iterable[bytes], fold_bytes: int = FOLD_BYTES) -> tuple[Forest, int]:
    """(the forest of all LINK rows, how many they were). Batches are read once and folded `fold_bytes` at a time.

    Memory: about 32 bytes per locator, whatever the number of links, and 0.5 GB of working space.
    """
    forest: Forest = np.empty(0, np.uint64), np.empty(0, np.uint32)
    links, size, pending = 0, 0, []
    for batch in batches:
        pending.append(batch)
        size += len(batch)
        if size >= fold_bytes:
            forest, links, size, pending = fold_pending(forest, pending), links + count(pending), 0, []
    return fold_pending(forest, pending), links + count(pending)


def fold_pending(forest: Forest, batches: list[bytes]) -> Forest:
    """The forest with the links of these batches."""
    links = gather(batches, LINKS, LINK)
    return join_forests(forest, grow_forest(links["member"], links["representative"]))


def count(batches: list[bytes]) -> int:
    """LINK rows in these batches."""
    return sum((len(batch) - 1) // LINK.itemsize for batch in batches)


def links_of(forest: Forest) -> Rows:
    """LINK rows with the same components as the forest, one per locator that is not a root; a lone root is linked to
    itself.
    """
    nodes, roots = forest
    lone = np.ones(len(nodes), np.bool_)
    below = roots != np.arange(len(nodes), dtype=np.uint32)
    lone[roots[below]] = False
    kept = below | lone
    rows = np.empty(np.count_nonzero(kept), LINK)
    rows["member"], rows["representative"] = nodes[kept], nodes[roots[kept]]
    return rows
