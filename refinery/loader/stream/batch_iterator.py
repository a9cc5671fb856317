"""Handing out batches: the position of a stream moves exactly if its caller gets the batch.

That holds under interrupts, in threads that share a stream, and in forked children.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from refinery.loader.errors import InternalError
from refinery.loader.order.arrays import I64, TokenBatch
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.stream.assemble import Contents, PreparedBatch
from refinery.loader.stream.left_out import LeftOuts
from refinery.loader.stream.prefetch import Prefetcher
from refinery.loader.stream.schedule import Schedule, StepPlan
from refinery.loader.stream.telemetry import Telemetry
from refinery.loader.stream.usage import Usage

_Made = tuple[Any, StepPlan, int, int, tuple[StepPlan, ...]]  # batch, plan, position after it, skip, plans passed


class BatchIterator(ABC):
    """An iterator over batches, in the order of a schedule, from a position on.

    Cost: a lock and some attributes, less than a microsecond per batch.
    """

    def __init__(self, schedule: Schedule, worker: int) -> None:
        self._schedule, self._worker = schedule, worker
        self._padding = 0  # places of padding delivered
        self._delivered: I64 = np.zeros(4, np.int64)  # of packed rows, as Contents
        self._left_out = LeftOuts()
        self._counters = ReadCounters()
        self._telemetry = Telemetry()
        self._usage = Usage(schedule.domains)
        self._epoch = self._position = 0
        self._skip = worker  # steps from the position to this worker's next one
        self._plan: StepPlan | None = None  # of the last batch delivered
        self._passed: tuple[StepPlan, ...] = ()  # plans before it of which `_usage` has not counted all
        self._made: _Made | None = None  # the next batch while it is being delivered
        self._lock = threading.RLock()  # reentrant: a signal handler may ask for the state
        self._batches: Prefetcher[PreparedBatch] | None = None
        self._over = self._closed = False
        self._taking = False  # still true when `next` starts: the previous `next` failed
        self._process = os.getpid()

    @abstractmethod
    def _start(self) -> Prefetcher[PreparedBatch]:
        """Batches from the position on."""

    @abstractmethod
    def close(self) -> None:
        """Stop the threads and close files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}: cannot be pickled or copied; create one from the same arguments and load its "
            "state_dict"
        )

    def _note_delivery(self, contents: Contents | None) -> None:
        """Count what is in packed rows; for streams that count more, too."""
        if contents is not None:
            self._delivered = self._delivered + np.array(contents)

    def _forget_parent(self) -> None:
        """In a forked child: replace what else belongs to the parent."""
        return

    def __iter__(self) -> Iterator[TokenBatch]:
        """Returns itself: a second loop continues after the last batch delivered."""
        return self

    def __next__(self) -> TokenBatch:
        if self._process != os.getpid():
            self._after_fork()
        found: _Made | None = None
        batch: TokenBatch
        while found is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
            # From here on without a call, at which alone another thread or a KeyboardInterrupt can come between: the
            # position moves exactly if the caller gets the batch.
            found = self._made
            if found is not None:
                batch, self._plan, self._position, self._skip, self._passed, self._made = *found, None
                self._epoch = self._plan.epoch
        return batch

    def _make(self) -> _Made:
        """The next batch, and where the stream is after it."""
        if self._closed:
            raise RuntimeError("stream: closed")
        if self._plan is not None and (self._passed or self._position == self._plan.stop):
            self._count()
        if self._over:
            raise StopIteration
        if self._taking:
            self._restart()
        if self._batches is None:
            self._batches = self._start()
        self._taking = True
        batch, passed, last, planned = None, self._passed, self._plan, 0
        while batch is None:
            try:
                made, wait, lead, queued = self._batches.take()
            except StopIteration:
                self._over, self._taking, self._passed, self._plan = True, False, passed, last
                if last is not None:  # other workers of this rank delivered the rest
                    self._epoch, self._position = last.epoch, last.stop
                self._count()
                raise
            except ValueError as error:
                if type(error) is not ValueError:  # a FormatError, or what a codec of the caller's raised
                    raise
                where = f"epoch {self._epoch}, position {self._position}"
                raise InternalError(f"the batch after {where}", error) from error
            batch, plan, step, skip, read, assemble, padding, left, places, *times, contents = made
            decode, enrichment, staging, planning = times
            planned += planning
            if plan is not last:
                passed, last = passed if last is None else (*passed, last), plan
        if passed:
            self._telemetry.total(self._counters.snapshot())
        self._padding += padding
        if left:
            self._left_out.add(left)
        self._note_delivery(contents)
        places = plan.mine.shape[1] * self._schedule.domains[0].length if places is None else places
        shape = batch["input_ids"].shape
        self._telemetry.record(
            places, read, decode, assemble, 0, wait, lead, enrichment, staging, queued, planned, shape
        )
        position = min(plan.start + (step + 1) * plan.step, plan.stop)
        self._taking = False  # no call from here on, as in __next__
        return batch, plan, position, skip, passed

    def _restart(self) -> None:
        """After an error or an interrupt: continue after the last batch delivered."""
        self._halt()
        self._count()
        self._plan, self._made, self._taking = None, None, False

    def _after_fork(self) -> None:
        """In a forked child: threads and locks are the parent's, connections are shared with it."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._batches, self._made, self._taking = None, None, True
        self._lock = threading.RLock()  # another thread may have held it
        self._counters.after_fork()
        self._forget_parent()

    def _halt(self) -> None:
        if self._batches is not None:
            self._batches.close()
            self._batches = None

    def _count(self) -> None:
        """Bring the usage counters up to the position. Interrupted, it can be repeated."""
        while self._passed:
            self._usage.add(self._passed[0], self._passed[0].stop)
            self._passed = self._passed[1:]
        if self._plan is not None:
            self._usage.add(self._plan, self._position)

    def _move_to(self, epoch: int, position: int, digests: Sequence[int] | None) -> None:
        self._halt()
        counts = zip(self._schedule.domains, self._schedule.reached(epoch, position), strict=True)
        reached = [(int(begun), int(place)) for begun, place in (domain.at(count) for domain, count in counts)]
        self._usage.restore(reached, digests, (epoch, position))
        self._plan, self._passed, self._made = None, (), None
        self._epoch, self._position, self._skip = epoch, position, self._worker
        self._left_out = LeftOuts()
        self._over = self._taking = False

    @property
    def telemetry(self) -> Telemetry:
        """Times of every step, and counters of reading (refinery.loader.storage.fetch.ReadCounters)."""
        self._after_fork()
        self._telemetry.total(
            self._counters.snapshot() | {"padding": self._padding, "damaged_tokens": self._left_out.tokens}
        )
        return self._telemetry
