"""Memory and time that a task of a step asks for, from the figures of `refinery plan` and `refinery doctor`.

Time: the planner's speed of a core through all phases, for the stored bytes of the largest slice, counted as
compressed. Asked for is twice that and half an hour. A task that reads what all slices made (the last step, and steps
of one task) gets the time to read the inputs once at READ_SPEED. Memory: the local runner's measured base and workers,
and for each worker the largest group that a step may hold.
"""

from collections.abc import Sequence
from math import ceil

from refinery.pipelines.reports.plan.inputs import REFERENCE
from refinery.pipelines.runners.cluster.resources import MIB, Resources
from refinery.pipelines.runners.doctor.room import LAUNCHER_BYTES, WORKER_BYTES
from refinery.transforms.core.memory import GROUP_BYTES
from refinery.transforms.read.lines import COMPRESSED_RATIO

MARGIN = 2.0  # asked for over computed
LEAST_SECONDS = 1800  # beside it: start, models, storage
ROUND_SECONDS = 1800
READ_SPEED = 25e6  # stored bytes of the inputs a second, of one task that reads what all have written


def task_resources(slice_bytes: Sequence[int], tasks: int, workers: int) -> Resources:
    """What a task of a step with so many tasks asks for. slice_bytes: stored bytes of the inputs of each slice."""
    if tasks > 1:
        work = max(slice_bytes, default=0) * COMPRESSED_RATIO / (REFERENCE["core_speed"] * workers)
    else:
        work = sum(slice_bytes) / READ_SPEED
    seconds = ceil((MARGIN * work + LEAST_SECONDS) / ROUND_SECONDS) * ROUND_SECONDS
    memory = LAUNCHER_BYTES + workers * (WORKER_BYTES + GROUP_BYTES)
    return Resources(workers, ceil(memory / MIB / 100) * 100, seconds)
