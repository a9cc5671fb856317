import contextlib
import gc
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from refinery.loader.storage.fetch import (
    Attempt,
    FetchError,
    FetchParams,
    Permanent,
    RangeResponse,
    ReadCounters,
    Transient,
    WrongBytes,
    retrying,
    without_secrets,
)
from refinery.loader.storage.fetcher import Fetcher

FAST = FetchParams(deadline=5, first_delay=0.001, max_delay=0.004, hedge_after=0)
DATA = bytes(range(256)) * 4


class Scripted:
    """A store that runs a list of actions, one per attempt, and then succeeds."""

    def __init__(self, *actions: Callable[[Attempt], Any]) -> None:
        self.actions = list(actions)
        self.calls = 0
        self.lock = threading.Lock()

    def url(self, name: str) -> str:
        return f"https://host/{name}"

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> RangeResponse:
        with self.lock:
            self.calls += 1
            action = self.actions.pop(0) if self.actions else None
        result = action(attempt) if action else None
        return result if isinstance(result, RangeResponse) else RangeResponse(DATA[start:stop], len(DATA), "v1")


def fail(error: Exception) -> Callable[[Attempt], None]:
    def action(attempt: Attempt) -> None:
        raise error

    return action


def hang(attempt: Attempt) -> None:
    """Block until cancelled, like a read from a socket that is shut down."""
    cancelled = threading.Event()
    with attempt.abortable(cancelled.set):
        assert cancelled.wait(30)
        attempt.check()


def read(store: Scripted, params: FetchParams = FAST, verify: Any = None) -> tuple[bytes, ReadCounters]:
    counters = ReadCounters()
    fetcher = Fetcher(store, params, counters, most=1)
    try:
        return bytes(fetcher.read("x", 10, 100, verify).data), counters
    finally:
        fetcher.close()


def test_plain() -> None:
    data, counters = read(Scripted())
    assert data == DATA[10:100]
    assert {name: n for name, n in counters.snapshot().items() if n} == {"requests": 1, "bytes": 90}


def test_retries_until_success() -> None:
    faults = [Transient("status 503"), Transient(ConnectionResetError("reset"), retry_after=0.001)]
    data, counters = read(Scripted(*map(fail, faults)))
    assert data == DATA[10:100]
    assert (counters.requests, counters.retries, counters.bytes) == (3, 2, 90)


def test_short_response_is_retried() -> None:
    data, counters = read(Scripted(lambda attempt: RangeResponse(b"short")))
    assert (data, counters.retries) == (DATA[10:100], 1)


def test_deadline() -> None:
    """The error has the file, the range, the attempts and the last cause."""
    store = Scripted(*[fail(Transient(f"fault {i}")) for i in range(10_000)])
    with pytest.raises(FetchError) as caught:
        read(store, replace(FAST, deadline=0.1))
    attempts = caught.value.attempts
    assert 0 < store.calls <= attempts  # attempts may time out before they start
    assert (caught.value.what, caught.value.span) == ("https://host/x", (10, 100))
    last = r"last: (fault|too slow|the deadline)"
    assert re.match(rf"https://host/x: bytes 10 to 100: {attempts} attempts? in .* s failed; {last}", str(caught.value))


def test_an_attempt_that_the_deadline_cuts_short_says_nothing() -> None:
    causes = [Transient("status 503: slow down"), Transient("too slow: the deadline has passed")]

    def call(until: float) -> None:
        if len(causes) == 1:
            while time.monotonic() < until:
                time.sleep(0.001)
        raise causes.pop(0)

    with pytest.raises(FetchError, match=r"2 attempts in .*; last: status 503: slow down"):
        retrying(call, "x", (0, 1), replace(FAST, deadline=0.1), ReadCounters())


def test_hanging_attempts_end_at_the_deadline() -> None:
    store = Scripted(*[hang] * 100)
    with pytest.raises(FetchError, match="deadline"):
        read(store, replace(FAST, deadline=0.1))


