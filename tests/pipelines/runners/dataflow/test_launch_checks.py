"""The table of checks of a launch: typical mistakes, each refused or warned of by the check that is for it."""

import re
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import execute
from refinery.pipelines.runners.dataflow.bucket_facts import BucketFacts, Use, buckets_of, known_facts
from refinery.pipelines.runners.dataflow.job_request import JobRequest
from refinery.pipelines.runners.dataflow.launch_checks import CHECKS, Check, Level, lines_of
from refinery.pipelines.runners.dataflow.launch_flags import fill_in, launch_problems, with_environment
from refinery.pipelines.runners.dataflow.launch_report import QUESTION
from tests.fake_gcs import fake_gcs
from tests.pipelines.dataflow_graphs import NEEDED, OUTPUT, WORK

PRIME = "--dataflow_service_options=enable_prime"
FLEX = "--flexrs_goal=COST_OPTIMIZED"
GPU = "--dataflow_service_options=worker_accelerator=type:nvidia-tesla-t4;count:1;install-nvidia-driver"
IMAGE = "--sdk_container_image=europe-west4-docker.pkg.dev/my-project/refinery"
ACCOUNT = "--service_account_email"
LABEL = "--labels={}"
DISK = "--worker_disk_type=compute.googleapis.com/projects//zones//diskTypes/"
BEAM, PYTHON = version("apache-beam"), "{}.{}".format(*sys.version_info[:2])

# (flags, found by) — the level is the check's own.
MISTAKES = [
    ("--machine_type=n2-standard", "machine_form"),
    ("--machine_type=n2_standard_4", "machine_form"),
    ("--worker_machine_type=4", "machine_form"),
    ("--machine_type=e2-micro", "shared_core"),
    ("--machine_type=e2-medium", "shared_core"),
    ("--machine_type=g1-small", "shared_core"),
    ("--machine_type=t2a-standard-4", "arm"),
    ("--machine_type=c4a-highmem-8", "arm"),
    ("--machine_type=n2-highcpu-8", "little_memory"),
    ("--machine_type=n2-custom-8-16384", "little_memory"),
    (f"{PRIME} --machine_type=n2-standard-8", "prime_machine"),
    ("--experiments=enable_prime --machine_type=n2-standard-8", "prime_machine"),
    (f"{PRIME} {FLEX}", "prime_flexrs"),
    (f"'{GPU}' {FLEX}", "flexrs_gpu"),
    (f"'{GPU}'", "unused_gpu"),
    ("--resource_hint=accelerator=type:nvidia-l4", "unused_gpu"),
    ("--disk_size_gb=10", "small_disk"),
    ("--disk_size_gb=29", "small_disk"),
    ("--disk_size_gb=-1", "small_disk"),
    ("--machine_type=n2-highmem-64", "crowded_disk"),
    ("--worker_disk_type=pd-ssd", "disk_type"),
    (f"--machine_type=n4-standard-4 {DISK}pd-ssd", "disk_of_n4"),
    ("--num_workers=0", "no_workers"),
    ("--max_num_workers=-5", "no_workers"),
    ("--num_workers=51", "too_many_workers"),
    ("--num_workers=9 --max_num_workers=8", "too_many_workers"),
    ("--dataflow_service_options=min_num_workers=51", "bounds_of_workers"),
    ("--dataflow_service_options=min_num_workers=few", "bounds_of_workers"),
    ("--autoscaling_algorithm=NONE", "unknown_number"),
    ("--number_of_worker_harness_threads=0", "no_threads"),
    ("--number_of_worker_harness_threads=12", "many_threads"),
    ("--experiments=no_use_multiple_sdk_containers", "one_process"),
    (LABEL.format("Team=corpora"), "labels"),
    (LABEL.format("team=Corpora"), "labels"),
    (LABEL.format("team:corpora"), "labels"),
    (LABEL.format("9team=x"), "labels"),
    (LABEL.format("=x"), "labels"),
    (LABEL.format("team=a.b"), "labels"),
    (LABEL.format("team=" + "x" * 64), "labels"),
    (LABEL.format("team=" + "語" * 43), "labels"),  # 129 bytes
    ("""--labels='{"team": "Corpora"}'""", "labels"),
    (" ".join(LABEL.format(f"key-{number}=x") for number in range(62)), "many_labels"),
    (LABEL.format("app=web"), "own_labels"),
    (f"{ACCOUNT}=123456-compute@developer.gserviceaccount.com", "default_account"),
    (f"{ACCOUNT}=my-project@appspot.gserviceaccount.com", "default_account"),
    (f"{ACCOUNT}=service-123456@dataflow-service-producer-prod.iam.gserviceaccount.com", "default_account"),
    (f"--sdk_container_image=docker.io/apache/beam_python{PYTHON}_sdk:{BEAM}", "beams_image"),
    (f"{IMAGE}/worker:0.1.0-beam2.70.0", "other_beam"),
    (f"{IMAGE}/worker-py3.7:0.1.0", "other_python"),
    ("--sdk_container_image=us-docker.pkg.dev/my-project/refinery/worker:1", "far_image"),
    ("--sdk_container_image=us-east1-docker.pkg.dev/my-project/refinery/worker:1", "far_image"),
    ("--enable_streaming_engine", "streaming_engine"),
    ("--experiments=enable_windmill_service", "streaming_engine"),
    ("--experiments=disable_runner_v2", "runner_v1"),
    ("--experiments=use_runner_v1,other", "runner_v1"),
    ("--experiments=shuffle_mode=appliance", "shuffle_on_disks"),
]
OF_BUCKETS = {"far_input", "far_output", "soft_delete"}

