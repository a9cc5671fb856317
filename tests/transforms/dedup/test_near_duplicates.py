import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.near_duplicates import (
    BUCKET_REPRESENTATIVES,
    NearParams,
    band_dtype,
    band_hashes,
    bucket_batches,
    found_share,
    link_batches,
    sketch_bytes,
    sketches,
)
from refinery.transforms.dedup.records.record_batch import (
    BANDS,
    CANDIDATE,
    CANDIDATES,
    HASH,
    HASHES,
    LINK,
    LINKS,
    cut,
    form_batches,
    gather,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.native import clusters
from tests.sampling import examples


def signatures_near(base: np.ndarray, shares: list[float], seed: int = 0) -> np.ndarray:
    """One row per share: the base with that share of its values kept."""
    rng = np.random.default_rng(seed)
    fresh = rng.integers(0, 2**32, (len(shares), len(base)), dtype=np.uint32)
    keep = np.argsort(rng.random(fresh.shape), axis=1) < (np.array(shares) * len(base))[:, None]
    return np.where(keep, base, fresh)


def nibble_matches(x: np.ndarray, y: np.ndarray, permutations: int) -> int:
    values = [np.stack([s & 15, s >> 4], axis=-1).ravel()[:permutations] for s in (x, y)]
    return int((values[0] == values[1]).sum())


def components(count: int, pairs: list[tuple[int, int]]) -> list[int]:
    labels = list(range(count))
    for x, y in pairs:
        low, high = sorted((labels[x], labels[y]))
        labels = [low if label == high else label for label in labels]
    return labels


@pytest.mark.parametrize(
    ("threshold", "permutations", "layout"),
    [(0.75, 112, (14, 8)), (0.5, 112, (28, 4)), (0.9, 112, (7, 16)), (0.7, 128, (18, 7)), (1.0, 16, (1, 16))],
)
def test_layout_from_threshold(threshold, permutations, layout):
    assert NearParams(threshold=threshold, bands=None, rows=None).layout(permutations) == layout
    assert found_share(threshold, permutations, layout[1]) >= 0.75


def test_layout_given():
    assert NearParams().layout(112) == (14, 8)
    assert NearParams(bands=10, rows=None).layout(112) == (10, 11)
    assert NearParams(bands=None, rows=20).layout(112) == (5, 20)
    assert NearParams(threshold=0.01, bands=None, rows=None).layout(1) == (1, 1)
    with pytest.raises(ValueError, match="bands: 14 bands of 8 rows given, at most 100 values"):
        NearParams().layout(100)


@pytest.mark.parametrize(
    ("field", "value"), [("threshold", 0), ("threshold", 1.01), ("threshold", float("nan")), ("bands", 0), ("rows", -1)]
)
def test_params_name_the_field(field, value):
    with pytest.raises(ValueError, match=rf"^{field}: {value} (\(a number\) )?given, .* allowed$"):
        NearParams(**{field: value})


def test_minimum_is_the_least_share_that_reaches_the_threshold():
    assert NearParams(threshold=0.75).minimum(112) == 84
    assert NearParams(threshold=0.7).minimum(10) == 7  # 0.7 * 10 is 7.000000000000001 in floating point
    assert NearParams(threshold=0.71).minimum(10) == 8


def test_band_hash_is_the_documented_one():
    signature = np.arange(1, 25, dtype=np.uint32)[None] * np.uint32(2654435761)
    for band, found in enumerate(band_hashes(signature, 3, 8)[0].tolist()):
        values = signature[0, 8 * band : 8 * band + 8].tolist()
        h = sum(v * pow(0x9E3779B97F4A7C15, r + 1, 2**64) for r, v in enumerate(values)) % 2**64
        h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD % 2**64
        h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
        assert found == h ^ h >> 33


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_sketches_agree_wherever_signatures_do(permutations, seed):
    base = np.random.default_rng(seed).integers(0, 2**32, permutations, dtype=np.uint32)
    pair = signatures_near(base, [0.6, 0.9], seed)
    x, y = sketches(pair)
    assert x.shape == (sketch_bytes(permutations),)
    assert nibble_matches(x, y, permutations) >= (pair[0] == pair[1]).sum()


def test_chance_agreement_is_one_in_sixteen():
    unrelated = np.random.default_rng(5).integers(0, 2**32, (2, 16_000), dtype=np.uint32)
    x, y = sketches(unrelated)
    assert 800 < nibble_matches(x, y, 16_000) < 1200


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=4), st.integers(1, 70), st.integers(0, 1000))
def test_small_buckets_are_joined_exactly(sizes, permutations, seed):
    rng = np.random.default_rng(seed)
    bases = rng.integers(0, 2**32, (3, permutations), dtype=np.uint32)
    shares = rng.uniform(0.5, 1, sum(sizes)).tolist()
    rows = np.array([signatures_near(bases[i % 3], [s], i + seed)[0] for i, s in enumerate(shares)], np.uint32)
    sketch = sketches(rows.reshape(-1, permutations))
    bounds = np.cumsum([0, *sizes])
    minimum = NearParams(threshold=0.7).minimum(permutations)
    alike = [
        (x, y)
        for first, last in pairwise(bounds)
        for x in range(first, last)
        for y in range(first, x)
        if nibble_matches(sketch[x], sketch[y], permutations) >= minimum
    ]
    found = clusters.link(sketch, bounds.astype(np.int64), permutations, minimum, BUCKET_REPRESENTATIVES)
    pairs = np.frombuffer(found, np.uint32).reshape(-1, 2).tolist()
    assert {tuple(pair) for pair in pairs} <= set(alike)
    assert len(pairs) == len(rows) - len(set(components(len(rows), pairs)))  # a forest: nothing superfluous
    assert components(len(rows), pairs) == components(len(rows), alike)


