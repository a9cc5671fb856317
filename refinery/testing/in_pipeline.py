"""A stage in a pipeline of Beam, in this process: what comes out, and what is counted."""

from collections.abc import Iterable, Sequence
from typing import Any

from refinery.transforms.core.stage import Stage

_collected: dict[str, list[Any]] = {}


def _collect(name: str, values: Iterable[Any]) -> None:
    _collected[name] = list(values)  # assigned, not appended: a replayed bundle changes nothing


def run_in_pipeline(
    stage: Stage[Any], params: Any, docs: Sequence[Any]
) -> tuple[list[Any], dict[tuple[str, str], int]]:
    """(documents that come out, documents counted by outcome and reason)."""
    import apache_beam as beam
    import orjson
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

    from refinery.transforms.core import coders  # noqa: F401 - registers the coder of documents
    from refinery.transforms.core.exchange.side_outputs import take_side_outputs

    pipeline = beam.Pipeline(runner=FnApiRunner())
    kept = pipeline | beam.Create(docs) | stage(params)
    records = take_side_outputs(pipeline) | "records" >> beam.Flatten()
    for name, values in (("kept", kept), ("records", records)):
        _collected[name] = []
        grouped = values | f"key {name}" >> beam.WithKeys(0) | f"group {name}" >> beam.GroupByKey()
        grouped | f"collect {name}" >> beam.MapTuple(lambda _, found, name=name: _collect(name, found))
    pipeline.run().wait_until_finish()
    counts: dict[tuple[str, str], int] = {}
    for record in map(orjson.loads, _collected.pop("records")):
        if record["kind"] == "counter":
            key = record["outcome"], record["reason"]
            counts[key] = counts.get(key, 0) + record["documents"]
    return _collected.pop("kept"), counts
