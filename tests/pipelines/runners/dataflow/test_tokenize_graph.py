"""The graph of `refinery tokenize --runner DataflowRunner`: names that a person reads, small, nothing local."""

import apache_beam as beam
import pytest

from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.pipelines.run.tokenizing.graph import CarryFiles, ReadTexts, tokenize
from refinery.pipelines.run.tokenizing.read_texts import TextFormat
from refinery.pipelines.runners.same_code import CheckWorkers
from refinery.transforms.core.job.report import no_check
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.write.shards import ShardsJob, provenance_columns
from refinery.transforms.write.text_writers import TEXT_WRITERS
from tests.pipelines.dataflow_graphs import OUTPUT, WORK, demo_recipe, dry_run, functions, local_strings, no_credentials
from tests.pipelines.runners.dataflow.test_dataflow_graph import own_steps


@pytest.mark.parametrize("writer", TEXT_WRITERS)
def test_the_graph(writer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_credentials(monkeypatch)
    recipe = demo_recipe()
    columns = provenance_columns(recipe.provenance())
    form = TextFormat("gs://texts", TEXT_WRITERS[writer], None, {}, recipe.counted(), frozenset({"crawl", "notes"}))
    counts = {"train/web": 20_000, "validation/web": 200}
    job = ShardsJob(recipe.shards, counts, {"crawl": "web", "notes": "web"}, "uint16", columns, OUTPUT)

    def build(pipeline: beam.Pipeline) -> None:
        read = ReadTexts(TaskList(WORK, "shards/list-0.jsonl", 20_000, "0" * 64), form)
        carry = CarryFiles(TaskList(WORK, "shards/list-1.jsonl", 12, "0" * 64), "gs://texts", OUTPUT, REMOVALS)
        tokenize(pipeline, recipe, read, carry, job, WORK, "shards/report.json", {}, no_check, {})
        pipeline | CheckWorkers()

    graph = dry_run(build).proto_pipeline
    steps = own_steps(graph)
    assert {"read-texts/read", "carry-files/carry"} <= steps
    assert {step.split("/")[0] for step in steps} >= {"read-texts", "encode", "shuffle", "write-shards", "carry-files"}
    assert not {step.split("/")[0] for step in steps} & {"pii", "quality", "toxicity"}
    assert graph.ByteSize() < 200_000
    assert not [(name, place) for name, code in functions(graph) for place in local_strings() if place in code]
