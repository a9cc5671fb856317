"""Components without one worker that holds all links: alternating large-star and small-star rounds over record batches.

Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, "Connected Components in MapReduce and Beyond". Every linked
document belongs to the partition of its hash. The large star links all greater neighbours of a document to its least
neighbour (or itself); the small star does so with all lesser neighbours and the document itself. Neither splits a
component, neither adds links, and a star around the least document of its component is the only fixed point of both.

A component that has become such a star leaves the rounds at once: in the large star a document whose only neighbour is
lesser reports to it as a leaf, and a document without lesser neighbours records its own degree. Where the number of
leaves equals the degree, no member has any other neighbour, so the star is the whole component. Its labels are emitted,
and its links are dropped before the next large star. Later rounds shuffle the links of unsettled components alone.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.memory import family_bytes, with_memory
from refinery.transforms.core.side_outputs import side_output_record
from refinery.transforms.dedup.record_batch import (
    DEGREES,
    LABEL,
    LABELS,
    LEAVES,
    NEIGHBOURS,
    SETTLED,
    KeyedBatch,
    MapRecordBatches,
    Rows,
    cut,
    gather,
    only,
    part_of,
    ranges,
    scatter,
    starts_of,
    without,
)
from refinery.transforms.spill.sorted_rows import RowSorter, group_pieces

SALT = np.uint64(0x9E3779B97F4A7C15)
LINK_BYTES = 128 << 20  # of links sorted at once: 8 million; new links are made of them beside
LEAF_BYTES = 70  # memory of `settle` per leaf
SENT_LEAVES = 4 << 20  # leaves whose labels are made at once

# A document and one linked to it (LEAVES: the document, and one whose only neighbour it is).
NEIGHBOUR = np.dtype([("node", "<u8"), ("neighbour", "<u8")])
# A document and how many neighbours it has.
DEGREE = np.dtype([("node", "<u8"), ("neighbours", "<u8")])
# A document, its least and its greatest neighbour, and how many it has.
FACTS = np.dtype([("node", "<u8"), ("smallest", "<u8"), ("largest", "<u8"), ("degree", "<i8")])
# A document whose label has been emitted.
DONE = np.dtype([("node", "<u8")])
# What a partition still holds after the last round.
LEFT = np.dtype([("links", "<u8"), ("documents", "<u8")])


def max_rounds(documents: int) -> int:
    """How many rounds are laid out for links between that many documents, far more than they are known to need.

    Measured on paths, cycles, trees, caterpillars, grids and random graphs, sorted, shuffled, bit-reversed and searched
    for bad orders: never more than log2(documents) + 2. Nothing better than the square of the logarithm is proven, so
    what is left after the last round is counted, and fails the job.
    """
    return 4 + 3 * max(1, documents).bit_length() // 2


def place_of(locators: NDArray[np.uint64], partitions: int) -> NDArray[Any]:
    """The partition of each document, as 16-bit numbers where they fit: numpy sorts these by radix."""
    places = ranges(locators * SALT, partitions)
    return places.astype(np.uint16) if partitions <= 1 << 16 else places


def dense(values: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(distinct values, ascending; place of each given value among them). Several times as fast as np.unique."""
    order = np.argsort(values)
    ordered = values[order]
    first = starts_of(ordered)
    places = np.empty(len(values), np.uint64)
    places[order] = np.cumsum(first, dtype=np.uint64) - np.uint64(1)
    return ordered[first], places