FINE = [
    "",
    "--machine_type=n2-highmem-8",
    "--machine_type=c3-standard-22-lssd --disk_size_gb=100",
    "--machine_type=n2-custom-4-16384",
    f"--machine_type=n2-standard-8 {DISK}pd-ssd",
    "--disk_size_gb=0",
    "--num_workers=50",
    "--autoscaling_algorithm=NONE --num_workers=10",
    "--dataflow_service_options=min_num_workers=50",
    "--number_of_worker_harness_threads=1",
    "--number_of_worker_harness_threads=4 --machine_type=n2-highmem-4",
    "--labels=team=corpora --labels=größe=語_9- --labels=empty=",
    """--labels='{"team": "corpora"}'""",
    PRIME,
    FLEX,
    f"{IMAGE}/worker:0.1.0-beam{BEAM}-py{PYTHON}",
    "--sdk_container_image=europe-docker.pkg.dev/my-project/refinery/copyright3.7:1",
    "--experiments=shuffle_mode=service",
]


def job_of(flags: str) -> JobRequest:
    """A job with the flags that a launch needs, and these instead of or beside them."""
    more = shlex.split(flags)
    names = {word.partition("=")[0] for word in more}
    filled, given = with_environment([*(flag for flag in NEEDED if flag.split("=")[0] not in names), *more], {})
    return JobRequest(given, filled)


def finding(job: JobRequest) -> dict[str, Check]:
    """The checks that find something, by the names of their functions."""
    return {check.found.__name__: check for check in CHECKS if list(check.lines(job))}


@pytest.mark.parametrize(("flags", "name"), MISTAKES, ids=[f"{name} {flags[:50]}" for flags, name in MISTAKES])
def test_a_mistake_is_found_by_its_check_alone(flags: str, name: str) -> None:
    found = finding(job_of(flags))
    assert set(found) == {name}
    check = found[name]
    for line in check.lines(job_of(flags)):
        assert "\n" not in line and line.startswith(f"{check.flag}: ") and line.endswith(f"({check.source})")
        assert f": {check.why} (" in line


