"""How many documents entered a stage, and how each left it."""

from collections import Counter
from collections.abc import Collection, Iterator

from refinery.transforms.core.histogram import bin_of
from refinery.transforms.core.side_outputs import side_output_record

# Running totals of this process, (stage, outcome) -> documents: for the progress display only, never for the manifest.
LIVE: Counter[tuple[str, str]] = Counter()


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
