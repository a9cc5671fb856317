"""What a `for` loop over a stream delivers, how many batches that is, and how to restart or to skip some."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refinery.loader.arguments import whole
from refinery.loader.order.arrays import TokenBatch
from refinery.loader.order.batch_stages import BatchStage, Steps
from refinery.loader.order.mixing import Mixture
from refinery.loader.order.order import OrderParams
from refinery.loader.read.samples import Domain
from refinery.loader.stream.batch_iterator import BatchIterator
from refinery.loader.stream.options import no_attribute
from refinery.loader.stream.origins import RowIds
from refinery.loader.stream.schedule import Schedule
from refinery.loader.stream.usage import Usage
from refinery.loader.view.opened import OpenedCorpus

LOOPS = ("continue", "epoch", "restart")


@dataclass(frozen=True, slots=True)
class Loop:
    """One meaning of a loop, for the stream and for every adapter, with any number of worker processes.

    how: "continue", a loop goes on where the last one ended, to the end of all epochs; "epoch", it goes on, too, but
    ends with the epoch; "restart", every loop starts again, with the same batches. epochs: number of epochs, None
    for no end. length: positions of an epoch, or of a whole mixture; None for a mixture without end. step: positions
    of a step. mixed: there are weights, so one sequence instead of epochs. first: positions of the first epoch, if that
    is another number. ramp: sizes of steps, where they change; `step` is then the last one.

    Raises ValueError for another `how`, and for "epoch" with weights. "restart" without epochs is one epoch.
    """

    how: str
    epochs: int | None
    length: int | None
    step: int
    mixed: bool = False
    first: int | None = None
    ramp: Steps | None = None

    def __post_init__(self) -> None:
        if self.how not in LOOPS:
            raise ValueError(f"loop: {self.how!r} given, {', '.join(LOOPS)} is allowed")
        if self.mixed and self.how == "epoch":
            raise ValueError(
                "loop: 'epoch' given with weights, 'continue' or 'restart' is allowed: domains have their own"
            )
        if self.mixed or (self.epochs is None and self.how == "restart"):
            object.__setattr__(self, "epochs", 1)

    def length_of(self, epoch: int) -> int | None:
        """Positions of this epoch."""
        return self.length if epoch or self.first is None else self.first

    def count(self, epoch: int, position: int = 0) -> int:
        """Batches from a position to the end of its epoch, for each rank."""
        length = self.length_of(epoch) or 0
        if self.ramp is None:
            return -(-(length - position) // self.step)
        before = self._before(epoch)
        return self.ramp.count(before + position, before + length)

    def _before(self, epoch: int) -> int:
        """Positions of all epochs before this one."""
        return 0 if not epoch else (self.length_of(0) or 0) + (epoch - 1) * (self.length or 0)

    def _count_epochs(self, first: int, stop: int) -> int:
        """Batches of these epochs."""
        found, ends = 0, 0 if self.ramp is None else self.ramp.ramp_ends
        while first < stop and (not first or self._before(first) < ends):
            found, first = found + self.count(first), first + 1
        return found + (stop - first) * self.count(max(first, 1)) if first < stop else found

    def steps_per_epoch(self, epoch: int) -> int | None:
        """Batches of a whole epoch for each rank; of this one, where batch sizes change; of a mixture with an end, of
        all of it. None without end."""
        if self.length is None:
            return None
        return -(-self.length // self.step) if self.ramp is None else self.count(epoch)

    def steps(self, epoch: int) -> int | None:
        """Batches of a whole loop, from its beginning; `epoch`: as of steps_per_epoch. None without end."""
        if self.how == "epoch":
            return self.steps_per_epoch(epoch)
        return None if self.epochs is None or self.length is None else self._count_epochs(0, self.epochs)

    def at(self, epoch: int, position: int) -> tuple[int, int]:
        """The same position, with an epoch's end as the next one's beginning."""
        return (epoch + 1, 0) if not self.mixed and position == self.length_of(epoch) else (epoch, position)

    def is_beyond(self, epoch: int, position: int) -> bool:
        """Whether the position is after the end of all epochs."""
        if self.mixed or self.epochs is None:
            return False
        return self.at(epoch, position) > (self.epochs, 0)

    def limit(self, epoch: int, position: int) -> int | None:
        """The epoch before which a loop ends that begins here; None for never, and with weights."""
        if self.mixed:
            return None
        if self.how != "epoch":
            return self.epochs
        following = self.at(epoch, position)[0] + 1
        return following if self.epochs is None else min(following, self.epochs)

    def steps_left(self, epoch: int, position: int) -> int | None:
        """Batches from here to the end of the loop, for each rank; None without end."""
        if self.length is None:
            return None
        epoch, position = self.at(epoch, position)
        limit = 1 if self.mixed else self.limit(epoch, position)
        if limit is None:
            return None
        return 0 if epoch >= limit else self.count(epoch, position) + self._count_epochs(epoch + 1, limit)


@dataclass(frozen=True)
class Arranger:
    """Makes what follows from the sizes of shards: schedule, the meaning of a loop, numbers of rows.

    opened: what is read. length: of a sample. ranks: rank, world_size, batch_size. ids: which of the arrays of RowIds
    batches have. pack: domains of packed rows from shards, where there are such. carry: the domains with a first epoch
    that has what another stream left over, where there is one. The rest as of TokenStream.
    """

    opened: OpenedCorpus
    length: int
    seed: int
    order: OrderParams
    ranks: tuple[int, int, int | Sequence[BatchStage]]
    weights: Any
    epochs: int | None
    loop: str
    ids: Mapping[str, bool]
    subset: int | float | None = None
    pack: Callable[..., list[Domain]] | None = None
    carry: Callable[..., list[Domain]] | None = None
    shuffle: bool = True

    def __call__(
        self, shards: Sequence[Any], filled: Callable[[Sequence[Domain]], list[int]]
    ) -> tuple[Schedule, Loop, RowIds]:
        """filled: places of each domain that are tokens."""
        params = self.opened.mixing(self.weights, self.epochs)
        mixed, mixture = params is not None, None
        if self.pack is not None:
            domains = self.pack(shards, mixed=mixed)
        else:
            domains = self.opened.domains(shards, self.length, mixed, self.subset)
        if self.carry is not None:
            domains = self.carry(domains, self.opened, shards)
        if params is not None:
            sizes, names = [domain.samples for domain in domains], [domain.name for domain in domains]
            first = [domain.first for domain in domains]
            mixture = Mixture(names, sizes, self.length, self.seed, params, filled(domains), first)
        names_of_ranks = dict(zip(("rank", "world_size", "batch_size"), self.ranks, strict=True))
        shape = {"order": self.order, "seed": self.seed, "shuffle": self.shuffle}
        schedule = Schedule(domains, mixture, **shape, **names_of_ranks)  # type: ignore[arg-type] # by name
        ramp = schedule.steps if len(schedule.steps.batch_sizes) > 1 else None
        first_length = None if mixture is not None or domains[0].first == domains[0].samples else domains[0].first
        looped = Loop(self.loop, self.epochs, schedule.length, schedule.step, mixture is not None, first_length, ramp)
        return schedule, looped, RowIds(domains, self.opened.names(shards), **self.ids)


class LoopedBatches(BatchIterator):
    """A BatchIterator whose `for` loops have one of the meanings of `Loop`."""

    def __init__(self, *args: Any, loop: Loop, workers: int) -> None:
        super().__init__(*args)
        self._loop, self._workers = loop, workers
        self._placed = True  # the next loop begins at the position, also with "restart"

    def __iter__(self) -> Iterator[TokenBatch]:
        """A loop goes on after the last batch delivered; with loop="restart" it begins anew, except right after
        `load_state_dict` or `skip` to a place inside of it."""
        if self._loop.how == "restart":
            if not self._placed or (self.steps_left == 0 and not self._closed):  # an end is a beginning, loaded too
                self.restart()
            self._placed = False
            return iter(self.__next__, None)  # so that iter() of the iterator does not begin anew
        if (
            self._loop.how == "epoch"
            and (self._over or self._position == self._loop.length_of(self._epoch))
            and not self._closed
        ):
            with self._lock:
                self._halt()
                self._skip, self._over = self._worker, self.steps_left == 0
        return self

    if not TYPE_CHECKING:  # a checker would take every name for one that there is

        def __getattr__(self, name):
            raise no_attribute(self, name)

    @property
    def loop(self) -> str:
        """What a `for` loop delivers: "continue", "epoch" or "restart"."""
        return self._loop.how

    @property
    def steps_per_epoch(self) -> int | None:
        """Batches of a whole epoch; with weights, of all of the mixture. None if it has no end.

        The last one counts: it is filled with empty rows, never dropped. The same on all ranks, and of all workers of a
        rank together. Where batch sizes change, of the epoch that the stream is in.
        """
        return self._loop.steps_per_epoch(self._now())

    @property
    def steps(self) -> int | None:
        """Batches of a whole loop, wherever the stream is: of one or of all epochs (`loop`). None without end."""
        return self._loop.steps(self._now())

    def _now(self) -> int:
        return self._loop.at(self._epoch, self._position)[0]

    @property
    def steps_left(self) -> int | None:
        """Batches from the position to the end of the loop; after an epoch's last one, those of the next loop. None
        without end."""
        return self._loop.steps_left(self._epoch, self._position)

    def restart(self) -> None:
        """Go back to the beginning: the next batch is the first one of the first epoch. Also inside a loop."""
        self._before_moving()
        with self._lock:
            self._move_to(0, 0, None)

    def skip(self, batches: int) -> int:
        """Pass over this many batches, across epochs, as if they had been delivered; returns how many there were.

        The state is that after as many `next`; only `tokens_per_shard` leaves out epochs of which some was passed over.
        Nothing is read. Cost: 0.2 us per sample of all ranks in the epoch in which it ends, with weights in all.
        """
        batches = whole("batches", batches, 0)
        self._before_moving()
        with self._lock:
            self._restart()  # from the last batch delivered, not from those ahead
            if self._loop.how == "restart" and self.steps_left == 0:
                self._move_to(0, 0, None)  # the next loop would begin there
            if not batches:
                return 0
            before, epoch, position = self._skip, *self._loop.at(self._epoch, self._position)
            usage = copy(self._usage)
            found = self._pass_over(usage, epoch, position, before + (batches - 1) * self._workers + 1)
            self._usage, self._skip, self._over, self._placed = usage, self._workers - 1, False, True
            self._epoch, self._position, passed = found
        return 0 if passed <= before else 1 + (passed - before - 1) // self._workers

    def _replace_schedule(self, schedule: Schedule, loop: Loop) -> None:
        """Another order, from its beginning. A position is set behind it."""
        self._schedule, self._loop, self._usage = schedule, loop, Usage(schedule.domains)
        self._plan, self._passed, self._made = None, (), None

    def _before_moving(self) -> None:
        self._after_fork()
        if self._closed:
            raise RuntimeError("stream: closed")

    def _pass_over(self, usage: Usage, epoch: int, position: int, steps: int) -> tuple[int, int, int]:
        """(epoch, position, steps) after passing over so many steps of the rank, fewer if the stream ends before."""
        passed, epochs = 0, self._loop.epochs
        while passed < steps:
            length = self._loop.length_of(epoch)
            if position == length or (not self._loop.mixed and epoch == epochs):
                break
            rest = None if length is None else self._loop.count(epoch, position)
            if rest is not None and rest <= steps - passed and not self._loop.mixed:
                passed, epoch, position = passed + rest, epoch + 1, 0
                usage.restore([(epoch, 0)], None, (epoch, 0))
                continue
            plan = self._schedule.plan(epoch, position, most=steps - passed)
            usage.add(plan, plan.stop)
            passed, position = passed + len(plan.mine), plan.stop
        usage.forget_tokens()
        return epoch, position, passed

    def _move_to(self, epoch: int, position: int, digests: Sequence[int] | None) -> None:
        super()._move_to(epoch, position, digests)
        self._placed = True
