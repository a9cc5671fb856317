"""Components without one worker that holds all links: rounds of shuffles contract them until one can hold the rest.

Łącki, Mirrokni, Włodarczyk 2018, "Connected Components at Scale via Local Contractions". In a round every vertex joins
the least of itself and its neighbours, and those that joined the same one become one vertex: at most two steps apart,
they are of one component, and no component is split. So a round costs two shuffles, whatever the length of its chains,
and leaves half of the vertices (SHRINK): vertices are scrambled locators, so "the least" is one of them at random. The
order stays for two rounds, in which any star becomes one vertex, and is then another one, since what is left of a chain
is no longer in random order. A vertex without neighbours is a whole component and leaves the rounds.

After the rounds that are laid out (`rounds_for`) at most REST_VERTICES are left, whose links one worker
folds into a forest. Labels go back the way that the vertices came, a shuffle a round. Every vertex knows the least
locator of its documents and how many they are, so a component is labelled with its least locator.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil, log
from typing import Any

import apache_beam as beam
import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.memory import GROUP_BYTES
from refinery.transforms.core.spill.sorted_rows import RowSorter, group_pieces
from refinery.transforms.dedup.components.forest import (
    FOLD_SPACE,
    FOREST_BYTES,
    fold_links,
)
from refinery.transforms.dedup.components.links import NEIGHBOUR, component_record, pair, place_of, scramble, unscramble
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches, only
from refinery.transforms.dedup.records.record_batch import (
    CHILDREN,
    FACTS,
    JOINED,
    LABEL,
    LABELS,
    LINK,
    LINKS,
    NEIGHBOURS,
    KeyedBatch,
    Rows,
    cut,
    gather,
    part_of,
    scatter,
    starts_of,
)

METHOD = "contraction"
# Of the vertices of a round, how many the next one has, at most. Measured on paths, cycles, caterpillars, trees, grids,
# stars of many sizes: 0.50 to 0.57 over two rounds; pairs and stars of five are gone after two.
SHRINK = 0.6
SPARE = 1  # rounds beyond those that SHRINK asks for
SAME_ORDER = 2  # rounds in which the order of vertices stays
LINK_BYTES = 128 << 20  # of rows sorted at once: 8 million; new ones are made of them beside

# A vertex and what it knows of its documents: the least locator, and how many they are.
FACT = np.dtype([("node", "<u8"), ("least", "<u8"), ("documents", "<u8")])
# A vertex, and the one of the next round that it became a part of.
CHILD = np.dtype([("parent", "<u8"), ("node", "<u8")])
# Memory of the worker that folds the rest, for each vertex: its forest and its FACT.
REST_BYTES = FOREST_BYTES + FACT.itemsize
# Up to so many vertices, 18 million, it folds within GROUP_BYTES.
REST_VERTICES = (GROUP_BYTES - FOLD_SPACE) // REST_BYTES
SENT_LABELS = 4 << 20  # labels that are made at once


def rounds_for(documents: int) -> int:
    """How many rounds are laid out for links between that many documents, all of which may be linked."""
    many = max(1.0, documents / REST_VERTICES)
    return SPARE + ceil(log(many) / -log(SHRINK))


def renamed(vertices: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
    """Vertices of round `number`, counted from 0, as the next round knows them: in another order every SAME_ORDER."""
    return scramble(vertices) if (number + 1) % SAME_ORDER == 0 else vertices


def sort_rows(
    batches: Iterable[bytes], tag: int, order: tuple[str, str], dtype: np.dtype
) -> tuple[RowSorter, list[bytes]]:
    """The rows of one kind, to be sorted within LINK_BYTES, and all other batches."""
    sorter, others = RowSorter(dtype, order, limit=LINK_BYTES), []
    for batch in batches:
        if batch[0] == tag:
            sorter.add(np.frombuffer(batch, dtype, offset=1))
        else:
            others.append(batch)
    return sorter, others


@dataclass(frozen=True)
class Links:
    """NEIGHBOUR rows of some vertices, sorted, none twice. is_first: where a vertex begins, which it does once, though
    one with many neighbours comes in several lots. joins: the vertex that each row's joins."""

    rows: Rows
    is_first: NDArray[np.bool_]
    joins: NDArray[np.uint64]


