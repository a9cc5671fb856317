"""Announces to a source, well in advance, what a stream will read, and releases what it has finished with."""

import logging
from collections.abc import Iterator

import numpy as np

from refinery.loader.stream.schedule import Schedule, StepPlan
from refinery.loader.tokens.token_source import TokenRange, TokenSource

_log = logging.getLogger("refinery.loader")


def live_ranges(schedule: Schedule) -> list[TokenRange]:
    """What a Lookahead has announced and not released in the middle of an epoch: the windows of two plans.

    Cost: a tenth of a second.
    """
    middle = (schedule.length or sum(domain.samples for domain in schedule.domains)) // 2
    position, found = middle // schedule.step * schedule.step, []
    seen: set[tuple[int, int, int]] = set()
    for _ in range(2):
        if schedule.length is not None and position >= schedule.length:
            break
        plan = schedule.plan(0, position)
        position = plan.stop
        for d, epoch, start, stop, _ in _windows(schedule, plan):
            if (d, epoch, start) not in seen:
                seen.add((d, epoch, start))
                found += _pieces(schedule, d, epoch, start, stop)
    return found


def _windows(schedule: Schedule, plan: StepPlan) -> Iterator[tuple[int, int, int, int, int]]:
    """Windows that this rank's rows of a plan draw from, in order of need: domain, epoch, start, stop, last place."""
    mine = plan.mine[plan.mine >= 0]
    domains, epochs, places = plan.domains[mine], plan.epochs[mine], plan.places[mine]
    for d, epoch in np.unique(np.stack([domains, epochs], axis=1), axis=0).tolist():
        windows = schedule.order(d, epoch).windows(places[(domains == d) & (epochs == epoch)])
        _, first = np.unique(windows[:, 0], return_index=True)
        for start, stop, last in windows[np.sort(first)].tolist():
            yield d, epoch, start, stop, last


def _pieces(schedule: Schedule, d: int, epoch: int, start: int, stop: int) -> list[TokenRange]:
    """Ranges of a window, without the label after each piece: that is the first token of another piece."""
    domain = schedule.domains[d]
    found: list[TokenRange] = []
    for begin, end in schedule.order(d, epoch).pieces(start, stop).tolist():
        found += domain.spans(begin * domain.length, end * domain.length)
    return found


class Lookahead:
    """Announces the windows that this rank's rows draw from, each once, and releases them after their last row.

    A window's samples are needed in random order, so all of its blocks are announced together. Bounded by the windows
    of a plan and the open ones: about lanes x window blocks. Cost: some microseconds per row, so it is used for remote
    sources only.
    """

    def __init__(self, source: TokenSource, schedule: Schedule) -> None:
        lanes, ranks = schedule.params.lanes, schedule.step // schedule.batch_size
        if ranks % lanes and lanes % ranks:
            _log.warning(
                "%d ranks on %d lanes: each rank reads from many lanes, so most blocks are fetched by many hosts; "
                "set order=OrderParams(lanes=...) to a multiple or a divisor of the number of ranks",
                ranks,
                lanes,
            )
        self._source = source
        self._schedule = schedule
        self._open: dict[
            tuple[int, int, int], tuple[int, list[TokenRange]]
        ] = {}  # -> its last sample in the domain, its ranges

    def announce(self, plan: StepPlan) -> None:
        """Announce what the plan's rows read: their own tokens in order of need, then the rest of their windows."""
        mine = plan.mine[plan.mine >= 0]
        domains, samples = plan.domains[mine], plan.samples[mine]
        ranges: list[TokenRange] = []
        for d, sample in zip(domains.tolist(), samples.tolist(), strict=True):
            ranges += self._schedule.domains[d].sample_ranges(sample, sample + 1)
        for d, epoch, start, stop, last in _windows(self._schedule, plan):
            if (d, epoch, start) not in self._open:
                pieces = _pieces(self._schedule, d, epoch, start, stop)
                self._open[d, epoch, start] = epoch * self._schedule.domains[d].samples + last, pieces
                ranges += pieces
        self._source.will_need(ranges)

    def finish(self, plan: StepPlan | None) -> None:
        """Release windows that end before the plan; None: all of them."""
        reached = None if plan is None else plan.reached.tolist()
        over = [window for window, (last, _) in self._open.items() if reached is None or reached[window[0]] > last]
        for window in over:
            self._source.done_with(self._open.pop(window)[1])
