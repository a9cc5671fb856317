import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import apache_beam as beam
import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.transforms.core.spill import sorted_rows
from refinery.transforms.dedup.components import contraction
from refinery.transforms.dedup.components.contraction import (
    FACT,
    REST_VERTICES,
    SHRINK,
    FindContraction,
    contract,
    expand,
    fold_rest,
    gather_rest,
    relink,
    rounds_for,
)
from refinery.transforms.dedup.components.forest import dense
from refinery.transforms.dedup.components.links import NEIGHBOUR, both_ways, pair, scramble, unscramble
from refinery.transforms.dedup.records.record_batch import (
    CHILDREN,
    FACTS,
    JOINED,
    LABELS,
    LINKS,
    NEIGHBOURS,
    form_batches,
    gather,
)
from tests.beam import run_and_collect
from tests.sampling import examples, one_commit_in_four, sampled
from tests.transforms.dedup.test_components import EDGES, labels_in, labels_of, plain_union_find, table

Sent = list[tuple[int, bytes]]
PER_ROUND = (NEIGHBOURS, JOINED, FACTS)


@dataclass
class Outcome:
    labels: dict[int, int]
    rounds: int
    documents: int
    components: int
    largest: int
    links: list[int] = field(default_factory=list)  # of each round and the rest, in both directions
    vertices: list[int] = field(default_factory=list)  # with neighbours, after each round


@pytest.fixture(params=[False, True], ids=["in memory", "in pieces"])
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two rows in memory, and of three rows in a piece, so that most vertices' neighbours come in several."""
    if request.param:
        monkeypatch.setattr(contraction, "LINK_BYTES", 40)
        monkeypatch.setattr(contraction, "SENT_LABELS", 2)
        monkeypatch.setattr(sorted_rows, "SPLIT_ROWS", 3)


