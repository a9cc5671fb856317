"""Which samples each step delivers, and which of them are this rank's: arithmetic on positions, planned in chunks.

A step covers world_size x batch_size positions of the global order. How its rows are assigned to ranks does not change
the order; the assignment is chosen so that a rank, or the ranks of a host, read from few lanes and thereby few blocks.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from refinery.loader.order.arrays import I64
from refinery.loader.order.batch_stages import BatchStage, Steps, batch_stages
from refinery.loader.order.mixing import Mixture
from refinery.loader.order.order import GOLDEN, Order, OrderParams, coprime, expected_neighbours, mix
from refinery.loader.read.samples import Domain

MAX_POSITIONS = 1 << 16  # of all ranks in a plan: about 10 ms of arithmetic
MAX_ROWS = 1 << 13  # of this rank in a plan
POOR = 0.05  # share of neighbours within 1,024 positions from which a shuffle is worth a warning

_log = logging.getLogger("refinery.loader")


def rows_of_rank(rank: int, world_size: int, batch_size: int, lanes: int) -> I64:
    """int64 [batch_size]: this rank's rows of a step, of world_size x batch_size in total.

    Row j draws from lane j mod C, up to a rotation. With R <= C ranks, rank r takes the rows j = r mod R: C / R lanes
    of its own if R divides C. With R > C and C dividing R, R / C neighbouring ranks share a lane.

    >>> rows_of_rank(1, 4, 3, 8)
    array([1, 5, 9])
    >>> [rows_of_rank(rank, 4, 2, 2).tolist() for rank in range(4)]
    [[0, 4], [2, 6], [1, 5], [3, 7]]
    """
    first = rank
    if world_size > lanes and world_size % lanes == 0:
        sharing = world_size // lanes
        first = rank // sharing + lanes * (rank % sharing)
    return first + world_size * np.arange(batch_size)


@dataclass(frozen=True, slots=True, eq=False)
class StepPlan:
    """Some consecutive steps of one epoch.

    epoch, start, stop: positions [start, stop). step: positions of a step; the last one may have fewer.
    domains, epochs, samples: of every position, int64 [stop - start], in order of delivery.
    mine: int64 [steps, batch_size], this rank's rows as indices into those; -1 for an empty row.
    places: of every position, its place in the order of its domain's epoch.
    reached: of each domain, its epochs and samples before `start`, as epoch x samples + place.
    """

    epoch: int
    start: int
    stop: int
    step: int
    domains: I64
    epochs: I64
    samples: I64
    places: I64
    mine: I64
    reached: I64

    def rows(self, values: I64, empty: int = -1) -> I64:
        """int64 [steps, batch_size]: one of the arrays above for this rank's rows, with `empty` in empty rows."""
        found = values[self.mine]
        found[self.mine < 0] = empty
        return found


