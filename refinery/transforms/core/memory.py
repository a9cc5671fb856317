"""Which steps need more memory than a worker has by default, as a resource hint of Beam.

A hint gives its step workers of its own on Dataflow, so it is set only where a step would fail without, and always
behind a shuffle, where it breaks up nothing that ran together. FlexRS knows no hints.
"""

from math import ceil
from typing import Any

# A worker by default has 16 GB and runs 4 processes (one per vCPU) of 2 bundles each. A process takes 0.2 GB with its
# imports and up to as much again with models, the machine's own services 1 GB.
WORKER_BYTES = 16_000_000_000
BUNDLES = 8
FIXED_BYTES = 1_000_000_000 + 4 * 400_000_000
# What a step may take for one key, however many documents share it: 8 of them fit a worker. Steps that hold what they
# get sort it on disk beyond a bound (transforms/core/spill); the others take some bytes for each document of a family.
GROUP_BYTES = 1_500_000_000
FAMILY_SHARE = 0.01  # of all documents, near or exact copies of one: the largest family that is provided for


def with_memory(step: Any, bundle_bytes: int, bundles: int = BUNDLES) -> Any:
    """`step`, with the hint `min_ram` where so many of its bundles, of so many bytes each, do not fit a worker.

    bundles: that run at once on a worker; 1 for a step that has only one key.
    """
    need = FIXED_BYTES + bundles * bundle_bytes
    return step if need <= WORKER_BYTES else step.with_resource_hints(min_ram=f"{ceil(need / 1e9)}GB")


def family_bytes(documents: int, member_bytes: int) -> int:
    """Memory of a step that takes `member_bytes` for each member of a family of documents, of the largest one."""
    return max(GROUP_BYTES, round(FAMILY_SHARE * documents) * member_bytes)
