import random
import tracemalloc
from collections import Counter, defaultdict
from itertools import pairwise

import apache_beam as beam
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.job.report import merge_records
from refinery.transforms.dedup.components.contraction import rounds_for
from refinery.transforms.dedup.components.find import (
    FindComponents,
    choose_method,
    forest_batches,
    reduce_batches,
    route_links,
)
from refinery.transforms.dedup.components.forest import (
    FOREST_DOCUMENTS,
    FOREST_MOST,
    fold_links,
    grow_forest,
    join_forests,
    links_of,
)
from refinery.transforms.dedup.records import record_batch
from refinery.transforms.dedup.records.record_batch import (
    BATCH_BYTES,
    LABEL,
    LABELS,
    LINK,
    LINKS,
    cut,
    form_batches,
    gather,
    scatter,
)
from tests.beam import merge_side_outputs, run_and_collect
from tests.sampling import examples

# Edges with loops, repeats and lone nodes; the locators fall into several parts.
EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)


def plain_union_find(edges: list[tuple[int, int]]) -> dict[int, int]:
    parent: dict[int, int] = {}

    def find(x: int) -> int:
        parent.setdefault(x, x)
        while parent[x] != x:
            x = parent[x]
        return x

    for x, y in edges:
        low, high = sorted((find(x), find(y)))
        parent[high] = low
    return {x: find(x) for x in sorted(parent)}


def table(edges: list[tuple[int, int]]) -> np.ndarray:
    return np.array([tuple(edge) for edge in edges], LINK)


def link_batches(edges: list[tuple[int, int]], rows: int = 1 << 16) -> list[bytes]:
    links = table(edges)
    return [batch for start in range(0, len(links), rows) for _, batch in cut(0, LINKS, links[start : start + rows])]


def labels_of(edges: list[tuple[int, int]]) -> dict[int, int]:
    links = table(edges)
    nodes, roots = grow_forest(links["member"], links["representative"])
    return dict(zip(nodes.tolist(), nodes[roots].tolist(), strict=True))


def labels_in(batches: list[bytes]) -> dict[int, int]:
    rows = gather(batches, LABELS, LABEL)
    found = dict(rows.tolist())
    assert len(found) == len(rows), "a locator is labelled once"
    return found


@settings(max_examples=examples(200), deadline=None)
@given(EDGES)
def test_equals_plain_union_find(edges):
    found = labels_of(edges)
    assert found == plain_union_find(edges)
    assert list(found) == sorted(found)


@settings(max_examples=examples(200), deadline=None)
@given(EDGES, st.integers(1, 10), st.sampled_from([1, 50, 200, 10_000]))
def test_folding_equals_plain_union_find(edges, rows, fold_bytes):
    (nodes, roots), links = fold_links(iter(link_batches(edges, rows)), fold_bytes)
    assert dict(zip(nodes.tolist(), nodes[roots].tolist(), strict=True)) == plain_union_find(edges)
    assert nodes.tolist() == sorted(nodes.tolist())
    assert links == len(edges)


@settings(max_examples=examples(200), deadline=None)
@given(EDGES, EDGES)
def test_forests_join_either_way_round(edges, others):
    one, other = (fold_links(link_batches(part))[0] for part in (edges, others))
    for nodes, roots in (join_forests(one, other), join_forests(other, one)):
        assert dict(zip(nodes.tolist(), nodes[roots].tolist(), strict=True)) == plain_union_find(edges + others)


@settings(max_examples=examples(100), deadline=None)
@given(EDGES)
def test_a_forest_is_held_together_by_its_own_links(edges):
    kept = links_of(fold_links(link_batches(edges))[0]).tolist()
    assert labels_of(kept) == plain_union_find(edges)
    assert len(kept) <= len(plain_union_find(edges))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("fold_bytes", [100_000, 1 << 30])
def test_large_shapes(shuffle, fold_bytes):
    def components(edges):
        nodes, roots = fold_links(link_batches(edges, 5000), fold_bytes)[0]
        return set(nodes[roots].tolist())

    names = list(range(1, 100_001))
    if shuffle:
        random.Random(4).shuffle(names)
    assert components(list(pairwise(names))) == {1}
    assert components([(names[-1], other) for other in names[:-1]]) == {1}
    assert len(components(list(zip(names[::2], names[1::2], strict=True)))) == 50_000
    assert components([(x, y) for x in names[:200] for y in names[:200] if x < y]) == {min(names[:200])}