class Schedule:
    """The global order of a stream, and one rank's part of it.

    domains: those of the mixture, or a single one for the whole split. Raises ValueError if there are no tokens.
    """

    def __init__(
        self,
        domains: Sequence[Domain],
        mixture: Mixture | None,
        *,
        order: OrderParams,
        seed: int,
        rank: int,
        world_size: int,
        batch_size: int | Sequence[BatchStage],
        shuffle: bool = True,
    ) -> None:
        if not sum(domain.samples for domain in domains):
            raise ValueError("split: one without tokens given, one with tokens is allowed")
        self.domains, self.mixture = list(domains), mixture
        self.params, self.seed, self.shuffle = order, seed, shuffle
        self.rank, self.ranks = rank, world_size
        self.length = domains[0].samples if mixture is None else mixture.end  # positions of a whole epoch
        stages = batch_stages(batch_size)
        self.steps = Steps(stages, domains[0].length, world_size, self._epoch_at)
        self.batch_size, self.least = max(self.steps.batch_sizes), min(self.steps.batch_sizes)
        self.step = self.steps.last
        self._rows = [rows_of_rank(rank, world_size, size, order.lanes) for size in self.steps.batch_sizes]
        if shuffle:
            self._warn_of_poor_windows()
        self.order = lru_cache(maxsize=4 * len(self.domains))(self._order)

    def _warn_of_poor_windows(self) -> None:
        for domain in self.domains:
            if domain.samples > 1:
                block = self.params.block or domain.block
                share = expected_neighbours(domain.samples, block, self.params.lanes, self.params.window)
                if share > POOR and share > 2 * min(1.0, 2048 / domain.samples):
                    _log.warning(
                        "shuffle of %s: %.1f %% of its samples have the next one within 1,024 positions (by chance "
                        "%.1f %%); OrderParams(block=1) or a larger window makes it better",
                        domain.name or "the split", 100 * share, 204_800 / domain.samples,
                    )  # fmt: skip

    def _order(self, domain: int, epoch: int) -> Order:
        return self.domains[domain].order_of(epoch, self.seed, self.params, self.shuffle)

    def length_of(self, epoch: int) -> int | None:
        """Positions of this epoch: of the first one maybe another number."""
        return self.length if self.mixture is not None else self.domains[0].samples_in(epoch)

    def before(self, epoch: int) -> int:
        """Positions of all epochs before this one."""
        return 0 if self.mixture is not None else self.domains[0].before(epoch)

    def _epoch_at(self, place: int) -> tuple[int, int | None]:
        """Where the epoch begins and ends that a position, counted through all epochs, is in."""
        if self.mixture is not None:
            return 0, self.length
        first, each = self.domains[0].first, self.domains[0].samples
        epoch = 0 if place < first else 1 + (place - first) // each
        return self.before(epoch), self.before(epoch + 1)

    def reached(self, epoch: int, position: int) -> I64:
        """int64 [domains]: samples of each domain before this position, in all epochs."""
        if self.mixture is None:
            return np.array([self.domains[0].before(epoch) + position], np.int64)
        return self.mixture.counts(position)

    def samples(self, epoch: int, start: int, stop: int) -> tuple[I64, I64, I64, I64]:
        """(domains, epochs, samples, places) of positions [start, stop) of an epoch, int64 [stop - start] each."""
        if self.mixture is None:
            places = np.arange(start, stop)
            samples = self.order(0, epoch)[places] + self.domains[0].first_of(epoch)
            return np.zeros(len(places), np.int64), np.full(len(places), epoch, np.int64), samples, places
        named, k = self.mixture.locate(start, stop)
        domains = named.astype(np.int64)
        epochs, places, samples = np.empty_like(k), np.empty_like(k), np.empty_like(k)
        for d in np.unique(domains).tolist():
            its = domains == d
            epochs[its], places[its] = self.domains[d].at(k[its])
            for e in np.unique(epochs[its]).tolist():
                mine = its & (epochs == e)
                samples[mine] = self.order(d, e)[places[mine]] + self.domains[d].first_of(e)
        return domains, epochs, samples, places

    def plan(self, epoch: int, start: int, rows: int = MAX_ROWS, most: int | None = None) -> StepPlan:
        """The next steps from a position on, all of one size: as many as give this rank `rows` rows, at most `most`,
        and up to the end of the epoch or of a stage of batch sizes."""
        place = self.before(epoch) + start
        (step, end), mine_of_step = self.steps.at(place), self._rows[self.steps.stage(place)]
        steps = max(1, min(rows // len(mine_of_step), MAX_POSITIONS // step))
        steps = min(steps, steps if most is None else most, steps if end is None else -(-(end - place) // step))
        stop = start + steps * step
        length = self.length_of(epoch)
        if length is not None and length < stop:
            stop = length
            steps = -(-(stop - start) // step)
        found = self.samples(epoch, start, stop)
        if self.mixture is None:
            mine = np.arange(steps)[:, None] * step + mine_of_step
            mine[mine >= stop - start] = -1
        else:
            mine = self._dealt(found[0], found[3], start, steps, step)
        return StepPlan(epoch, start, stop, step, *found, mine, self.reached(epoch, start))

    def _dealt(self, domains: I64, places: I64, start: int, steps: int, step: int) -> I64:
        """This rank's rows of a mixed stream, as StepPlan.mine.

        Domains advance at different speeds, so rows of a step have no fixed lanes. Each step's rows are sorted by lane
        and split evenly between the ranks, neighbouring lanes far apart, since a domain's rows in a step are from
        neighbouring lanes. This way two or three hosts read a window if a step has at least as many rows as there are
        lanes. With MixParams.even the rows of each domain are dealt one by one instead, from a rank on that is chance.
        """
        ranks, lanes, even = self.ranks, self.params.lanes, self.mixture.params.even  # type: ignore[union-attr] # mixed
        size = step // ranks
        key = np.full(steps * step, max(lanes, len(self.domains)), np.int64)  # empty rows come last
        key[: len(places)] = domains if even else places % lanes * coprime(round(lanes * GOLDEN), lanes) % lanes
        in_order = np.argsort(key.reshape(steps, step), axis=1, kind="stable")
        if even:
            turn = mix(np.arange(steps, dtype=np.uint64) + np.uint64(start // step)) % np.uint64(ranks)
            turn = turn.astype(np.int64)  # by chance: the same number of rows in every step would favour some ranks
            dealt = (self.rank - turn)[:, None] % ranks + ranks * np.arange(size)
            mine = np.sort(np.take_along_axis(in_order, dealt, axis=1), axis=1)
        else:
            mine = np.sort(in_order[:, self.rank * size : (self.rank + 1) * size], axis=1)
        mine = mine + np.arange(steps)[:, None] * step
        mine[mine >= len(places)] = -1
        return mine
