"""Announces to a source, well in advance, what a stream will read, and releases what it has finished with."""

import logging

import numpy as np

from refinery.loader.stream.schedule import Schedule, StepPlan
from refinery.loader.stream.token_source import TokenRange, TokenSource

_log = logging.getLogger("refinery.loader")


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
        domains, epochs = plan.domains[mine], plan.epochs[mine]
        places, samples = plan.places[mine], plan.samples[mine]
        ranges: list[TokenRange] = []
        for d, sample in zip(domains.tolist(), samples.tolist(), strict=True):
            ranges += self._schedule.domains[d].sample_ranges(sample, sample + 1)
        for d, epoch in np.unique(np.stack([domains, epochs], axis=1), axis=0).tolist():
            domain, order = self._schedule.domains[d], self._schedule.order(d, epoch)
            windows = order.windows(places[(domains == d) & (epochs == epoch)])
            _, first = np.unique(windows[:, 0], return_index=True)
            for start, stop, last in windows[np.sort(first)].tolist():
                if (d, epoch, start) in self._open:
                    continue
                pieces: list[TokenRange] = []
                for begin, end in order.pieces(start, stop).tolist():
                    # Without the label after the piece: it is the first token of another piece and announced with it.
                    pieces += domain.ranges(begin * domain.length, end * domain.length)
                self._open[d, epoch, start] = epoch * domain.samples + last, pieces
                ranges += pieces
        self._source.will_need(ranges)

    def finish(self, plan: StepPlan | None) -> None:
        """Release windows that end before the plan; None: all of them."""
        reached = None if plan is None else plan.reached.tolist()
        over = [window for window, (last, _) in self._open.items() if reached is None or reached[window[0]] > last]
        for window in over:
            self._source.done_with(self._open.pop(window)[1])
