"""Connected components of the links between documents: one label per document, the same throughout a component.

Two methods, one answer. "forest": one worker folds all links into a union-find forest. "stars": rounds of shuffles, see
transforms/dedup/stars.py. Both start from links that were folded by range of member before, so that a link found in
many bands is shuffled once.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, get_args

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.memory import GROUP_BYTES, with_memory
from refinery.transforms.dedup.record_batch import (
    LABEL,
    LABELS,
    LINK,
    LINKS,
    KeyedBatch,
    MapRecordBatches,
    Rows,
    cut,
    gather,
    part_of,
    scatter,
    starts_of,
)
from refinery.transforms.dedup.stars import FindStars, both_ways, component_record, dense, max_rounds, pair, place_of

Method = Literal["forest", "stars"]
# A forest: distinct locators, ascending, and for each the index of the least locator of its component.
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


def choose_method(documents: int) -> Method:
    """The method for that many documents: "forest" up to FOREST_DOCUMENTS, "stars" beyond."""
    return "forest" if documents <= FOREST_DOCUMENTS else "stars"


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


def label(locators: NDArray[np.uint64], components: NDArray[np.uint64]) -> Rows:
    """LABEL rows of two columns."""
    rows = np.empty(len(locators), LABEL)
    rows["locator"], rows["component"] = locators, components
    return rows


def links_of(forest: Forest) -> Rows:
    """LINK rows with the same components as the forest, one per locator that is no root; a lone root is linked to
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


def route_links(key: int, batch: bytes, partitions: int) -> Iterator[KeyedBatch]:
    """A batch of links -> its LINK rows by range of member."""
    links = gather([batch], LINKS, LINK)
    yield from scatter(place_of(links["member"], partitions), LINKS, links)


def reduce_batches(
    key: int, batches: Iterable[bytes], scope: str, method: Method, partitions: int
) -> Iterator[KeyedBatch | bytes]:
    """LINK rows of a range of members -> the fewest with the same components.

    For the forest LINK rows under key 0, for the stars NEIGHBOUR rows both ways at the partitions of their documents.
    """
    forest, links = fold_links(batches)
    yield component_record(scope, method, links=links)
    rows = links_of(forest)
    if method == "forest":
        yield from cut(0, LINKS, rows)
    else:
        yield from both_ways(pair(rows["member"], rows["representative"]), partitions)


def forest_batches(key: int, batches: Iterable[bytes], scope: str) -> Iterator[KeyedBatch | bytes]:
    """All LINK rows -> LABEL rows by part, in ascending order. Memory: see fold_links."""
    (nodes, roots), _ = fold_links(batches)
    if not len(nodes):
        return
    starts = np.flatnonzero(starts_of(part_of(nodes))).tolist()
    for first, last in pairwise([*starts, len(nodes)]):
        part = int(nodes[first] >> np.uint64(32))
        yield from cut(part, LABELS, label(nodes[first:last], nodes[roots[first:last]]))
    sizes = np.bincount(roots)
    components, largest = int(np.count_nonzero(sizes)), int(sizes.max())
    yield component_record(scope, "forest", documents=len(nodes), components=components, largest=largest)


@dataclass
class FindComponents(beam.PTransform):
    """(0, LINKS) not grouped -> (part, LABELS): every document of a link with the least locator of its component.

    stage: to which the time is counted. scope: its name in the report's "components". partitions: keys of each shuffle;
    with one per million documents a key takes some 250 MB while it is processed. documents: an upper bound; it sets how
    many rounds are laid out for "stars", which fail if these do not settle every link.
    """

    stage: str
    scope: str
    method: Method
    partitions: int
    documents: int

    def __post_init__(self) -> None:
        super().__init__("components")
        if self.method not in get_args(Method):
            raise ValueError(f"method: {self.method!r} given, {' or '.join(get_args(Method))} is allowed")
        if self.partitions < 1:
            raise ValueError(f"partitions: {self.partitions} given, 1 or more is allowed")
        if self.documents < 0:
            raise ValueError(f"documents: {self.documents} given, 0 or more is allowed")
        if self.method == "forest" and self.documents > FOREST_MOST:
            raise ValueError(f"documents: {self.documents} given, up to {FOREST_MOST} is allowed for a forest")

    def expand(self, links: beam.PCollection) -> beam.PCollection:
        stage, scope, partitions = self.stage, self.scope, self.partitions
        route = partial(route_links, partitions=partitions)
        reduce = partial(reduce_batches, scope=scope, method=self.method, partitions=partitions)
        routed = links | MapRecordBatches(stage, "route", route, stream=True)  # (range of members, links)
        reduced = routed | "by member" >> beam.GroupByKey() | MapRecordBatches(stage, "reduce", reduce, stream=True)
        if self.method == "stars":
            return reduced | FindStars(
                stage, scope, partitions, max_rounds(self.documents), self.documents
            )  # (part, labels)
        forest = MapRecordBatches(stage, "forest", partial(forest_batches, scope=scope), stream=True)
        most = FOREST_BYTES * self.documents + FOLD_SPACE
        return reduced | "all links" >> beam.GroupByKey() | with_memory(forest, most, bundles=1)
