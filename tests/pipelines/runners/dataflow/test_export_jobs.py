"""`refinery export --runner DataflowRunner` from bucket to bucket, each job run with the pipeline that Beam staged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import execute
from tests.corpus_factory import build_corpus
from tests.fake_dataflow import FakeDataflow, fake_dataflow, run_staged
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.pipelines.corpus.export.exporting import export, files_of
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

CORPUS = "gs://corpus/web"
# Format, its flags, jobs: one for texts, two for tensors, which counts before it writes.
FORMATS = [("parquet", {}, 1), ("torch", {"shard_tokens": 64}, 2)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("export") / "corpus")


@pytest.fixture
def gcs(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGcs]:
    with fake_gcs("corpus", "exports", "staging") as server:
        server.use(monkeypatch)
        server.put_folder("corpus", "web/", corpus)
        yield server


@pytest.fixture
def dataflow() -> Iterator[FakeDataflow]:
    with fake_dataflow() as server:
        server.plan = lambda job: ["PENDING", "RUNNING", "DONE"]
        server.work = run_staged
        yield server


@pytest.mark.parametrize(("format_", "options", "jobs"), sampled("exports by a service", FORMATS, 1))
def test_the_same_bytes_as_here(
    gcs: FakeGcs,
    dataflow: FakeDataflow,
    corpus: Path,
    tmp_path: Path,
    format_: str,
    options: dict[str, int],
    jobs: int,
) -> None:
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [
        *("export", CORPUS, "--format", format_, "--output", f"gs://exports/{format_}", *flags),
        *("--runner", "DataflowRunner", "--project=project", "--region=europe-west4"),
        *("--temp_location=gs://staging/tmp", "--sdk_location=container", "--use_public_ips", *dataflow.flags),
        "--sdk_container_image=europe-west4-docker.pkg.dev/project/refinery/worker:1",
        "--service_account_email=worker@project.iam.gserviceaccount.com",
    ]
    assert execute(command) == 0
    assert [state for _, state in dataflow.states()] == ["DONE"] * jobs
    assert all(job.body["labels"]["refinery-phase"] == "export" for job in dataflow.jobs)
    assert execute(["verify", f"gs://exports/{format_}"]) == 0

    calls = len(dataflow.calls)
    assert execute(command) == 0 and len(dataflow.calls) == calls  # it is finished: nothing is launched

    export(corpus, tmp_path / "here", format_, **options)
    assert gcs.read("exports", f"{format_}/") == files_of(tmp_path / "here")
