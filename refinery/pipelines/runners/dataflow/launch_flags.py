"""Flags of a job on Dataflow, completed with defaults that are safe and of known cost.

No network access: what only the user can know is asked for in a one-line error before anything runs. The flags are
Beam's own, and terraform's output prints them.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import apache_beam
from apache_beam.internal import cloudpickle_pickler

import refinery
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.runners.dataflow.flag_checks import check_bucket, flag_problems, read_options
from refinery.pipelines.runners.dataflow.job_request import DEFAULTS, JobRequest
from refinery.pipelines.runners.dataflow.launch_checks import Level, lines_of
from refinery.pipelines.runners.dataflow.worker_package import PACKAGE_FILE, build_package

# Label of the job and its machines, by which billing and alerts find them.
LABEL = "app=refinery"
# Otherwise Beam stages `pip freeze` of the launching machine, with its local paths, with every job.
EXPERIMENT = "disable_logging_submission_environment"

# Required flags: why, and an example. {region} is the one given.
NEEDED: Mapping[str, tuple[str, str]] = {
    "project": ("the project that the job runs in", "--project=my-project, or GOOGLE_CLOUD_PROJECT in the environment"),
    "region": ("where the job runs, best where its buckets are", "--region=europe-west4"),
    "temp_location": (
        "for what the job stages; Beam would create its own bucket",
        "--temp_location=gs://STAGING/tmp",
    ),
    "sdk_container_image": (
        "the image that workers run, see Dockerfile",
        "--sdk_container_image={region}-docker.pkg.dev/PROJECT/refinery/worker:0.1.0, or --setup_file=./setup.py to "
        "try without one",
    ),
    "service_account_email": (
        "the account that workers use; the default account of a project may do far too much",
        "--service_account_email=refinery-worker@PROJECT.iam.gserviceaccount.com",
    ),
    "subnetwork": (
        "workers have no public addresses and reach storage through a subnetwork with Private Google Access",
        "--subnetwork=regions/{region}/subnetworks/refinery, or --use_public_ips",
    ),
}
ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "project": ("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
    "region": ("CLOUDSDK_COMPUTE_REGION", "GOOGLE_CLOUD_REGION"),
}


def fill_in(
    flags: Sequence[str],
    *,
    output: str,
    work: str,
    environment: Mapping[str, str] | None = None,
    build: Callable[[], bytes] = build_package,
) -> list[str]:
    """The complete Beam flags of a run on Dataflow: the user's, then the missing ones.

    output, work: where the corpus and the phases' parts go. environment: default: that of the process. build: makes the
    worker package for `--setup_file`; it is published under the staging location, so no option of the job holds a
    local path. Not filled in, because Beam 2.77 or the service do it: Runner v2 and its experiments, one process per
    vCPU, the shuffle service, autoscaling by throughput, the name of a job. Raises ValueError, one line, for what is
    missing, cannot work, must not be stored with the job, or is not in the region of the job. Side effects:
    `hide_paths`; the upload of the worker package.
    """
    for line in launch_problems(flags, output=output, work=work, environment=environment):
        raise ValueError(line)
    filled, given = with_environment(flags, environment)
    staging = given.get("staging_location") or f"{given['temp_location'].rstrip('/')}/staging"
    if not given.get("staging_location"):
        filled.append(f"--staging_location={staging}")
    if given.get("use_public_ips") is None:
        filled.append("--no_use_public_ips")
    chosen = {"machine_type"} if JobRequest(given).is_prime else set()  # by the service
    filled += [
        f"--{name}={value}" for name, value in DEFAULTS.items() if given.get(name) is None and name not in chosen
    ]
    filled += [f"--labels={LABEL}", f"--experiments={EXPERIMENT}", "--no_save_main_session"]
    hide_paths()
    if given.get("setup_file"):
        filled = [*without(filled, "--setup_file"), f"--extra_package={publish_package(staging, build())}"]
    return filled


def launch_problems(
    flags: Sequence[str], *, output: str, work: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A line for everything that a launch with these flags and places would be refused for, one a check. Looks at
    nothing but names. Parameters as in `fill_in`.
    """
    for flag, place in (("--output", output), ("--work", work)):
        try:
            check_bucket(flag, place)
        except ValueError as error:
            yield str(error)
    try:
        filled, given = with_environment(flags, environment)
    except ValueError as error:
        yield str(error)
        return
    try:
        refuse_missing(given)
    except ValueError as error:
        yield str(error)
    yield from flag_problems(given, filled)
    yield from (line for _, line in lines_of(JobRequest(given, filled), Level.REFUSED))


def with_environment(
    flags: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[list[str], dict[str, Any]]:
    """The flags, with project and region from the environment where they say none; and the same as options.

    environment: default: that of the process. Raises ValueError for flags that Beam cannot read.
    """
    environment = os.environ if environment is None else environment
    given = read_options(flags)
    filled = list(flags)
    for name, variables in ENVIRONMENT.items():
        found = next((environment[v] for v in variables if environment.get(v)), "")
        if not given.get(name) and found:
            filled.append(f"--{name}={found}")
    return filled, read_options(filled)


def refuse_missing(given: Mapping[str, object]) -> None:
    """Raises ValueError, one line, for the first required flag that is missing, and names the others."""
    missing = [name for name in NEEDED if not given.get(name)]
    if given.get("setup_file") and "sdk_container_image" in missing:
        missing.remove("sdk_container_image")
    if given.get("use_public_ips") and "subnetwork" in missing:
        missing.remove("subnetwork")
    if missing:
        why, example = NEEDED[missing[0]]
        others = f"; also needed: {', '.join(f'--{name}' for name in missing[1:])}" if missing[1:] else ""
        example = example.format(region=given.get("region") or "REGION")
        raise ValueError(f"--runner DataflowRunner: --{missing[0]} is missing, {why}: {example}{others}")


def publish_package(staging: str, package: bytes) -> str:
    """Publish the worker package under the staging location, named by its content; returns its gs:// address."""
    folder = f"worker/{hashlib.sha256(package).hexdigest()[:32]}"
    store = open_store(staging)
    store.create(f"{folder}/{PACKAGE_FILE}", package)
    return store.url(f"{folder}/{PACKAGE_FILE}")


def without(flags: Sequence[str], name: str) -> list[str]:
    """The flags without that one and its value."""
    kept: list[str] = []
    skip = False
    for flag in flags:
        if not skip and flag.split("=")[0] != name:
            kept.append(flag)
        skip = not skip and flag == name
    return kept


def hide_paths() -> None:
    """Make the code that Beam pickles by value name its module instead of a local path.

    A job's graph is stored with it; otherwise Beam's own lambdas are pickled with the path of the virtual environment.
    """
    cloudpickle_pickler.DEFAULT_CONFIG.filepath_interceptor = hidden_path


def hidden_path(path: str) -> str:
    """`path` as a traceback needs it: from the package on, else the bare file name. Idempotent, since Beam calls it
    repeatedly.
    """
    file = PurePath(path)
    if not file.is_absolute():
        return path
    for root in (PurePath(apache_beam.__file__).parents[1], PurePath(refinery.__file__).parents[1]):
        if file.is_relative_to(root):
            return file.relative_to(root).as_posix()
    return file.name
