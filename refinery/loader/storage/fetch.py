"""Range reads over a network: each with a deadline and jittered backoff.

A store makes one attempt (`RangeStore.get`) and reports how it failed: `Transient` errors may be retried, `Permanent`
ones not. Deadlines and retries are implemented here, concurrency and hedging in refinery.loader.storage.fetcher.

Backoff is "full jitter": a uniform share of a delay that doubles (Brooker, "Exponential backoff and jitter", AWS 2015).
"""

import contextlib
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Protocol, TypeVar

from refinery.loader.arguments import number

T = TypeVar("T")

_log = logging.getLogger("refinery.loader")


class FetchError(OSError):
    """A range could not be read. The message has the file, the range, the attempts, the seconds and the last cause."""

    def __init__(self, what: str, span: tuple[int, int | None], attempts: int, seconds: float, cause: object) -> None:
        text = _describe(cause)
        end = "the end" if span[1] is None else span[1]
        tried = f"{attempts} attempt{'s' * (attempts > 1)} in {seconds:.1f} s"
        super().__init__(f"{what}: bytes {span[0]} to {end}: {tried} failed; last: {text}")
        self.what, self.span, self.attempts, self.cause = what, span, attempts, cause


def _describe(cause: object) -> str:
    own = isinstance(cause, (Transient, Permanent)) or not isinstance(cause, Exception)
    # http.client quotes what the server sent, up to a line of 64 KiB.
    return without_secrets(str(cause) if own else f"{type(cause).__name__}: {cause}")[:500]


class Transient(Exception):
    """One attempt failed; another may succeed. retry_after: seconds that the server asked for. refused: it asks for
    fewer requests (429, 503)."""

    def __init__(self, cause: object, retry_after: float = 0.0, refused: bool = False) -> None:
        super().__init__(_describe(cause))
        self.retry_after, self.refused = retry_after, refused


class WrongBytes(Transient):
    """A response does not match its checksum. It is retried once, then `final` is raised."""

    def __init__(self, final: Exception) -> None:
        super().__init__(final)
        self.final = final


class Permanent(Exception):
    """Retrying cannot help."""

    def __init__(self, cause: object) -> None:
        super().__init__(_describe(cause))


def without_secrets(text: str) -> str:
    """`text` with user names, passwords and query strings removed from its URLs."""
    return re.sub(r"(?<=://)[^/\s@'\"]*@", "", re.sub(r"\?[^\s'\")]*", "", text))


@dataclass(frozen=True)
class FetchParams:
    """Timeouts, retries and hedging of range reads.

    deadline: seconds for one range, all attempts together; each may take a third of it. connect_timeout, read_timeout:
    seconds without progress after which an attempt is aborted. first_delay, max_delay: of the backoff, in seconds.
    hedge_after: minimum seconds before a second request, 0 to disable hedging. hedge_share: second requests allowed per
    first request.
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
        """Longest duration of one attempt, even if it makes slow, steady progress."""
        return self.deadline / 3

    def __post_init__(self) -> None:
        for name in ("deadline", "connect_timeout", "read_timeout", "first_delay", "max_delay"):
            number(name, getattr(self, name), "a number above 0", lambda seconds: seconds > 0)
        number("hedge_after", self.hedge_after, "0 (never) or more", lambda seconds: seconds >= 0)
        number("hedge_share", self.hedge_share, "0 to 1", lambda share: 0 <= share <= 1)


@dataclass
class ReadCounters:
    """What reading has cost so far: plain integers, shared by all threads of a source.

    requests: sent, including retries and hedges. bytes: of good responses. waits: reads that waited for another thread
    or process to fetch their block. bypasses: blocks read without being cached. repairs: cached blocks found damaged.
    mismatches: responses that did not match their checksum. cache_errors: failed writes to the cache. prefetch_errors:
    announced blocks whose prefetch failed. prefetch_dropped: announced blocks that did not fit into the queue.
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
    prefetch_dropped: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **amounts: int) -> None:
        with self._lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)

    def after_fork(self) -> None:
        """In a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def snapshot(self) -> dict[str, int]:
        """A consistent copy of all counters."""
        with self._lock:
            return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}


@dataclass(frozen=True, slots=True)
class RangeResponse:
    """The bytes of a range. size, version, crc32c: of the whole object; None or "" if the server does not send them."""

    data: bytes | bytearray | memoryview
    size: int | None = None
    version: str = ""
    crc32c: str = ""


class Attempt:
    """The time limits of one attempt; `cancel` ends it from another thread."""

    def __init__(self, params: FetchParams, until: float) -> None:
        self.params = params
        self.until = until
        self._cancelled = False
        self._abort: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise Transient if the attempt was cancelled or has timed out. Stores call it between pieces of data."""
        if self._cancelled:
            raise Transient("cancelled")
        if time.monotonic() > self.until:
            raise Transient("too slow: the deadline has passed")

    @contextlib.contextmanager
    def abortable(self, abort: Callable[[], None]) -> Iterator[None]:
        """While inside, `cancel` calls `abort` (which shuts the socket down, so a blocked read returns)."""
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


