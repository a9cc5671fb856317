"""Prefetching of a stream's next items: one background thread, a bounded queue.

Handing an item from thread to thread costs some 20 us, more on a busy machine. A caller that returns sooner than that
has no work to overlap with, so while it calls back to back it makes its items itself, as if there were no thread.

A source yields whole items, for a stream `(batch, state after it)`. The caller takes the state together with the batch,
so items that were made ahead and never delivered do not count.
"""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

BACK_TO_BACK_NS = 50_000  # a caller that returns sooner has no work to overlap with
BACK_TO_BACK_CALLS = 8  # in a row before the caller makes its own items: more than the micro-batches of most steps
POLL_SECONDS = 0.005  # between the thread's checks whether the caller has stopped calling back to back

UNLOCKED = ("release unlocked lock", "cannot release un-acquired lock")  # CPython's words
FINISHED = "prefetch: closed, interrupted or ended by an error; create a new one from the state of the last delivery"


class Delivery(NamedTuple, Generic[T]):
    """An item, how long the caller waited for it, how long it was ready before it was requested (0 if waited), and how
    much of the wait another thread was making items."""

    item: T
    wait_ns: int
    lead_ns: int
    queue_ns: int = 0


class Prefetcher(Generic[T]):
    """Iterates over `source` on its own thread, at most `depth` finished items ahead.

    An item that is not yet being made when it is requested, and every item while the caller calls back to back, is made
    on the caller's thread. Items are never made concurrently.

    Items arrive in order, each once. An exception of the source is raised unchanged, with its traceback, by the `next`
    that would have delivered its item; all earlier items are delivered first. After that, after an interrupt
    (KeyboardInterrupt while waiting) and after `close` the prefetcher is finished: `next` raises RuntimeError, not
    StopIteration, which would look like the end of the data. Create a new one from the last delivery's state.

    The thread starts with the first `next`, so a prefetcher may be created before a fork. It ends with the source, with
    `close`, when the last reference to the prefetcher is dropped, or with the process. For the third, `source` must not
    refer to the owner of the prefetcher. `close` waits for the item that is being made. A source that reuses buffers
    needs depth + 3 of them: ready, being made, delivered, and the caller's last.

    depth 0 makes every item on request, without a thread. Raises ValueError for a negative depth. Cost: two thread
    switches per item, some 20 us of CPU time; 1 us while the caller calls back to back.
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
            self._start()
        if self._channel.forked:
            raise RuntimeError(
                "prefetch: this process was forked after the first item; create the prefetcher in the child"
            )
        return self._channel.take()

    def _start(self) -> None:
        """Start the thread. An interrupt in Thread.start leaves one that cannot be joined, or never begins: it is told
        to stop and left to itself."""
        thread = threading.Thread(target=_work, args=self._channel.worker(), name="prefetch", daemon=True)
        try:
            thread.start()
            self._thread = thread
        except BaseException as error:  # noqa: BLE001 - it or its cause is raised
            self._channel.stop()
            raise _cause(error) from None

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
    """State shared by thread and prefetcher. It refers to neither, so a dropped prefetcher can be collected."""

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self.source: Iterator[T] | None = source
        self.depth = depth
        self.stopped = False
        self.pid = 0  # of the process in which the thread runs
        # Reentrant: the garbage collector may call stop in any thread. Taken without the condition's own methods: an
        # interrupt at the entry of one of these would leave it taken.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ready: deque[tuple[T, int]] = deque()
        self._over: BaseException | None = None  # what ended the source: StopIteration or its error
        self._maker = 0  # ident of the thread that is running the source
        self._waiting = 0  # callers that wait for the item that the thread is making
        self._full = False  # the thread waits for room
        self._left = 0  # when the caller got its last item, perf_counter_ns
        self._back_to_back = 0  # calls in a row less than BACK_TO_BACK_NS after the previous item

    def worker(self) -> "tuple[_Channel[T], Iterator[T]]":
        """Arguments of the thread."""
        if self.source is None:
            raise RuntimeError(FINISHED)
        return self, self.source

    def begin(self) -> bool:
        """In the thread: wait until an item is to be made. False: stop."""
        with self._lock:
            while not self.stopped and self._over is None:
                self._full = len(self._ready) - self._waiting >= self.depth  # each waiting caller takes one
                if not (self._full or self._maker or self._is_back_to_back()):
                    self._maker = threading.get_ident()
                    return True
                self._changed.wait(None if self._full else POLL_SECONDS)
            return False

    def _is_back_to_back(self) -> bool:
        """Whether the caller will probably return before the thread could hand it an item."""
        if self._back_to_back < BACK_TO_BACK_CALLS:
            return False
        return time.perf_counter_ns() - self._left < BACK_TO_BACK_NS

    def put(self, item: T) -> None:
        """In the thread: add a finished item."""
        with self._lock:
            self._maker = 0
            if not self.stopped:
                self._ready.append((item, time.perf_counter_ns()))
            if self._waiting or self.stopped:
                self._changed.notify_all()

    def finish(self, reason: BaseException) -> None:
        with self._lock:
            self._maker = 0
            self._over = reason
            self._changed.notify_all()

    @property
    def forked(self) -> bool:
        """Whether this is a child of the process in which the thread runs. The lock may be held forever here."""
        return self.pid not in (0, os.getpid())

    def stop(self) -> None:
        if self.forked:
            return
        with self._lock:
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
        except BaseException as error:
            with self._lock:
                if self._maker == threading.get_ident():
                    self._maker = 0
                self.stop()
            if _cause(error) is not error:
                raise _cause(error) from None
            raise

    def _take_ready(self, asked: int) -> Delivery[T] | None:
        """The next item once the thread has made it. None: the caller has to make it."""
        with self._lock:
            self._back_to_back = self._back_to_back + 1 if asked - self._left < BACK_TO_BACK_NS else 0
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
            if self._full or self._back_to_back < BACK_TO_BACK_CALLS:
                self._changed.notify_all()
            self._left = now = time.perf_counter_ns()
        return Delivery(item, now - asked, 0, now - asked) if ready > asked else Delivery(item, 0, asked - ready)

    def _raise_over(self) -> None:
        reason, self._over = self._over, StopIteration()
        try:
            if reason is not None:
                raise reason
        finally:
            del reason  # its traceback refers to this frame

    def _make(self, asked: int) -> Delivery[T]:
        if self.stopped or self.source is None:
            raise RuntimeError(FINISHED)
        queued = time.perf_counter_ns() - asked if self.depth else 0
        try:
            item = next(self.source)
        except StopIteration:
            self.finish(StopIteration())
            raise
        now = time.perf_counter_ns()
        if self.depth:
            with self._lock:
                self._left, self._maker = now, 0
                if self._back_to_back < BACK_TO_BACK_CALLS or self._waiting or self.stopped:
                    self._changed.notify_all()
        return Delivery(item, now - asked, 0, queued)

    def wait_for_maker(self) -> bool:
        """Wait until no thread runs the source. False: the current thread runs it."""
        try:
            with self._lock:
                while self._maker not in (0, threading.get_ident()):
                    self._changed.wait()
                return not self._maker
        except RuntimeError as error:
            raise _cause(error) from None

    def close_source(self) -> None:
        source, self.source = self.source, None
        close = getattr(source, "close", None)
        if close is not None:
            close()


def _cause(error: BaseException) -> BaseException:
    """The KeyboardInterrupt of which threading.Condition, where it comes while the lock is given back, makes an error
    of that lock; otherwise the error itself."""
    interrupt = error.__context__
    return interrupt if isinstance(interrupt, KeyboardInterrupt) and str(error) in UNLOCKED else error


def _work(channel: _Channel[T], source: Iterator[T]) -> None:
    """The thread's function. It refers to the channel, never to the prefetcher."""
    try:
        while channel.begin():
            channel.put(next(source))
    except StopIteration:
        channel.finish(StopIteration())
    except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
        channel.finish(error)
