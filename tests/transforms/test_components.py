import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.components import connected_components, label_blocks
from transforms.packed import LABEL, LABELS, LINK, LINKS, cut, gather


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


def labels_of(edges: list[tuple[int, int]]) -> dict[int, int]:
    table = np.array(edges, np.uint64).reshape(-1, 2)
    return dict(connected_components(table[:, 0], table[:, 1]).tolist())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60))
def test_equals_plain_union_find(edges):
    found = labels_of(edges)
    assert found == plain_union_find(edges)
    assert list(found) == sorted(found)


@pytest.mark.parametrize("shuffle", [False, True])
def test_large_shapes(shuffle):
    names = list(range(1, 100_001))
    if shuffle:
        random.Random(4).shuffle(names)
    path = list(pairwise(names))
    assert set(labels_of(path).values()) == {1}
    star = [(names[-1], other) for other in names[:-1]]
    assert set(labels_of(star).values()) == {1}
    pairs = list(zip(names[::2], names[1::2], strict=True))
    assert len(set(labels_of(pairs).values())) == 50_000
    clique = [(x, y) for x in names[:200] for y in names[:200] if x < y]
    assert set(labels_of(clique).values()) == {min(names[:200])}


def test_labels_go_to_their_parts():
    links = np.array([(1, 2 << 32), (2 << 32, 5 << 32 | 7), (8, 9)], LINK)
    out = list(label_blocks(0, [block for _, block in cut(0, LINKS, links)]))
    assert [key for key, _ in out] == [0, 2, 5]
    found = gather([block for _, block in out], LABELS, LABEL)
    assert dict(found.tolist()) == {1: 1, 8: 8, 9: 8, 2 << 32: 1, 5 << 32 | 7: 1}
    assert list(label_blocks(0, [])) == []