class Shuffles:
    """What a runner does between the steps, in an order that means nothing."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.records: list[dict] = []

    def run(self, step: object, sent: Sent) -> Sent:
        """What a step makes of what was sent, by key."""
        grouped: dict[int, list[bytes]] = {}
        for key, batch in sent:
            grouped.setdefault(key, []).append(batch)
        keys = sorted(grouped)
        self.generator.shuffle(keys)
        out: Sent = []
        for key in keys:
            self.generator.shuffle(grouped[key])
            outputs = list(form_batches(step(key, iter(grouped[key]))))
            self.records += [orjson.loads(output) for output in outputs if isinstance(output, bytes)]
            out += [output for output in outputs if not isinstance(output, bytes)]
        return out


def of(sent: Sent, *tags: int) -> Sent:
    return [(key, batch) for key, batch in sent if batch[0] in tags]


def rows_of(sent: Sent, tag: int, dtype: np.dtype = NEIGHBOUR) -> np.ndarray:
    return gather([batch for _, batch in sent], tag, dtype)


def split(batch: bytes, rows: int, size: int) -> Iterator[bytes]:
    for start in range(1, len(batch), rows * size):
        yield batch[:1] + batch[start : start + rows * size]


def start_of(edges: list[tuple[int, int]], partitions: int, rows: int = 1 << 16) -> Sent:
    start = table(edges)
    sent = form_batches(both_ways(pair(scramble(start["member"]), scramble(start["representative"])), partitions))
    return [(key, part) for key, batch in sent for part in split(batch, rows, NEIGHBOUR.itemsize)]


def contracted(
    edges: list[tuple[int, int]], rounds: int, partitions: int = 3, rows: int = 1 << 16, seed: int = 0
) -> Outcome:
    """All steps without a runner."""
    shuffles, spread, came = Shuffles(seed), {"partitions": partitions}, []
    sent, links, vertices = start_of(edges, partitions, rows), [], []
    for number in range(rounds):
        links.append(len(rows_of(sent, NEIGHBOURS)))
        joined = shuffles.run(partial(contract, scope="s", number=number, **spread), sent)
        came.append(of(joined, CHILDREN, LABELS))
        sent = shuffles.run(partial(relink, number=number, **spread), of(joined, *PER_ROUND))
        vertices.append(len(np.unique(rows_of(sent, NEIGHBOURS)["node"])))
    links.append(len(rows_of(sent, NEIGHBOURS)))
    left = shuffles.run(partial(gather_rest, scope="s", **spread), sent)
    rest = partial(fold_rest, scope="s", most=1 << 30, rounds=rounds, **spread)
    labels = of(left, LABELS) + shuffles.run(rest, of(left, LINKS, FACTS))
    for number in reversed(range(rounds)):
        labels = shuffles.run(partial(expand, number=number, **spread), came[number] + labels)
    records = shuffles.records
    merged = {name: sum(record[name] for record in records) for name in ("documents", "components")}
    highest = {name: max((record[name] for record in records), default=0) for name in ("rounds", "largest")}
    found = labels_in([batch for _, batch in labels])
    return Outcome(found, links=links, vertices=vertices, **merged, **highest)


def check(found: Outcome, expected: dict[int, int]) -> None:
    assert found.labels == expected
    assert found.documents == len(expected)
    assert found.components == len(set(expected.values()))
    assert found.largest == max(map(list(expected.values()).count, set(expected.values())), default=0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150), deadline=None)
@given(EDGES, st.integers(1, 5), st.integers(1, 9), st.integers(0, 9), st.integers(1, 5))
def test_equals_plain_union_find(bounds, edges, partitions, rows, seed, rounds):
    check(contracted(edges, rounds, partitions, rows, seed), plain_union_find(edges))


def relabelled(edges: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    names = random.Random(5).sample(range(2**40), size)
    return [(names[x], names[y]) for x, y in edges]


N = 100_000
SHAPES = {
    "sorted path": lambda: list(pairwise(range(N))),
    "reversed path": lambda: list(pairwise(reversed(range(N)))),
    "shuffled path": lambda: relabelled(pairwise(range(N)), N),
    "star": lambda: [(0, x) for x in range(1, N)],
    "star around its greatest": lambda: [(N, x) for x in range(N)],
    "clique": lambda: [(x, y) for x in range(300) for y in range(x)],
    "shuffled clique": lambda: relabelled(((x, y) for x in range(300) for y in range(x)), 300),
    "small components": lambda: relabelled(
        ((7 * x + y, 7 * x + y + 1) for x in range(10_000) for y in range(x % 6)), 70_000
    ),
    "binary tree": lambda: relabelled(((x, (x - 1) // 2) for x in range(1, 20_000)), 20_000),
    "grid": lambda: relabelled(
        ((x, x + step) for x in range(9900) for step in (1, 100) if step > 1 or x % 100 < 99), 10_000
    ),
    "cycle": lambda: relabelled(((x, (x + 1) % 20_000) for x in range(20_000)), 20_000),
}


@one_commit_in_four
@pytest.mark.parametrize("shape", sampled("shapes of graphs", SHAPES, 5))
def test_shapes_shrink_as_fast_as_is_reckoned_with(shape):
    """Every two rounds, since the order is a new one then; and no round makes links."""
    edges = SHAPES[shape]()
    found = contracted(edges, rounds=6)
    expected = labels_of(edges)
    assert found.labels == expected
    before = [len(expected), *found.vertices]
    assert all(after <= SHRINK**2 * had + 20 for had, after in zip(before, before[2:], strict=False))
    assert all(after <= had for had, after in pairwise(found.links))


@pytest.mark.parametrize(("members", "hub"), [(2, 0), (50, 0), (50, 49), (5000, 17)])
def test_a_star_is_one_vertex_after_two_rounds(members, hub):
    edges = [(hub, other) for other in range(members) if other != hub]
    found = contracted(edges, rounds=3)
    check(found, dict.fromkeys(range(members), 0))
    assert found.vertices[1:] == [0, 0]
    assert found.rounds <= 2


@pytest.mark.parametrize("edges", [[], [(4, 4)], [(4, 4), (9, 9), (4, 9)]])
def test_links_to_oneself(edges):
    check(contracted(edges, rounds=2), plain_union_find(edges))


def test_the_same_in_any_partitions_cuts_and_order():
    generator = random.Random(2)
    edges = [(generator.randrange(500), generator.randrange(500)) for _ in range(450)]
    first = contracted(edges, 3, partitions=1)
    for partitions, rows, seed in ((1, 3, 1), (4, 100, 2), (16, 1, 3), (70_000, 100, 4)):
        found = contracted(edges[::-1], 3, partitions, rows, seed)
        assert (found.labels, found.rounds, found.largest) == (first.labels, first.rounds, first.largest)
        assert found.vertices == first.vertices


def test_rounds_laid_out_grow_with_the_logarithm():
    """Rounds for a gigabyte of vertices in one worker: of 1, 100 and 1,000 TB of a crawl."""
    found = [rounds_for(n) for n in (0, REST_VERTICES, 50_000_000, 1_350_000_000, 13_500_000_000, 2**40)]
    assert found == [1, 1, 4, 10, 14, 23]


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1)))
def test_scrambling_is_undone(values):
    array = np.array(values, np.uint64)
    assert np.array_equal(unscramble(scramble(array)), array)
    assert len(np.unique(scramble(array))) == len(np.unique(array))


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1).map(lambda x: x >> 58 << 58 | x % 3)))
def test_dense_equals_unique(values):
    array = np.array(values, np.uint64)
    found, expected = dense(array), np.unique(array, return_inverse=True)
    assert all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))


def find_contraction(edges: list[tuple[int, int]], partitions: int, rounds: int, most: int) -> dict[int, int]:
    def build(pipeline):
        batches = start_of(edges, partitions)
        links = pipeline | beam.Create(batches).with_output_types(tuple[int, bytes])
        return [links | FindContraction("near", "corpus", partitions, rounds, most)]

    (labels,) = run_and_collect(build)
    return labels_in([batch for _, batch in labels])


CHAIN = [*pairwise(range(65)), *pairwise(range(100, 105)), (200, 201), (202, 202)]


def test_a_rest_that_fits_in_a_pipeline():
    assert find_contraction(CHAIN, partitions=4, rounds=2, most=30) == plain_union_find(CHAIN)


def test_a_rest_that_does_not_fit_fails_the_job():
    with pytest.raises(Exception, match=r"components: more than 5 groups of documents are still linked after 2 rounds"):
        find_contraction(CHAIN, partitions=1, rounds=2, most=5)


def test_a_lost_label_fails_the_job():
    joined = list(form_batches(contract(0, [b for _, b in start_of([(1, 2)], 1)], 1, "s", 0)))
    children = [output[1] for output in joined if not isinstance(output, bytes) and output[1][0] == CHILDREN]
    with pytest.raises(RuntimeError, match="a document without a label"):
        list(expand(0, children, 1, 0))


def test_what_a_vertex_knows_is_added_up_before_it_is_sent():
    """However many documents join one vertex: a row for each lot and partition."""
    edges: Iterable[tuple[int, int]] = [(0, other) for other in range(1, 2000)]
    joined = [o for key, b in start_of(list(edges), 1) for o in form_batches(contract(key, [b], 1, "s", 0))]
    facts = rows_of([o for o in joined if not isinstance(o, bytes)], FACTS, FACT)
    assert len(facts) == len(np.unique(facts["node"]))
    assert facts["documents"].sum() == 2000
