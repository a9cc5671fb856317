"""How many documents entered a stage, and how each left it."""

import sys
from collections.abc import Collection, Iterator

from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.histogram import bin_of
from refinery.transforms.core.live import LIVE, WORK


def count_metric(stage: str, outcome: str, amount: int) -> None:
    """Add to a metric of Beam, which runners show beside their own; it decides nothing.

    A process that has not imported Beam runs no job, so there is nobody to show it to.
    """
    if "apache_beam" not in sys.modules:
        return
    from apache_beam.metrics import Metrics

    Metrics.counter(stage, outcome).inc(amount)


def work_done(unit: str, amount: int) -> None:
    """Count work that is done, for the progress display of every runner."""
    LIVE[WORK, unit] += amount
    count_metric(WORK, unit, amount)


class LiveBytes:
    """The share of a file that a task reads, counted while it reads: never more than `total`, all of it in the end.

    Readers go back in a damaged file, and leave out columns of others. Other machines are notified only of whole files:
    there are many of them, and a metric for each block would cost more than reading it.
    """

    def __init__(self, total: int) -> None:
        self.total = self.left = total

    def add(self, size: int) -> None:
        """So many bytes were read."""
        if size > self.left:
            size = self.left
        self.left -= size
        LIVE[WORK, "bytes"] += size

    def end(self) -> None:
        """The task is done."""
        self.add(self.left)
        count_metric(WORK, "bytes", self.total)


class Counters:
    """Counts of one stage in one bundle, per source: [documents, bytes] that entered and how each left."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.seconds = 0.0
        self.counts: dict[tuple[str, str, str], list[int]] = {}

    def add(self, source: str, outcome: str, reason: str, size: int, documents: int = 1) -> None:
        entry = self.counts.get((source, outcome, reason))
        if entry is None:
            entry = self.counts[source, outcome, reason] = [0, 0]
        entry[0] += documents
        entry[1] += size

    def add_found(self, source: str, found: Collection[str], size: int) -> None:
        """Count a document for each of its findings, and once for each of their groups."""
        for name in (*found, *sorted({name.partition("/")[0] for name in found})):
            self.add(source, "found", name, size)

    def add_score(self, source: str, series: str, value: float, size: int) -> None:
        """Count a document in the bin of its number."""
        self.add(source, "scored", f"{series}/{bin_of(value)}", size)

    def records(self) -> Iterator[bytes]:
        """One JSON record per (source, outcome, reason), and one with the seconds spent in the stage. None of an empty
        bundle: DirectRunner has such after the last one, whose outputs come too late for it."""
        for (source, outcome, reason), (documents, size) in sorted(self.counts.items()):
            yield side_output_record(
                "counter",
                stage=self.stage,
                source=source,
                outcome=outcome,
                reason=reason,
                documents=documents,
                bytes=size,
            )
        if self.seconds:
            yield side_output_record("seconds", stage=self.stage, seconds=self.seconds)
