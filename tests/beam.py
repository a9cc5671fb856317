"""Running small pipelines in tests: on Beam's FnApiRunner, in this process."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apache_beam as beam
import orjson
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

import refinery.transforms.core.coders  # noqa: F401 - registers the coder of Document
from refinery.pipelines.runners.beam_memory import remember_what_never_changes
from refinery.transforms.core.document import Document, document_id
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.exchange.tally import KIND

remember_what_never_changes()

_collected: dict[int, list[Any]] = {}


def _collect(key: int, values: Iterable[Any]) -> None:
    _collected[key] = list(values)  # assigned, not appended: a replayed bundle changes nothing


def run_and_collect(build: Callable[[beam.Pipeline], Sequence[beam.PCollection]], *flags: str) -> list[list[Any]]:
    """Build a pipeline, run it in this process, return the elements of every PCollection that `build` returned."""
    pipeline = beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions(list(flags)))
    outputs = build(pipeline)
    keys = []
    for number, output in enumerate(outputs):
        key = max(_collected, default=0) + 1
        _collected[key] = []
        keys.append(key)
        keyed = output | f"key {number}" >> beam.WithKeys(0)
        grouped = keyed | f"group {number}" >> beam.GroupByKey()
        grouped | f"collect {number}" >> beam.MapTuple(lambda _, values, key=key: _collect(key, values))
    pipeline.run().wait_until_finish()
    return [_collected.pop(key) for key in keys]


def merge_side_outputs(pipeline: beam.Pipeline) -> beam.PCollection[bytes]:
    """All side-output records of the pipeline so far, but for the tallies of exchanges, as one PCollection."""
    records = take_side_outputs(pipeline) | "side-output records" >> beam.Flatten()
    return records | "no tallies" >> beam.Filter(lambda record: orjson.loads(record)["kind"] != KIND)


def make_document(text: str, origin: str = "file@0", **fields: Any) -> Document:
    """A document with its own id and sensible defaults."""
    values: dict[str, Any] = {"url": "", "source": "s", "position": 0, **fields}
    return Document(document_id(text), text, origin=origin, **values)
