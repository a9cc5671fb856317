"""Prefetching of announced blocks, in the background and in order of need."""

import random
import threading
import time
from collections import deque
from collections.abc import Sequence

from refinery.loader.read.remote.blocks import SHORT, BlockReader, RemoteParams
from refinery.loader.read.remote.remote_file import RemoteFile
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.pace import FIRST

_QUEUE = 1 << 16  # groups of blocks in the queue at most: half a TiB at the defaults
_ALONE = 16  # ranges of an announcement that are fetched as they are; later ones wait for their neighbours
_RETRIES = 12  # times that a group is put back because another process is fetching some of it: 2 s
_LONGEST_PAUSE = 0.25  # seconds between two of these times


class _Entry:
    """Blocks of a file, ascending and in one group, that are fetched together. tries: so far."""

    __slots__ = ("blocks", "file", "tries")

    def __init__(self, file: RemoteFile, blocks: tuple[int, ...]) -> None:
        self.file, self.blocks, self.tries = file, blocks, 0


class ReadAhead:
    """Threads that fetch announced blocks in order of need, urgent reads before them.

    The first ranges of an announcement are fetched as they are, since a reader is about to need them. Later ones join
    those of the same group that are still in the queue, at the place of the first: one request for neighbouring blocks
    instead of one for each.
    """

    def __init__(self, reader: BlockReader, params: RemoteParams, counters: ReadCounters) -> None:
        self._reader = reader
        self._params = params
        self._counters = counters
        self._queue: deque[_Entry] = deque()
        self._joining: dict[tuple[str, int], _Entry] = {}  # (file, group) -> what later blocks of it join
        self._queued: set[tuple[str, int]] = set()  # (file, block) in the queue
        self._turn = threading.Lock()  # of the thread that waits for the next entry: others need not wake up for it
        self._lock = threading.Lock()  # taken without the condition's methods: see prefetch.py
        self._changed = threading.Condition(self._lock)
        self._stopped = False
        self._urgent_since = float("inf")  # time.monotonic() since when the first readers have been waiting
        self._yielded = False  # whether these have what they waited for
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def add(self, groups: Sequence[tuple[RemoteFile, tuple[int, ...]]]) -> None:
        alone = _ALONE
        with self._lock:
            for file, blocks in groups:
                new = tuple(block for block in blocks if (file.id, block) not in self._queued)
                if not new:
                    continue
                key = file.id, new[0] // self._params.group
                joined = self._joining.get(key)
                if joined is not None and alone <= 0:
                    joined.blocks = tuple(sorted((*joined.blocks, *new)))
                elif len(self._queue) >= _QUEUE:
                    self._counters.add(prefetch_dropped=len(new))
                    continue
                else:
                    entry = _Entry(file, new)
                    self._queue.append(entry)
                    if alone <= 0:
                        self._joining[key] = entry
                    alone -= 1
                self._queued.update((file.id, block) for block in new)
            self._changed.notify_all()
        self._start_threads()

    def _start_threads(self) -> None:
        """As many as requests may be in flight; after an interrupt, what is missing of them."""
        if not self._starting.acquire(blocking=False):
            return
        try:
            while self._queue and not self._stopped and len(self._threads) < self._reader.most_in_flight:
                number = len(self._threads)
                name = f"refinery-ahead-{number}"
                thread = threading.Thread(target=self._work, args=(number,), name=name, daemon=True)
                thread.start()
                self._threads.append(thread)
        finally:
            self._starting.release()

    def discard(self, file: RemoteFile, block: int) -> None:
        """The block is no longer needed."""
        with self._lock:
            self._queued.discard((file.id, block))

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._changed.notify_all()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _work(self, number: int) -> None:
        started = False
        while True:
            with self._turn, self._lock:
                self._changed.wait_for(lambda: self._stopped or self._queue)
                while self._long_next() and self._yields() and not self._stopped:
                    self._changed.wait(0.005)
                if self._stopped:
                    return
                if not self._queue:
                    continue
                stagger = self._long_next() and not started
                if not stagger:
                    entry = self._queue.popleft()
                    file = entry.file
                    if self._joining.get(key := (file.id, entry.blocks[0] // self._params.group)) is entry:
                        del self._joining[key]
                    blocks = tuple(block for block in entry.blocks if (file.id, block) in self._queued)
            if stagger:
                # Spread the first large requests of a process's threads and of a job's processes over time.
                started = True
                self._pause(self._params.stagger * (number % FIRST + random.random()))  # noqa: S311 - jitter
                continue
            if not blocks:
                continue
            fetched = True
            try:
                fetched = self._reader.fetch_ahead(file, blocks)
            except Exception:  # noqa: BLE001 - prefetching is optional: a reader of the block gets the error
                self._counters.add(prefetch_errors=1)
            again = not fetched and entry.tries < _RETRIES
            if again:
                self._pause(min(0.01 * 2**entry.tries, _LONGEST_PAUSE))
            with self._lock:
                if again:
                    entry.blocks, entry.tries = blocks, entry.tries + 1
                    self._queue.appendleft(entry)  # it is older than what is in the queue
                    self._changed.notify_all()
                else:
                    self._queued.difference_update((file.id, block) for block in blocks)
            if number == 0:
                self._start_threads()

    def _yields(self) -> bool:
        """Whether long runs wait for readers: the first go before them, for `peer_wait` seconds at most. Later ones
        have requests of their own, and what holds the runs back for them makes more readers wait."""
        if self._yielded or not self._reader.urgent:
            self._yielded |= self._urgent_since < float("inf")
            return False
        now = time.monotonic()
        self._urgent_since = min(self._urgent_since, now)
        self._yielded = now >= self._urgent_since + self._params.peer_wait
        return not self._yielded

    def _long_next(self) -> bool:
        return bool(self._queue) and len(self._queue[0].blocks) > SHORT

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._lock:
            self._changed.wait_for(lambda: self._stopped or time.monotonic() >= until, seconds)
