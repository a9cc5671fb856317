"""What can be wrong with a launch on Dataflow: a function for each check of launch_checks.py. Each yields a phrase for
everything that it finds, and nothing where all is well."""

import ast
import re
import sys
import unicodedata
from collections.abc import Iterator
from importlib.metadata import version

from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.runners.dataflow.bucket_facts import BucketFacts, Use
from refinery.pipelines.runners.dataflow.job_request import DEFAULTS, JobRequest
from refinery.pipelines.runners.dataflow.machine_types import ARM, SHARED
from refinery.transforms.write.write_documents import PART_BYTES

Found = Iterator[str]

LEAST_DISK_GB = 30  # of a worker, by Dataflow's documentation of disk_size_gb
MOST_LABELS, OWN_LABELS = 64, 3  # app, refinery-phase, refinery-run
LABEL_CHARACTERS, LABEL_BYTES = 63, 128
DEFAULT_ACCOUNT = re.compile(
    r"\d+-compute@developer\.gserviceaccount\.com|[^@]+@appspot\.gserviceaccount\.com"
    r"|service-\d+@[a-z0-9.-]+\.gserviceaccount\.com"
)
BEAMS_IMAGE = re.compile(r"(^|/)beam_[a-z]+[0-9.]*_sdk([:@]|$)")
BEAM_VERSION = re.compile(r"beam(?:_python\d\.\d+_sdk)?[-_.:]?v?(\d+\.\d+\.\d+)")
PYTHON_VERSION = re.compile(r"(?<![a-z])py(?:thon)?[-_]?(3\.\d+)")
REGISTRY = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/")
CONTINENTS = {"us": "us-", "europe": "europe-", "asia": "asia-"}  # registries of several regions: their regions' names
RUNNER_V1 = ("disable_portable_runner", "disable_runner_v2", "disable_prime_runner_v2", "use_runner_v1")
STREAMING = ("enable_streaming_engine", "enable_windmill_service")


def machine_form(job: JobRequest) -> Found:
    if not job.is_machine_known:
        yield f"{job.machine!r:.80} given"


def shared_core(job: JobRequest) -> Found:
    if job.machine in SHARED:
        yield f"{job.machine} given"


def arm(job: JobRequest) -> Found:
    if ARM.match(job.machine) and job.given.get("sdk_container_image"):
        yield f"{job.machine} given, which is Arm"


def little_memory(job: JobRequest) -> Found:
    memory = job.memory_per_vcpu
    if memory is not None and memory < 4 and job.machine not in SHARED:
        yield f"{job.machine} has less than 4 GB for each vCPU"


def prime_machine(job: JobRequest) -> Found:
    if job.is_prime and job.given.get("machine_type"):
        yield f"{job.machine} given with enable_prime"


def prime_flexrs(job: JobRequest) -> Found:
    if job.is_prime and job.given.get("flexrs_goal") == "COST_OPTIMIZED":
        yield "COST_OPTIMIZED given with enable_prime"


def accelerators(job: JobRequest) -> list[str]:
    """GPUs that workers are asked to have: a service option, or a hint for all steps."""
    hints = [hint.partition("=")[2] for hint in job.words("resource_hints") if hint.startswith("accelerator=")]
    option = job.service_option("worker_accelerator")
    return [*hints, *([option] if option is not None else [])]


def flexrs_gpu(job: JobRequest) -> Found:
    if job.given.get("flexrs_goal") == "COST_OPTIMIZED":
        yield from (f"{gpu!r:.80} given with --flexrs_goal" for gpu in accelerators(job))


def unused_gpu(job: JobRequest) -> Found:
    if not job.own_modules and job.given.get("flexrs_goal") != "COST_OPTIMIZED":  # which has none
        yield from (f"{gpu!r:.80} given" for gpu in accelerators(job))


def small_disk(job: JobRequest) -> Found:
    size = job.number("disk_size_gb")
    if size and size < LEAST_DISK_GB:
        yield f"{size} GB given"


def crowded_disk(job: JobRequest) -> Found:
    needed = LEAST_DISK_GB + job.bundles * PART_BYTES / 1e9
    if LEAST_DISK_GB <= job.disk_gb < needed:
        yield f"{job.disk_gb} GB for {job.bundles} bundles at once, {needed:.0f} are needed"


def disk_type(job: JobRequest) -> Found:
    given = str(job.given.get("disk_type") or "")
    if given and not re.fullmatch(r"compute\.googleapis\.com/projects/[^/]*/zones/[^/]*/diskTypes/[a-z0-9-]+", given):
        yield f"{given!r:.80} given"


def disk_of_n4(job: JobRequest) -> Found:
    kind = str(job.given.get("disk_type") or "").rpartition("/")[2]
    if job.family.startswith("n4") and kind.startswith("pd-"):
        yield f"{kind} given for {job.machine}"


def no_workers(job: JobRequest) -> Found:
    for name in ("num_workers", "max_num_workers"):
        if job.given.get(name) is not None and int(job.given[name]) < 1:
            yield f"{name}={job.given[name]} given"


def too_many_workers(job: JobRequest) -> Found:
    first, most = int(job.given.get("num_workers") or 0), job.number("max_num_workers")
    if most > 0 and first > most:
        yield f"{first} given, more than {most} of --max_num_workers"


def bounds_of_workers(job: JobRequest) -> Found:
    given = job.service_option("min_num_workers")
    if given is not None and not (given.isdecimal() and 1 <= int(given) <= job.number("max_num_workers")):
        yield f"{given!r:.80} given, 1 to {job.number('max_num_workers')} is allowed"


