"""The checks of a launch on Dataflow, one declaration each: a launch refuses by it, the doctor and --dry-run warn by
it, and docs/operations/checks.md has it in a table.

Nothing is asked of a service: a check looks at the flags, the recipe, and what is known of the buckets
(job_request.py).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from refinery.pipelines.runners.dataflow import wrong_values as wrong
from refinery.pipelines.runners.dataflow.job_request import JobRequest

GOOGLE = "https://cloud.google.com"
WORKER_VM = f"{GOOGLE}/dataflow/docs/guides/configure-worker-vm"
OPTIONS = f"{GOOGLE}/dataflow/docs/reference/pipeline-options"
SERVICE = f"{GOOGLE}/dataflow/docs/reference/service-options"
IMAGES = f"{GOOGLE}/dataflow/docs/guides/build-container-image"
PRIME = f"{GOOGLE}/dataflow/docs/guides/enable-dataflow-prime"
FLEXRS = f"{GOOGLE}/dataflow/docs/guides/flexrs"
GPUS = f"{GOOGLE}/dataflow/docs/gpu/use-gpus"
JOBS = f"{GOOGLE}/dataflow/docs/reference/rest/v1b3/projects.locations.jobs"
ACCOUNTS = f"{GOOGLE}/dataflow/docs/concepts/security-and-permissions"
ENGINE = f"{GOOGLE}/dataflow/docs/streaming-engine"
MACHINES = f"{GOOGLE}/compute/docs/machine-resource"
SOFT_DELETE = f"{GOOGLE}/storage/docs/soft-delete"
PRICES = f"{GOOGLE}/storage/pricing"
REGISTRY_PRICES = f"{GOOGLE}/artifact-registry/pricing"
VALIDATOR = "Beam's code: apache_beam/options/pipeline_options_validator.py"
RUNNER = "Beam's code: apache_beam/runners/dataflow/dataflow_runner.py"
CLIENT = "Beam's code: apache_beam/runners/dataflow/internal/apiclient.py"
OWN_MEMORY = "this project's code: refinery/transforms/core/memory.py"


class Level(StrEnum):
    """refused: nothing is launched. warning: `doctor` and `refine --dry-run` say it."""

    REFUSED = "refused"
    WARNING = "warning"


@dataclass(frozen=True)
class Check:
    """One thing that can be wrong with a launch.

    topic: what the doctor calls it. flag: what it looks at. when: in words, for the documentation. why: the reason,
    and what to do. source: where the reason is from. found: what is wrong here, a phrase for each, nothing where all is
    well.
    """

    topic: str
    flag: str
    level: Level
    when: str
    why: str
    source: str
    found: Callable[[JobRequest], Iterable[str]]

    def lines(self, job: JobRequest) -> Iterator[str]:
        """A line for everything that is wrong."""
        return (f"{self.flag}: {what}: {self.why} ({self.source})" for what in self.found(job))


def refused(
    topic: str, flag: str, when: str, why: str, source: str, found: Callable[[JobRequest], Iterable[str]]
) -> Check:
    return Check(topic, flag, Level.REFUSED, when, why, source, found)


def warned(
    topic: str, flag: str, when: str, why: str, source: str, found: Callable[[JobRequest], Iterable[str]]
) -> Check:
    return Check(topic, flag, Level.WARNING, when, why, source, found)


CHECKS: tuple[Check, ...] = (
    refused(
        "machines", "--machine_type", "not the form of a machine type",
        "FAMILY-KIND-VCPUS is allowed, such as n2-standard-4, or FAMILY-custom-VCPUS-MEGABYTES", MACHINES,
        wrong.machine_form,
    ),
    refused(
        "machines", "--machine_type", "a shared core: e2-micro, e2-small, e2-medium, f1-micro, g1-small",
        "Dataflow does not support shared cores, and their 0.6 to 4 GB do not hold a worker; leave the flag out",
        WORKER_VM, wrong.shared_core,
    ),
    warned(
        "machines", "--machine_type", "Arm (t2a, c4a, n4a, a4x) with --sdk_container_image",
        "an image must be built for the workers' architecture, and docker/build.sh builds for linux/amd64; give an x86 "
        "machine type, or an image that you built for Arm", IMAGES, wrong.arm,
    ),
    warned(
        "machines", "--machine_type", "less than 4 GB of memory for each vCPU",
        "stages with models need 4 GB, as n2-standard-4 has; give a -standard- or -highmem- type", OWN_MEMORY,
        wrong.little_memory,
    ),
    refused(
        "machines", "--machine_type", "with Dataflow Prime (`enable_prime`)",
        "Dataflow Prime chooses machines by the steps' hints and takes no type; leave one of the two out", PRIME,
        wrong.prime_machine,
    ),
    refused(
        "machines", "--flexrs_goal", "COST_OPTIMIZED with Dataflow Prime",
        "Dataflow Prime has no FlexRS; leave one of the two out", PRIME, wrong.prime_flexrs,
    ),
    refused(
        "machines", "worker_accelerator", "GPUs with --flexrs_goal=COST_OPTIMIZED",
        "FlexRS has no GPUs; leave one of the two out", FLEXRS, wrong.flexrs_gpu,
    ),
    warned(
        "machines", "worker_accelerator", "GPUs, and no stage of the recipe's own",
        "none of this project's stages uses a GPU, and each worker's would be billed; leave it out", GPUS,
        wrong.unused_gpu,
    ),
    refused(
        "disks", "--disk_size_gb", "1 to 29, or negative",
        "a worker's disk holds the boot image, the worker image and logs, for which 30 GB are the least; leave it out "
        "for 50", OPTIONS, wrong.small_disk,
    ),
    warned(
        "disks", "--disk_size_gb", "less than 30 GB, and a part of 256 MB for each bundle that runs at once",
        "every bundle writes its part or shard to the disk before it is published; give a larger disk",
        "this project's code: refinery/transforms/write/write_documents.py", wrong.crowded_disk,
    ),
    refused(
        "disks", "--worker_disk_type", "a bare name such as pd-ssd",
        "compute.googleapis.com/projects/PROJECT/zones/ZONE/diskTypes/TYPE is allowed", WORKER_VM, wrong.disk_type,
    ),
    refused(
        "disks", "--worker_disk_type", "a Persistent Disk with a machine of N4",
        "these machines have Hyperdisks only; leave the flag out", WORKER_VM, wrong.disk_of_n4,
    ),
    refused(
        "workers", "--num_workers, --max_num_workers", "0 or less",
        "Beam refuses it after the job is built; give 1 or more, or leave it out", VALIDATOR, wrong.no_workers,
    ),
    refused(
        "workers", "--num_workers", "more than --max_num_workers (50 where that is not given)",
        "Beam refuses it after the job is built; raise --max_num_workers, too", VALIDATOR, wrong.too_many_workers,
    ),
    refused(
        "workers", "min_num_workers", "not 1 to --max_num_workers",
        "the service needs a lower bound below the upper one; leave the option out, a launch computes it", SERVICE,
        wrong.bounds_of_workers,
    ),
    warned(
        "workers", "--autoscaling_algorithm", "NONE without --num_workers",
        "the service then keeps its own default number of workers; give --num_workers", OPTIONS,
        wrong.unknown_number,
    ),
    refused(
        "workers", "--number_of_worker_harness_threads", "0 or less",
        "Beam then leaves the number to the service, which takes more than the 2 that memory is computed for; leave it "
        "out", CLIENT, wrong.no_threads,
    ),
    warned(
        "workers", "--number_of_worker_harness_threads", "more than 2",
        "memory is computed for 2 in each process; more need a -highmem- machine", OWN_MEMORY, wrong.many_threads,
    ),
    warned(
        "workers", "no_use_multiple_sdk_containers", "among --experiments",
        "one process then computes on each worker, and its other vCPUs are billed and idle; leave it out", CLIENT,
        wrong.one_process,
    ),
    refused(
        "labels", "--labels", "a key or value that the API refuses",
        "keys begin with a lower-case letter; both have lower-case letters, digits, - and _, at most 63 characters and "
        "128 bytes", JOBS, wrong.labels,
    ),
    refused(
        "labels", "--labels", "more than 64, with the 3 that a run adds", "a job has at most 64; leave some out", JOBS,
        wrong.many_labels,
    ),
    refused(
        "labels", "--labels", "app, with a value that is not refinery",
        "a launch sets it to `refinery`, by which billing and alerts find its jobs; choose another key",
        "this project's code: refinery/pipelines/runners/dataflow/launch_flags.py", wrong.own_labels,
    ),
    refused(
        "account", "--service_account_email", "the default account of Compute Engine or App Engine, or a service agent",
        "it may do more in the project than a run needs, or cannot run workers; give one of the run's own, such as "
        "terraform's refinery-worker", ACCOUNTS, wrong.default_account,
    ),
    refused(
        "image", "--sdk_container_image", "Beam's own image (beam_python3.11_sdk)",
        "it has no Refinery, and a job ends with its first worker; build one by docker/build.sh", IMAGES,
        wrong.beams_image,
    ),
    refused(
        "image", "--sdk_container_image", "a name with another version of Beam than the launcher's",
        "the launcher and the workers need the same Beam; build the image again", IMAGES, wrong.other_beam,
    ),
    refused(
        "image", "--sdk_container_image", "a name with another version of Python than the launcher's",
        "the launcher and the workers need the same Python; launch with the image's", IMAGES, wrong.other_python,
    ),
    warned(
        "image", "--sdk_container_image", "in a registry outside --region",
        "every worker pulls it across regions, which takes longer and is billed; push it to the region of the job",
        REGISTRY_PRICES, wrong.far_image,
    ),
    refused(
        "service", "--enable_streaming_engine", "given, or among --experiments",
        "Streaming Engine is for streaming jobs, and a corpus is made by batch jobs; leave it out", ENGINE,
        wrong.streaming_engine,
    ),
    refused(
        "service", "--experiments", "one that turns Runner v2 off: disable_runner_v2, use_runner_v1, …",
        "Beam for Python has no other runner; leave it out", RUNNER, wrong.runner_v1,
    ),
    warned(
        "service", "--experiments", "shuffle_mode=appliance",
        "workers then hold all shuffled data on their disks, and autoscaling cannot remove them; leave it out",
        f"{GOOGLE}/dataflow/docs/shuffle-for-batch", wrong.shuffle_on_disks,
    ),
    warned(
        "buckets", "input", "outside --region",
        "data that leaves its location is billed for each GB; run where the input is, or copy it once", PRICES,
        wrong.far_input,
    ),
    warned(
        "buckets", "--output, --work, --temp_location, --staging_location", "a bucket outside --region",
        "all that workers write and read back crosses regions, and is billed; use a bucket in the region of the job",
        PRICES, wrong.far_output,
    ),
    warned(
        "buckets", "--work, --temp_location, --staging_location", "a bucket with soft delete",
        "deleted parts are stored and billed until that time is over; run `gcloud storage buckets update gs://BUCKET "
        "--clear-soft-delete`", SOFT_DELETE, wrong.soft_delete,
    ),
)  # fmt: skip


def lines_of(job: JobRequest, level: Level) -> Iterator[tuple[str, str]]:
    """(topic, line) of everything of that level that is wrong with a job."""
    for check in CHECKS:
        if check.level is level:
            yield from ((check.topic, line) for line in check.lines(job))
