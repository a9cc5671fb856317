"""Figures of a run on their way out: a bounded queue, and a thread that alone speaks to the service.

A service that fails or is slow costs the run nothing but a warning: what does not fit is left out, and at the end of a
run at most END_SECONDS are waited for.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from refinery.pipelines.progress.measure import Snapshot
from refinery.pipelines.progress.output import LINE_SECONDS, Output, current
from refinery.pipelines.progress.track.figures import of_corpus, of_snapshot
from refinery.pipelines.progress.track.tracker import Tracker, check_kind, open_tracker

MOST_WAITING = 32  # sets of figures
END_SECONDS = 15.0  # for what waits when a run has ended


@dataclass
class Tracking:
    """One run, followed. open: makes the tracker, in the thread. say: receives the one warning.

    Used by the command's own threads; none of the methods raises or waits, but `end` for END_SECONDS.
    """

    open: Callable[[], Tracker]
    say: Callable[[str], None]
    every: float = LINE_SECONDS
    patience: float = END_SECONDS
    _waiting: "queue.Queue[Mapping[str, float] | bool]" = field(default_factory=lambda: queue.Queue(MOST_WAITING))
    _next: float = 0.0
    _failed: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True, name="tracker")
        self._thread.start()

    def follow(self, kind: str, snapshot: Snapshot) -> None:
        """A job runs, or has ended. kind: as of events."""
        now = time.monotonic()
        if kind == "ended" or now >= self._next:
            self._next = now + self.every
            self._put(of_snapshot(snapshot))

    def final(self, totals: Mapping[str, int], funnel: Any) -> None:
        """What the manifest says."""
        self._put(of_corpus(totals, funnel))

    def end(self, is_done: bool) -> None:
        """The run has ended; what waits is sent, for a bounded time."""
        self._put(is_done)
        self._thread.join(self.patience)
        if self._thread.is_alive():
            self._warn(f"it does not answer within {self.patience:g} seconds; its last figures may be missing there")

    def _put(self, item: "Mapping[str, float] | bool") -> None:
        """The newest counts: where the queue is full the oldest set of figures gives way."""
        while True:
            try:
                self._waiting.put_nowait(item)
                return
            except queue.Full:
                with contextlib.suppress(queue.Empty):
                    self._waiting.get_nowait()

    def _run(self) -> None:
        try:
            tracker, step = self.open(), 0
            while not isinstance(item := self._waiting.get(), bool):
                tracker.log(item, step)
                step += 1
            tracker.end(item)
        except BaseException as error:  # noqa: BLE001 - no service may end a run, whatever its library raises
            # The class alone: messages of libraries hold addresses, and some of them keys.
            self._warn(f"{type(error).__name__} is raised; the run goes on without it")

    def _warn(self, why: str) -> None:
        with self._lock:
            if self._failed:
                return
            self._failed = True
        with contextlib.suppress(Exception):
            self.say(f"warning: --track: {why}")


@contextlib.contextmanager
def tracking(name: str, say: Callable[[str], None], output: Output | None = None) -> Iterator[Tracking | None]:
    """Follow the jobs of this context. name: of KINDS, "" for none. Raises ValueError where it is not installed."""
    if not name:
        yield None
        return
    kind, output = check_kind(name), output or current()
    tracked = Tracking(lambda: open_tracker(kind), say)
    output.followers.append(tracked.follow)
    is_done = False
    try:
        yield tracked
        is_done = True
    finally:
        output.followers.remove(tracked.follow)
        tracked.end(is_done)