def neighbourhoods(sorter: RowSorter) -> Iterator[Links]:
    """All vertices with their neighbours. Memory: see GROUP_BYTES, however many neighbours a vertex has."""
    hub: int | None = None  # what the vertex joins that comes in several lots
    previous = None
    for piece in group_pieces(sorter.blocks(), "node"):
        rows = piece.block.facts
        if len(rows):
            fresh = starts_of(rows["node"], rows["neighbour"])
            fresh[0] = previous is None or rows[0] != previous
            previous = rows[-1]
            rows = rows[fresh]
        if len(rows) and piece.split:
            is_first = np.zeros(len(rows), np.bool_)
            is_first[0] = hub is None
            hub = int(min(rows["node"][0], rows["neighbour"][0])) if hub is None else hub
            yield Links(rows, is_first, np.full(len(rows), hub, np.uint64))
        elif len(rows):
            is_first = starts_of(rows["node"])
            least = np.minimum(rows["node"], rows["neighbour"])[is_first]
            yield Links(rows, is_first, least[np.cumsum(is_first) - 1])
        hub = None if piece.last else hub


def add_up_facts(facts: Rows) -> Rows:
    """One FACT row for each vertex, in order."""
    facts = facts[np.argsort(facts["node"], kind="stable")]
    first = np.flatnonzero(starts_of(facts["node"]))
    total = facts[first]
    if len(first):
        total["least"] = np.minimum.reduceat(facts["least"], first)
        total["documents"] = np.add.reduceat(facts["documents"], first)
    return total


def facts_of(known: Rows, nodes: NDArray[np.uint64], number: int) -> tuple[Rows, NDArray[np.int64]]:
    """FACT rows of these vertices, and their places in `known`: in the first round a vertex is one document."""
    if number:
        place = np.searchsorted(known["node"], nodes)
        return known[place], place
    rows = np.empty(len(nodes), FACT)
    rows["node"], rows["least"], rows["documents"] = nodes, unscramble(nodes), 1
    return rows, np.empty(0, np.int64)


def contract(
    key: int, batches: Iterable[bytes], partitions: int, scope: str, number: int
) -> Iterator[KeyedBatch | bytes]:
    """All neighbours of the vertices of a partition -> what each of them joins. number: of the round, from 0.

    In: NEIGHBOURS both ways, FACTS. Out: to the vertex, JOINED (itself, what it joins); to its neighbours, NEIGHBOURS
    (neighbour, what it joins); to what it joins, CHILDREN, and FACTS, added up. Of a vertex without neighbours LABELS,
    to itself.
    """
    sorter, others = sort_rows(batches, NEIGHBOURS, ("node", "neighbour"), NEIGHBOUR)
    known = add_up_facts(gather(others, FACTS, FACT))
    has_links = np.zeros(len(known), np.bool_)
    is_reported = False
    for links in neighbourhoods(sorter):
        if not is_reported:
            yield component_record(scope, METHOD, rounds=number + 1)
            is_reported = True
        nodes, joins = links.rows["node"][links.is_first], links.joins[links.is_first]
        yield from scatter(place_of(nodes, partitions), JOINED, pair(nodes, joins))
        told = pair(links.rows["neighbour"], links.joins)
        yield from scatter(place_of(told["node"], partitions), NEIGHBOURS, told)
        facts, place = facts_of(known, nodes, number)
        has_links[place] = True
        yield from send_children(nodes, joins, partitions, number)
        facts = facts.copy()
        facts["node"] = renamed(joins, number)
        facts = add_up_facts(facts)
        yield from scatter(place_of(facts["node"], partitions), FACTS, facts)
    alone = known[~has_links]
    yield from send_children(alone["node"], alone["node"], partitions, number)
    done = alone.copy()
    done["node"] = renamed(done["node"], number)
    yield from send_components(done, partitions, scope)


def send_children(
    nodes: NDArray[np.uint64], joins: NDArray[np.uint64], partitions: int, number: int
) -> Iterator[KeyedBatch]:
    """CHILDREN rows, at the partitions of what they join."""
    rows = np.empty(len(nodes), CHILD)
    rows["node"], rows["parent"] = nodes, renamed(joins, number)
    yield from scatter(place_of(rows["parent"], partitions), CHILDREN, rows)


