"""Choices of a mixture: error diffusion, weights by tokens, exhausted domains, rows dealt evenly over ranks."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader import MixParams, MixStage, OrderParams, TokenStream
from refinery.loader.order.mix_params import diffused, quotas
from refinery.loader.order.mixing import Mixture
from refinery.loader.read.samples import Domain
from refinery.loader.stream.schedule import Schedule
from tests.loader.numbered import build_numbered
from tests.sampling import examples, spread

NAMES = ["books", "code", "web"]
WEIGHTS = {"books": 0.1, "code": 0.3, "web": 0.6}
SAMPLES = (7, 50, 1000)


def mixture(*stages: MixStage, tokens: Any = None, **params: Any) -> Mixture:
    given = MixParams(stages or (MixStage(WEIGHTS),), **{"block": 60, **params})
    return Mixture(NAMES, SAMPLES, 16, 1, given, tokens)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=9).filter(any))
@settings(max_examples=examples(200), deadline=None)
def test_error_diffusion_stays_within_one_place(counts: list[int]) -> None:
    found, size = diffused(counts), sum(counts)
    assert np.bincount(found, minlength=len(counts)).tolist() == counts
    used = max(sum(map(bool, counts)), 2)
    for d, count in enumerate(counts):
        had = np.cumsum(found == d)
        share = np.arange(1, size + 1) * count / size
        assert np.abs(had - share).max() <= 1 - 1 / (2 * used - 2) + 1e-6


def test_even_turns_are_pinned() -> None:
    assert "".join("abc"[d] for d in diffused([1, 3, 6])) == PINNED


PINNED = "cbccbcacbc"


def test_even_is_the_same_in_every_block_and_part_of_the_past() -> None:
    mixed, by_chance = mixture(even=True), mixture()
    domain, k = mixed.locate(0, 600)
    assert (domain.reshape(-1, 60) == domain[:60]).all()
    for d, share in enumerate(quotas([0.1, 0.3, 0.6], 60)):
        assert k[domain == d].tolist() == list(range(10 * share))
    assert mixed.history(60) != by_chance.history(60)
    assert mixture(even=False).history(60) == by_chance.history(60)


@pytest.mark.parametrize("weights, length", [(WEIGHTS, 60), ({"web": 0.5, "code": 0.5}, 48)])
@pytest.mark.parametrize("even", [False, True])
def test_rows_are_dealt_evenly(weights: dict[str, float], length: int, even: bool) -> None:
    """8 ranks, 8 rows each: 10 % of 64 rows are on 6 or 7 ranks, in the long run as much on each."""
    ranks, rows, steps = 8, 8, 64
    domains = [Domain(name, [(i, 20_000_000)], 16) for i, name in enumerate(NAMES)]
    mixed = Mixture(NAMES, [d.samples for d in domains], 16, 1, MixParams([MixStage(weights)], even=even))
    shape: dict[str, Any] = {"order": OrderParams(), "seed": 1, "world_size": ranks, "batch_size": rows}
    plans = [Schedule(domains, mixed, rank=rank, **shape).plan(0, 0, steps * rows) for rank in range(ranks)]
    found = np.stack([plan.rows(plan.domains) for plan in plans])  # [ranks, steps, rows]
    for d, name in enumerate(NAMES):
        per_rank = (found == d).sum(axis=2)
        per_step = per_rank.sum(axis=0)
        share = weights.get(name, 0) / sum(weights.values())
        if even:
            assert (np.abs(per_rank - per_step / ranks) < 1).all()
            assert (np.abs(per_step - 64 * share) < 2).all()
            assert (np.abs(per_rank - rows * share) < 1 + 2 / ranks).all()
        if share:
            touched = (per_rank > 0).sum(axis=0).mean()
            assert touched >= (4.4 if share < 0.2 else 7), (name, touched)  # by chance: 4.5 of 8 for 10 %
            assert per_rank.mean(axis=1) == pytest.approx(np.full(ranks, rows * share), abs=0.35 * rows * share)


def test_weights_by_tokens(caplog: pytest.LogCaptureFixture) -> None:
    """The books are short: 56 of 112 places. As many tokens of them take twice the samples."""
    tokens = [56, 50 * 16, 1000 * 16]
    with caplog.at_level(logging.WARNING, "refinery.loader"):
        by_samples = mixture(tokens=tokens, block=1024).counts(10 * 1024)
    assert "domain 'books': 50.0 % of its places are tokens" in caplog.text
    assert "weight of 10.0% is one of samples and will be 5.26% of the tokens" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "refinery.loader"):
        by_tokens = mixture(tokens=tokens, block=1024, count="tokens").counts(10 * 1024)
    assert "draws more samples of it" in caplog.text and "'code'" not in caplog.text
    fill = np.array([0.5, 1, 1])
    for counts, shares in ((by_samples, [0.1 / 1.9, 0.6 / 1.9, 1.2 / 1.9]), (by_tokens, [0.1, 0.3, 0.6])):
        found = counts * fill / (counts * fill).sum()
        assert found == pytest.approx(shares, abs=0.002)


def walk(mixed: Mixture, most: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    assert mixed.end is not None and mixed.end < most
    return mixed.locate(0, mixed.end)


@pytest.mark.parametrize("repeats", [1, 3, {"books": 2}, {"books": 1, "code": 2, "web": 1}])
@pytest.mark.parametrize("even", [False, True])
def test_renormalise_goes_on_without_what_is_exhausted(repeats: Any, even: bool) -> None:
    stages = () if not isinstance(repeats, dict) or len(repeats) == 3 else (MixStage(WEIGHTS, 16 * 900),)
    mixed = mixture(*stages, repeats=repeats, on_limit="renormalise", even=even)
    domain, k = walk(mixed)
    limits = repeats if isinstance(repeats, dict) else dict.fromkeys(NAMES, repeats)
    ends = []
    for d, (name, n) in enumerate(zip(NAMES, SAMPLES, strict=True)):
        assert k[domain == d].tolist() == list(range((domain == d).sum()))  # in order, without gaps
        if name in limits:
            assert (domain == d).sum() == limits[name] * n  # all of it, and no more
            ends.append((int(np.flatnonzero(domain == d)[-1]), d))
    ends.sort()
    if not stages:
        assert len(domain) == sum(limits[name] * n for name, n in zip(NAMES, SAMPLES, strict=True))
    first, gone = ends[0]  # after the first limit the others keep their proportions
    following = domain[first + 1 : (ends[1][0] if len(ends) > 1 else len(domain))]
    assert gone not in following
    weights = np.array([WEIGHTS[name] for name in NAMES])
    weights[gone] = 0
    if len(following) >= 60:
        found = np.bincount(following[: len(following) // 60 * 60], minlength=3) / (len(following) // 60 * 60)
        assert found == pytest.approx(weights / weights.sum(), abs=0.06)
    for position in (0, 1, first, first + 1, first + 2, len(domain) // 2, len(domain)):
        assert mixed.counts(position).tolist() == np.bincount(domain[:position], minlength=3).tolist()
        part = mixed.locate(position, min(position + 37, len(domain)))
        assert part[0].tolist() == domain[position : position + 37].tolist()
        assert part[1].tolist() == k[position : position + 37].tolist()


def test_repeat_goes_beyond_the_limit_and_a_stage_of_exhausted_domains_is_passed_over() -> None:
    assert mixture(repeats=1, on_limit="repeat").end is None
    stages = MixStage({"books": 1}, 16 * 20), MixStage({"books": 1}, 16 * 20), MixStage({"code": 1}, 16 * 5)
    mixed = mixture(*stages, repeats=1, on_limit="renormalise")
    assert walk(mixed)[0].tolist() == [0] * 7 + [1] * 5
    assert mixture(*stages[:2], repeats=1, on_limit="renormalise").end == 7


@given(st.integers(0, 200))
@settings(max_examples=examples(30), deadline=None)
def test_the_past_of_a_renormalised_mixture(position: int) -> None:
    """Changing what is ahead changes nothing behind; changing the past does."""
    one = mixture(MixStage(WEIGHTS), repeats=2, on_limit="renormalise")
    other = mixture(MixStage(WEIGHTS), repeats={"books": 2, "code": 5}, on_limit="renormalise")
    code = np.flatnonzero((one.locate(0, 600)[0] == 1) & (one.locate(0, 600)[1] == 99))[0]
    assert position < code and one.history(position) == other.history(position)
    assert one.history(250) != mixture(MixStage(WEIGHTS)).history(250)


@pytest.mark.parametrize("options", [{"on_limit": "renormalise"}, {"on_limit": "renormalise", "even": True}])
def test_a_stream_resumes_exactly(tmp_path: Path, options: dict[str, Any]) -> None:
    corpus = build_numbered(tmp_path, {"a": [[40, 3]], "b": [[155]], "c": [[300]]})
    weights = MixParams([MixStage({"a": 1, "b": 1, "c": 1})], repeats=2, block=8, **options)
    shape: dict[str, Any] = {"sequence_length": 7, "order": OrderParams(2, 4, 2), "weights": weights, "prefetch": 0}
    with TokenStream(corpus, batch_size=1, **shape) as one:
        states, whole = [one.state_dict()], []
        for batch in one:
            whole.append(batch["input_ids"].tobytes())
            states.append(json.loads(json.dumps(one.state_dict())))
            assert len(json.dumps(states[-1])) <= 400
    assert len(whole) == 2 * (7 + 23 + 43)  # every sample of every domain twice
    for position in spread(f"positions of a mixture, {len(options)}", range(len(whole)), 8):
        rest: list[bytes] = []
        ranks = [TokenStream(corpus, batch_size=2, rank=rank, world_size=3, **shape) for rank in range(3)]
        for stream in ranks:
            stream.load_state_dict(states[position])
        while batches := [batch for stream in ranks if (batch := next(stream, None)) is not None]:
            assert len(batches) == 3
            rest += [row.tobytes() for batch in batches for row in batch["input_ids"] if row[0] != row[1]]
        padding = rest.count(np.full(7, 59_999).tobytes())
        assert padding == 0 and sorted(rest) == sorted(whole[position:])
