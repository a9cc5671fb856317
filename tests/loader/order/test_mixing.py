"""Mixing: exact quotas in every block, strict epochs for every domain, random access, limits, stages."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.order.mix_params import MixParams, MixStage, quotas
from refinery.loader.order.mixing import Mixture
from tests.sampling import examples

NAMES = ["books", "code", "web"]
WEIGHTS = {"books": 0.2, "code": 0.3, "web": 0.5}


def mixture(*stages: MixStage, samples: Sequence[int] = (7, 50, 1000), seed: int = 1, **params: Any) -> Mixture:
    return Mixture(NAMES, samples, 16, seed, MixParams(stages or (MixStage(WEIGHTS),), **{"block": 64, **params}))


@pytest.mark.parametrize(
    "weights, block, expected",
    [
        ([1], 8, [8]),
        ([1, 1], 8, [4, 4]),
        ([0.5, 0.3, 0.2], 10, [5, 3, 2]),
        ([1, 1, 1], 8, [3, 3, 2]),  # a tie goes to the earlier
        ([2, 0, 1], 8, [5, 0, 3]),
        ([1e-3, 1 - 1e-3], 1000, [1, 999]),
        ([3e300, 1e300], 4, [3, 1]),
    ],
)
def test_quotas(weights: list[float], block: int, expected: list[int]) -> None:
    assert quotas(weights, block) == expected


@given(st.lists(st.floats(0.05, 1), min_size=1, max_size=8), st.integers(200, 2000))
def test_quotas_are_within_one_of_exact(weights: list[float], block: int) -> None:
    counts = quotas(weights, block)
    assert sum(counts) == block
    for weight, count in zip(weights, counts, strict=True):
        assert abs(count - weight * block / sum(weights)) < 1 + 1e-9


def test_a_weight_below_the_resolution_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weights: 0\.001 of 1\.001 given, at least 1 position in a mix block of 64"):
        quotas([1, 0.001], 64)


def test_every_block_has_its_quotas_and_domains_continue() -> None:
    mixed = mixture()
    domain, k = mixed.locate(0, 640)
    for block in domain.reshape(-1, 64):
        assert np.bincount(block).tolist() == quotas([0.2, 0.3, 0.5], 64)
    for d in range(3):
        assert k[domain == d].tolist() == list(range((domain == d).sum()))  # in order, without gaps
    assert not (domain[:64] == domain[64:128]).all()  # blocks are shuffled differently


@given(st.integers(0, 700), st.integers(0, 200))
@settings(max_examples=examples(60), deadline=None)
def test_random_access(start: int, count: int) -> None:
    mixed = mixture(MixStage(WEIGHTS, 16 * 150), MixStage({"web": 1, "code": 3}, 16 * 333), MixStage(WEIGHTS))
    domain, k = mixed.locate(0, 900)
    some = mixed.locate(start, start + count)
    assert some[0].tolist() == domain[start : start + count].tolist()
    assert some[1].tolist() == k[start : start + count].tolist()
    assert mixed.counts(start).tolist() == np.bincount(domain[:start], minlength=3).tolist()


def test_stages_start_where_the_tokens_say() -> None:
    mixed = mixture(MixStage({"code": 1}, 16 * 100), MixStage({"web": 2, "books": 2}, 16 * 10 - 3))
    domain, _ = mixed.locate(0, 110)
    assert set(domain[:100].tolist()) == {1} and set(domain[100:].tolist()) <= {0, 2}
    assert mixed.end == 110 and mixed.limited_by is None
    with pytest.raises(IndexError, match="the last stage ends there"):
        mixed.locate(100, 111)


@pytest.mark.parametrize("repeats", [1, 2, {"books": 3}, {"code": 1, "books": 9}])
def test_limits_end_the_mixture_before_the_first_sample_too_many(repeats: Any) -> None:
    mixed = mixture(repeats=repeats)
    free = mixture()
    assert mixed.end is not None and mixed.limited_by is not None
    limits = repeats if isinstance(repeats, dict) else dict.fromkeys(NAMES, repeats)
    sizes = dict(zip(NAMES, (7, 50, 1000), strict=True))
    counts = dict(zip(NAMES, free.counts(mixed.end).tolist(), strict=True))
    assert all(counts[name] <= times * sizes[name] for name, times in limits.items())
    assert counts[mixed.limited_by] == limits[mixed.limited_by] * sizes[mixed.limited_by]
    after = dict(zip(NAMES, free.counts(mixed.end + 1).tolist(), strict=True))
    assert after[mixed.limited_by] == counts[mixed.limited_by] + 1


def test_a_limit_can_bind_in_a_later_stage() -> None:
    mixed = mixture(MixStage({"web": 1}, 16 * 200), MixStage({"books": 1, "web": 1}), repeats={"books": 1})
    domain, _ = mixture(MixStage({"web": 1}, 16 * 200), MixStage({"books": 1, "web": 1})).locate(0, 300)
    assert mixed.end == np.flatnonzero(domain == 0)[7] and mixed.limited_by == "books"


def test_a_stage_that_ends_before_the_limit_is_not_cut() -> None:
    assert mixture(MixStage(WEIGHTS, 16 * 20), repeats=1).end == 20


def test_history_depends_only_on_the_past() -> None:
    first, other = MixStage(WEIGHTS, 16 * 100), MixStage({"web": 1})
    assert mixture(first, other).history(60) == mixture(first, MixStage({"code": 1})).history(60)
    assert mixture(first, other).history(100) == mixture(MixStage(WEIGHTS)).history(100)
    assert mixture(first, other).history(101) != mixture(first, MixStage({"code": 1})).history(101)
    assert mixture(first).history(60) != mixture(MixStage({**WEIGHTS, "web": 0.9}, 1600)).history(60)


def test_achieved() -> None:
    found = mixture().achieved(640)
    assert {name: row["share"] for name, row in found.items()} == pytest.approx(WEIGHTS, abs=1 / 64)
    assert found["books"]["epochs"] == found["books"]["samples"] / 7
    assert mixture().achieved(0)["web"] == {"samples": 0, "share": 0.0, "epochs": 0.0}


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: mixture(MixStage({"wiki": 1})), r"domain 'wiki' given, 'books', 'code', 'web' is allowed"),
        (lambda: mixture(repeats={"wiki": 1}), r"domain 'wiki' given"),
        (lambda: mixture(samples=(0, 1, 1)), r"weights: 0\.2 given for 'books', of which no tokens are read"),
        (lambda: MixStage({"web": -1}), r"weights: -1 given for 'web', a finite number of 0 or more is allowed"),
        (lambda: MixStage({"web": float("nan")}), r"weights: nan given for 'web'"),
        (lambda: MixStage({"web": 0}), r"at least one above 0 is allowed"),
        (lambda: MixStage(WEIGHTS, 0), r"tokens: 0 given"),
        (lambda: MixParams([]), r"stages: none given"),
        (lambda: MixParams([MixStage(WEIGHTS), MixStage(WEIGHTS)]), r"tokens=None given before the last stage"),
        (lambda: MixParams([MixStage(WEIGHTS)], repeats=0), r"repeats: 0 given"),
        (lambda: MixParams([MixStage(WEIGHTS)], block=0), r"block: 0 given"),
        (lambda: MixParams([MixStage(WEIGHTS)], on_limit="wait"), r"on_limit: 'wait' given"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_pinned() -> None:
    domain, _ = mixture(block=16).locate(0, 24)
    assert domain.tolist() == PINNED


PINNED = [1, 1, 1, 2, 0, 1, 2, 2, 2, 2, 2, 0, 1, 0, 2, 2, 2, 2, 1, 1, 2, 1, 1, 2]