@pytest.mark.parametrize("flags", FINE)
def test_what_is_fine_is_not_found(flags: str) -> None:
    assert finding(job_of(flags)) == {}


def test_every_check_has_its_mistake_and_its_source() -> None:
    assert {check.found.__name__ for check in CHECKS} == {name for _, name in MISTAKES} | OF_BUCKETS
    for check in CHECKS:
        assert re.match(r"https://cloud\.google\.com/\S+$|(Beam's|this project's) code: \S+\.py$", check.source)
        whose, _, file = check.source.partition(" code: ")
        roots = [Path(entry) for entry in sys.path] if whose == "Beam's" else [Path(__file__).parents[4]]
        assert not file or any((root / file).is_file() for root in roots), file
        assert ("; " in check.why or " is allowed" in check.why) == (check.topic != "labels" or "; " in check.why)


def test_a_launch_is_refused_by_what_the_table_refuses_alone() -> None:
    for flags, name in MISTAKES:
        level = next(check.level for check in CHECKS if check.found.__name__ == name)
        given = [*(f for f in NEEDED if f.split("=")[0] not in flags), *shlex.split(flags)]
        lines = list(launch_problems(given, output=OUTPUT, work=WORK, environment={}))
        assert bool(lines) == (level is Level.REFUSED), (flags, lines)


def test_prime_gets_no_machine_type() -> None:
    filled = fill_in([*NEEDED, PRIME], output=OUTPUT, work=WORK, environment={})
    assert not [flag for flag in filled if "machine_type" in flag] and "--disk_size_gb=50" in filled
    assert "50 workers, on machines that Dataflow Prime chooses" in job_of(PRIME).quota_line()


# --- quotas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "amounts"),
    [
        ("", {"N2_CPUS": 200, "INSTANCES": 50, "IN_USE_ADDRESSES": 0, "DISKS_TOTAL_GB": 2500}),
        (
            f"--use_public_ips --max_num_workers=3 --machine_type=e2-standard-8 --disk_size_gb=100 {DISK}pd-ssd",
            {"CPUS": 24, "INSTANCES": 3, "IN_USE_ADDRESSES": 3, "SSD_TOTAL_GB": 300},
        ),
        (
            "--autoscaling_algorithm=NONE --num_workers=7 --machine_type=c4-standard-8 --disk_size_gb=0",
            {"CPUS_PER_VM_FAMILY of C4": 56, "INSTANCES": 7, "IN_USE_ADDRESSES": 0, "HDB_TOTAL_GB": 175},
        ),
        (
            f"{FLEX} --max_num_workers=2",
            {"N2_CPUS": 8, "PREEMPTIBLE_CPUS": 8, "INSTANCES": 2, "IN_USE_ADDRESSES": 0, "DISKS_TOTAL_GB": 100},
        ),
    ],
)
def test_quotas_that_a_job_asks_for(flags: str, amounts: dict[str, int]) -> None:
    job = job_of(flags)
    assert dict(job.quotas()) == amounts
    line = job.quota_line()
    assert all(f"{amount:,} {metric}" in line for metric, amount in amounts.items())
    assert "gcloud compute regions describe europe-west4 --project=my-project" in line


# --- buckets --------------------------------------------------------------------------------------------------------


def found_in(buckets: Sequence[BucketFacts], **read: int) -> list[str]:
    job = JobRequest({"region": "europe-west4"}, buckets=buckets, read=read)
    return [line for _, line in lines_of(job, Level.WARNING)]


