"""Range reads over a network: each with a deadline, jittered backoff, and a second request where the first is slow.

A store makes one attempt (`RangeStore.get`) and says how it failed: `Transient` may be tried again, `Permanent` may
not. Everything else about patience is here.

Backoff is "full jitter": a uniform share of a delay that doubles (Brooker, "Exponential backoff and jitter", AWS 2015).
Hedging: when an answer takes longer than 19 of 20 of its size do, a second request starts; the first good answer wins
and the other is cancelled (Dean and Barroso, "The tail at scale", CACM 2013).
"""

import contextlib
import logging
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, fields
from typing import Protocol, TypeVar

T = TypeVar("T")

_log = logging.getLogger("refinery.loader")

_LOG = 128  # durations remembered for each size
_ENOUGH = 16  # of them before their 95th percentile means something


class FetchError(OSError):
    """A range could not be read. The message has the file, the range, the attempts, the seconds and the last cause."""

    def __init__(self, what: str, span: tuple[int, int | None], attempts: int, seconds: float, cause: object) -> None:
        text = _describe(cause)
        end = "its end" if span[1] is None else span[1]
        tried = f"{attempts} attempt{'s' * (attempts > 1)} in {seconds:.1f} s"
        super().__init__(f"{what}: bytes {span[0]} to {end}: {tried} failed; last: {text}")
        self.what, self.span, self.attempts, self.cause = what, span, attempts, cause


def _describe(cause: object) -> str:
    own = isinstance(cause, (Transient, Permanent)) or not isinstance(cause, Exception)
    # A server may send a line of 64 KiB, and http.client repeats it.
    return without_secrets(str(cause) if own else f"{type(cause).__name__}: {cause}")[:500]


class Transient(Exception):
    """One attempt failed, another may not. retry_after: seconds that the server asked for."""

    def __init__(self, cause: object, retry_after: float = 0.0) -> None:
        super().__init__(_describe(cause))
        self.retry_after = retry_after


class WrongBytes(Transient):
    """The bytes of an answer are not those that its checksum names. Tried once more, then `final` is raised."""

    def __init__(self, final: Exception) -> None:
        super().__init__(final)
        self.final = final


class Permanent(Exception):
    """No further attempt can help."""

    def __init__(self, cause: object) -> None:
        super().__init__(_describe(cause))


def without_secrets(text: str) -> str:
    """`text` without what URLs in it may carry beside host and path: user names, passwords, query strings."""
    return re.sub(r"(?<=://)[^/\s@'\"]*@", "", re.sub(r"\?[^\s'\")]*", "", text))


@dataclass(frozen=True)
class FetchParams:
    """deadline: seconds for one range, all attempts together; one of them may take a third of it. connect_timeout,
    read_timeout: seconds without progress after which an attempt is given up. first_delay, max_delay: of the backoff,
    in seconds. hedge_after: the least seconds before a second request, 0 for none at all. hedge_share: second requests
    allowed per first request.
    """

    deadline: float = 120.0
    connect_timeout: float = 10.0
    read_timeout: float = 20.0
    first_delay: float = 0.2
    max_delay: float = 10.0
    hedge_after: float = 0.5
    hedge_share: float = 0.1

    @property
    def attempt_seconds(self) -> float:
        """The longest that one attempt may take, however steadily it trickles."""
        return self.deadline / 3

    def __post_init__(self) -> None:
        for name in ("deadline", "connect_timeout", "read_timeout", "first_delay", "max_delay"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ValueError(f"{name}: {value} given, a number above 0 is allowed")
        if not 0 <= self.hedge_after < float("inf"):
            raise ValueError(f"hedge_after: {self.hedge_after} given, 0 (never) or more is allowed")
        if not 0 <= self.hedge_share <= 1:
            raise ValueError(f"hedge_share: {self.hedge_share} given, 0 to 1 is allowed")


@dataclass
class Counters:
    """What reading has cost so far. Plain integers, shared by all threads of a source.

    requests: sent, retries and hedges included. bytes: of good answers. waits: reads that waited for another thread or
    process to fetch their block. bypasses: blocks read without being cached. repairs: cached blocks found damaged.
    mismatches: answers with other bytes than their checksum. cache_errors: failed writes to the cache. prefetch_errors:
    announced blocks that could not be fetched ahead. unheeded: announced blocks beyond the queue's length.
    """

    requests: int = 0
    bytes: int = 0
    retries: int = 0
    hedges: int = 0
    hedge_wins: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    evictions: int = 0
    waits: int = 0
    bypasses: int = 0
    repairs: int = 0
    mismatches: int = 0
    cache_errors: int = 0
    prefetch_errors: int = 0
    unheeded: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **amounts: int) -> None:
        with self._lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)

    def after_fork(self) -> None:
        """In a child: the lock may have been held by a thread of the parent."""
        self._lock = threading.Lock()

    def snapshot(self) -> dict[str, int]:
        """All counters at one moment."""
        with self._lock:
            return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}


