"""Measure the documents of a PCollection: a tally per bundle, which the job's report adds up.

Like counters, tallies travel in the graph as elements, so a bundle that fails or is repeated counts once or not at all.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from refinery.transforms.core.histogram import STEPS
from refinery.transforms.exchange.records import side_output_record
from refinery.transforms.statistics.points import PUBLISHED, Point
from refinery.transforms.statistics.tally import BYTES, SOURCE, Measured, Tally, passing_written, unpack

KIND = "statistics"  # of side-output records, and the key of reports
COLUMNS = ["source", "url", "origin", "meta", "text_bytes"]  # of a shard
BATCH_ROWS = 1024


def measure_shard(name: str, table: pa.Table, lengths: Sequence[int] | None, notes: Measured) -> bytes:
    """The side-output record of the documents of a shard. table: as it crossed the shuffle; lengths: tokens of each,
    None of texts. Memory: BATCH_ROWS documents without their tokens."""
    tally, row = Tally(), 0
    for batch in table.select(COLUMNS).to_batches(max_chunksize=BATCH_ROWS):
        for source, url, origin, meta, size in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            tokens = None if lengths is None else lengths[row]
            doc = passing_written(source, url, origin, orjson.loads(meta), size, tokens)
            tally.add(doc, notes, PUBLISHED.hosts)
            row += 1
    tally.shards.at(name).update(describe_shard(tally))
    return statistics_record(PUBLISHED, tally)


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