def test_memory_does_not_grow_with_repeated_links():
    batch = link_batches([(node, node // 2) for node in range(1, 20_001)])[0]

    def peak(repeats: int) -> int:
        tracemalloc.start()
        fold_links((bytes(bytearray(batch)) for _ in range(repeats)), 4 * len(batch))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(80) < 1.2 * peak(8)


def test_labels_go_to_their_parts():
    links = [(1, 2 << 32), (2 << 32, 5 << 32 | 7), (8, 9)]
    *out, record = forest_batches(0, iter(link_batches(links)), "corpus")
    assert [key for key, _ in out] == [0, 2, 5]
    assert labels_in([batch for _, batch in out]) == {1: 1, 8: 8, 9: 8, 2 << 32: 1, 5 << 32 | 7: 1}
    assert orjson.loads(record) == {
        "kind": "components",
        "scope": "corpus",
        "method": "forest",
        "rounds": 0,
        "links": 0,
        "documents": 5,
        "components": 2,
        "largest": 3,
    }
    assert list(forest_batches(0, iter([]), "corpus")) == []


@pytest.mark.parametrize("partitions", [1, 4])
def test_links_of_many_bands_are_reduced_before_the_one_worker(partitions):
    generator = random.Random(7)
    links = [(5 * group + place, 5 * group) for group in range(1000) for place in range(1, 5)] * 14
    generator.shuffle(links)
    routed: dict[int, list[bytes]] = {}
    for batch in link_batches(links, 1000):
        for key, part in form_batches(route_links(0, batch, partitions)):
            routed.setdefault(key, []).append(part)
    assert sorted(routed) == list(range(partitions))
    counted, kept = 0, []
    for key, batches in routed.items():
        record, *out = reduce_batches(key, iter(batches), "corpus", "forest", partitions)
        counted += orjson.loads(record)["links"]
        assert {key for key, _ in out} == {0}
        kept += gather([batch for _, batch in out], LINKS, LINK).tolist()
    assert counted == 56_000
    assert len(kept) == 4000
    assert labels_of(kept) == plain_union_find(links)


@pytest.mark.parametrize("method", ["forest", "contraction"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_finds_components_in_a_pipeline(method, partitions):
    generator = random.Random(partitions)
    nodes = [part << 32 | row for part in range(3) for row in range(15)]
    edges = [(generator.choice(nodes), generator.choice(nodes)) for _ in range(25)] + [(nodes[7], nodes[7])]
    edges += list(pairwise(generator.sample(range(3 << 32, (3 << 32) + 18), 18)))
    edges *= 3
    generator.shuffle(edges)
    expected = plain_union_find(edges)

    def build(pipeline):
        batches = [(0, batch) for batch in link_batches(edges, 20)]
        links = pipeline | beam.Create(batches).with_output_types(tuple[int, bytes])
        labels = links | FindComponents("near", "corpus", method, partitions, 63)
        return [labels, merge_side_outputs(pipeline)]

    labels, records = run_and_collect(build)
    assert labels_in([batch for _, batch in labels]) == expected
    assert all((gather([batch], LABELS, LABEL)["locator"] >> np.uint64(32) == key).all() for key, batch in labels)
    report = merge_records(records)
    sizes = Counter(expected.values())
    (found,) = report["components"]
    assert list(report["seconds"]) == ["near"]
    assert found.pop("rounds") in ([0] if method == "forest" else range(1, 8))
    assert found == {
        "scope": "corpus",
        "method": method,
        "links": len(edges),
        "documents": len(expected),
        "components": len(sizes),
        "largest": max(sizes.values()),
    }


@pytest.mark.parametrize("method", ["forest", "contraction"])
def test_no_links_no_components(method):
    def build(pipeline):
        links = pipeline | beam.Create([]).with_output_types(tuple[int, bytes])
        return [links | FindComponents("near", "corpus", method, 2, 2), merge_side_outputs(pipeline)]

    labels, records = run_and_collect(build)
    assert labels == []
    assert merge_records(records)["components"] == []


@pytest.mark.parametrize(("method", "shuffles"), [("forest", 2), ("contraction", 1 + 3 * rounds_for(1000) + 2)])
def test_batches_travel_by_explicit_coders(method, shuffles):
    pipeline = beam.Pipeline()
    links = pipeline | beam.Create([(0, b"")]).with_output_types(tuple[int, bytes])
    links | FindComponents("near", "corpus", method, 4, 1000)
    components = pipeline.to_runner_api().components
    grouped = [t for t in components.transforms.values() if t.spec.urn == "beam:transform:group_by_key:v1"]
    assert len(grouped) == shuffles
    for transform in grouped:
        (name,) = transform.inputs.values()
        coder = components.coders[components.pcollections[name].coder_id]
        kinds = [components.coders[part].spec.urn for part in coder.component_coder_ids]
        assert kinds == ["beam:coder:varint:v1", "beam:coder:bytes:v1"], transform.unique_name


def test_components_of_scopes_are_reported_apart():
    def record(scope, method="contraction", **fields):
        zeros = dict.fromkeys(("rounds", "links", "documents", "components", "largest"), 0)
        return orjson.dumps({"kind": "components", "scope": scope, "method": method, **zeros, **fields})

    records = [
        record("corpus", rounds=2, links=10),
        record("corpus", rounds=5, documents=4, components=2, largest=3),
        record("corpus", rounds=1, links=7, documents=9, components=1, largest=9),
        record("books", "forest", documents=2, components=1, largest=2),
    ]
    books, corpus = merge_records(records)["components"]
    assert books["scope"] == "books"
    assert corpus == {
        "scope": "corpus",
        "method": "contraction",
        "rounds": 5,
        "links": 17,
        "documents": 13,
        "components": 3,
        "largest": 9,
    }
    assert merge_records(reversed(records)) == merge_records(records)


def test_chooses_the_forest_up_to_its_limit():
    assert choose_method(0) == "forest"
    assert choose_method(FOREST_DOCUMENTS) == "forest"
    assert choose_method(FOREST_DOCUMENTS + 1) == "contraction"


@pytest.mark.parametrize(
    ("method", "partitions", "documents", "message"),
    [
        ("rounds", 1, 1, "method: 'rounds' given, forest or contraction is allowed"),
        ("contraction", 0, 1, "partitions: 0 given"),
        ("contraction", 1, -1, "documents: -1 given"),
        ("forest", 1, FOREST_MOST + 1, "documents: 4294967297 given, up to 4294967296 is allowed for a forest"),
    ],
)
def test_wrong_parameters(method, partitions, documents, message):
    with pytest.raises(ValueError, match=message):
        FindComponents("near", "corpus", method, partitions, documents)


def test_scatter_takes_narrow_keys():
    rows = table([(1, 0), (2, 0), (3, 0)])
    out = [
        (key, gather([batch], LINKS, LINK).tolist())
        for key, batch in form_batches(scatter(np.array([9, 2, 9], "u2"), LINKS, rows))
    ]
    assert out == [(2, [(2, 0)]), (9, [(1, 0), (3, 0)])]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 90_000), max_size=9), st.sampled_from([LINKS, LABELS])), max_size=9),
    st.sampled_from([1, 1 << 11, 1 << 30]),
)
def test_rows_of_many_elements_become_batches_together(pieces, limit):
    """Whatever is held back comes, once and under its key; in one batch a key where the limit is not reached."""
    number, outputs, expected = 0, [], defaultdict(list)
    for keys, tag in pieces:
        rows = table([(number + place, key) for place, key in enumerate(keys)])
        outputs += [b"record", *scatter(np.array(keys, np.int64), tag, rows)]
        number += len(keys)
        for key, row in zip(keys, rows.tolist(), strict=True):
            expected[key, tag].append(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_batch, "HELD_BYTES", limit)
        out = list(form_batches(outputs))
    batches = [element for element in out if element != b"record"]
    assert len(out) - len(batches) == len(pieces)
    found = defaultdict(list)
    for key, batch in batches:
        found[key, batch[0]] += gather([batch], batch[0], LINK).tolist()
    assert found == expected
    assert limit < 1 << 30 or len(batches) == len(expected)


def test_batches_of_one_key_are_bounded():
    rows = np.zeros(3 * BATCH_BYTES // LINK.itemsize, LINK)
    rows["member"] = np.arange(len(rows))
    batches = [batch for _, batch in form_batches(scatter(np.full(len(rows), 7), LINKS, rows))]
    assert [len(batch) <= BATCH_BYTES for batch in batches] == [True] * 4
    assert np.array_equal(gather(batches, LINKS, LINK), rows)
