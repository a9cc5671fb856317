"""Time per stage of each training step, cheap enough to be always on.

Times are nanoseconds of time.perf_counter_ns. A batch is made in stages: `plan` (which rows, and what they are of),
`read` (waiting for bytes), `decode` (bytes to tokens), `enrichment` (what comes beside tokens: boundaries of documents,
masks and columns of the data, ids), `assemble` (batch and masks), `staging` (the batch in its last form, in pinned
memory) and `copy` (to the device). `wait` is how long the caller was blocked, `queue_wait` the part of it in which
another thread or process made the batch, `lead` how long a finished batch was in the queue. All but `wait` may overlap
with the caller's work; only `wait` is lost time.
"""

import struct
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

STEP_STAGES = ("read", "decode", "assemble", "copy", "wait")
TRACKS = (*STEP_STAGES, "lead", "enrichment", "staging", "queue_wait", "plan")
MAKING = ("read", "decode", "assemble", "copy", "enrichment", "staging", "plan")  # a stall is in one of them
LATER = ("copy", "staging")  # known only after `record`, where a batch goes to a device
ELSEWHERE = "elsewhere"  # of a stall that no stage explains: the producer was not running

FOLD = 1024  # steps between two updates of the histograms
SUBDIVISIONS = 4  # 2^4 buckets per factor of two: quantiles are accurate to 1 in 32
BUCKETS = 64 << SUBDIVISIONS
ROW = struct.Struct(f"={1 + len(TRACKS)}q")  # tokens and the tracks; packing is the cheapest way to store integers
KEPT_STALLS = 16  # most recent stalls that are kept; all are counted

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TelemetryParams:
    """A step stalls if the caller waits longer than `stall_ms` and longer than `stall_ratio` times the median wait."""

    stall_ms: float = 50.0
    stall_ratio: float = 10.0

    def __post_init__(self) -> None:
        for name in ("stall_ms", "stall_ratio"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: {getattr(self, name)} given, 0 or more is allowed")


@dataclass(frozen=True, slots=True)
class Stall:
    """A step at which the caller waited too long, and the stage that took most of that time."""

    step: int
    stage: str
    wait_ms: float
    stage_ms: float


class Telemetry:
    """Collects the times of one stream's steps. Memory is constant, about 200 KiB.

    `record` is for one thread, the one that takes the batches; other methods may be called by any thread. Cost: 0.3 us
    per step, including its share of the histograms, plus the caller's clock readings, 0.05 us each.
    """

    def __init__(self, params: TelemetryParams = TelemetryParams()) -> None:
        self.params = params
        self._lock = threading.Lock()
        self._floor = int(params.stall_ms * 1e6)
        self._totals: dict[str, int] = {}
        self.reset()

    def reset(self) -> None:
        """Discard everything; rates start now. Not while another thread records."""
        with self._lock:
            self._pending = bytearray(FOLD * ROW.size)
            self._end = 0
            self._counts: Counts = np.zeros((len(TRACKS), BUCKETS), np.int64)
            self._sums: Counts = np.zeros(len(TRACKS), np.int64)
            self._maxima: Counts = np.zeros(len(TRACKS), np.int64)
            self._steps = 0
            self._tokens = 0
            self._limit = self._floor
            self._stalls: deque[Stall] = deque(maxlen=KEPT_STALLS)
            self._stalled: dict[str, int] = {}
            self._counters: dict[str, int] = {}
            self._shapes: dict[tuple[int, ...], int] = {}
            self._started = time.perf_counter_ns()
            self._previous = (self._started, 0)

    def record(
        self,
        tokens: int,
        read: int = 0,
        decode: int = 0,
        assemble: int = 0,
        copy: int = 0,
        wait: int = 0,
        lead: int = 0,
        enrichment: int = 0,
        staging: int = 0,
        queue_wait: int = 0,
        plan: int = 0,
        shape: tuple[int, ...] | None = None,
    ) -> Stall | None:
        """One delivered step: its tokens, and nanoseconds per stage. Returns the stall if it was one.

        lead: how long the batch was ready before it was requested. The stage times are those of this batch, in
        whichever thread it was made. copy: 0 if it was not copied yet. shape: of its input_ids; None is not counted.
        """
        if self._end >= len(self._pending):  # the fold of the last step was interrupted
            self._fold()
        ROW.pack_into(
            self._pending, self._end,
            tokens, read, decode, assemble, copy, wait, lead, enrichment, staging, queue_wait, plan,
        )  # fmt: skip
        self._end += ROW.size
        if shape is not None:
            self._shapes[shape] = self._shapes.get(shape, 0) + 1
        if self._end >= len(self._pending):
            self._fold()
        if wait <= self._limit:
            return None
        return self._stall(wait, (read, decode, assemble, copy, enrichment, staging, plan))

    def copied(self, ns: int) -> Stall | None:
        """Record a batch's copy to the device, for times known only after `record`. Returns the stall if it was one.

        From any thread. Cost: a few microseconds.
        """
        with self._lock:
            i = TRACKS.index("copy")
            self._counts[i, buckets(np.array([ns]))[0]] += 1
            self._sums[i] += ns
            self._maxima[i] = max(int(self._maxima[i]), ns)
        return self._stall(ns, [ns if name == "copy" else 0 for name in MAKING]) if ns > self._limit else None

    def staged(self, ns: int) -> None:
        """Record that a batch was put into pinned memory, for times known only after `record`. From any thread."""
        with self._lock:
            i = TRACKS.index("staging")
            self._sums[i] += ns
            self._maxima[i] = max(int(self._maxima[i]), ns)
            self._counts[i, buckets(np.array([ns]))[0]] += 1

    def total(self, totals: Mapping[str, int]) -> None:
        """Add the increase, since the last call, of counters that are kept elsewhere. Cost: a lock.

        `cache_hits` and `cache_misses` are shown in the summary.
        """
        with self._lock:
            for name, value in totals.items():
                grown = value - self._totals.get(name, 0)
                if grown:
                    self._totals[name] = value
                    self._counters[name] = self._counters.get(name, 0) + grown

    def snapshot(self) -> dict[str, Any]:
        """Everything so far as plain JSON-able values.

        steps, tokens, seconds; tokens_per_second since the start, recent_tokens_per_second since the last snapshot;
        wait_share, the share of time in which the caller was blocked; stages: p50_ms, p99_ms, max_ms and total_s of
        each of TRACKS; shapes, the batches of each shape, by "rows x tokens"; counters; padding_share, of the places of
        all rows; cache_hit_share, None without a cache; stalls, their number per stage, and latest_stalls. Quantiles
        are accurate to 1 in 32. Cost: about a millisecond.
        """
        now = time.perf_counter_ns()
        with self._lock:
            counts, sums, maxima, steps, tokens = self._merged()
            then, before = self._previous
            self._previous = (now, tokens)
            counters, stalled, stalls = dict(self._counters), dict(self._stalled), [asdict(s) for s in self._stalls]
            shapes = dict(self._shapes)
        seconds = max(now - self._started, 1) / 1e9
        hits, misses = counters.get("cache_hits", 0), counters.get("cache_misses", 0)
        tracks = {
            name: {
                "p50_ms": quantile(counts[i], 0.5) / 1e6,
                "p99_ms": quantile(counts[i], 0.99) / 1e6,
                "max_ms": int(maxima[i]) / 1e6,
                "total_s": int(sums[i]) / 1e9,
            }
            for i, name in enumerate(TRACKS)
        }
        return {
            "steps": steps,
            "tokens": tokens,
            "seconds": seconds,
            "tokens_per_second": tokens / seconds,
            "recent_tokens_per_second": (tokens - before) / (max(now - then, 1) / 1e9),
            "wait_share": tracks["wait"]["total_s"] / seconds,
            "stages": tracks,
            "shapes": {" x ".join(map(str, shape)): batches for shape, batches in sorted(shapes.items())},
            "counters": counters,
            "padding_share": counters.get("padding", 0) / tokens if tokens else 0.0,
            "cache_hit_share": hits / (hits + misses) if hits + misses else None,
            "stalls": stalled,
            "latest_stalls": stalls,
        }

    def summary(self) -> str:
        """A line for a log: rate, wait, medians and 99th percentiles, cache, stalls. Takes a snapshot."""
        now = self.snapshot()
        stages = " ".join(
            f"{name} {track['p50_ms']:.3g}/{track['p99_ms']:.3g}"
            for name, track in now["stages"].items()
            if track["max_ms"] > 0
        )
        cache = "" if now["cache_hit_share"] is None else f", cache hits {now['cache_hit_share']:.1%}"
        padding = f", padding {now['padding_share']:.2%}" if now["padding_share"] else ""
        stalls = ", ".join(f"{n} in {stage}" for stage, n in now["stalls"].items()) or "none"
        return (
            f"step {now['steps']}, {now['recent_tokens_per_second'] / 1e6:.3g} M tokens/s, "
            f"waiting {now['wait_share']:.2%}, p50/p99 ms {stages or '-'}{cache}{padding}, stalls {stalls}"
        )

    def _stall(self, wait: int, spent: Sequence[int]) -> Stall:
        """spent: nanoseconds of each of MAKING."""
        longest, stage = max(zip(spent, MAKING, strict=True))
        if 2 * longest < wait:
            longest, stage = wait - sum(spent), ELSEWHERE
        with self._lock:
            step = self._steps + self._end // ROW.size
            stall = Stall(step, stage, wait / 1e6, longest / 1e6)
            self._stalls.append(stall)
            self._stalled[stage] = self._stalled.get(stage, 0) + 1
        return stall

    def _fold(self) -> None:
        """Move the pending steps into the histograms."""
        with self._lock:
            self._counts, self._sums, self._maxima, self._steps, self._tokens = self._merged()
            self._end = 0
            median = quantile(self._counts[TRACKS.index("wait")], 0.5)
            self._limit = max(self._floor, int(median * self.params.stall_ratio))

    def _merged(self) -> tuple[Counts, Counts, Counts, int, int]:
        """Totals including the pending steps. Another thread may be recording: a row counts once `_end` is past it."""
        rows = np.frombuffer(self._pending, np.int64)[: self._end // 8].reshape(-1, 1 + len(TRACKS))
        values = np.maximum(rows[:, 1:], 0)
        places = buckets(values) + np.arange(len(TRACKS)) * BUCKETS
        counts = self._counts + np.bincount(places.reshape(-1), minlength=self._counts.size).reshape(len(TRACKS), -1)
        for name in LATER:
            counts[TRACKS.index(name), 0] = 0  # nothing was copied
        sums = self._sums + values.sum(axis=0)
        maxima = np.maximum(self._maxima, values.max(axis=0, initial=0))
        return counts, sums, maxima, self._steps + len(rows), self._tokens + int(rows[:, 0].sum())


def buckets(values: Counts) -> Counts:
    """Bucket of each value (int64, 0 or more): exponent and first 4 bits of the mantissa of value + 1 as a double."""
    bits = (values + 1).astype(np.float64).view(np.int64) >> (52 - SUBDIVISIONS)
    return bits - (1023 << SUBDIVISIONS)


def quantile(counts: Counts, share: float) -> float:
    """The `share` quantile of the counted values: the middle of its bucket. 0 if nothing was counted."""
    total = int(counts.sum())
    if not total:
        return 0.0
    bucket = int(np.searchsorted(np.cumsum(counts), share * total))
    octave, part = bucket >> SUBDIVISIONS, bucket & ((1 << SUBDIVISIONS) - 1)
    return float(2**octave * (1 + (part + 0.5) / (1 << SUBDIVISIONS)) - 1) if bucket else 0.0
