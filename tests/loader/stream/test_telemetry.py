"""Stage times: quantiles against numpy, stalls and the stage at fault, rates, and no growth."""

import json
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.stream.telemetry import (
    BUCKETS,
    ELSEWHERE,
    FOLD,
    KEPT_STALLS,
    STEP_STAGES,
    TRACKS,
    Telemetry,
    TelemetryParams,
    buckets,
    quantile,
)

MS = 1_000_000


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_quantiles_are_right_to_one_in_32(values: list[int], share: float) -> None:
    counts = np.bincount(buckets(np.array(values, np.int64)), minlength=BUCKETS)
    exact = float(np.quantile(values, share, method="inverted_cdf"))
    assert abs(quantile(counts, share) - exact) <= (exact + 1) / 32 * 1.000001 + 1e-6


def test_buckets_ascend_and_fit() -> None:
    values = np.unique(np.concatenate([np.arange(5000), 2 ** np.arange(53), [2**62]])).astype(np.int64)
    found = buckets(values)
    assert (np.diff(found) >= 0).all() and found[0] == 0 and found[-1] < BUCKETS
    assert quantile(np.zeros(BUCKETS, np.int64), 0.5) == 0.0


@pytest.mark.parametrize("steps", [1, FOLD - 1, FOLD, FOLD + 1, 3 * FOLD + 5])
def test_a_snapshot_counts_pending_and_folded_steps(steps: int) -> None:
    telemetry = Telemetry()
    for i in range(steps):
        telemetry.record(100, 1 * MS, 2 * MS, 3 * MS, 4 * MS, i, 6 * MS)
    for _ in range(2):  # a snapshot changes nothing
        seen = telemetry.snapshot()
        assert (seen["steps"], seen["tokens"]) == (steps, 100 * steps)
        for name, ms in zip((*STEP_STAGES[:4], "lead"), (1, 2, 3, 4, 6), strict=True):
            track = seen["stages"][name]
            assert track["p50_ms"] == pytest.approx(ms, rel=1 / 32) and track["max_ms"] == ms
            assert track["total_s"] == pytest.approx(ms * steps / 1000)
        assert seen["stages"]["wait"]["max_ms"] == (steps - 1) / MS
        assert seen["stalls"] == {}
    assert json.loads(json.dumps(seen)) == seen


def test_all_tracks_have_a_place_of_their_own() -> None:
    telemetry = Telemetry()
    names = [name for name in TRACKS if name != "wait"]
    for _ in range(FOLD + 2):
        telemetry.record(1, **{name: (1 + i) * MS for i, name in enumerate(names)}, wait=99 * MS)
    found = {name: track["max_ms"] for name, track in telemetry.snapshot()["stages"].items()}
    assert found == {"wait": 99} | {name: 1 + i for i, name in enumerate(names)}


def test_shapes_and_staging() -> None:
    """Batches by shape; staging that is known only after `record`, and none is not a fast one."""
    telemetry = Telemetry()
    for i in range(FOLD + 3):
        telemetry.record(1, shape=(2, 16 if i else 8))
        telemetry.staged(3 * MS)
    seen = telemetry.snapshot()
    assert seen["shapes"] == {"2 x 8": 1, "2 x 16": FOLD + 2}
    track = seen["stages"]["staging"]
    assert track["p50_ms"] == pytest.approx(3, rel=1 / 32) and track["max_ms"] == 3
    telemetry.reset()
    assert telemetry.snapshot()["shapes"] == {}


def test_rates_and_wait_share(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10**9]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])
    telemetry = Telemetry()
    telemetry.record(4000, wait=MS)
    now[0] += 4 * MS
    first = telemetry.snapshot()
    telemetry.record(1000, wait=MS)
    now[0] += 4 * MS
    second = telemetry.snapshot()
    assert first["tokens_per_second"] == first["recent_tokens_per_second"] == 1_000_000
    assert (second["tokens_per_second"], second["recent_tokens_per_second"]) == (625_000, 250_000)
    assert (first["wait_share"], second["wait_share"]) == (0.25, 0.25)
    telemetry.reset()
    assert telemetry.snapshot()["steps"] == 0


