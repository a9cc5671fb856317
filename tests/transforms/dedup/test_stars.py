import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import log2

import apache_beam as beam
import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup import stars
from refinery.transforms.dedup.record_batch import LABELS, NEIGHBOURS, cut, form_batches, gather
from refinery.transforms.dedup.stars import (
    NEIGHBOUR,
    FindStars,
    both_ways,
    dense,
    large_star,
    max_rounds,
    neighbourhoods,
    pair,
    settle,
    small_star,
    sort_links,
    unsettled,
)
from refinery.transforms.spill import sorted_rows
from tests.beam import run_and_collect
from tests.sampling import examples, sampled
from tests.transforms.dedup.test_components import EDGES, labels_in, labels_of, plain_union_find, table

Groups = dict[int, list[bytes]]


@dataclass
class Outcome:
    labels: dict[int, int]
    rounds: int
    documents: int
    components: int
    largest: int
    links: list[int] = field(default_factory=list)  # that entered each round


@pytest.fixture(params=[False, True], ids=["in memory", "in pieces"])
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two rows in memory, and of three rows in a piece, so that most documents' neighbours come in several."""
    if request.param:
        monkeypatch.setattr(stars, "LINK_BYTES", 40)
        monkeypatch.setattr(stars, "SENT_LEAVES", 2)
        monkeypatch.setattr(sorted_rows, "SPLIT_ROWS", 3)


def shuffle_batches(outputs: Iterable[object], records: list[dict], generator: random.Random) -> Groups:
    """What a GroupByKey does, in an order that means nothing."""
    grouped: Groups = {}
    for output in outputs:
        if isinstance(output, bytes):
            records.append(orjson.loads(output))
        else:
            grouped.setdefault(output[0], []).append(output[1])
    for batches in grouped.values():
        generator.shuffle(batches)
    keys = list(grouped)
    generator.shuffle(keys)
    return {key: grouped[key] for key in keys}


def split(batch: bytes, rows: int, size: int) -> Iterator[bytes]:
    for start in range(1, len(batch), rows * size):
        yield batch[:1] + batch[start : start + rows * size]


def run_rounds(edges: list[tuple[int, int]], partitions: int = 3, rows: int = 1 << 16, seed: int = 0) -> Outcome:
    """All rounds without a runner, until nothing is left."""
    generator, records, labels, links = random.Random(seed), [], [], []
    start = table(edges)
    sent = form_batches(both_ways(pair(start["member"], start["representative"]), partitions))
    cuts = ((key, part) for key, batch in sent for part in split(batch, rows, NEIGHBOUR.itemsize))
    groups = shuffle_batches(cuts, records, generator)
    for number in range(1, 100):
        links.append(sum(len(gather(batches, NEIGHBOURS, NEIGHBOUR)) for batches in groups.values()) // 2)
        relinked = (o for key, batches in groups.items() for o in large_star(key, batches, partitions, "s", number))
        groups = shuffle_batches(list(form_batches(relinked)), records, generator)
        if not groups:
            break
        stars = (o for key, batches in groups.items() for o in small_star(key, batches, partitions, "s"))
        groups = shuffle_batches(list(form_batches(stars)), records, generator)
        labels += [batch for batches in groups.values() for batch in batches if batch[0] == LABELS]
        groups = {key: [batch for batch in batches if batch[0] != LABELS] for key, batches in groups.items()}
    merged = {name: sum(record[name] for record in records) for name in ("documents", "components")}
    highest = {name: max((record[name] for record in records), default=0) for name in ("rounds", "largest")}
    return Outcome(labels_in(labels), links=links, **merged, **highest)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150), deadline=None)
@given(EDGES, st.integers(1, 5), st.integers(1, 9), st.integers(0, 9))
def test_equals_plain_union_find(bounds, edges, partitions, rows, seed):
    expected = plain_union_find(edges)
    found = run_rounds(edges, partitions, rows, seed)
    assert found.labels == expected
    assert found.documents == len(expected)
    assert found.components == len(set(expected.values()))
    assert found.largest == max(map(list(expected.values()).count, expected.values()), default=0)
    assert found.rounds <= max_rounds(31)


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


@pytest.mark.parametrize("shape", sampled("shapes of graphs", SHAPES, 5))
def test_shapes_converge_well_within_the_rounds_laid_out(shape):
    edges = SHAPES[shape]()
    found = run_rounds(edges)
    assert found.labels == labels_of(edges)
    assert found.rounds <= log2(len(found.labels)) + 2 <= max_rounds(len(found.labels)) - 4
    assert all(after <= before for before, after in pairwise(found.links)), "no round makes links"


@pytest.mark.parametrize(
    ("edges", "rounds"),
    [
        ([], 0),
        ([(4, 4)], 1),
        ([(0, 1)], 1),
        ([(0, x) for x in range(1, 50)], 1),
        ([(50, x) for x in range(50)], 2),
        (list(pairwise(range(65))), 7),
        (list(pairwise(range(1025))), 11),
    ],
)
def test_rounds_are_those_that_had_links(edges, rounds):
    assert run_rounds(edges).rounds == rounds