def send_components(vertices: Rows, partitions: int, scope: str) -> Iterator[KeyedBatch | bytes]:
    """LABELS rows (vertex, least locator) of vertices that are whole components, and their record."""
    if len(vertices):
        yield component_record(
            scope,
            METHOD,
            documents=int(vertices["documents"].sum()),
            components=len(vertices),
            largest=int(vertices["documents"].max()),
        )
        yield from send_labels(vertices["node"], vertices["least"], partitions)


def send_labels(nodes: NDArray[np.uint64], least: NDArray[np.uint64], partitions: int) -> Iterator[KeyedBatch]:
    """LABELS rows, at the partitions of their vertices."""
    rows = np.empty(len(nodes), LABEL)
    rows["locator"], rows["component"] = nodes, least
    yield from scatter(place_of(nodes, partitions), LABELS, rows)


def relink(key: int, batches: Iterable[bytes], partitions: int, number: int) -> Iterator[KeyedBatch]:
    """What the neighbours of a partition's vertices join, and they themselves -> the links of the next round.

    In: NEIGHBOURS (vertex, what its neighbour joins), JOINED, FACTS. Out: NEIGHBOURS of the next round, both ways since
    they came both ways; FACTS as they are.
    """
    sorter, others = sort_rows(batches, NEIGHBOURS, ("node", "neighbour"), NEIGHBOUR)
    facts = gather(others, FACTS, FACT)
    yield from scatter(place_of(facts["node"], partitions), FACTS, facts)
    joined = gather(others, JOINED, NEIGHBOUR)
    joined = joined[np.argsort(joined["node"])]
    for block in sorter.blocks():
        rows = block.facts[starts_of(block.facts["node"], block.facts["neighbour"])]
        mine = joined["neighbour"][np.searchsorted(joined["node"], rows["node"])]
        apart = mine != rows["neighbour"]
        linked = pair(renamed(mine[apart], number), renamed(rows["neighbour"][apart], number))
        yield from scatter(place_of(linked["node"], partitions), NEIGHBOURS, linked)


def gather_rest(key: int, batches: Iterable[bytes], partitions: int, scope: str) -> Iterator[KeyedBatch | bytes]:
    """The vertices that the last round left at a partition -> each link once as LINKS, and FACTS, under key 0; of those
    without neighbours LABELS, to themselves."""
    sorter, others = sort_rows(batches, NEIGHBOURS, ("node", "neighbour"), NEIGHBOUR)
    known = add_up_facts(gather(others, FACTS, FACT))
    has_links = np.zeros(len(known), np.bool_)
    for links in neighbourhoods(sorter):
        has_links[np.searchsorted(known["node"], links.rows["node"][links.is_first])] = True
        once = links.rows[links.rows["neighbour"] < links.rows["node"]]
        rows = np.empty(len(once), LINK)
        rows["member"], rows["representative"] = once["node"], once["neighbour"]
        yield from cut(0, LINKS, rows)
    yield from cut(0, FACTS, known[has_links])
    yield from send_components(known[~has_links], partitions, scope)


def fold_rest(
    key: int, batches: Iterable[bytes], partitions: int, scope: str, most: int, rounds: int
) -> Iterator[KeyedBatch | bytes]:
    """The links that the rounds left, LINKS and FACTS -> LABELS of their vertices. Memory: REST_BYTES for each.

    Raises RuntimeError where they are more than `most`: a worker that runs out of memory says less.
    """
    told: list[bytes] = []
    count = 0

    def links() -> Iterator[bytes]:
        nonlocal count
        for batch in batches:
            if batch[0] == LINKS:
                yield batch
                continue
            told.append(batch)
            count += (len(batch) - 1) // FACT.itemsize
            if count > most:
                raise RuntimeError(
                    f"components: more than {most:,} groups of documents are still linked after {rounds} rounds, which "
                    "is the limit; nothing was decided. Raise the near-duplicate threshold or its rows per band, so "
                    "fewer documents are linked, or use the method 'forest' on a worker with enough memory"
                )

    (nodes, roots), _ = fold_links(links())
    least, documents = np.full(len(nodes), np.iinfo(np.uint64).max, np.uint64), np.zeros(len(nodes), np.uint64)
    while told:
        facts = np.frombuffer(told.pop(), FACT, offset=1)
        root = roots[np.searchsorted(nodes, facts["node"])]
        np.minimum.at(least, root, facts["least"])
        np.add.at(documents, root, facts["documents"])
    for start in range(0, len(nodes), SENT_LABELS):
        some = slice(start, start + SENT_LABELS)
        yield from send_labels(nodes[some], least[roots[some]], partitions)
    sizes = documents[documents > 0]
    if len(sizes):
        total, largest = int(sizes.sum()), int(sizes.max())
        yield component_record(scope, METHOD, documents=total, components=len(sizes), largest=largest)