def test_buckets_elsewhere_and_soft_delete() -> None:
    here, dual, us = ("europe-west4",), ("europe-north1", "europe-west4"), ("us",)
    near = [BucketFacts("a", frozenset(Use), places) for places in (here, dual, ())]
    assert found_in(near) == []
    (line,) = found_in([BucketFacts("raw", frozenset({Use.INPUT}), us)], raw=3_000_000_000_000)
    assert line.startswith("input: gs://raw is in us, the job in europe-west4, 3.0 TB to read: ")
    (line,) = found_in([BucketFacts("out", frozenset({Use.OUTPUT, Use.TEMPORARY}), us)])
    assert line.startswith("--output, --work, --temp_location, --staging_location: gs://out is in us, ")
    assert found_in([BucketFacts("corpus", frozenset({Use.OUTPUT}), here, 7)]) == []  # deletes nothing there
    (line,) = found_in([BucketFacts("work", frozenset({Use.TEMPORARY}), here, 7)])
    assert "gs://work keeps what is deleted for 7 days: " in line and "--clear-soft-delete" in line
    assert list(lines_of(JobRequest({}, buckets=[BucketFacts("x", frozenset(Use), us)]), Level.WARNING)) == []


def test_what_a_bucket_says(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {Use.INPUT: ["gs://raw/x/*", "s3://other/y", "local"], Use.OUTPUT: ["gs://out/a"]}
    assert buckets_of(places) == {"raw": {Use.INPUT}, "out": {Use.OUTPUT}}
    places[Use.TEMPORARY] = ["gs://out/a/work", "gs://gone/tmp"]
    with fake_gcs("raw", "out") as server:
        server.use(monkeypatch)
        server.api.bucket_fields["raw"] = {"location": "EU"}
        server.api.bucket_fields["out"] = {
            "location": "EUR4",
            "customPlacementConfig": {"dataLocations": ["EUROPE-NORTH1", "EUROPE-WEST4"]},
            "softDeletePolicy": {"retentionDurationSeconds": "604800"},
        }
        found, unknown = known_facts(places, QUESTION)
    assert unknown == ["gone"]
    assert found == [
        BucketFacts("raw", frozenset({Use.INPUT}), ("eu",)),
        BucketFacts("out", frozenset({Use.OUTPUT, Use.TEMPORARY}), ("europe-north1", "europe-west4"), 7.0),
    ]


# --- through the command line ---------------------------------------------------------------------------------------


def test_a_dry_run_says_what_the_table_says(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In buckets: warnings, and the quotas. What is refused is the only line. No other test has these buckets, since a
    process remembers what it has loaded by name."""
    recipe = (small / "recipe.yaml").read_text().replace(str(small), "gs://dry-raw")
    with fake_gcs("dry-raw", "dry-out") as server:
        server.use(monkeypatch)
        for path in small.iterdir():
            server.api.put("dry-raw", path.name, path.read_bytes())
        server.api.bucket_fields["dry-raw"] = {"location": "US-EAST1"}
        server.api.bucket_fields["dry-out"] = {
            "location": "EUROPE-WEST4",
            "softDeletePolicy": {"retentionDurationSeconds": "604800"},
        }
        (tmp_path / "buckets.yaml").write_text(recipe)
        needed = [flag.replace("gs://staging", "gs://dry-out") for flag in NEEDED]
        where = ("--runner", "DataflowRunner", "--output", "gs://dry-out/corpus", "--dry-run", *needed)
        assert execute(["refine", str(tmp_path / "buckets.yaml"), *where, "--machine_type=n2-highcpu-4"]) == 0
        said = capsys.readouterr().out
        assert execute(["refine", str(tmp_path / "buckets.yaml"), *where, "--disk_size_gb=5"]) == 2
        refused = capsys.readouterr().err
        assert not [name for bucket, name in server.api.objects if bucket == "dry-out"]
    assert "warning: --machine_type: n2-highcpu-4 has less than 4 GB" in said
    assert "warning: input: gs://dry-raw is in us-east1, the job in europe-west4" in said
    assert "warning: --work, --temp_location, --staging_location: gs://dry-out keeps what is deleted for 7 days" in said
    assert "quotas: at most 200 N2_CPUS" in said and said.endswith("nothing was written\n")
    assert "--disk_size_gb: 5 GB given: " in refused and len(refused.splitlines()) == 1
