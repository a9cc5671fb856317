"""The next item is made while the caller works on this one: one background thread, a bounded queue.

To hand an item from thread to thread costs some 20 us, more on a busy machine. A caller that comes back sooner than
that has no work to overlap with, so it makes its items itself, as if there were no thread, for as long as it hurries.

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

HURRY_NS = 50_000  # a caller that comes back sooner hurries
HURRIES = 8  # times in a row, until it is taken to go on like that: more than the micro-batches of most steps
NAP = 0.005  # seconds between two looks of the thread whether a caller that hurried stays away now

FINISHED = "prefetch: closed, interrupted or ended by an error; make a new one from the state of the last delivery"


class Delivery(NamedTuple, Generic[T]):
    """An item, how long the caller waited for it, and how long it lay ready before it was asked for (0 if waited)."""

    item: T
    wait_ns: int
    lead_ns: int


class Prefetcher(Generic[T]):
    """Iterates over `source` on a thread of its own, at most `depth` finished items ahead. What nobody makes yet when
    it is asked for, and everything while the caller hurries, is made on the caller's thread: never two at a time.

    Items arrive in order, each once. An exception of the source is raised by the `next` that would have delivered its
    item, as itself and with its own traceback; all items before it are delivered first. After that, after an
    interrupt (KeyboardInterrupt while waiting) and after `close` the prefetcher is finished: `next` raises RuntimeError
    and not StopIteration, which would look like the end of the data. Make a new one from the last delivery's state.

    The thread starts with the first `next`, so a prefetcher may be made before a fork. It ends with the source, by
    `close`, when the last reference to the prefetcher goes, or with the process. For the third, `source` must not refer
    to whatever owns the prefetcher. `close` waits until the item in the making is done. A source that reuses buffers
    needs depth + 3 of them: ready, in the making, delivered, and the caller's last.

    depth 0 makes every item when it is asked for, without a thread. Raises ValueError for a negative depth. Cost: two
    thread switches per item, some 20 us of CPU time; 1 us while the caller hurries.
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
        return self._channel.take()

    def close(self) -> None:
        """Stop the thread, wait for it, and close the source if it can be closed. A second call does nothing."""
        self._channel.stop()
        if not self._channel.forked and self._channel.wait_for_maker():
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
        self._maker = 0  # ident of the thread that runs the source at the moment
        self._waiting = 0  # callers, for what the thread is making
        self._full = False  # the thread waits for room
        self._left = 0  # when the caller went away with an item, perf_counter_ns
        self._hurries = 0  # times in a row that it came back at once

    def worker(self) -> "tuple[_Channel[T], Iterator[T]]":
        """What the thread runs on."""
        if self.source is None:
            raise RuntimeError(FINISHED)
        return self, self.source

    def begin(self) -> bool:
        """For the thread: wait until it is to make an item. False: no more is wanted."""
        with self._changed:
            while not self.stopped and self._over is None:
                self._full = len(self._ready) - self._waiting >= self.depth  # who waits takes one for sure
                if not (self._full or self._maker or self._hurried()):
                    self._maker = threading.get_ident()
                    return True
                self._changed.wait(None if self._full else NAP)
            return False

    def _hurried(self) -> bool:
        """Whether the caller is likely to be back before an item could be handed to it."""
        return self._hurries >= HURRIES and time.perf_counter_ns() - self._left < HURRY_NS

    def put(self, item: T) -> None:
        """From the thread: the item is made."""
        with self._changed:
            self._maker = 0
            if not self.stopped:
                self._ready.append((item, time.perf_counter_ns()))
            if self._waiting or self.stopped:
                self._changed.notify_all()

    def finish(self, reason: BaseException) -> None:
        with self._changed:
            self._maker = 0
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
        try:
            found = self._take_ready(asked) if self.depth else None
            return self._make(asked) if found is None else found
        except StopIteration:
            raise
        except BaseException:
            with self._changed:
                if self._maker == threading.get_ident():
                    self._maker = 0
                self.stop()
            raise

    def _take_ready(self, asked: int) -> Delivery[T] | None:
        """The next item, when the thread has made it. None: the caller is to make it, now."""
        with self._changed:
            self._hurries = self._hurries + 1 if asked - self._left < HURRY_NS else 0
            while not self._ready:
                if self.stopped:
                    raise RuntimeError(FINISHED)
                if self._over is not None:
                    self._raise_over()
                if not self._maker:
                    self._maker = threading.get_ident()
                    return None
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1
            item, ready = self._ready.popleft()
            if self._full or self._hurries < HURRIES:
                self._changed.notify_all()
            self._left = now = time.perf_counter_ns()
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
        try:
            item = next(self.source)
        except StopIteration:
            self.finish(StopIteration())
            raise
        now = time.perf_counter_ns()
        if self.depth:
            with self._changed:
                self._left, self._maker = now, 0
                if self._hurries < HURRIES or self._waiting or self.stopped:
                    self._changed.notify_all()
        return Delivery(item, now - asked, 0)

    def wait_for_maker(self) -> bool:
        """Until nobody runs the source. False: this very thread does."""
        with self._changed:
            while self._maker not in (0, threading.get_ident()):
                self._changed.wait()
            return not self._maker

    def close_source(self) -> None:
        source, self.source = self.source, None
        close = getattr(source, "close", None)
        if close is not None:
            close()


def _work(channel: _Channel[T], source: Iterator[T]) -> None:
    """The thread: it holds the channel, never the prefetcher."""
    try:
        while channel.begin():
            channel.put(next(source))
    except StopIteration:
        channel.finish(StopIteration())
    except BaseException as error:  # noqa: BLE001 - raised again, in the thread that asks
        channel.finish(error)
