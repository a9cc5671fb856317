"""The whole job as Dataflow would get it, by --template_location on a fake Cloud Storage: golden, and nothing local."""

import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_runner_api_pb2 as api

from refinery.pipelines.runners.dataflow.launch_flags import fill_in
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.pipelines.dataflow_graphs import (
    NEEDED,
    OFFLINE,
    OUTPUT,
    WORK,
    demo_recipe,
    functions,
    local_strings,
    no_credentials,
    options_of,
    phase_build,
)
from tests.sampling import one_commit_in_four

KEY = "projects/my-project/locations/europe-west4/keyRings/refinery/cryptoKeys/staging"
MORE = (f"--dataflow_kms_key={KEY}", "--flexrs_goal=COST_OPTIMIZED", "--labels=refinery-phase=clean")


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGcs]:
    no_credentials(monkeypatch)
    with fake_gcs("staging", "corpus", "raw") as server:
        server.use(monkeypatch)
        yield server


def launch(server: FakeGcs, flags: tuple[str, ...], folder: Path, phase: str = "clean") -> dict[str, Any]:
    """The job's JSON."""
    filled = fill_in(flags, output=OUTPUT, work=WORK, environment={})
    template = "--template_location=gs://staging/template.json"
    pipeline = beam.Pipeline(options=options_of([*filled, *OFFLINE, template]))
    phase_build(phase, demo_recipe(), 10, folder)(pipeline)
    pipeline.run()
    job: dict[str, Any] = json.loads(server.read("staging")["template.json"])
    return job


def staged(server: FakeGcs) -> dict[str, bytes]:
    """What was staged for the job, by its own name."""
    found = server.read("staging", "temporary/staging/")
    return {name.split("/", 1)[1]: data for name, data in found.items() if name.startswith("refinery-test.")}


def test_the_whole_job(gcs: FakeGcs, tmp_path: Path) -> None:
    job = launch(gcs, (*NEEDED, *MORE), tmp_path)
    assert (job["name"], job["type"]) == ("refinery-test", "JOB_TYPE_BATCH")
    assert job["labels"] == {"app": "refinery", "refinery-phase": "clean"}
    environment = job["environment"]
    assert environment["serviceAccountEmail"] == "refinery-worker@my-project.iam.gserviceaccount.com"
    assert environment["serviceKmsKeyName"] == KEY
    assert environment["flexResourceSchedulingGoal"] == "FLEXRS_COST_OPTIMIZED"
    assert environment["version"] == {"job_type": "FNAPI_BATCH", "major": "8"}
    assert re.fullmatch(
        r"storage.googleapis.com/staging/temporary/refinery-test\.[0-9.]+", environment["tempStoragePrefix"]
    )
    assert sorted(environment["experiments"]) == [
        *("beam_fn_api", "disable_logging_submission_environment", "use_multiple_sdk_containers"),
        *("use_portable_job_submission", "use_runner_v2", "use_unified_worker"),
    ]
    (pool,) = environment["workerPools"]
    image = "europe-west4-docker.pkg.dev/my-project/refinery/worker:0.1.0"
    (container,) = pool.pop("sdkHarnessContainerImages")
    assert container["containerImage"] == pool.pop("workerHarnessContainerImage") == image
    assert container["useSingleCorePerContainer"] is True  # one process per vCPU
    assert {name: value for name, value in pool.items() if name not in ("taskrunnerSettings", "kind")} == {
        "machineType": "n2-standard-4",
        "diskSizeGb": 50,
        "numThreadsPerWorker": 2,
        "ipConfiguration": "WORKER_IP_PRIVATE",
        "subnetwork": "regions/europe-west4/subnetworks/refinery",
        "autoscalingSettings": {"maxNumWorkers": 50},
    }
    assert set(staged(gcs)) == {"pipeline.pb"}  # neither packages nor `pip freeze` of this machine
    assert len(gcs.read("staging")["template.json"]) < 20_000  # steps are in pipeline.pb


@pytest.mark.parametrize("phase", ["clean", "dedup", "shards"])
def test_no_option_and_no_byte_names_this_machine(gcs: FakeGcs, tmp_path: Path, phase: str) -> None:
    job = launch(gcs, (*NEEDED, *MORE), tmp_path, phase)
    options = job["environment"]["sdkPipelineOptions"]["options"]
    assert options["save_main_session"] is False
    assert options["temp_location"].startswith("gs://staging/temporary/")
    texts = [value for value in options.values() if isinstance(value, str)]
    assert not [text for text in texts if text.startswith(("/", "~", ".", "file:"))]
    assert not [name for name in options if re.search("secret|password|token|credential", name)]
    graph = api.Pipeline.FromString(staged(gcs)["pipeline.pb"])
    everything = [*gcs.read("staging").values(), *(code for _, code in functions(graph))]
    assert not [place for place in local_strings() for data in everything if place in data]
    assert b"apache_beam/transforms/core.py" in b"".join(everything)  # it was looked at unpacked


@one_commit_in_four
def test_the_quick_way_stages_the_package_and_names_no_path(
    gcs: FakeGcs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[4])
    flags = [flag for flag in NEEDED if "image" not in flag and "subnetwork" not in flag]
    job = launch(gcs, (*flags, "--setup_file=setup.py", "--use_public_ips"), tmp_path)
    files = staged(gcs)
    assert set(files) == {"pipeline.pb", "corpus-refinery-0.1.0.tar.gz", "extra_packages.txt"}
    assert files["extra_packages.txt"] == b"corpus-refinery-0.1.0.tar.gz\n"
    options = job["environment"]["sdkPipelineOptions"]["options"]
    assert "setup_file" not in options
    (package,) = options["extra_packages"]
    assert re.fullmatch(r"gs://staging/temporary/staging/worker/[0-9a-f]{32}/corpus-refinery-0\.1\.0\.tar\.gz", package)
    assert gcs.read("staging")[package.removeprefix("gs://staging/")] == files["corpus-refinery-0.1.0.tar.gz"]
    (pool,) = job["environment"]["workerPools"]
    assert pool["workerHarnessContainerImage"].endswith("/beam_python3.11_sdk:2.77.0")
    assert {entry["name"] for entry in pool["packages"]} == {"corpus-refinery-0.1.0.tar.gz", "extra_packages.txt"}
    with tarfile.open(fileobj=io.BytesIO(files["corpus-refinery-0.1.0.tar.gz"])) as archive:
        assert "corpus-refinery-0.1.0/setup.py" in archive.getnames()
    everything = [
        *gcs.read("staging").values(),
        *(c for _, c in functions(api.Pipeline.FromString(files["pipeline.pb"]))),
    ]
    assert not [place for place in local_strings() for data in everything if place in data]
