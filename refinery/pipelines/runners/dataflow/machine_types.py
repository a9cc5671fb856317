"""Machine types of Compute Engine by their names: vCPUs, memory, processor, quota."""

import re

# Shared cores, as one vCPU each.
SHARED = {"e2-micro": 1, "e2-small": 1, "e2-medium": 1, "f1-micro": 1, "g1-small": 1}
ARM = re.compile(r"(t2a|c4a|n4a|a4x)-")
CUSTOM = re.compile(r"(?:[a-z]\d[a-z0-9]*-)?custom-(\d{1,4})-(\d{1,8})(?:-ext)?")
PREDEFINED = re.compile(r"[a-z]\d[a-z0-9]*-[a-z]+-\d{1,4}[a-z]?(-[a-z0-9]+)*")
# Quotas of vCPUs (Compute Engine's Quota.metric): families with one of their own, families that share CPUS.
OWN_QUOTA = ("a2", "c2", "c2d", "c3", "m3", "n2", "n2a", "n2d", "t2a", "t2d", "z3")
CPUS_QUOTA = ("n1", "f1", "g1", "custom", "e2")
HYPERDISK = ("n4", "c4", "c4a", "c4d", "n4a", "n4d")  # families whose disks are Hyperdisks
MEMORY = {"highcpu": 2.0, "standard": 4.0, "highmem": 8.0}  # GB for each vCPU, by the kind of a machine type; at least


def machine_vcpus(machine_type: str) -> int:
    """vCPUs of a Compute Engine machine type, by its name; 4, as of the default, where that does not say.

    >>> machine_vcpus("n2-highmem-16"), machine_vcpus("n2-custom-8-32768"), machine_vcpus("c3-standard-22-lssd")
    (16, 8, 22)
    """
    if machine_type in SHARED:
        return SHARED[machine_type]
    custom = re.fullmatch(r"(?:[a-z0-9]+-)?custom-(\d{1,4})-\d+(?:-ext)?", machine_type)
    found = custom or re.fullmatch(r"[a-z0-9]+-[a-z0-9]+-(\d{1,4})(?:-[a-z]+)?", machine_type)
    return max(1, int(found[1])) if found else 4


def has_form(machine_type: str) -> bool:
    """Whether a name has the form of a machine type."""
    return machine_type in SHARED or bool(CUSTOM.fullmatch(machine_type) or PREDEFINED.fullmatch(machine_type))


def memory_per_vcpu(machine_type: str) -> float | None:
    """GB, at least; None where the name does not say.

    >>> memory_per_vcpu("n2-highcpu-4"), memory_per_vcpu("n2-custom-4-24576"), memory_per_vcpu("g2-lssd-4")
    (2.0, 6.0, None)
    """
    if custom := CUSTOM.fullmatch(machine_type):
        return int(custom[2]) / 1024 / max(1, int(custom[1]))
    return MEMORY.get(machine_type.split("-")[1] if "-" in machine_type else "")


def vcpu_quota(machine_type: str) -> str:
    """The quota that the vCPUs count against; newer families share one that has a dimension.

    >>> vcpu_quota("n2-standard-4"), vcpu_quota("e2-standard-4"), vcpu_quota("c4-standard-8")
    ('N2_CPUS', 'CPUS', 'CPUS_PER_VM_FAMILY of C4')
    """
    family = machine_type.partition("-")[0]
    if family in CPUS_QUOTA:
        return "CPUS"
    return f"{family.upper()}_CPUS" if family in OWN_QUOTA else f"CPUS_PER_VM_FAMILY of {family.upper()}"
