"""The graph of `refinery verify --runner DataflowRunner`: names that a person reads, small, nothing local."""

import apache_beam as beam
import pytest

from refinery.pipelines.corpus.verify.pieces import SHARD, Piece, Question
from refinery.pipelines.corpus.verify.verify_job import CheckCorpus, VerifyJob, share_tasks, shares_for
from refinery.pipelines.runners.same_code import CheckWorkers
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from tests.pipelines.dataflow_graphs import WORK, dry_run, functions, local_strings, no_credentials
from tests.pipelines.runners.dataflow.test_dataflow_graph import EVERY, LIST, own_steps

OWN = ("check", "checked", "ranges", "deal ranges", "join", "joined", "follow")


def test_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the list of shares, whatever that is of."""
    no_credentials(monkeypatch)
    job = VerifyJob(Question("gs://corpus/web", 8, load_tokenizer, 215), "gs://checks/1", WORK, {"samples": 8}, 450)

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | CheckCorpus(TaskList(WORK, "shares/list-0.jsonl", 450, "0" * 64), job)
        pipeline | WriteReport(WORK, "joined.json", {})
        pipeline | CheckWorkers()

    graph = dry_run(build).proto_pipeline
    assert own_steps(graph) == {*EVERY, *(f"verify/{step}" for step in (*OWN, *LIST))}
    assert graph.ByteSize() < 100_000
    assert not [(name, place) for name, code in functions(graph) for place in local_strings() if place in code]


def test_shares_are_bounded_by_bytes_and_documents() -> None:
    """Of 1.85 TB and 0.9 G documents 430 shares; a list of them holds every piece once."""
    pieces = [Piece(SHARD, f"train/web/{n}.bin", n, None, 185 << 20, 90_000) for n in range(10_000)]
    shares = shares_for(pieces)
    assert shares == 430
    assert sum(line.count(b'"shard"') for line in share_tasks(pieces, shares)) == len(pieces)
    assert max(map(len, share_tasks(pieces, shares))) < 4_000
    assert shares_for(pieces[:1]) == 1
