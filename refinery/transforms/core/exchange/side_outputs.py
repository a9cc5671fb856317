"""Side outputs: what a job reports beside its documents, as JSON bytes.

They wait in a registry per pipeline until `refinery.transforms.core.job.report` collects them.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from typing import Any
from weakref import WeakKeyDictionary

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from refinery.transforms.core.exchange.records import MAIN, SIDE_OUTPUT

_side_outputs: "WeakKeyDictionary[beam.Pipeline, list[beam.PCollection]]" = WeakKeyDictionary()


def add_side_output(pipeline: beam.Pipeline, side_outputs: beam.PCollection) -> None:
    """Put a PCollection of side-output records where `transforms.core.job.write_report.WriteReport` finds it."""
    side_outputs.element_type = bytes
    _side_outputs.setdefault(pipeline, []).append(side_outputs)


def take_side_outputs(pipeline: beam.Pipeline) -> list[beam.PCollection]:
    """All side-output records of the pipeline so far; each is handed out once."""
    return _side_outputs.pop(pipeline, [])


def with_side_output(
    inputs: Any, label: str, step: Any, main: str = MAIN, tag: str = SIDE_OUTPUT, more: tuple[str, ...] = ()
) -> Any:
    """`inputs | step` with what it outputs under a tag, its side-output records, apart: named LABEL/each wherever a
    runner shows the graph. more: further tags of its outputs.

    Beam would name it after the class, twice: ParDo(_JudgeDocument)/ParDo(_JudgeDocument).
    """
    step.label = "each"
    return inputs | label >> step.with_outputs(tag, *more, main=main)


def in_global_window(record: bytes) -> Any:
    """A side-output record as `finish_bundle` must yield it."""
    return beam.pvalue.TaggedOutput(SIDE_OUTPUT, GlobalWindows.windowed_value_at_end_of_window(record))


def in_finish_bundle(output: Any) -> Any:
    """An output of `process` as `finish_bundle` must yield it."""
    if isinstance(output, beam.pvalue.TaggedOutput):
        return beam.pvalue.TaggedOutput(output.tag, GlobalWindows.windowed_value(output.value))
    return GlobalWindows.windowed_value(output)
