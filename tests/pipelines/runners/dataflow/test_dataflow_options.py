"""What a launch on Dataflow fills in, and what it refuses before anything runs."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from refinery.pipelines.runners.dataflow import launch_flags as dataflow
from refinery.pipelines.runners.dataflow.flag_checks import check_reach, named_files
from refinery.pipelines.runners.dataflow.launch_flags import DEFAULTS, fill_in, hidden_path, without
from refinery.pipelines.training import sample
from refinery.transforms.core import memory
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from tests.pipelines.dataflow_graphs import NEEDED, OUTPUT, WORK, demo_recipe

SETUP = "--setup_file=setup.py"


def fill(flags: Any, environment: Mapping[str, str] | None = None, **places: str) -> list[str]:
    return fill_in(list(flags), **{"output": OUTPUT, "work": WORK, **places}, environment=environment or {})


def leave_out(*names: str) -> list[str]:
    return [flag for flag in NEEDED if flag.split("=")[0].removeprefix("--") not in names]


def test_what_the_user_leaves_out_is_filled_in() -> None:
    assert fill(NEEDED) == [
        *NEEDED,
        "--staging_location=gs://staging/temporary/staging",
        "--no_use_public_ips",
        "--machine_type=n2-standard-4",
        "--max_num_workers=50",
        "--disk_size_gb=50",
        "--number_of_worker_harness_threads=2",
        "--labels=app=refinery",
        "--experiments=disable_logging_submission_environment",
        "--no_save_main_session",
    ]


@pytest.mark.parametrize(
    ("flag", "option", "value"),
    [
        ("--worker_machine_type=c3-highmem-8", "machine_type", "c3-highmem-8"),
        ("--max_num_workers 7", "max_num_workers", 7),
        ("--disk_size_gb=200", "disk_size_gb", 200),
        ("--number_of_worker_harness_threads=1", "number_of_worker_harness_threads", 1),
        ("--staging_location=gs://other/x", "staging_location", "gs://other/x"),
        ("--use_public_ips", "use_public_ips", True),
        ("--no_use_public_ips", "use_public_ips", False),
        ("--flexrs_goal=COST_OPTIMIZED", "flexrs_goal", "COST_OPTIMIZED"),
        ("--experiments=x", "experiments", ["x", "disable_logging_submission_environment"]),
        ("--label team=corpora", "labels", ["team=corpora", "app=refinery"]),
    ],
)
def test_what_the_user_says_stands(flag: str, option: str, value: object) -> None:
    options = PipelineOptions(fill([*NEEDED, *shlex.split(flag)])).get_all_options()
    assert options[option] == value
    assert options["save_main_session"] is False
    assert options["project"] == "my-project"


def test_project_and_region_may_stand_in_the_environment() -> None:
    flags = leave_out("project", "region")
    environment = {"GOOGLE_CLOUD_PROJECT": "project-1", "CLOUDSDK_COMPUTE_REGION": "europe-west4"}
    assert fill(flags, environment)[len(flags) : len(flags) + 2] == ["--project=project-1", "--region=europe-west4"]
    assert fill(NEEDED, {**environment, "GOOGLE_CLOUD_PROJECT": "project-2"}) == fill(NEEDED)
    older = {"CLOUDSDK_CORE_PROJECT": "project-3", "GOOGLE_CLOUD_REGION": "europe-west4"}
    assert "--project=project-3" in fill(flags, older)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("project", "--project is missing, .*: --project=my-project, or GOOGLE_CLOUD_PROJECT in the environment"),
        ("region", "--region is missing, .*: --region=europe-west4"),
        ("temp_location", "--temp_location is missing, .*: --temp_location=gs://STAGING/tmp"),
        (
            "sdk_container_image",
            "--sdk_container_image is missing, .*europe-west4-docker.*, or --setup_file=./setup.py to try.*",
        ),
        ("service_account_email", "--service_account_email is missing, .*gserviceaccount.com"),
        ("subnetwork", "--subnetwork is missing, .*regions/europe-west4/subnetworks/refinery, or --use_public_ips"),
    ],
)
def test_what_is_needed_is_asked_for_in_one_line(missing: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^--runner DataflowRunner: {message}$") as caught:
        fill(leave_out(missing))
    assert "\n" not in str(caught.value)


def test_all_that_is_missing_is_named_at_once() -> None:
    others = "--region, --temp_location, --sdk_container_image, --service_account_email, --subnetwork"
    with pytest.raises(ValueError, match=rf"--project is missing.*; also needed: {others}$"):
        fill([])


def test_public_addresses_need_no_subnetwork() -> None:
    assert "--no_use_public_ips" not in fill([*leave_out("subnetwork"), "--use_public_ips"])


REFUSED = [
    ("--streaming", "--streaming: a corpus is made by batch jobs"),
    ("--update", "--update: only streaming jobs"),
    ("--save_main_session", "--save_main_session: jobs need nothing"),
    ("--requirements_file=requirements.txt", "--requirements_file: it stores a path of this machine"),
    ("--extra_package=x.tar.gz", "--extra_packages: the worker package is made by --setup_file"),
    ("--files_to_stage=a", "--files_to_stage: it stores paths of this machine"),
    ("--zone=europe-west4-a", "--zone: it is deprecated"),
    ("--network=default", "--network: a subnetwork is in one"),
    ("--worker_harness_container_image=a/b:1", "--worker_harness_container_image: it is deprecated"),
    ("--num_workers=many", "flags for Beam: argument --num_workers: invalid int value: 'many'"),
    ("--temp_location=staging/tmp", "--temp_location: 'staging/tmp' given, gs://BUCKET/… is allowed"),
    ("--staging_location=/tmp/x", "--staging_location: '/tmp/x' given, gs://BUCKET/… is allowed"),
    ("--staging_location=s3://bucket/x", "given, gs://BUCKET/… is allowed: workers on Dataflow have no credentials"),
    ("--temp_location=gs://Big/tmp", "--temp_location: 'gs://Big/tmp' given"),
    ("--project=My_Project", "--project: 'My_Project' given, a project's id is allowed"),
    ("--region=europe", "--region: 'europe' given, a region such as europe-west4 is allowed"),
    ("--subnetwork=refinery", "--subnetwork: 'refinery' given, regions/REGION/subnetworks/NAME"),
    ("--subnetwork=regions/us-east1/subnetworks/s", "--subnetwork: in us-east1, but the job is in europe-west4"),
    (
        "--subnetwork=https://www.googleapis.com/compute/v1/projects/p/regions/us-east1/subnetworks/s",
        "--subnetwork: in us-east1, but",
    ),
    ("--dataflow_kms_key=mykey", "--dataflow_kms_key: 'mykey' given, projects/P/locations/REGION"),
    (
        "--dataflow_kms_key=projects/p/locations/global/keyRings/r/cryptoKeys/k",
        "--dataflow_kms_key: in global, but the job is in europe-west4",
    ),
    ("--service_account_email=me@example.org", "--service_account_email: 'me@example.org' given"),
    ("--sdk_container_image=worker", "--sdk_container_image: 'worker' given, REGISTRY/NAME:TAG or"),
    ("--sdk_container_image=eu-docker.pkg.dev/p/r/w", "--sdk_container_image: .* a tag other than latest, or a digest"),
    ("--sdk_container_image=eu-docker.pkg.dev/p/r/w:latest", "a tag other than latest, or a digest, is allowed"),
    ("--worker_region=us-east1", "--worker_region: us-east1 given, the shuffle service needs it in europe-west4"),
    ("--worker_zone=us-east1-b", "--worker_zone: us-east1-b given, a zone of europe-west4"),
    ("--flexrs_goal=COST_OPTIMIZED --autoscaling_algorithm=NONE", "--flexrs_goal: COST_OPTIMIZED needs autoscaling"),
    ("--flexrs_goal=COST_OPTIMIZED --resource_hint=min_ram=9GB", "--flexrs_goal: COST_OPTIMIZED cannot be combined"),
    ("--setup_file=/elsewhere/setup.py", "--setup_file: '/elsewhere/setup.py' given, refinery's own"),
    (SETUP, "--setup_file: --sdk_container_image given, too"),
    (
        "--dataflow_job_file=/tmp/job.json",
        "--dataflow_job_file: '/tmp/job.json' given, but workers cannot read a path of this machine",
    ),
    (
        "--sdk_location=~/beam.tar.gz",
        "--sdk_location: '~/beam.tar.gz' given, but workers cannot read a path of this machine",
    ),
    (
        "--sdk_location=pipelines/lanes/web.py",
        "--sdk_location: 'pipelines/lanes/web.py' given, but workers cannot read a path of this machine",
    ),
]


@pytest.mark.parametrize(("flags", "message"), REFUSED, ids=[flags[:60] for flags, _ in REFUSED])
def test_what_cannot_work_is_refused_in_one_line(flags: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        fill([*NEEDED, *flags.split()])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "flag",
    [
        "--s3_access_key_id=" + "qqq",
        "--s3_secret_access_key=" + "qqq",
        "--s3_session_token=" + "qqq",
        "--labels=key=" + "AIza" + "x" * 35,
        "--labels=key=" + "ghp_" + "a" * 36,
        "--label=" + "AKIA" + "ABCDEFGHIJKLMNOP",
        "--dataflow_service_options=t=" + "ya29." + "abc",
        "--experiments=" + "hf_" + "a" * 34,
        "--dataflow_endpoint=https://me:word@host.example",
        "--job_name=-----BEGIN " + "PRIVATE KEY-----",
    ],
)
def test_credentials_never_become_options(flag: str) -> None:
    with pytest.raises(
        ValueError, match="looks like a credential, and options are stored with the job in clear text"
    ) as caught:
        fill([*NEEDED, flag])
    assert flag.partition("=")[2] not in str(caught.value)


@pytest.mark.parametrize(
    ("flag", "place"), [("output", "out/web"), ("work", "work"), ("output", "gs://"), ("work", "")]
)
def test_results_go_to_buckets(flag: str, place: str) -> None:
    with pytest.raises(ValueError, match=f"^--{flag}: '{place}' given, gs://BUCKET/… is allowed"):
        fill(NEEDED, **{flag: place})


def test_without_an_image_a_package_is_published_by_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    published: dict[str, bytes] = {}
    store = SimpleNamespace(create=published.__setitem__, url=lambda name: f"gs://staging/temporary/staging/{name}")
    monkeypatch.setattr(dataflow, "open_store", lambda url: store if url == "gs://staging/temporary/staging" else None)
    monkeypatch.chdir(Path(__file__).parents[4])
    flags = [*leave_out("sdk_container_image"), "--setup_file", "./setup.py"]
    with pytest.raises(ValueError, match="--setup_file: every worker installs its libraries from the internet"):
        fill(flags)
    filled = fill_in([*flags, "--use_public_ips"], output=OUTPUT, work=WORK, environment={}, build=lambda: b"a package")
    (name,) = published
    assert published[name] == b"a package"
    assert [flag for flag in filled if "setup" in flag or "package" in flag] == [
        f"--extra_package=gs://staging/temporary/staging/{name}"
    ]
    assert name.endswith(f"/{dataflow.PACKAGE_FILE}")


def test_flags_are_taken_out_with_their_values() -> None:
    flags = ["--a", "1", "--b", "--b=2", "--setup_file", "x", "--c=--setup_file", "--setup_file=y", "z"]
    assert without(flags, "--setup_file") == ["--a", "1", "--b", "--b=2", "--c=--setup_file", "z"]


def test_paths_in_pickled_code_start_at_the_package() -> None:
    import apache_beam

    assert hidden_path(apache_beam.__file__) == "apache_beam/__init__.py"
    assert hidden_path(dataflow.__file__) == "refinery/pipelines/runners/dataflow/launch_flags.py"
    assert hidden_path("/home/someone/x.py") == "x.py"
    assert hidden_path("apache_beam/x.py") == "apache_beam/x.py"


LOCAL = [
    ({"sources": [{"name": "a", "paths": ["gs://b/*", "crawl/*.warc"]}]}, r"sources\[0\].paths: 'crawl/\*.warc' given"),
    ({"tokenizer": {"path": "tokenizer.json"}}, "tokenizer.path: 'tokenizer.json' given"),
    ({"quality": {"model": "/models/quality.bin"}}, "quality.model: '/models/quality.bin' given"),
    ({"language": {"model": "lid.bin"}}, "language.model: 'lid.bin' given"),
    ({"url": {"domain_lists": ["gs://b/x", "block.txt"]}}, "url.domain_lists: 'block.txt' given"),
    ({"url": {"pattern_lists": ["patterns.txt"]}}, "url.pattern_lists: 'patterns.txt' given"),
    ({"toxicity": {"word_lists": ["words.txt"]}}, "toxicity.word_lists: 'words.txt' given"),
    ({"reference_corpora": [{"prefix": "out/old"}]}, r"reference_corpora\[0\].prefix: 'out/old' given"),
    (
        {"reference_corpora": [{"prefix": "gs://b/old", "work": "old/work"}]},
        r"reference_corpora\[0\].work: 'old/work' given",
    ),
    ({"sources": [{"name": "a", "path_lists": ["x.paths"]}]}, r"sources\[0\].path_lists: 'x.paths' given"),
    ({"tokenizer": {"path": "https://example.org/x.json"}}, "tokenizer.path: 'https://.*' given"),
]


@pytest.mark.parametrize(("sections", "message"), LOCAL)
def test_files_that_workers_cannot_see_are_refused_by_their_key(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=f"^{message}, which workers on Dataflow cannot see; copy it"):
        check_reach(demo_recipe(**sections))


def test_files_in_buckets_are_fine() -> None:
    check_reach(demo_recipe(), reuse="gs://corpus/old")
    public = ["https://example.org/x.warc", "s3://commoncrawl/x.warc.gz", "hf://datasets/org/set@main"]
    check_reach(demo_recipe(sources=[{"name": "a", "paths": public}]))
    assert [key for key, _ in named_files(demo_recipe())] == [
        *("sources[0].paths", "sources[1].paths", "quality.model", "tokenizer.path")
    ]
    with pytest.raises(RecipeError, match=r"^--reuse: 'out/old' given, gs://BUCKET/… is allowed on Dataflow$"):
        check_reach(demo_recipe(), reuse="out/old")


def test_samples_are_taken_on_this_machine() -> None:
    with pytest.raises(ValueError, match=r"^--runner: DataflowRunner given, samples are taken on this machine"):
        sample.sample_texts(demo_recipe(), SimpleNamespace(name="DataflowRunner"), 1, 1)  # type: ignore[arg-type]


def test_the_command_that_terraform_prints_is_complete() -> None:
    text = (Path(__file__).parents[4] / "terraform" / "outputs.tf").read_text()
    block = text[text.index("launch = [") : text.index("]\n}")]
    printed = re.findall(r'"(--\w+)', block)
    values = {
        **dict(flag.split("=") for flag in NEEDED),
        "--staging_location": "gs://staging/staging",
        "--subnetwork": "https://www.googleapis.com/compute/v1/projects/p/regions/europe-west4/subnetworks/workers",
        "--dataflow_kms_key": "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k",
        "--max_num_workers": "9",
    }
    flags = [text for name in printed if name in values for text in (name, values[name])]
    own = {"--input", "--set", "--output", "--work", "--runner"}
    assert set(printed) == {*own, *values, "--no_use_public_ips"}
    filled = fill([*flags, "--no_use_public_ips"])
    options = PipelineOptions(filled).get_all_options()
    assert (options["max_num_workers"], options["use_public_ips"]) == (9, False)
    assert options["staging_location"] == "gs://staging/staging"


def test_memory_hints_are_reckoned_for_the_default_worker() -> None:
    family, _, cpus = DEFAULTS["machine_type"].rpartition("-")
    assert family == "n2-standard"  # 4 GB for each vCPU
    assert int(cpus) * 4_000_000_000 == memory.WORKER_BYTES
    assert int(cpus) * int(DEFAULTS["number_of_worker_harness_threads"]) == memory.BUNDLES
