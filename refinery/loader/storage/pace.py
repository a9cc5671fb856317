"""How many requests a process has in flight: more while the server answers, half as many when it asks for less.

Additive increase and multiplicative decrease (Chiu and Jain 1989, "Analysis of the increase and decrease algorithms
for congestion avoidance in computer networks"), with TCP's slow start: one more for every answer, until the server
first answers 429 or 503; from then on one more for as many answers as are in flight. What is in flight is bounded in
bytes, too: 64 MiB are what a line of 10 Gbit/s has on its way in 50 ms, and more of them would only take memory.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST = 8  # requests in flight at the beginning
MOST_BYTES = 64 << 20  # in flight, but for a single request
_CALM = 1.0  # seconds in which many refusals count as one: they are answers to the same burst


class Pace:
    """Slots for requests. Safe to share between threads. most: of each class at once, whatever the server answers."""

    def __init__(self, most: int) -> None:
        self._most, self._limit = most, float(min(FIRST, most))
        self._slow_start = True
        self._running = {True: 0, False: 0}  # urgent or not -> requests
        self._bytes = 0
        self._refused = -_CALM  # when it was last
        self._not_before = 0.0
        self._stopped = False
        self._lock = threading.Lock()
        # One of those that wait is woken for each that may start, and wakes the next: all of them, for every answer,
        # would cost more than the answer.
        self._changed = {urgent: threading.Condition(self._lock) for urgent in self._running}

    @property
    def limit(self) -> int:
        """Requests of each class that may be in flight now."""
        return int(self._limit)

    @contextmanager
    def slot(self, size: int, urgent: bool, until: float) -> Iterator[None]:
        """Wait until a request for `size` bytes may be sent; it is in flight until the end of the block.

        urgent: somebody waits for it. As many urgent ones may be in flight as others, so they need not wait for
        these, and not bounded in bytes. until: time.monotonic() from which on, as after `stop`, nothing waits.
        """
        changed = self._changed[urgent]
        with self._lock:
            while not (self._stopped or self._may_start(size, urgent)) and (now := time.monotonic()) < until:
                changed.wait(min(until, self._not_before if self._not_before > now else until) - now)
            self._running[urgent] += 1
            self._bytes += 0 if urgent else size
            changed.notify()
        try:
            yield
        finally:
            with self._lock:
                self._running[urgent] -= 1
                self._bytes -= 0 if urgent else size
                changed.notify()

    def _may_start(self, size: int, urgent: bool) -> bool:
        if time.monotonic() < self._not_before or self._running[urgent] >= self.limit:
            return False
        return urgent or not self._bytes or self._bytes + size <= MOST_BYTES

    def answered(self) -> None:
        """A request was answered as it should be."""
        with self._lock:
            if self._limit < self._most:
                self._limit = min(self._most, self._limit + (1 if self._slow_start else 1 / self._limit))
                for changed in self._changed.values():
                    changed.notify()

    def refused(self, retry_after: float) -> None:
        """The server asks for fewer requests, and for none in the next `retry_after` seconds."""
        with self._lock:
            now = time.monotonic()
            self._not_before = max(self._not_before, now + retry_after)
            if now - self._refused >= _CALM:
                self._limit = max(1.0, self._limit / 2)
                self._refused, self._slow_start = now, False

    def stop(self) -> None:
        """Nobody waits from here on."""
        with self._lock:
            self._stopped = True
            for changed in self._changed.values():
                changed.notify_all()
