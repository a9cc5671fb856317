"""What a job on Dataflow will ask for, by its flags and the defaults of a launch. Looks at names alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from refinery.pipelines.runners.dataflow.bucket_facts import BucketFacts
from refinery.pipelines.runners.dataflow.machine_types import (
    HYPERDISK,
    has_form,
    machine_vcpus,
    memory_per_vcpu,
    vcpu_quota,
)

# Defaults of a launch, with the reason.
DEFAULTS: Mapping[str, str] = {
    # 4 processes with 4 GB each. Dataflow bills vCPUs and memory whatever the machine generation, so an older one only
    # takes longer.
    "machine_type": "n2-standard-4",
    # The service's own limit is in the hundreds: a bound makes an hour's price known. 50 workers are 200 processes.
    "max_num_workers": "50",
    # The image (1.3 GB), and what 8 bundles write to scratch: a part of 256 MB of text each, or a shard's three files.
    "disk_size_gb": "50",
    # Of each process, and there is one per vCPU. The stages compute, most of the time under the GIL: a second bundle
    # computes while the first waits for storage, or in a kernel that lets go of it; a third would only hold memory.
    "number_of_worker_harness_threads": "2",
}
PRIME = "enable_prime"
SERVICE_DISK_GB = 25  # of a worker with Dataflow Shuffle, where a job names no size (or 0)
QUOTA_COMMAND = (
    "gcloud compute regions describe {region} --project={project} --flatten='quotas[]' "
    "--format='table(quotas.metric,quotas.usage,quotas.limit)'"
)


@dataclass(frozen=True)
class JobRequest:
    """A job before it is launched.

    given: Beam's options that differ from Beam's defaults. flags: as they were typed. own_modules: files of the user's
    own stages. buckets: what is known of those that the job uses. read: bytes of input by bucket.
    """

    given: Mapping[str, Any]
    flags: Sequence[str] = ()
    own_modules: Sequence[str] = ()
    buckets: Sequence[BucketFacts] = ()
    read: Mapping[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """An option that is a number, or its default."""
        return int(self.given[name] if self.given.get(name) is not None else DEFAULTS[name])

    def words(self, name: str) -> list[str]:
        """An option that is a list, its items at commas."""
        return [word.strip() for text in self.given.get(name) or () for word in str(text).split(",") if word.strip()]

    def service_option(self, name: str) -> str | None:
        """The value of one of --dataflow_service_options, "" where it has none; None where it is not given."""
        for word in self.words("dataflow_service_options"):
            key, _, value = word.partition("=")
            if key == name:
                return value
        return None

    @property
    def is_prime(self) -> bool:
        """Whether Dataflow Prime chooses the machines."""
        return PRIME in (*self.words("dataflow_service_options"), *self.words("experiments"))

    @property
    def machine(self) -> str:
        return str(self.given.get("machine_type") or DEFAULTS["machine_type"])

    @property
    def family(self) -> str:
        """ "n2" of n2-standard-4, "custom" of custom-4-16384."""
        return self.machine.partition("-")[0]

    @property
    def is_machine_known(self) -> bool:
        """Whether the machine type has the form of one."""
        return has_form(self.machine)

    @property
    def memory_per_vcpu(self) -> float | None:
        """GB; None where the machine type does not say."""
        return memory_per_vcpu(self.machine)

    @property
    def most_workers(self) -> int:
        """Workers at most, once the service has scaled up."""
        if self.given.get("autoscaling_algorithm") == "NONE" and self.given.get("num_workers"):
            return int(self.given["num_workers"])
        return self.number("max_num_workers")

    @property
    def disk_gb(self) -> int:
        """Of each worker."""
        return self.number("disk_size_gb") or SERVICE_DISK_GB

    @property
    def region(self) -> str:
        return str(self.given.get("region") or "")

    @property
    def bundles(self) -> int:
        """That run at once on a worker."""
        return machine_vcpus(self.machine) * max(1, self.number("number_of_worker_harness_threads"))

    def quotas(self) -> Iterator[tuple[str, int]]:
        """(metric of Compute Engine, amount) of all workers together, at most."""
        vcpus = self.most_workers * machine_vcpus(self.machine)
        yield vcpu_quota(self.machine), vcpus
        if self.given.get("flexrs_goal") == "COST_OPTIMIZED":
            yield "PREEMPTIBLE_CPUS", vcpus
        yield "INSTANCES", self.most_workers
        yield "IN_USE_ADDRESSES", self.most_workers if self.given.get("use_public_ips") else 0
        yield self._disk_metric(), self.most_workers * self.disk_gb

    def _disk_metric(self) -> str:
        kind = str(self.given.get("disk_type") or "").rpartition("/")[2]
        if kind.startswith("hyperdisk") or (not kind and self.family in HYPERDISK):
            return "HDB_TOTAL_GB"
        return "SSD_TOTAL_GB" if kind in ("pd-ssd", "pd-balanced") else "DISKS_TOTAL_GB"

    def quota_line(self) -> str:
        """What this job asks of the project's quotas, and the command that shows these."""
        region, project = self.region or "REGION", self.given.get("project") or "PROJECT"
        if self.is_prime:
            asked = f"{self.most_workers:,} workers, on machines that Dataflow Prime chooses"
        else:
            asked = ", ".join(f"{amount:,} {metric}" for metric, amount in self.quotas())
        return f"at most {asked}; see what is left: {QUOTA_COMMAND.format(region=region, project=project)}"
