"""The next item is made while the caller works on this one: one background thread, a bounded queue.

A source yields whole items, for a stream `(batch, state after it)`. The caller takes over the state together with the
batch, so what was made ahead and never delivered is not counted.
"""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

FINISHED = "prefetch: closed, interrupted or ended by an error; make a new one from the state of the last delivery"


class Delivery(NamedTuple, Generic[T]):
    """An item, how long the caller waited for it, and how long it lay ready before it was asked for (0 if waited)."""

    item: T
    wait_ns: int
    lead_ns: int


class Prefetcher(Generic[T]):
    """Iterates over `source` on a thread of its own, at most `depth` finished items ahead.

    Items arrive in order, each once. An exception of the source is raised by the `next` that would have delivered its
    item, as itself and with the traceback of the thread; all items before it are delivered first. After that, after an
    interrupt (KeyboardInterrupt while waiting) and after `close` the prefetcher is finished: `next` raises RuntimeError
    and not StopIteration, which would look like the end of the data. Make a new one from the last delivery's state.

    The thread starts with the first `next`, so a prefetcher may be made before a fork. It ends with the source, by
    `close`, when the last reference to the prefetcher goes, or with the process. For the third, `source` must not refer
    to whatever owns the prefetcher. `close` waits until the item in the making is done. A source that reuses buffers
    needs depth + 3 of them: ready, in the making, delivered, and the caller's last.

    depth 0 makes every item when it is asked for, without a thread. Raises ValueError for a negative depth. Cost: two
    thread switches per item, 20 to 40 us where neither side has anything else to do.
    """

    def __init__(self, source: Iterator[T], depth: int = 1) -> None:
        if depth < 0:
            raise ValueError(f"depth: {depth} given, 0 or more is allowed")
        self._channel = _Channel(source, depth)
        self._thread: threading.Thread | None = None
        self._end = weakref.finalize(self, self._channel.stop)

    def __iter__(self) -> "Prefetcher[T]":
        return self

    def __next__(self) -> T:
        return self.take().item

    def take(self) -> Delivery[T]:
        """The next item and its times. Raises StopIteration at the end of the source, RuntimeError when finished."""
        if self._thread is None and self._channel.depth and not self._channel.stopped:
            self._channel.pid = os.getpid()
            self._thread = threading.Thread(target=_work, args=self._channel.worker(), name="prefetch", daemon=True)
            self._thread.start()
        if self._channel.forked:
            raise RuntimeError("prefetch: this process was forked after the first item; make the prefetcher in it")
        try:
            return self._channel.take()
        except StopIteration:
            raise
        except BaseException:
            self._channel.stop()
            raise

    def close(self) -> None:
        """Stop the thread, wait for it, and close the source if it can be closed. A second call does nothing."""
        self._channel.stop()
        if not self._channel.forked and self._thread is not threading.current_thread():
            if self._thread is not None:
                self._thread.join()
            self._channel.close_source()

    def __enter__(self) -> "Prefetcher[T]":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Channel(Generic[T]):
    """What thread and prefetcher share. It knows neither, so that dropping the prefetcher is noticed."""

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self.source: Iterator[T] | None = source
        self.depth = depth
        self.stopped = False
        self.pid = 0  # of the process that has the thread
        self._changed = threading.Condition(threading.RLock())  # stop may be run by the collector, in any thread
        self._ready: deque[tuple[T, int]] = deque()
        self._over: BaseException | None = None  # what ended the source: StopIteration, or its error

    def worker(self) -> "tuple[_Channel[T], Iterator[T]]":
        """What the thread runs on."""
        if self.source is None:
            raise RuntimeError(FINISHED)
        return self, self.source

    def put(self, item: T) -> bool:
        """Queue an item, once there is room. False: no more is wanted."""
        with self._changed:
            self._ready.append((item, time.perf_counter_ns()))
            self._changed.notify_all()
            while len(self._ready) >= self.depth and not self.stopped:
                self._changed.wait()
            return not self.stopped

    def finish(self, reason: BaseException) -> None:
        with self._changed:
            self._over = reason
            self._changed.notify_all()

    @property
    def forked(self) -> bool:
        """Whether this is a child of the process that has the thread. The lock may be held here for ever."""
        return self.pid not in (0, os.getpid())

    def stop(self) -> None:
        if self.forked:
            return
        with self._changed:
            self.stopped = True
            self._ready.clear()
            self._changed.notify_all()

    def take(self) -> Delivery[T]:
        asked = time.perf_counter_ns()
        if self.depth == 0:
            return self._make(asked)
        with self._changed:
            while not self._ready:
                if self.stopped:
                    raise RuntimeError(FINISHED)
                if self._over is not None:
                    self._raise_over()
                self._changed.wait()
            item, ready = self._ready.popleft()
            self._changed.notify_all()
        now = time.perf_counter_ns()
        return Delivery(item, now - asked, 0) if ready > asked else Delivery(item, 0, asked - ready)

    def _raise_over(self) -> None:
        reason, self._over = self._over, StopIteration()
        try:
            if reason is not None:
                raise reason
        finally:
            del reason  # its traceback holds this frame

    def _make(self, asked: int) -> Delivery[T]:
        if self.stopped or self.source is None:
            raise RuntimeError(FINISHED)
        item = next(self.source)
        return Delivery(item, time.perf_counter_ns() - asked, 0)

    def close_source(self) -> None:
        source, self.source = self.source, None
        close = getattr(source, "close", None)
        if close is not None:
            close()


def _work(channel: _Channel[T], source: Iterator[T]) -> None:
    """The thread: it holds the channel, never the prefetcher."""
    try:
        for item in source:
            if not channel.put(item):
                return
            del item  # the caller's alone now
        channel.finish(StopIteration())
    except BaseException as error:  # noqa: BLE001 - raised again, in the thread that asks
        channel.finish(error)