@dataclass(frozen=True, slots=True)
class Answer:
    """size, version, crc32c: of the whole object, None or "" where the server does not tell."""

    data: bytes | bytearray
    size: int | None = None
    version: str = ""
    crc32c: str = ""


class Attempt:
    """The limits of one attempt; `cancel` ends it from another thread."""

    def __init__(self, params: FetchParams, until: float) -> None:
        self.params = params
        self.until = until
        self._cancelled = False
        self._abort: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise Transient when the attempt was cancelled or its time is over. Stores call it between pieces."""
        if self._cancelled:
            raise Transient("cancelled")
        if time.monotonic() > self.until:
            raise Transient("too slow: the deadline has passed")

    @contextlib.contextmanager
    def abortable(self, abort: Callable[[], None]) -> Iterator[None]:
        """While inside, `cancel` calls `abort` (which shuts a socket down, so that a blocked read returns)."""
        with self._lock:
            self._abort = abort
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._abort = None

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._abort is not None:
                self._abort()


class Stop:
    """Ends reads from another thread, for good: attempts on their way are cancelled, later ones do not begin."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._running: set[Attempt] = set()
        self._lock = threading.Lock()

    def add(self, attempt: Attempt) -> None:
        """An attempt begins. Raises Permanent after `set`."""
        with self._lock:
            if self.event.is_set():
                raise Permanent("closed")
            self._running.add(attempt)

    def discard(self, attempt: Attempt) -> None:
        with self._lock:
            self._running.discard(attempt)

    def set(self) -> None:
        self.event.set()
        with self._lock:
            running = list(self._running)
        for attempt in running:
            attempt.cancel()


class RangeStore(Protocol):
    def url(self, name: str) -> str: ...

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> Answer:
        """Bytes [start, stop) in one attempt, fewer only where the object ends before. version: that of an earlier
        answer, which the object must still have; "" for any.

        Raises Transient or Permanent, FileNotFoundError where there is no such object.
        """


def retrying(
    call: Callable[[float], T], what: str, span: tuple[int, int | None], params: FetchParams, counters: Counters,
    stopped: threading.Event | None = None,
) -> T:  # fmt: skip
    """`call(until)` until it succeeds. Raises FetchError after `params.deadline` seconds or for Permanent causes.

    Of two answers with wrong bytes the second's `final` error is raised.
    """
    stopped = stopped or threading.Event()
    began = time.monotonic()
    until = began + params.deadline
    attempts = wrong = 0
    while True:
        attempts += 1
        try:
            return call(until)
        except Permanent as error:
            raise FetchError(what, span, attempts, time.monotonic() - began, error) from error
        except WrongBytes as error:
            wrong += 1
            counters.add(mismatches=1)
            if wrong > 1:
                raise error.final from None
            cause: Transient = error
        except Transient as error:
            cause = error
        limit = min(params.max_delay, params.first_delay * 2 ** min(attempts - 1, 30))
        # Retry-After is a floor, but never a reason to sleep beyond the longest backoff.
        delay = min(cause.retry_after, params.max_delay) + random.uniform(0, limit)  # noqa: S311 - jitter
        if time.monotonic() + delay >= until or stopped.wait(delay):
            raise FetchError(what, span, attempts, time.monotonic() - began, cause) from cause
        if attempts == 1:
            _log.warning("%s: %s; trying again for up to %.0f s", what, _describe(cause), params.deadline)
        counters.add(retries=1)