@pytest.mark.parametrize(
    ("stages", "fault"),
    [
        ({"read": 90}, "read"),
        ({"decode": 70, "read": 30}, "decode"),
        ({"assemble": 100}, "assemble"),
        ({"copy": 51, "read": 49}, "copy"),
        ({"enrichment": 60, "decode": 20}, "enrichment"),
        ({"staging": 80}, "staging"),
        ({"plan": 99}, "plan"),
        ({"queue_wait": 100}, ELSEWHERE),  # not a part of making a batch
        ({"read": 20, "decode": 20}, ELSEWHERE),
        ({}, ELSEWHERE),
    ],
)
def test_a_stall_names_the_stage_at_fault(stages: dict[str, int], fault: str) -> None:
    telemetry = Telemetry()
    for _ in range(3):
        assert telemetry.record(1, wait=MS) is None
    stall = telemetry.record(1, wait=100 * MS, **{name: ms * MS for name, ms in stages.items()})
    assert stall is not None and (stall.step, stall.stage, stall.wait_ms) == (4, fault, 100.0)
    making = {name: ms for name, ms in stages.items() if name != "queue_wait"}
    assert stall.stage_ms == making.get(fault, 100 - sum(making.values()))
    seen = telemetry.snapshot()
    assert seen["stalls"] == {fault: 1} and seen["latest_stalls"][0]["stage"] == fault
    assert f"1 in {fault}" in telemetry.summary()


@pytest.mark.parametrize(
    ("wait", "params", "stalls"),
    [
        (49, TelemetryParams(), False),
        (51, TelemetryParams(), True),
        (51, TelemetryParams(stall_ms=60), False),
        (2, TelemetryParams(stall_ms=1), True),
        (2, TelemetryParams(stall_ms=0, stall_ratio=0), True),
    ],
)
def test_what_counts_as_a_stall(wait: int, params: TelemetryParams, stalls: bool) -> None:
    assert (Telemetry(params).record(1, wait=wait * MS) is not None) == stalls


def test_the_median_wait_raises_the_limit() -> None:
    telemetry = Telemetry()
    for _ in range(FOLD):
        telemetry.record(1, wait=20 * MS)
    assert telemetry.record(1, wait=150 * MS) is None
    assert telemetry.record(1, wait=250 * MS) is not None


def test_stalls_are_all_counted_and_the_latest_kept() -> None:
    telemetry = Telemetry()
    for i in range(100):
        telemetry.record(1, read=100 * MS, wait=100 * MS + i)
    seen = telemetry.snapshot()
    assert seen["stalls"] == {"read": 100}
    assert [stall["step"] for stall in seen["latest_stalls"]] == list(range(101 - KEPT_STALLS, 101))


def test_counters_and_cache_share() -> None:
    telemetry = Telemetry()
    assert telemetry.snapshot()["cache_hit_share"] is None and "cache" not in telemetry.summary()
    telemetry.total({"cache_hits": 3, "cache_misses": 1, "retries": 2})
    seen = telemetry.snapshot()
    assert seen["counters"] == {"cache_hits": 3, "cache_misses": 1, "retries": 2} and seen["cache_hit_share"] == 0.75
    assert "cache hits 75.0%" in telemetry.summary() and "\n" not in telemetry.summary()


def test_copies_may_be_recorded_later_and_none_is_not_a_fast_one() -> None:
    telemetry = Telemetry()
    for i in range(FOLD + 3):
        telemetry.record(1)
        assert telemetry.copied((1 + i % 3) * MS) is None
    stall = telemetry.copied(400 * MS)
    assert stall is not None and (stall.stage, stall.step) == ("copy", FOLD + 3)
    track = telemetry.snapshot()["stages"]["copy"]
    assert track["p50_ms"] == pytest.approx(2, rel=1 / 32) and track["max_ms"] == 400
    assert track["total_s"] == pytest.approx((2 * (FOLD + 3) + 400) / 1000, rel=0.01)


def test_counters_kept_elsewhere_are_added_by_their_growth() -> None:
    telemetry = Telemetry()
    telemetry.total({"cache_hits": 3, "retries": 0})
    telemetry.total({"cache_hits": 5, "retries": 0})
    telemetry.total({"cache_hits": 5, "retries": 1})
    assert telemetry.snapshot()["counters"] == {"cache_hits": 5, "retries": 1}
    telemetry.reset()
    telemetry.total({"cache_hits": 6, "retries": 1})
    assert telemetry.snapshot()["counters"] == {"cache_hits": 1}


def test_snapshots_during_recording() -> None:
    telemetry, wrong, over = Telemetry(), [], threading.Event()

    def look() -> None:
        before = looks = 0
        while not over.is_set():
            seen = telemetry.snapshot()
            if seen["tokens"] != 3 * seen["steps"] or seen["steps"] < before:
                wrong.append(seen)
            before, looks = seen["steps"], looks + 1
            telemetry.total({"looks": looks})

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for thread in lookers:
        thread.start()
    for _ in range(20 * FOLD):
        telemetry.record(3, read=MS)
    over.set()
    for thread in lookers:
        thread.join()
    assert not wrong and telemetry.snapshot()["steps"] == 20 * FOLD


@pytest.mark.parametrize("bad", [{"stall_ms": -1}, {"stall_ratio": float("nan")}, {"stall_ms": float("inf")}])
def test_invalid_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="0 or more is allowed"):
        TelemetryParams(**bad)
