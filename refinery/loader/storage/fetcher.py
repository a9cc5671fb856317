"""Concurrent range reads: hedged, retried (refinery.loader.storage.fetch), and no faster than the server wants.

Hedging: when a response takes longer than the 95th percentile for its size, a second request is sent; the first good
response wins and the other request is cancelled (Dean and Barroso, "The tail at scale", CACM 2013).
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from refinery.loader.storage.fetch import (
    Attempt,
    FetchParams,
    Permanent,
    RangeResponse,
    RangeStore,
    ReadCounters,
    Stop,
    Transient,
    retrying,
)
from refinery.loader.storage.pace import Pace

_HISTORY = 128  # durations kept for each size class
_ENOUGH = 16  # of them before their 95th percentile is used


class Fetcher:
    """Reads ranges of one store concurrently. most: reads of each class, urgent or not, in flight at once, and a hedge
    for each of them (refinery.loader.storage.pace)."""

    def __init__(self, store: RangeStore, params: FetchParams, counters: ReadCounters, most: int = 8) -> None:
        self.pace = Pace(most)
        self._store = store
        self._params = params
        self._counters = counters
        self._pool = ThreadPoolExecutor(4 * most, "refinery-fetch")
        self._stop = Stop()
        self._lock = threading.Lock()
        self._reads = self._hedges = 0
        self._durations: dict[int, deque[float]] = {}
        self._versions: dict[str, str] = {}

    def read(
        self,
        name: str,
        start: int,
        stop: int,
        verify: Callable[[RangeResponse], None] | None = None,
        urgent: bool = True,
    ) -> RangeResponse:
        """Exactly the bytes [start, stop) of `name`. verify: raises Transient or WrongBytes for a bad response; it runs
        in a thread of the pool. urgent: somebody waits for it.

        Raises FetchError, FileNotFoundError, or the error inside `verify`'s WrongBytes.
        """

        def check(response: RangeResponse) -> None:
            if verify is not None:
                verify(response)
            if len(response.data) != stop - start:
                raise Transient(f"{len(response.data)} bytes found, {stop - start} expected")

        span = (start, stop)

        def once(until: float) -> RangeResponse:
            with self.pace.slot(stop - start, urgent, until):
                try:
                    response = self._hedged(name, span, check, until)
                except Transient as error:
                    if error.refused:
                        self.pace.refused(min(error.retry_after, self._params.max_delay))
                    raise
            self.pace.answered()
            return response

        response = retrying(
            once,
            self._store.url(name), span, self._params, self._counters, self._stop.event,
        )  # fmt: skip
        self._counters.add(bytes=len(response.data))
        return response

    def close(self) -> None:
        """Cancel all attempts and join all threads; waiting reads raise FetchError."""
        self._stop.set()
        self.pace.stop()
        # Queued attempts end at their first check. Cancelling their futures would not wake the threads that wait.
        self._pool.shutdown()

    def hedge_delay(self, size: int) -> float:
        """Seconds after which a second request for `size` bytes is sent: 95th percentile, at least `hedge_after`."""
        with self._lock:
            seen = sorted(self._durations.get(size.bit_length(), ()))
        return max(self._params.hedge_after, seen[int(0.95 * len(seen))] if len(seen) >= _ENOUGH else 0.0)

    def _hedged(
        self, name: str, span: tuple[int, int], check: Callable[[RangeResponse], None], until: float
    ) -> RangeResponse:
        started = time.monotonic()
        attempts = {self._start(name, span, check, until)}
        first = next(iter(attempts))[1]
        self._reads += 1
        size = span[1] - span[0]
        delay = self.hedge_delay(size)
        due = started + delay
        failure: Exception = Transient("the deadline has passed")
        try:
            while attempts:
                now = time.monotonic()
                hedging = self._params.hedge_after > 0 and len(attempts) < 2
                timeout = min(until, due) - now if hedging else until - now
                done, _ = wait([future for _, future in attempts], max(0.0, timeout), FIRST_COMPLETED)
                if self._stop.event.is_set():
                    raise Permanent("closed")
                for pair in [pair for pair in attempts if pair[1] in done]:
                    attempts.discard(pair)
                    error = pair[1].exception()
                    if error is None:
                        self._note(size, time.monotonic() - started, pair[1] is not first)
                        return pair[1].result()
                    if not isinstance(error, Transient):
                        raise error
                    failure = error
                if not done and time.monotonic() >= until:
                    break
                if not done and hedging:
                    delay *= 2  # for the next hedge, if this one fails while the first request hangs
                    due = time.monotonic() + delay
                    if self._may_hedge():
                        attempts.add(self._start(name, span, check, until))
            raise failure
        finally:
            for attempt, _ in attempts:
                attempt.cancel()

    def _may_hedge(self) -> bool:
        """Hedges stay a small share of all reads, so a slow server does not get twice the load."""
        with self._lock:
            allowed = self._hedges < 2 + self._params.hedge_share * self._reads
            self._hedges += allowed
        self._counters.add(hedges=int(allowed))
        return allowed

    def _note(self, size: int, seconds: float, hedge_won: bool) -> None:
        self._counters.add(hedge_wins=int(hedge_won))
        with self._lock:
            self._durations.setdefault(size.bit_length(), deque(maxlen=_HISTORY)).append(seconds)

    def _start(
        self, name: str, span: tuple[int, int], check: Callable[[RangeResponse], None], until: float
    ) -> "tuple[Attempt, Future[RangeResponse]]":
        attempt = Attempt(self._params, min(until, time.monotonic() + self._params.attempt_seconds))

        def run() -> RangeResponse:
            try:
                attempt.check()
                self._counters.add(requests=1)
                response = self._store.get(name, *span, attempt, self._versions.get(name, ""))
                check(response)
                # A fetcher reads one version of an object only: blocks of two versions cannot be combined.
                if self._versions.setdefault(name, response.version) != response.version:
                    found, expected = response.version, self._versions[name]
                    raise Permanent(f"the object has changed: {found} found, {expected} expected")
                return response
            finally:
                self._stop.discard(attempt)

        self._stop.add(attempt)
        try:
            return attempt, self._pool.submit(run)
        except RuntimeError:
            raise Permanent("closed") from None