def is_in(values: NDArray[np.uint64], chosen: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of the sorted `values` are among `chosen`."""
    if not len(chosen):
        return np.zeros(len(values), np.bool_)
    chosen = np.sort(chosen)
    place = np.searchsorted(chosen, values)
    place[place == len(chosen)] = 0
    found: NDArray[np.bool_] = chosen[place] == values
    return found


def sort_links(batches: Iterable[bytes]) -> tuple[RowSorter, list[bytes]]:
    """(a sorter of the NEIGHBOUR rows, the batches of other rows). Batches are read once."""
    sorter, others = RowSorter(NEIGHBOUR, ("node", "neighbour"), limit=LINK_BYTES), []
    for batch in batches:
        if batch[0] == NEIGHBOURS:
            sorter.add(np.frombuffer(batch, NEIGHBOUR, offset=1))
        else:
            others.append(batch)
    return sorter, others


@dataclass(frozen=True)
class Links:
    """NEIGHBOUR rows of some documents, sorted, none twice. hub: where all are of one document, whose rows come in
    several lots, what is known of it so far; is_last: it has no more."""

    rows: Rows
    hub: "Hub | None"
    is_last: bool


@dataclass
class Hub:
    """A document whose neighbours come in several lots, in ascending order. loop: it is linked to itself."""

    node: int
    degree: int = 0
    smallest: int = 0
    largest: int = 0
    loop: bool = False

    def add(self, neighbours: NDArray[np.uint64]) -> bool:
        """Take in other documents. Returns whether these are its first."""
        if not len(neighbours):
            return False
        is_first, self.largest = self.degree == 0, int(neighbours[-1])
        self.smallest = int(neighbours[0]) if is_first else self.smallest
        self.degree += len(neighbours)
        return is_first


def neighbourhoods(sorter: RowSorter, settled: NDArray[np.uint64]) -> Iterator[Links]:
    """The links of documents not settled. Memory: see GROUP_BYTES, however many neighbours a document has."""
    hub: Hub | None = None
    previous: Any = None
    for piece in group_pieces(sorter.blocks(), "node"):
        rows = piece.block.facts
        fresh = starts_of(rows["node"], rows["neighbour"])
        if len(rows):
            fresh[0] = previous is None or rows[0] != previous
            previous = rows[-1]
            rows = rows[fresh & ~is_in(rows["node"], settled)]
        if piece.split and hub is None and len(rows):
            hub = Hub(int(rows["node"][0]))
        if len(rows) or hub is not None:
            yield Links(rows, hub if piece.split else None, piece.last)
        hub = None if piece.last else hub


def pair(nodes: NDArray[np.uint64], neighbours: NDArray[np.uint64]) -> Rows:
    """NEIGHBOUR rows of two columns."""
    rows = np.empty(len(nodes), NEIGHBOUR)
    rows["node"], rows["neighbour"] = nodes, neighbours
    return rows


def both_ways(links: Rows, partitions: int) -> Iterator[KeyedBatch]:
    """NEIGHBOUR rows of one direction -> of both, at the partitions of their documents."""
    rows = np.concatenate([links, pair(links["neighbour"], links["node"])])
    yield from scatter(place_of(rows["node"], partitions), NEIGHBOURS, rows)


def large_star(
    key: int, batches: Iterable[bytes], partitions: int, scope: str, number: int
) -> Iterator[KeyedBatch | bytes]:
    """All neighbours of the documents of a partition -> their new links, at their partitions, and which components may
    settle.

    In: NEIGHBOUR rows both ways, DONE rows. Out: NEIGHBOUR rows (greater neighbour, least known), at most one per link;
    LEAVES and DEGREES rows. `number`: of the round, counted from 1.
    """
    sorter, others = sort_links(batches)
    is_empty = True
    for links in neighbourhoods(sorter, gather(others, SETTLED, DONE)["node"]):
        if is_empty:
            yield component_record(scope, rounds=number)
        is_empty = False
        loops = links.rows["node"] == links.rows["neighbour"]
        rows = links.rows[~loops] if loops.any() else links.rows
        nodes, neighbours = rows["node"], rows["neighbour"]
        hub = links.hub
        if hub is not None:
            hub.add(neighbours)
            hub.loop |= bool(loops.any())
            least = np.full(len(rows), min(hub.node, hub.smallest), np.uint64)
            facts = np.array([(hub.node, hub.smallest, hub.largest, hub.degree)], FACTS)[: links.is_last]
            lone = facts["node"][(facts["degree"] == 0) & hub.loop]
            facts = facts[facts["degree"] > 0]
        else:
            first = np.flatnonzero(starts_of(nodes))
            degrees = np.diff(first, append=len(rows))
            facts = np.empty(len(first), FACTS)
            facts["node"], facts["smallest"], facts["degree"] = nodes[first], neighbours[first], degrees
            facts["largest"] = neighbours[first + degrees - 1]
            least = np.repeat(np.minimum(facts["node"], facts["smallest"]), degrees)
            lone = links.rows["node"][loops]
            lone = lone[~is_in(lone, nodes)]
        yield from send_degrees(lone, 0, partitions)
        greater = neighbours > nodes
        relinked = pair(neighbours[greater], least[greater])
        yield from scatter(place_of(relinked["node"], partitions), NEIGHBOURS, relinked)
        leaves = facts[(facts["smallest"] == facts["largest"]) & (facts["smallest"] < facts["node"])]
        leaves = pair(leaves["smallest"], leaves["node"])
        yield from scatter(place_of(leaves["node"], partitions), LEAVES, leaves)
        centres = facts[facts["smallest"] > facts["node"]]
        yield from send_degrees(centres["node"], centres["degree"], partitions)


def send_degrees(nodes: NDArray[np.uint64], degrees: NDArray[np.int64] | int, partitions: int) -> Iterator[KeyedBatch]:
    """DEGREES rows, at the partitions of their documents."""
    rows = np.empty(len(nodes), DEGREE)
    rows["node"], rows["neighbours"] = nodes, degrees
    yield from scatter(place_of(nodes, partitions), DEGREES, rows)


def small_star(key: int, batches: Iterable[bytes], partitions: int, scope: str) -> Iterator[KeyedBatch | bytes]:
    """All lesser neighbours of the documents of a partition -> links to the least of them, and what is settled.

    In: NEIGHBOUR rows (document, lesser neighbour), LEAVES and DEGREES rows. Out: NEIGHBOUR rows both ways, at most
    one link per row; LABEL rows by part and DONE rows for components that are settled.
    """
    sorter, others = sort_links(batches)
    for links in neighbourhoods(sorter, np.empty(0, np.uint64)):
        nodes, neighbours = links.rows["node"], links.rows["neighbour"]
        if links.hub is not None:
            first = np.zeros(len(nodes), np.bool_)
            first[:1] = links.hub.add(neighbours)
            least = np.full(len(nodes), links.hub.smallest, np.uint64)
        else:
            first = starts_of(nodes)
            least = neighbours[first][np.cumsum(first) - 1]
        yield from both_ways(pair(np.where(first, nodes, neighbours), least), partitions)
    yield from settle(others, partitions, scope)


def settle(batches: list[bytes], partitions: int, scope: str) -> Iterator[KeyedBatch | bytes]:
    """LEAVES and DEGREES rows of a partition -> LABEL rows of the components that are whole stars, and their DONE rows.

    A leaf may report to a document that has lesser neighbours and so emitted no degree: nothing settles there. Memory:
    about LEAF_BYTES per leaf.
    """
    degrees, leaves = gather(batches, DEGREES, DEGREE), gather(batches, LEAVES, NEIGHBOUR)
    if not len(degrees):
        return
    degrees = degrees[np.argsort(degrees["node"])]
    place = np.minimum(np.searchsorted(degrees["node"], leaves["node"]), len(degrees) - 1).astype(np.uint32)
    known = degrees["node"][place] == leaves["node"]
    whole = np.bincount(place[known], minlength=len(degrees)).astype(np.uint64) == degrees["neighbours"]
    centres = degrees[whole]
    if not len(centres):
        return
    yield from send_labels(centres["node"], centres["node"], partitions)
    documents = len(centres)
    for start in range(0, len(leaves), SENT_LEAVES):
        some = slice(start, start + SENT_LEAVES)
        settled = leaves[some][known[some] & whole[place[some]]]
        documents += len(settled)
        yield from send_labels(settled["neighbour"], settled["node"], partitions)
    largest = int(centres["neighbours"].max()) + 1
    yield component_record(scope, documents=documents, components=len(centres), largest=largest)


def send_labels(locators: NDArray[np.uint64], components: NDArray[np.uint64], partitions: int) -> Iterator[KeyedBatch]:
    """LABEL rows by part, and DONE rows at the partitions of their documents."""
    labels = np.empty(len(locators), LABEL)
    labels["locator"], labels["component"] = locators, components
    yield from scatter(part_of(labels["locator"]), LABELS, labels)
    done = labels["locator"].astype(DONE)
    yield from scatter(place_of(done["node"], partitions), SETTLED, done)


def component_record(scope: str, method: str = "stars", **fields: int) -> bytes:
    """A "components" side-output record: rounds and largest are merged by their maximum, the rest by their sum."""
    zeros = dict.fromkeys(("rounds", "links", "documents", "components", "largest"), 0)
    return side_output_record("components", scope=scope, method=method, **{**zeros, **fields})


def unsettled(key: int, batches: Iterable[bytes]) -> Iterator[KeyedBatch]:
    """What the last round left at a partition -> one LEFT row under key 0, none when all is settled."""
    sorter, others = sort_links(batches)
    links = documents = 0
    for found in neighbourhoods(sorter, gather(others, SETTLED, DONE)["node"]):
        nodes, neighbours = found.rows["node"], found.rows["neighbour"]
        links += int(np.count_nonzero(nodes > neighbours))
        documents += int(found.hub.add(neighbours) if found.hub else np.count_nonzero(starts_of(nodes)))
    if documents:
        yield from cut(0, DEGREES, np.array([(links, documents)], LEFT))


def refuse(key: int, batches: list[bytes], rounds: int) -> Iterator[KeyedBatch]:
    """Raises RuntimeError: links that the last round left are never dropped silently."""
    left = gather(batches, DEGREES, LEFT)
    raise RuntimeError(
        f"components: {left['links'].sum()} links between {left['documents'].sum()} documents are not settled after "
        f"{rounds} rounds, which is the limit; nothing was decided. Raise the near-duplicate threshold or its rows "
        f"per band, so that fewer documents are linked, or use the method 'forest' on a worker with enough memory"
    )


@dataclass
class FindStars(beam.PTransform):
    """(partition, NEIGHBOURS both ways) -> (part, LABELS); fails when `rounds` rounds do not settle every link.

    Two shuffles per round. 32 bytes per link cross the first and 16 the second, until its component is settled, and
    once 24 more per document that settles; rounds without links cost as much as an empty shuffle on the runner.
    Memory: see GROUP_BYTES, however many neighbours a document has, and LEAF_BYTES for each document of a family in the
    round that settles it. documents: an upper bound, which says how large a family may be.
    """

    stage: str
    scope: str
    partitions: int
    rounds: int
    documents: int = 0

    def __post_init__(self) -> None:
        super().__init__("stars")

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        small = partial(small_star, partitions=self.partitions, scope=self.scope)
        labels = []
        for number in range(1, self.rounds + 1):
            large = partial(large_star, partitions=self.partitions, scope=self.scope, number=number)
            large_stars = (
                batches
                | f"neighbours {number}" >> beam.GroupByKey()
                | MapRecordBatches(self.stage, f"large {number}", large, stream=True)
            )
            step = MapRecordBatches(self.stage, f"small {number}", small, stream=True)
            lesser = large_stars | f"lesser {number}" >> beam.GroupByKey()
            stars = lesser | with_memory(step, family_bytes(self.documents, LEAF_BYTES))
            labels.append(stars | f"labels {number}" >> only(LABELS))
            batches = stars | f"unsettled {number}" >> without(LABELS)
        left = (
            batches
            | "neighbours left" >> beam.GroupByKey()
            | MapRecordBatches(self.stage, "left", unsettled, stream=True)
        )
        refused = left | "all left" >> beam.GroupByKey()
        _ = refused | MapRecordBatches(self.stage, "refuse", partial(refuse, rounds=self.rounds))
        return labels | beam.Flatten()
