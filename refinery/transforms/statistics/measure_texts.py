"""Measure the documents of a PCollection: a tally per bundle, which the job's report adds up.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.records import SIDE_OUTPUT, side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output, in_global_window, with_side_output
from refinery.transforms.statistics.measure import BATCH_DOCUMENTS, KIND, statistics_record
from refinery.transforms.statistics.points import Point
from refinery.transforms.statistics.tally import Measured, Tally, passing_text

BATCH_CHARACTERS = 1 << 20  # of texts that are measured together, if they are not BATCH_DOCUMENTS before


class _MeasureTexts(beam.DoFn):
    def __init__(self, point: Point, notes: Measured) -> None:
        self.point = point
        self.notes = notes

    def start_bundle(self) -> None:
        self.tally = Tally()
        self.docs: list[Document] = []
        self.held = 0
        self.seconds = 0.0

    def process(self, doc: Document) -> Iterable[Any]:
        self.docs.append(doc)
        # A record may have far more meta than text.
        self.held += len(doc.text) + len(doc.url) + sum([len(v) for v in doc.meta.values() if isinstance(v, str)])
        # Together, since one at a time, between stages that fill the caches with something else, costs thrice as much.
        if len(self.docs) >= BATCH_DOCUMENTS or self.held >= BATCH_CHARACTERS:
            self._measure()
        return ()

    def finish_bundle(self) -> Iterator[Any]:
        self._measure()
        if self.tally.total[0]:
            start = time.perf_counter()
            record = statistics_record(self.point, self.tally)
            self.seconds += time.perf_counter() - start
            yield in_global_window(record)
            yield in_global_window(side_output_record("seconds", stage=KIND, seconds=self.seconds))

    def _measure(self) -> None:
        start = time.perf_counter()
        passing = [passing_text(doc, self.point.artefacts) for doc in self.docs]
        self.tally.add_all(passing, self.notes, self.point.hosts)
        self.docs, self.held = [], 0
        self.seconds += time.perf_counter() - start


@dataclass
class MeasureTexts(beam.PTransform):
    """Documents -> side-output records for the report, at a point of the funnel. notes: what is measured of `meta`."""

    point: Point
    notes: Measured

    def __post_init__(self) -> None:
        super().__init__(f"measure-{self.point.name}")

    def expand(self, docs: beam.PCollection[Document]) -> beam.PCollection:
        dofn = beam.ParDo(_MeasureTexts(self.point, self.notes))
        outputs = with_side_output(docs, "tally", dofn, main="none")
        add_side_output(docs.pipeline, outputs[SIDE_OUTPUT])
        return outputs["none"]
