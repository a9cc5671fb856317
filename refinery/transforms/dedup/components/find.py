"""Connected components of the links between documents: one label per document, the same throughout a component.

Two methods, one answer. "forest": one worker folds all links into a union-find forest. "contraction": rounds of
shuffles come before that, see contraction.py beside this. Both start from links that were folded by range of member, so
a link found in many bands is shuffled once.

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

from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.memory import with_memory
from refinery.transforms.dedup.components.contraction import FindContraction, rounds_for
from refinery.transforms.dedup.components.forest import (
    FOLD_SPACE,
    FOREST_BYTES,
    FOREST_DOCUMENTS,
    FOREST_MOST,
    fold_links,
    links_of,
)
from refinery.transforms.dedup.components.links import both_ways, component_record, pair, place_of, scramble
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches
from refinery.transforms.dedup.records.record_batch import (
    LABEL,
    LABELS,
    LINK,
    LINKS,
    KeyedBatch,
    Rows,
    cut,
    gather,
    part_of,
    scatter,
    starts_of,
)

Method = Literal["forest", "contraction"]


def choose_method(documents: int) -> Method:
    """The method for that many documents: "forest" up to FOREST_DOCUMENTS, "contraction" beyond."""
    return "forest" if documents <= FOREST_DOCUMENTS else "contraction"


def label(locators: NDArray[np.uint64], components: NDArray[np.uint64]) -> Rows:
    """LABEL rows of two columns."""
    rows = np.empty(len(locators), LABEL)
    rows["locator"], rows["component"] = locators, components
    return rows


def route_links(key: int, batch: bytes, partitions: int) -> Iterator[KeyedBatch]:
    """A batch of links -> its LINK rows by range of member."""
    links = gather([batch], LINKS, LINK)
    yield from scatter(place_of(scramble(links["member"]), partitions), LINKS, links)


def reduce_batches(
    key: int, batches: Iterable[bytes], scope: str, method: Method, partitions: int
) -> Iterator[KeyedBatch | bytes]:
    """LINK rows of a range of members -> the fewest with the same components.

    For the forest LINK rows under key 0, for the contraction NEIGHBOUR rows both ways at the partitions of vertices.
    """
    forest, links = fold_links(batches)
    yield component_record(scope, method, links=links)
    rows = links_of(forest)
    if method == "forest":
        yield from cut(0, LINKS, rows)
    else:
        yield from both_ways(pair(scramble(rows["member"]), scramble(rows["representative"])), partitions)


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
    many rounds are laid out for "contraction", which fails if too much is left after them.
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
        reduced = routed | Exchange("by member") | MapRecordBatches(stage, "reduce", reduce, stream=True)
        if self.method == "contraction":
            return reduced | FindContraction(stage, scope, partitions, rounds_for(self.documents))  # (part, labels)
        forest = MapRecordBatches(stage, "forest", partial(forest_batches, scope=scope), stream=True)
        most = FOREST_BYTES * self.documents + FOLD_SPACE
        step = with_memory(forest, most, bundles=1)
        return reduced | Exchange("all links", like=step, whole=True) | step