def test_a_settled_component_is_out_of_later_rounds():
    path = list(pairwise(range(1000)))
    stars = [(10_000 + 10 * star, 10_000 + 10 * star + leaf) for star in range(2000) for leaf in range(1, 10)]
    alone, together = run_rounds(path), run_rounds(path + stars)
    assert together.labels == labels_of(path + stars)
    assert together.rounds == alone.rounds
    # The second round still brings the settled links to where they are dropped.
    assert together.links[:2] == [len(path) + len(stars), alone.links[1] + len(stars)]
    assert together.links[2:] == alone.links[2:]


def test_the_same_in_any_partitions_cuts_and_order():
    generator = random.Random(2)
    edges = [(generator.randrange(500), generator.randrange(500)) for _ in range(450)]
    first = run_rounds(edges, partitions=1)
    for partitions, rows, seed in ((1, 3, 1), (4, 100, 2), (16, 1, 3), (70_000, 100, 4)):
        found = run_rounds(edges[::-1], partitions, rows, seed)
        assert found.links[1:] == first.links[1:]
        assert (found.labels, found.rounds, found.largest) == (first.labels, first.rounds, first.largest)


def test_rounds_laid_out_grow_with_the_logarithm():
    assert [max_rounds(n) for n in (0, 1, 2, 1000, 50_000_000, 10**9, 2**40)] == [5, 5, 7, 19, 43, 49, 65]


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1).map(lambda x: x >> 58 << 58 | x % 3)))
def test_dense_equals_unique(values):
    array = np.array(values, np.uint64)
    found, expected = dense(array), np.unique(array, return_inverse=True)
    assert all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EDGES, st.lists(st.integers(0, 30)))
def test_neighbourhoods_are_a_sorted_set_without_the_settled(bounds, edges, settled):
    rows = pair(*(np.array(column, np.uint64) for column in ([x for x, _ in edges], [y for _, y in edges])))
    sorter, others = sort_links(
        batch for row in np.split(rows, max(1, len(rows))) for _, batch in cut(0, NEIGHBOURS, row)
    )
    found = [row for links in neighbourhoods(sorter, np.array(settled, np.uint64)) for row in links.rows.tolist()]
    assert found == sorted({(x, y) for x, y in edges if x not in settled}) and not others


def find_stars(edges: list[tuple[int, int]], partitions: int, rounds: int) -> dict[int, int]:
    start = table(edges)
    batches = list(form_batches(both_ways(pair(start["member"], start["representative"]), partitions)))

    def build(pipeline):
        links = pipeline | beam.Create(batches).with_output_types(tuple[int, bytes])
        return [links | FindStars("near", "corpus", partitions, rounds)]

    (labels,) = run_and_collect(build)
    return labels_in([batch for _, batch in labels])


def test_exactly_enough_rounds_in_a_pipeline():
    edges = [*pairwise(range(65)), *pairwise(range(100, 105)), (200, 201), (202, 202)]
    assert find_stars(edges, partitions=4, rounds=7) == plain_union_find(edges)


@pytest.mark.parametrize("partitions", [1, 4])
def test_too_few_rounds_fail_the_job(partitions):
    edges = [*pairwise(range(65)), *((100, x) for x in range(101, 120))]
    with pytest.raises(Exception, match=r"components: 64 links between 65 documents are not settled after 6 rounds"):
        find_stars(edges, partitions, rounds=6)


@pytest.mark.parametrize("backwards", [False, True])
def test_settles_at_once_in_any_order_of_batches(backwards):
    start = table([(0, 1), (5, 6), (9, 9)])
    batches = [batch for _, batch in form_batches(both_ways(pair(start["member"], start["representative"]), 1))]
    relinked = [o[1] for o in form_batches(large_star(0, batches, 1, "s", 1)) if not isinstance(o, bytes)]
    _, *settled = form_batches(settle(relinked[::-1] if backwards else relinked, 1, "s"))
    labels = labels_in([batch for _, batch in settled if batch[0] == LABELS])
    assert labels == {0: 0, 1: 0, 5: 5, 6: 5, 9: 9}


def test_nothing_is_left_where_all_is_settled():
    settled = list(small_star_of([(0, 1), (0, 2)]))
    assert [key for key, _ in settled if key == 0]
    assert list(unsettled(0, [batch for _, batch in settled if batch[0] != LABELS])) == []


def small_star_of(edges: list[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    start = table(edges)
    batches = [batch for _, batch in form_batches(both_ways(pair(start["member"], start["representative"]), 1))]
    relinked = [o[1] for o in form_batches(large_star(0, batches, 1, "s", 1)) if not isinstance(o, bytes)]
    return (output for output in form_batches(small_star(0, relinked, 1, "s")) if not isinstance(output, bytes))
