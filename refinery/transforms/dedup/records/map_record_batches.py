"""Steps over record batches as PTransforms: each runs a pure generator `(key, batches) -> (key, batch), …`.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.pipeline import PipelineVisitor
from apache_beam.transforms.window import GlobalWindows

from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.on_disk import held_bytes
from refinery.transforms.core.exchange.records import MAIN, SIDE_OUTPUT, side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output, in_global_window, with_side_output
from refinery.transforms.dedup.records.record_batch import HELD_BYTES, Batch, HeldRows, KeyedBatch, read_header


def _is_kind(element: Batch, kinds: tuple[int, ...], among: bool) -> bool:
    return (element[1][0] in kinds) == among


def only(*kinds: int) -> Any:
    """The batches of these kinds."""
    return beam.Filter(_is_kind, kinds=kinds, among=True).with_output_types(tuple[int, bytes])


def without(*kinds: int) -> Any:
    """All batches but those of these kinds."""
    return beam.Filter(_is_kind, kinds=kinds, among=False).with_output_types(tuple[int, bytes])


class _RunBatches(beam.DoFn):
    def __init__(
        self,
        stage: str,
        function: Callable[[int, Any], Iterator[KeyedBatch | bytes]],
        stream: bool,
        by_part: bool,
        most: int,
    ) -> None:
        self.stage = stage
        self.function = function
        self.stream = stream
        self.by_part = by_part
        self.most = most

    def start_bundle(self) -> None:
        self.seconds = 0.0
        self.held = HeldRows(self.most)

    def process(self, element: tuple[int, Any]) -> Iterator[Any]:
        key, values = element
        start = time.perf_counter()
        if not self.stream:
            values = list(values)
        for output in self.held.pass_on(self.function(key, values)):
            self.seconds += time.perf_counter() - start
            yield beam.pvalue.TaggedOutput(SIDE_OUTPUT, output) if isinstance(output, bytes) else output
            start = time.perf_counter()
        self.seconds += time.perf_counter() - start
        if self.by_part:
            work_done("rows", read_header(values)[1])

    def finish_bundle(self) -> Iterator[Any]:
        start = time.perf_counter()
        for batch in self.held.release():
            self.seconds += time.perf_counter() - start
            yield GlobalWindows.windowed_value_at_end_of_window(batch)
            start = time.perf_counter()
        if self.seconds:  # DirectRunner has empty bundles after the last one, whose outputs come too late for it
            yield in_global_window(side_output_record("seconds", stage=self.stage, seconds=self.seconds))


@dataclass
class MapRecordBatches(beam.PTransform):
    """Apply `function(key, batches) -> iterator of (key, batch)` to grouped batches; its time is counted for `stage`.

    Its rows for many keys (`scatter`) become batches together with those of other elements of the bundle; what it
    yields as plain bytes is a side-output record. stream: pass the value as it is, not as a list. It is the iterable
    of a group, for a function that reads its batches once, or the single batch of an element that is not grouped yet.
    by_part: its keys are all parts, each with its header; their rows count as work done (`row_passes`). Memory:
    that of the function, and three times HELD_BYTES at most.
    """

    stage: str
    step: str
    function: Callable[[int, Any], Iterator[KeyedBatch | bytes]]
    stream: bool = False
    by_part: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.step)

    def expand(self, grouped: beam.PCollection) -> beam.PCollection:
        most = held_bytes(grouped.pipeline, HELD_BYTES)
        dofn = _RunBatches(self.stage, self.function, self.stream, self.by_part, most)
        run = beam.ParDo(dofn).with_output_types(tuple[int, bytes])
        outputs = with_side_output(grouped, "batches", run)
        add_side_output(grouped.pipeline, outputs[SIDE_OUTPUT])
        return outputs[MAIN]


class _CountSteps(PipelineVisitor):
    def __init__(self) -> None:
        self.steps = 0

    def enter_composite_transform(self, transform_node: Any) -> None:
        transform = transform_node.transform
        self.steps += isinstance(transform, MapRecordBatches) and transform.by_part


def row_passes(pipeline: beam.Pipeline) -> int:
    """How often the steps of a pipeline go through the rows of all parts: what `work_done` will have counted of "rows"
    for each row."""
    visitor = _CountSteps()
    pipeline.visit(visitor)
    return visitor.steps