def test_large_bucket_finds_pairs_beyond_its_first_representatives():
    """1,500 pairs, unlike each other but sharing a quarter of their values, in one bucket."""
    rng = np.random.default_rng(3)
    template = rng.integers(0, 2**32, 112, dtype=np.uint32)
    originals = signatures_near(template, [0.25] * 1500)
    copies = np.array([signatures_near(row, [0.85], i)[0] for i, row in enumerate(originals)])
    sketch = sketches(np.concatenate([originals, copies]))
    found = clusters.link(sketch, np.array([0, 3000]), 112, NearParams().minimum(112), BUCKET_REPRESENTATIVES)
    pairs = np.frombuffer(found, np.uint32).reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1] + 1500).all()
    assert len(pairs) >= 1485


def test_identical_members_of_a_large_bucket_are_joined():
    sketch = np.tile(sketches(np.arange(112, dtype=np.uint32)[None]), (20_000, 1))
    pairs = np.frombuffer(clusters.link(sketch, np.array([0, 20_000]), 112, 84, BUCKET_REPRESENTATIVES), np.uint32)
    assert pairs.reshape(-1, 2).tolist() == [[i, 0] for i in range(1, 20_000)]


def test_buckets_pass_on_only_what_is_shared():
    rows = np.array([(5, 1), (6, 2), (5, 1 << 32), (7, 3), (6, 9), (5, 4)], HASH)
    batches = [batch for piece in np.array_split(rows, 3) for _, batch in cut(0, HASHES, piece)]
    out = list(form_batches(bucket_batches(13, batches, Parts(10), partitions=4)))
    assert [key for key, _ in out] == [0, 1]
    found = gather([batch for _, batch in out], CANDIDATES, CANDIDATE)
    assert sorted(found.tolist()) == [(5, 1, 3), (5, 4, 3), (5, 1 << 32, 3), (6, 2, 3), (6, 9, 3)]
    assert list(bucket_batches(0, [], Parts(1), partitions=1)) == []


def test_links_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(2)
    base = rng.integers(0, 2**32, 112, dtype=np.uint32)
    rows = np.zeros(200, band_dtype(112))
    rows["hash"] = rng.integers(0, 9, 200)
    rows["locator"] = rng.permutation(200)
    rows["tie"] = rng.permutation(200)
    rows["sketch"] = sketches(signatures_near(base, rng.uniform(0.7, 1, 200).tolist()))
    expected = None
    for seed in range(3):
        order = list(range(200))
        random.Random(seed).shuffle(order)
        batches = [batch for piece in np.array_split(rows[order], 1 + seed) for _, batch in cut(0, BANDS, piece)]
        out = list(link_batches(0, batches, NearParams(), Parts(1 << 20), 112))
        found = gather([batch for _, batch in out], LINKS, LINK).tolist()
        expected = expected or found
        assert found == expected != []
    assert list(link_batches(0, [], NearParams(), Parts(1 << 20), 112)) == []


def test_kernel_refuses_shapes_that_do_not_fit():
    sketch, bounds = np.zeros((4, 8), np.uint8), np.array([0, 4])
    for bad in (np.array([0, 5]), np.array([1, 4]), np.array([0, 3, 2, 4]), np.array([], np.int64), np.array([0])):
        with pytest.raises(ValueError, match="starts"):
            clusters.link(sketch, bad, 16, 4, 64)
    for permutations, minimum, always in ((0, 0, 1), (16, 17, 1), (16, 4, 0), (16, -1, 1)):
        with pytest.raises(ValueError, match="is allowed"):
            clusters.link(sketch, bounds, permutations, minimum, always)
    out = (np.zeros(3, np.uint32), np.zeros(4, np.uint32))
    with pytest.raises(ValueError, match="one uint32 per row"):
        clusters.assign(np.zeros((4, 2), np.uint32), bounds, 2, 1, 1, 64, np.zeros(4, np.uint8), *out)
    askew = np.zeros(17, np.uint8)[1:].view(np.uint32)
    with pytest.raises(ValueError, match="aligned"):
        clusters.assign(np.zeros((4, 2), np.uint32), bounds, 2, 1, 1, 64, np.zeros(4, np.uint8), out[1], askew)