def expand(key: int, batches: Iterable[bytes], partitions: int, number: int) -> Iterator[KeyedBatch]:
    """LABELS of the vertices of a partition, and their CHILDREN -> LABELS of these, to themselves; in the first round,
    whose vertices are documents, to their parts.

    Raises RuntimeError for a vertex whose label has not come: nothing is dropped silently.
    """
    sorter, others = sort_rows(batches, CHILDREN, ("parent", "node"), CHILD)
    labels = gather(others, LABELS, LABEL)
    labels = labels[np.argsort(labels["locator"])]
    for block in sorter.blocks():
        rows = block.facts
        if not len(rows):
            continue
        place = np.searchsorted(labels["locator"], rows["parent"])
        place[place == len(labels)] = 0
        if not len(labels) or (labels["locator"][place] != rows["parent"]).any():
            raise RuntimeError("components: a document without a label; a worker lost what the shuffle gave it")
        components = labels["component"][place]
        if number:
            yield from send_labels(rows["node"], components, partitions)
            continue
        found = np.empty(len(rows), LABEL)
        found["locator"], found["component"] = unscramble(rows["node"]), components
        yield from scatter(part_of(found["locator"]), LABELS, found)


@dataclass
class FindContraction(beam.PTransform):
    """(partition, NEIGHBOURS both ways, of scrambled locators) -> (part, LABELS).

    Three shuffles a round, one of them for the way back, and two for the rest. 64 bytes a link cross the first two of a
    round, and 56 a vertex all three; a round without links costs as much as an empty shuffle on the runner. Memory: see
    GROUP_BYTES, however many neighbours a vertex has. most: vertices that may be left after `rounds` rounds.
    """

    stage: str
    scope: str
    partitions: int
    rounds: int
    most: int = REST_VERTICES

    def __post_init__(self) -> None:
        super().__init__(METHOD)

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        stage = self.stage
        spread: dict[str, Any] = {"partitions": self.partitions}
        came = []  # what each round needs on the way back
        for number in range(self.rounds):
            join = partial(contract, scope=self.scope, number=number, **spread)
            link = partial(relink, number=number, **spread)
            joined = (
                batches
                | Exchange(f"neighbours {number + 1}")
                | MapRecordBatches(stage, f"contract {number + 1}", join, stream=True)
            )
            came.append(joined | f"way back {number + 1}" >> only(CHILDREN, LABELS))
            batches = (
                joined
                | f"links {number + 1}" >> only(NEIGHBOURS, JOINED, FACTS)
                | Exchange(f"joined {number + 1}")
                | MapRecordBatches(stage, f"relink {number + 1}", link, stream=True)
            )
        rest = partial(gather_rest, scope=self.scope, **spread)
        fold = partial(fold_rest, scope=self.scope, most=self.most, rounds=self.rounds, **spread)
        left = batches | Exchange("rest") | MapRecordBatches(stage, "gather rest", rest, stream=True)
        folded = left | "linked rest" >> only(LINKS, FACTS) | Exchange("all of the rest", whole=True)
        step = MapRecordBatches(stage, "fold rest", fold, stream=True)
        labels: tuple[beam.PCollection, ...] = left | "settled rest" >> only(LABELS), folded | step
        for number in reversed(range(self.rounds)):
            back = partial(expand, number=number, **spread)
            grouped = (came[number], *labels) | Exchange(f"back {number + 1}")
            labels = (grouped | MapRecordBatches(stage, f"expand {number + 1}", back, stream=True),)
        return labels[0]