class Fetcher:
    """Reads ranges of one store, several at a time. `threads`: attempts that may be on their way together."""

    def __init__(self, store: RangeStore, params: FetchParams, counters: Counters, threads: int = 16) -> None:
        self._store = store
        self._params = params
        self._counters = counters
        self._pool = ThreadPoolExecutor(threads, "refinery-fetch")
        self._stop = Stop()
        self._lock = threading.Lock()
        self._reads = self._hedges = 0
        self._durations: dict[int, deque[float]] = {}
        self._versions: dict[str, str] = {}

    def read(self, name: str, start: int, stop: int, verify: Callable[[Answer], None] | None = None) -> Answer:
        """Exactly the bytes [start, stop) of `name`. `verify` raises what makes an answer no good; it runs in a thread
        of the pool.

        Raises FetchError, FileNotFoundError, or what `verify` names in WrongBytes.
        """

        def judge(answer: Answer) -> None:
            if verify is not None:
                verify(answer)
            if len(answer.data) != stop - start:
                raise Transient(f"{len(answer.data)} bytes found, {stop - start} expected")

        span = (start, stop)
        answer = retrying(
            lambda until: self._hedged(name, span, judge, until),
            self._store.url(name), span, self._params, self._counters, self._stop.event,
        )  # fmt: skip
        self._counters.add(bytes=len(answer.data))
        return answer

    def close(self) -> None:
        """Cancel what is on its way and join all threads; reads that wait raise FetchError."""
        self._stop.set()
        # Those that have not begun end by themselves. Cancelled futures would not wake whoever waits for them.
        self._pool.shutdown()

    def hedge_delay(self, size: int) -> float:
        """Seconds after which a second request for `size` bytes is due: 95th percentile, at least `hedge_after`."""
        with self._lock:
            seen = sorted(self._durations.get(size.bit_length(), ()))
        return max(self._params.hedge_after, seen[int(0.95 * len(seen))] if len(seen) >= _ENOUGH else 0.0)

    def _hedged(self, name: str, span: tuple[int, int], judge: Callable[[Answer], None], until: float) -> Answer:
        began = time.monotonic()
        attempts = {self._start(name, span, judge, until)}
        first = next(iter(attempts))[1]
        self._reads += 1
        size = span[1] - span[0]
        delay = self.hedge_delay(size)
        due = began + delay
        failure: Exception = Transient("the deadline has passed")
        try:
            while attempts:
                now = time.monotonic()
                hedging = self._params.hedge_after > 0 and len(attempts) < 2
                patience = min(until, due) - now if hedging else until - now
                done, _ = wait([future for _, future in attempts], max(0.0, patience), FIRST_COMPLETED)
                if self._stop.event.is_set():
                    raise Permanent("closed")
                for pair in [pair for pair in attempts if pair[1] in done]:
                    attempts.discard(pair)
                    error = pair[1].exception()
                    if error is None:
                        self._note(size, time.monotonic() - began, pair[1] is not first)
                        return pair[1].result()
                    if not isinstance(error, Transient):
                        raise error
                    failure = error
                if not done and time.monotonic() >= until:
                    break
                if not done and hedging:
                    delay *= 2  # for the next one, if this one fails while the first still hangs
                    due = time.monotonic() + delay
                    if self._may_hedge():
                        attempts.add(self._start(name, span, judge, until))
            raise failure
        finally:
            for attempt, _ in attempts:
                attempt.cancel()

    def _may_hedge(self) -> bool:
        """A slow server must not get twice the load: hedges stay a small share of all reads."""
        with self._lock:
            allowed = self._hedges < 2 + self._params.hedge_share * self._reads
            self._hedges += allowed
        self._counters.add(hedges=int(allowed))
        return allowed

    def _note(self, size: int, seconds: float, hedge_won: bool) -> None:
        self._counters.add(hedge_wins=int(hedge_won))
        with self._lock:
            self._durations.setdefault(size.bit_length(), deque(maxlen=_LOG)).append(seconds)

    def _start(
        self, name: str, span: tuple[int, int], judge: Callable[[Answer], None], until: float
    ) -> "tuple[Attempt, Future[Answer]]":
        attempt = Attempt(self._params, min(until, time.monotonic() + self._params.attempt_seconds))

        def run() -> Answer:
            try:
                attempt.check()
                self._counters.add(requests=1)
                answer = self._store.get(name, *span, attempt, self._versions.get(name, ""))
                judge(answer)
                # One version of an object for as long as this fetcher lives: blocks of two would not fit together.
                if self._versions.setdefault(name, answer.version) != answer.version:
                    raise Permanent(f"the object has changed: {answer.version} found, {self._versions[name]} expected")
                return answer
            finally:
                self._stop.discard(attempt)

        self._stop.add(attempt)
        try:
            return attempt, self._pool.submit(run)
        except RuntimeError:
            raise Permanent("closed") from None
