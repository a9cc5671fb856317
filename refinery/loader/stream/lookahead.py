"""Announces to a source, well in advance, what a stream will read, and releases what it has finished with."""

import logging
from collections.abc import Container, Iterator

import numpy as np

from refinery.loader.order.arrays import I64
from refinery.loader.read.token_source import TokenSource
from refinery.loader.stream.schedule import Schedule, StepPlan

Window = tuple[int, int, int]  # domain, epoch, start in the epoch's sequence

_log = logging.getLogger("refinery.loader")


def live_ranges(schedule: Schedule) -> I64:
    """What a Lookahead has announced and not released in the middle of an epoch: the windows of two plans, as ranges of
    tokens, int64 [n, 3].

    Cost: a tenth of a second.
    """
    middle = (schedule.length or sum(domain.samples for domain in schedule.domains)) // 2
    epoch = int(schedule.length_of(0) != schedule.length)  # a whole one
    position, found = middle // schedule.step * schedule.step, [np.empty((0, 3), np.int64)]
    seen: set[Window] = set()
    for _ in range(2):
        if schedule.length is not None and position >= schedule.length:
            break
        plan = schedule.plan(epoch, position)
        position = plan.stop
        for _, _, new, ranges, _ in _new_windows(schedule, plan, seen):
            seen.update(new)
            found.append(ranges)
    return np.concatenate(found)


def _new_windows(
    schedule: Schedule, plan: StepPlan, known: Container[Window]
) -> Iterator[tuple[int, int, list[Window], I64, list[tuple[int, int]]]]:
    """Windows that this rank's rows of a plan draw from and that are not known, in order of need, by domain and epoch.

    Of each domain and epoch: these two, the windows, the ranges of tokens of all of them ([n, 3], without the label
    after each piece: that is the first token of another piece), and for each window its last place and its end in these
    ranges.
    """
    mine = plan.mine[plan.mine >= 0]
    domains, epochs, places = plan.domains[mine], plan.epochs[mine], plan.places[mine]
    for d, epoch in np.unique(np.stack([domains, epochs], axis=1), axis=0).tolist():
        order, domain = schedule.order(d, epoch), schedule.domains[d]
        windows = order.windows(places[(domains == d) & (epochs == epoch)])
        _, first = np.unique(windows[:, 0], return_index=True)
        windows = windows[np.sort(first)]
        names = [(d, epoch, start) for start in windows[:, 0].tolist()]
        new = [i for i, name in enumerate(names) if name not in known]
        if not new:
            continue
        windows = windows[new]
        pieces, counts = order.pieces_of(windows[:, 0], windows[:, 1])
        spans = (pieces + domain.first_of(epoch)) * domain.length
        ranges, each = domain.ranges_of(spans[:, 0], spans[:, 1])
        ends = np.cumsum(each)[np.cumsum(counts) - 1]
        yield d, epoch, [names[i] for i in new], ranges, list(zip(windows[:, 2].tolist(), ends.tolist(), strict=True))


class Lookahead:
    """Announces the windows that this rank's rows draw from, each once, and releases them after their last row.

    A window's samples are needed in random order, so all of its blocks are announced together. Bounded by the windows
    of a plan and the open ones: about lanes x window blocks. Cost: some microseconds per row, so it is used for remote
    sources only.
    """

    def __init__(self, source: TokenSource, schedule: Schedule) -> None:
        lanes, ranks = schedule.params.lanes, schedule.ranks
        if schedule.shuffle and ranks % lanes and lanes % ranks:
            _log.warning(
                "%d ranks on %d lanes: each rank reads from many lanes, so most blocks are fetched by many hosts; "
                "set order=OrderParams(lanes=...) to a multiple or a divisor of the number of ranks",
                ranks,
                lanes,
            )
        self._source = source
        self._schedule = schedule
        self._open: dict[Window, tuple[int, I64]] = {}  # -> its last sample in the domain, its ranges

    def announce(self, plan: StepPlan) -> None:
        """Announce what the plan's rows read: their own tokens in order of need, then the rest of their windows."""
        mine = plan.mine[plan.mine >= 0]
        domains, samples = plan.domains[mine], plan.samples[mine]
        rows, parts = [np.empty(0, np.int64)], [np.empty((0, 3), np.int64)]
        for d in np.unique(domains).tolist():
            domain, its_rows = self._schedule.domains[d], np.flatnonzero(domains == d)
            first = samples[its_rows] * domain.length
            ranges, counts = domain.ranges_of(first, first + domain.length + 1)
            rows.append(np.repeat(its_rows, counts))
            parts.append(ranges)
        parts = [np.concatenate(parts)[np.argsort(np.concatenate(rows), kind="stable")]]
        for d, epoch, windows, ranges, ends in _new_windows(self._schedule, plan, self._open):
            parts.append(ranges)
            begin = 0
            for window, (last, end) in zip(windows, ends, strict=True):
                self._open[window] = self._schedule.domains[d].before(epoch) + last, ranges[begin:end]
                begin = end
        self._source.will_need(np.concatenate(parts))

    def finish(self, plan: StepPlan | None) -> None:
        """Release windows that end before the plan; None: all of them."""
        reached = None if plan is None else plan.reached.tolist()
        over = [window for window, (last, _) in self._open.items() if reached is None or reached[window[0]] > last]
        if over:
            self._source.done_with(np.concatenate([self._open.pop(window)[1] for window in over]))
