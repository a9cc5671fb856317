"""Waves: phase 1's tasks, cut so that a failure costs one of them, and which of them a wave's report accounts for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from refinery.pipelines.recipe.recipe import RunParams
from refinery.pipelines.runners.capacity import BYTES_PER_VCPU_HOUR, WAVE_HOURS
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.read.sources import ReadTask, read_tasks

# Where jobs run on other machines, each takes minutes to start and stop all its workers: a wave is this much work for
# them (WAVE_HOURS), where the recipe leaves its limits at their defaults.
REMOTE_FILES = 100_000
DEFAULT = RunParams()


def wave_limits(params: RunParams, vcpus: int) -> tuple[int, int]:
    """Most bytes and files of a wave. vcpus: of a job on other machines (`vcpus_asked_for`); 0 on this one."""
    limits = params.wave_bytes, params.wave_files
    if vcpus and limits == (DEFAULT.wave_bytes, DEFAULT.wave_files):
        return max(DEFAULT.wave_bytes, vcpus * BYTES_PER_VCPU_HOUR * WAVE_HOURS), REMOTE_FILES
    return limits


def cut_waves(tasks: Sequence[ReadTask], wave_bytes: int, wave_files: int) -> list[list[ReadTask]]:
    """Cut the tasks, in order, into waves of at most that many bytes and files (a larger file is a wave of its own)."""
    waves: list[list[ReadTask]] = []
    held = 0
    for task in tasks:
        size = task.share_bytes
        if not waves or held + size > wave_bytes or len(waves[-1]) >= wave_files:
            waves.append([])
            held = 0
        waves[-1].append(task)
        held += size
    return waves


def unread_tasks(work: str, tasks: Sequence[ReadTask], reports: Sequence[Mapping[str, Any]]) -> list[ReadTask]:
    """The tasks, in order, that none of these wave reports names. A file of which parts are read already, but that was
    cut into another number of them (by an earlier version), is read on in those."""
    read: dict[tuple[str, str], tuple[int, set[int]]] = {}
    for report in reports:
        for task in read_tasks(TaskList(work, **report["tasks"])):
            read.setdefault((task.source, task.path), (task.parts, set()))[1].add(task.part)
    left: list[ReadTask] = []
    for task in tasks:
        parts, done = read.get((task.source, task.path), (task.parts, set()))
        if parts == task.parts:
            left += [] if task.part in done else [task]
        elif task.part == 0:
            left += [replace(task, part=part, parts=parts) for part in range(parts) if part not in done]
    return left
