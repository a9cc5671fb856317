"""Measure the documents of a PCollection: a tally per bundle, which the job's report adds up.

Like counters, tallies travel in the graph as elements, so a bundle that fails or is repeated counts once or not at all.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from refinery.transforms.core.document import Scalar
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.histogram import STEPS
from refinery.transforms.statistics.points import PUBLISHED, Point
from refinery.transforms.statistics.tally import BYTES, SOURCE, Measured, Passing, Tally, passing_written, unpack

KIND = "statistics"  # of side-output records, and the key of reports
BATCH_DOCUMENTS = 256  # that are measured together


class ShardTally:
    """Measures the documents of a shard, one after the other. notes: of documents that are measured."""

    def __init__(self, notes: Measured) -> None:
        self.tally, self.notes = Tally(), notes
        self.held: list[Passing] = []

    def add(self, fields: Mapping[str, Any], meta: Mapping[str, Scalar], tokens: int | None) -> None:
        """A document. fields: `source`, `url`, `origin` and `text_bytes`. meta: all that stages noted. tokens: None of
        a shard of texts."""
        size = fields["text_bytes"]
        meta = {name: meta[name] for name in (*self.notes.categories, *self.notes.numbers) if name in meta}
        self.held.append(passing_written(fields["source"], fields["url"], fields["origin"], meta, size, tokens))
        if len(self.held) == BATCH_DOCUMENTS:
            self._measure()

    def record(self, name: str) -> bytes:
        """The side-output record of the shard of that name."""
        self._measure()
        self.tally.shards.at(name).update(describe_shard(self.tally))
        return statistics_record(PUBLISHED, self.tally)

    def _measure(self) -> None:
        self.tally.add_all(self.held, self.notes, PUBLISHED.hosts)
        self.held = []


def describe_shard(tally: Tally) -> dict[str, Any]:
    """What is compared between shards: documents by value of each category, and by octave of their bytes."""
    categories = {
        name: {value: sums[0] for value, sums in keyed.sums.items()} for name, keyed in tally.categories.items()
    }
    octaves: dict[str, int] = {}
    for place, documents in tally.distribution(BYTES.name).counts.items():
        octave = str(place // STEPS)
        octaves[octave] = octaves.get(octave, 0) + documents
    sources = categories.pop(SOURCE, {})
    total = {"documents": tally.total[0], "tokens": tally.total[2]}
    return {**total, "values": {SOURCE: sources, **categories, "length": octaves}}


def statistics_record(point: Point, tally: Tally) -> bytes:
    """The side-output record of a tally."""
    return side_output_record(KIND, point=point.name, tally=tally.pack())


class MergeStatistics:
    """Adds up records of the kind "statistics", in any order, in the memory of one tally a point."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}

    def add(self, point: str, packed: str) -> None:
        """Add the tally of a bundle or a report."""
        tally = unpack(packed)
        if point in self.tallies:
            self.tallies[point].merge(tally)
        else:
            self.tallies[point] = tally

    def add_record(self, fields: Mapping[str, Any]) -> None:
        """Add what `statistics_record` made."""
        self.add(fields["point"], fields["tally"])

    def result(self) -> dict[str, str]:
        """Point -> its packed tally, as reports hold it."""
        return {point: tally.pack() for point, tally in sorted(self.tallies.items())}


def merge_statistics(reports: Iterable[Mapping[str, Any]]) -> dict[str, str] | None:
    """The sum of what several jobs' reports hold under KIND; None if one of them is of a run that did not measure."""
    merged = MergeStatistics()
    for report in reports:
        if KIND not in report:
            return None
        for point, packed in report[KIND].items():
            merged.add(point, packed)
    return merged.result()
