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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray

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

SALT = np.uint64(0x9E3779B97F4A7C15)
LOW = np.uint64(0xFFFFFFFF)

# A document and one linked to it (LEAVES: the document, and one whose only neighbour it is).
NEIGHBOUR = np.dtype([("node", "<u8"), ("neighbour", "<u8")])
# A document and how many neighbours it has.
DEGREE = np.dtype([("node", "<u8"), ("neighbours", "<u8")])
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


def neighbourhoods(links: Rows, settled: NDArray[np.uint64]) -> Rows:
    """NEIGHBOUR rows of documents not settled, sorted, none twice. Memory: about five times the rows."""
    nodes, node = dense(links["node"])
    kept = ~is_in(nodes, settled)[node]
    others, other = dense(links["neighbour"][kept])
    pairs = np.sort(node[kept] << np.uint64(32) | other)
    pairs = pairs[starts_of(pairs)]
    rows = np.empty(len(pairs), NEIGHBOUR)
    rows["node"] = nodes[pairs >> np.uint64(32)]
    rows["neighbour"] = others[pairs & LOW]
    return rows


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
    key: int, batches: list[bytes], partitions: int, scope: str, number: int
) -> Iterator[KeyedBatch | bytes]:
    """All neighbours of the documents of a partition -> their new links, at their partitions, and which components may
    settle.

    In: NEIGHBOUR rows both ways, DONE rows. Out: NEIGHBOUR rows (greater neighbour, least known), at most one per link;
    LEAVES and DEGREES rows. `number`: of the round, counted from 1.
    """
    rows = neighbourhoods(gather(batches, NEIGHBOURS, NEIGHBOUR), gather(batches, SETTLED, DONE)["node"])
    if not len(rows):
        return
    yield component_record(scope, rounds=number)
    loops = rows["node"] == rows["neighbour"]
    if loops.any():
        lone = rows["node"][loops]
        rows = rows[~loops]
        yield from send_degrees(lone[~is_in(lone, rows["node"])], 0, partitions)
        if not len(rows):
            return
    nodes, neighbours = rows["node"], rows["neighbour"]
    first = np.flatnonzero(starts_of(nodes))
    degrees = np.diff(first, append=len(rows))
    name, smallest, largest = nodes[first], neighbours[first], neighbours[first + degrees - 1]
    least = np.repeat(np.minimum(name, smallest), degrees)
    greater = neighbours > nodes
    relinked = pair(neighbours[greater], least[greater])
    yield from scatter(place_of(relinked["node"], partitions), NEIGHBOURS, relinked)
    leaf = (smallest == largest) & (smallest < name)
    leaves = pair(smallest[leaf], name[leaf])
    yield from scatter(place_of(leaves["node"], partitions), LEAVES, leaves)
    centre = smallest > name
    yield from send_degrees(name[centre], degrees[centre], partitions)


def send_degrees(nodes: NDArray[np.uint64], degrees: NDArray[np.int64] | int, partitions: int) -> Iterator[KeyedBatch]:
    """DEGREES rows, at the partitions of their documents."""
    rows = np.empty(len(nodes), DEGREE)
    rows["node"], rows["neighbours"] = nodes, degrees
    yield from scatter(place_of(nodes, partitions), DEGREES, rows)


def small_star(key: int, batches: list[bytes], partitions: int, scope: str) -> Iterator[KeyedBatch | bytes]:
    """All lesser neighbours of the documents of a partition -> links to the least of them, and what is settled.

    In: NEIGHBOUR rows (document, lesser neighbour), LEAVES and DEGREES rows. Out: NEIGHBOUR rows both ways, at most
    one link per row; LABEL rows by part and DONE rows for components that are settled.
    """
    rows = neighbourhoods(gather(batches, NEIGHBOURS, NEIGHBOUR), np.empty(0, np.uint64))
    first = starts_of(rows["node"])
    least = rows["neighbour"][first][np.cumsum(first) - 1]
    yield from both_ways(pair(np.where(first, rows["node"], rows["neighbour"]), least), partitions)
    yield from settle(batches, partitions, scope)


def settle(batches: list[bytes], partitions: int, scope: str) -> Iterator[KeyedBatch | bytes]:
    """LEAVES and DEGREES rows of a partition -> LABEL rows of the components that are whole stars, and their DONE rows.

    A leaf may report to a document that has lesser neighbours and so emitted no degree: nothing settles there.
    """
    degrees, leaves = gather(batches, DEGREES, DEGREE), gather(batches, LEAVES, NEIGHBOUR)
    degrees = degrees[np.argsort(degrees["node"])]
    place = np.searchsorted(degrees["node"], leaves["node"])
    place[place == len(degrees)] = 0
    known = degrees["node"][place] == leaves["node"] if len(degrees) else np.zeros(len(leaves), np.bool_)
    leaves, place = leaves[known], place[known]
    whole = np.bincount(place, minlength=len(degrees)).astype(np.uint64) == degrees["neighbours"]
    leaves, centres = leaves[whole[place]], degrees[whole]
    if not len(centres):
        return
    labels = np.empty(len(centres) + len(leaves), LABEL)
    labels["locator"] = np.concatenate([centres["node"], leaves["neighbour"]])
    labels["component"] = np.concatenate([centres["node"], leaves["node"]])
    yield from scatter(part_of(labels["locator"]), LABELS, labels)
    done = labels["locator"].astype(DONE)
    yield from scatter(place_of(done["node"], partitions), SETTLED, done)
    largest = int(centres["neighbours"].max()) + 1
    yield component_record(scope, documents=len(labels), components=len(centres), largest=largest)


def component_record(scope: str, method: str = "stars", **fields: int) -> bytes:
    """A "components" side-output record: rounds and largest are merged by their maximum, the rest by their sum."""
    zeros = dict.fromkeys(("rounds", "links", "documents", "components", "largest"), 0)
    return side_output_record("components", scope=scope, method=method, **{**zeros, **fields})


def unsettled(key: int, batches: list[bytes]) -> Iterator[KeyedBatch]:
    """What the last round left at a partition -> one LEFT row under key 0, none when all is settled."""
    rows = neighbourhoods(gather(batches, NEIGHBOURS, NEIGHBOUR), gather(batches, SETTLED, DONE)["node"])
    if len(rows):
        links = np.count_nonzero(rows["node"] > rows["neighbour"])
        yield from cut(0, DEGREES, np.array([(links, np.count_nonzero(starts_of(rows["node"])))], LEFT))


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
    Memory: some five times the rows of a partition. All neighbours of a document are among them, so a component of a
    million documents takes some 250 MB at its least one.
    """

    stage: str
    scope: str
    partitions: int
    rounds: int

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
                | MapRecordBatches(self.stage, f"large {number}", large)
            )
            stars = (
                large_stars
                | f"lesser {number}" >> beam.GroupByKey()
                | MapRecordBatches(self.stage, f"small {number}", small)
            )
            labels.append(stars | f"labels {number}" >> only(LABELS))
            batches = stars | f"unsettled {number}" >> without(LABELS)
        left = batches | "neighbours left" >> beam.GroupByKey() | MapRecordBatches(self.stage, "left", unsettled)
        refused = left | "all left" >> beam.GroupByKey()
        _ = refused | MapRecordBatches(self.stage, "refuse", partial(refuse, rounds=self.rounds))
        return labels | beam.Flatten()