@contextlib.contextmanager
def timed(params: FetchParams, until: float) -> Iterator[Attempt]:
    """An attempt that is cancelled when its time is over. until: of the whole operation, as time.monotonic()."""
    now = time.monotonic()
    attempt = Attempt(params, min(until, now + params.attempt_seconds))
    # Stores check the time between pieces of a response; the timer also bounds the wait for the first piece.
    timer = threading.Timer(attempt.until - now, attempt.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield attempt
    finally:
        timer.cancel()


class Stop:
    """Ends reads permanently, from another thread: running attempts are cancelled, later ones do not start."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._running: set[Attempt] = set()
        self._lock = threading.Lock()

    def add(self, attempt: Attempt) -> None:
        """Register an attempt that starts. Raises Permanent after `set`."""
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

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> RangeResponse:
        """Bytes [start, stop) in one attempt, fewer only if the object ends earlier. version: that of an earlier
        response, which the object must still have; "" for any.

        Raises Transient, Permanent, or FileNotFoundError if there is no such object.
        """


def retrying(
    call: Callable[[float], T], what: str, span: tuple[int, int | None], params: FetchParams, counters: ReadCounters,
    stopped: threading.Event | None = None,
) -> T:  # fmt: skip
    """Call `call(until)` until it succeeds. Raises FetchError after `params.deadline` seconds or for Permanent errors.

    After a second WrongBytes its `final` error is raised.
    """
    stopped = stopped or threading.Event()
    started = time.monotonic()
    until = started + params.deadline
    attempts = wrong = 0
    cause: Transient | None = None
    while True:
        attempts += 1
        try:
            return call(until)
        except Permanent as error:
            raise FetchError(what, span, attempts, time.monotonic() - started, error) from error
        except WrongBytes as error:
            wrong += 1
            counters.add(mismatches=1)
            if wrong > 1:
                raise error.final from None
            cause = error
        except Transient as error:
            if cause is None or time.monotonic() < until:  # one that the deadline cut short says nothing
                cause = error
        # Its traceback refers to this frame, which refers to it: a cycle that would hold the data of a failed response.
        cause.__traceback__ = None
        limit = min(params.max_delay, params.first_delay * 2 ** min(attempts - 1, 30))
        # Retry-After is a minimum, capped at the longest backoff.
        delay = min(cause.retry_after, params.max_delay) + random.uniform(0, limit)  # noqa: S311 - jitter
        if time.monotonic() + delay >= until or stopped.wait(delay):
            raise FetchError(what, span, attempts, time.monotonic() - started, cause) from cause
        if attempts == 1:
            _log.warning("%s: %s; retrying for up to %.0f s", what, _describe(cause), params.deadline)
        counters.add(retries=1)
