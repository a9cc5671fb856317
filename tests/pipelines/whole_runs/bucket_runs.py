"""The run in a bucket that faults and crashes are compared with."""

from pathlib import Path

from tests.fake_gcs import FakeGcs
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, check_work, command

BUCKET, PREFIX = "bucket", "gs://bucket/out"


def run_in_bucket(forks: ForkServer, gcs: FakeGcs, inputs: Path) -> dict[str, bytes]:
    """Every file of a run to which nothing happens. The bucket is emptied before."""
    gcs.clear()
    done = forks.run(*command(inputs, PREFIX), environment=gcs.environment)
    assert done.code == 0, done.err
    files = gcs.read(BUCKET, "out/")
    check_corpus(files)
    check_work(files)
    return files