def unknown_number(job: JobRequest) -> Found:
    if job.given.get("autoscaling_algorithm") == "NONE" and not job.given.get("num_workers"):
        yield "NONE given without --num_workers"


def no_threads(job: JobRequest) -> Found:
    if job.number("number_of_worker_harness_threads") < 1:
        yield f"{job.given['number_of_worker_harness_threads']} given"


def many_threads(job: JobRequest) -> Found:
    threads, usual = job.number("number_of_worker_harness_threads"), DEFAULTS["number_of_worker_harness_threads"]
    if threads > int(usual) and "-highmem-" not in job.machine:
        yield f"{threads} given, with {job.machine}"


def one_process(job: JobRequest) -> Found:
    if "no_use_multiple_sdk_containers" in job.words("experiments"):
        yield "given"


def label_pairs(job: JobRequest) -> list[tuple[str, str]]:
    """Key and value of each label, as Beam's client reads them: KEY=VALUE, or an object of several."""
    pairs: list[tuple[str, str]] = []
    for label in map(str, job.given.get("labels") or ()):
        if "{" not in label:
            key, _, value = label.partition("=")
            pairs.append((key, value))
            continue
        try:
            pairs += [(str(key), str(value)) for key, value in ast.literal_eval(label).items()]
        except (ValueError, SyntaxError, AttributeError):
            pairs.append((label, ""))
    return pairs


def is_label_text(text: str) -> bool:
    """Whether all characters are lower-case letters, letters without case, digits, - or _, and not too many."""
    fits = len(text) <= LABEL_CHARACTERS and len(text.encode()) <= LABEL_BYTES
    return fits and all(c in "-_" or unicodedata.category(c) in ("Ll", "Lo", "Nd", "Nl", "No") for c in text)


def labels(job: JobRequest) -> Found:
    for key, value in label_pairs(job):
        if not key or not is_label_text(key) or unicodedata.category(key[0]) not in ("Ll", "Lo"):
            yield f"key {key!r:.90} given"
        elif not is_label_text(value):
            yield f"value {value!r:.90} of {key} given"


def many_labels(job: JobRequest) -> Found:
    given = {key for key, _ in label_pairs(job)}
    if len(given) + OWN_LABELS > MOST_LABELS:
        yield f"{len(given)} given"


def own_labels(job: JobRequest) -> Found:
    for key, value in label_pairs(job):
        if key == "app" and value != "refinery":
            yield f"{key}={value:.80} given"


def default_account(job: JobRequest) -> Found:
    account = str(job.given.get("service_account_email") or "")
    if DEFAULT_ACCOUNT.fullmatch(account):
        yield f"{account} given"


def image_of(job: JobRequest) -> str:
    return str(job.given.get("sdk_container_image") or "")


def beams_image(job: JobRequest) -> Found:
    if BEAMS_IMAGE.search(image_of(job)):
        yield f"{image_of(job)} given"


def other_beam(job: JobRequest) -> Found:
    here = version("apache-beam")
    yield from (
        f"Beam {found} in {image_of(job)}, {here} here"
        for found in BEAM_VERSION.findall(image_of(job))
        if found != here
    )


def other_python(job: JobRequest) -> Found:
    here = "{}.{}".format(*sys.version_info[:2])
    yield from (
        f"Python {found} in {image_of(job)}, {here} here"
        for found in PYTHON_VERSION.findall(image_of(job))
        if found != here
    )


def far_image(job: JobRequest) -> Found:
    registry = REGISTRY.match(image_of(job))
    if not registry or not job.region or registry[1] == job.region:
        return
    if not job.region.startswith(CONTINENTS.get(registry[1], registry[1] + "/")):
        yield f"{registry[1]} is not {job.region}"


def streaming_engine(job: JobRequest) -> Found:
    if "--enable_streaming_engine" in job.flags:  # on by default among Beam's options, so only the flag itself says it
        yield "given"
    yield from (f"--experiments={word} given" for word in job.words("experiments") if word in STREAMING)


def runner_v1(job: JobRequest) -> Found:
    yield from (f"{word} given" for word in job.words("experiments") if word.startswith(RUNNER_V1))


def shuffle_on_disks(job: JobRequest) -> Found:
    if "shuffle_mode=appliance" in job.words("experiments"):
        yield "shuffle_mode=appliance given"


def far(job: JobRequest, use: Use) -> Iterator[BucketFacts]:
    """Buckets of that use that are elsewhere."""
    for bucket in job.buckets:
        if job.region and use in bucket.uses and not bucket.has(job.region):
            yield bucket


def far_input(job: JobRequest) -> Found:
    for bucket in far(job, Use.INPUT):
        size = job.read.get(bucket.name)
        amount = f", {human_bytes(size)} to read" if size else ""
        yield f"gs://{bucket.name} is in {', '.join(bucket.places)}, the job in {job.region}{amount}"


def far_output(job: JobRequest) -> Found:
    names = {bucket.name: bucket for use in (Use.OUTPUT, Use.TEMPORARY) for bucket in far(job, use)}
    for bucket in names.values():
        yield f"gs://{bucket.name} is in {', '.join(bucket.places)}, the job in {job.region}"


def soft_delete(job: JobRequest) -> Found:
    for bucket in job.buckets:
        if Use.TEMPORARY in bucket.uses and bucket.kept_days:
            yield f"gs://{bucket.name} keeps what is deleted for {bucket.kept_days:g} days"