def test_a_failure_needs_no_garbage_collector() -> None:
    """Otherwise the frames of failed attempts, and the data in them, would live until its next full pass."""

    def call(until: float) -> int:
        raise Transient("status 503")

    def failures() -> list[object]:
        return [found for found in gc.get_objects() if isinstance(found, (FetchError, Transient))]

    gc.collect()
    gc.disable()
    try:
        others = failures()  # what tests before this one still hold
        with contextlib.suppress(FetchError):
            retrying(call, "x", (0, 1), replace(FAST, deadline=0.01), ReadCounters())
        assert not [found for found in failures() if not any(found is other for other in others)]
    finally:
        gc.enable()


def test_permanent_errors_are_not_retried() -> None:
    for error, kind in ((Permanent("status 403"), FetchError), (FileNotFoundError("x"), FileNotFoundError)):
        store = Scripted(fail(error))
        with pytest.raises(kind):
            read(store)
        assert store.calls == 1


def test_a_changed_object() -> None:
    counters = ReadCounters()
    fetcher = Fetcher(Scripted(lambda a: RangeResponse(DATA[:4], version="v0")), FAST, counters)
    fetcher.read("x", 0, 4)
    with pytest.raises(FetchError, match="has changed: v1 found, v0 expected"):
        fetcher.read("x", 4, 8)
    fetcher.close()


def test_wrong_bytes_twice() -> None:
    def verify(response: RangeResponse) -> None:
        raise WrongBytes(KeyError("corrupt"))

    store = Scripted()
    with pytest.raises(KeyError, match="corrupt"):
        read(store, verify=verify)
    assert store.calls == 2


def test_wrong_bytes_once() -> None:
    def verify(response: RangeResponse) -> None:
        if response.data != DATA[10:100]:
            raise WrongBytes(KeyError("corrupt"))

    data, counters = read(Scripted(lambda a: RangeResponse(bytes(90))), verify=verify)
    assert (data, counters.mismatches, counters.retries) == (DATA[10:100], 1, 1)


HEDGED = replace(FAST, hedge_after=0.01, hedge_share=1.0)


def test_hedge_wins_and_the_loser_is_cancelled() -> None:
    data, counters = read(Scripted(hang), HEDGED)  # closing would hang with it
    assert data == DATA[10:100]
    assert (counters.requests, counters.hedges, counters.hedge_wins, counters.retries) == (2, 1, 1, 0)


def test_failed_hedge_is_harmless() -> None:
    def slow(attempt: Attempt) -> None:
        time.sleep(0.1)

    data, counters = read(Scripted(slow, fail(Transient("status 503"))), HEDGED)
    assert data == DATA[10:100]
    assert counters.hedges >= 1
    assert counters.retries == 0


def test_a_failed_hedge_is_followed_by_another() -> None:
    """Otherwise a hanging request would take its full timeout once its hedge has failed."""
    data, counters = read(Scripted(hang, fail(Transient("status 503"))), HEDGED)
    assert data == DATA[10:100]
    assert (counters.hedges, counters.hedge_wins, counters.retries) == (2, 1, 0)


def test_both_fail_then_a_retry_works() -> None:
    def slow_failure(attempt: Attempt) -> None:
        time.sleep(0.05)
        raise Transient("late")

    early = fail(Transient("early"))
    data, counters = read(Scripted(slow_failure, early, early), replace(HEDGED, hedge_share=0))  # two hedges, no more
    assert data == DATA[10:100]
    assert counters.retries >= 1


def test_a_wrong_first_response_does_not_win() -> None:
    def verify(response: RangeResponse) -> None:
        if response.data != DATA[10:100]:
            raise WrongBytes(KeyError("corrupt"))

    def slow(attempt: Attempt) -> None:
        time.sleep(0.1)

    data, _ = read(Scripted(slow, lambda a: RangeResponse(bytes(90))), HEDGED, verify)
    assert data == DATA[10:100]


