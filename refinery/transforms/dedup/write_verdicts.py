"""Verdicts of all parts assembled from record batches and written, as PTransforms.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from refinery.loader.storage.store import StorageConflict
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.records import MAIN, SIDE_OUTPUT
from refinery.transforms.core.exchange.side_outputs import add_side_output, with_side_output
from refinery.transforms.core.job.report import write_part
from refinery.transforms.dedup.cutting_pass import Cuts
from refinery.transforms.dedup.records.record_batch import (
    read_header,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.verdicts import (
    counter_records,
    deserialize_verdicts,
    part_name,
    part_verdicts,
    serialize_verdicts,
)


class _AssembleVerdicts(beam.DoFn):
    def __init__(
        self,
        sources: tuple[str, ...],
        scopes: tuple[str, ...],
        stages: tuple[int, ...],
        parts: Parts,
        cuts: tuple[Cuts, ...],
        labels: bool,
    ) -> None:
        self.labels = labels
        self.sources = sources
        self.scopes = scopes
        self.stages = stages
        self.parts = parts
        self.cuts = cuts

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
        part, batches = element
        if self.parts.is_reference(part):  # reference corpora get no verdicts
            return
        held = list(batches)
        url, rows = read_header(held)
        batch, facts = part_verdicts(held, self.sources, self.scopes, self.cuts)
        yield part, serialize_verdicts(batch, part_name(url))
        for record in counter_records(facts, self.stages, self.sources, self.labels):
            yield beam.pvalue.TaggedOutput(SIDE_OUTPUT, record)
        work_done("rows", rows)


@dataclass
class AssembleVerdicts(beam.PTransform):
    """Grouped batches of parts -> (part, serialized verdicts): exactly one element per part of the run's own, one
    verdict per row. cuts: that were looked for. labels: as of `DedupParams`.
    """

    sources: tuple[str, ...]
    scopes: tuple[str, ...]
    stages: tuple[int, ...]
    parts: Parts
    cuts: tuple[Cuts, ...] = ()
    labels: bool = False

    def __post_init__(self) -> None:
        super().__init__("assemble-verdicts")

    def expand(self, parts: beam.PCollection) -> beam.PCollection:
        dofn = _AssembleVerdicts(self.sources, self.scopes, self.stages, self.parts, self.cuts, self.labels)
        outputs = with_side_output(parts, "verdicts", beam.ParDo(dofn).with_output_types(tuple[int, bytes]))
        add_side_output(parts.pipeline, outputs[SIDE_OUTPUT])
        return outputs[MAIN]


class _WriteVerdicts(beam.DoFn):
    def __init__(self, location: str, sources: tuple[str, ...]) -> None:
        self.location = location
        self.sources = sources

    def process(self, element: tuple[int, bytes]) -> Iterator[bytes]:
        _, data = element
        name, table = deserialize_verdicts(data, self.sources)
        try:
            yield write_part(self.location, "verdicts", name, table)
        except StorageConflict:  # of an attempt that did not count, and perhaps may not be deleted
            yield write_part(self.location, "verdicts", f"{name}.{uuid.uuid4().hex[:8]}", table)


@dataclass
class WriteVerdicts(beam.PTransform):
    """Write serialized verdicts as LOCATION/verdicts/NAME.parquet, NAME being the part's own (`part_name`); each is a
    side-output record.

    sources: as given to `Deduplicate`.
    """

    location: str
    sources: Sequence[str]

    def __post_init__(self) -> None:
        super().__init__("write-verdicts")

    def expand(self, verdicts: beam.PCollection) -> beam.PCollection:
        write = beam.ParDo(_WriteVerdicts(self.location, tuple(sorted(self.sources))))
        written = verdicts | "parts" >> write.with_output_types(bytes)
        add_side_output(verdicts.pipeline, written)
        return written