def test_hedges_are_a_small_share() -> None:
    """A slow server does not get twice the load."""
    counters = ReadCounters()
    store = Scripted(*[lambda attempt: time.sleep(0.004)] * 60)
    fetcher = Fetcher(store, replace(HEDGED, hedge_share=0.1), counters)
    fetcher.hedge_delay = lambda size: 0.0  # type: ignore[method-assign]
    for _ in range(30):
        fetcher.read("x", 0, 4)
    fetcher.close()
    assert 2 <= counters.hedges <= 2 + 3


def test_hedge_delay_is_the_95th_percentile() -> None:
    fetcher = Fetcher(Scripted(), replace(HEDGED, hedge_after=0.5), ReadCounters())
    for i in range(100):
        fetcher._note(1000, i / 10, False)
    assert fetcher.hedge_delay(1000) == 9.5
    assert fetcher.hedge_delay(1_000_000) == 0.5  # no history for this size
    fetcher.close()


def test_close_ends_waiting_reads() -> None:
    fetcher = Fetcher(Scripted(hang), FAST, ReadCounters())
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            fetcher.read("x", 0, 4)
        except FetchError as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not fetcher._stop._running:
        time.sleep(0.001)
    fetcher.close()
    thread.join()
    assert len(failures) == 1
    with pytest.raises(FetchError, match="closed"):
        fetcher.read("x", 0, 4)


def test_retry_after_never_exceeds_the_longest_delay() -> None:
    calls = []

    def call(until: float) -> int:
        calls.append(until)
        if len(calls) < 3:
            raise Transient("status 429", retry_after=3600)
        return 7

    assert retrying(call, "x", (0, 1), FAST, ReadCounters()) == 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:secret@host/a", "https://host/a"),
        ("GET https://host/a?X-Goog-Signature=secret&b=secret: reset", "GET https://host/a reset"),
        ("at 'https://host/a?sig=secret' and https://u@host/b", "at 'https://host/a' and https://host/b"),
        ("nothing@all?", "nothing@all"),
    ],
)
def test_errors_carry_no_secrets(text: str, expected: str) -> None:
    assert without_secrets(text) == expected
    error = FetchError("u", (0, None), 1, 0.5, ConnectionError(text))
    assert str(error) == f"u: bytes 0 to the end: 1 attempt in 0.5 s failed; last: ConnectionError: {expected}"


@pytest.mark.parametrize("name", ["deadline", "connect_timeout", "read_timeout", "first_delay", "max_delay"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_params(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}: .* given"):
        FetchParams(**{name: value})


def test_hedge_params() -> None:
    with pytest.raises(ValueError, match="hedge_after: -1 given"):
        FetchParams(hedge_after=-1)
    with pytest.raises(ValueError, match="hedge_share: 2 given"):
        FetchParams(hedge_share=2)


def test_close_wakes_readers_with_queued_attempts() -> None:
    """One slot for three reads: two wait for it. The deadline is longer than the test's time limit."""
    started = threading.Event()

    def slow_to_notice(attempt: Attempt) -> None:
        cancelled = threading.Event()
        with attempt.abortable(cancelled.set):
            started.set()
            assert cancelled.wait(30)
            time.sleep(0.2)  # the others still wait when the pool shuts down
            attempt.check()

    fetcher = Fetcher(Scripted(slow_to_notice), FetchParams(deadline=900, hedge_after=0), ReadCounters(), most=1)
    with ThreadPoolExecutor(3) as pool:
        reads = [pool.submit(fetcher.read, "x", i, i + 1) for i in range(3)]
        assert started.wait(30)
        until = time.monotonic() + 30
        while len(fetcher.pace._changed[True]._waiters) < 2:  # type: ignore[attr-defined]
            assert time.monotonic() < until
            time.sleep(0.002)
        fetcher.close()
        for read in reads:
            assert isinstance(read.exception(), FetchError)
