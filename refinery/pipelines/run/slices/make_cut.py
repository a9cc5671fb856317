"""How the inputs are cut. Apart from the cut itself, which is also read by commands that only look: this needs Beam."""

import heapq
from collections.abc import Sequence

from refinery.pipelines.run.slices.cut import Cut, Step, Wave
from refinery.pipelines.run.waves import cut_waves
from refinery.transforms.read.sources import ReadTask, write_tasks


def deal_tasks(tasks: Sequence[ReadTask], slices: int) -> list[list[ReadTask]]:
    """The tasks of each slice, of about the same number of bytes: the largest first, each to the slice that has the
    least. Depends on neither their order nor the machine."""
    dealt: list[list[ReadTask]] = [[] for _ in range(slices)]
    least = [(0, 0, number) for number in range(slices)]
    for task in sorted(tasks, key=lambda each: (-each.share_bytes, each.source, each.path, each.part)):
        held, count, number = heapq.heappop(least)
        dealt[number].append(task)
        heapq.heappush(least, (held + task.share_bytes, count + 1, number))
    return dealt


def make_cut(
    work: str,
    fingerprint: str,
    tasks: Sequence[ReadTask],
    slices: int,
    steps: Sequence[Step],
    limits: tuple[int, int],
    first: int = 0,
) -> Cut:
    """Deal the tasks to slices and publish the lists of their waves in the work location. limits: most bytes and files
    of a wave. first: number of the first wave."""
    waves: list[Wave] = []
    for number, share in enumerate(deal_tasks(tasks, slices)):
        for wave in cut_waves(share, *limits):
            held = sum(task.share_bytes for task in wave)
            listed = write_tasks(work, wave)
            waves.append(Wave(first + len(waves), number, held, len(wave), listed.plain()))
    return Cut(fingerprint, slices, tuple(steps), tuple(waves))
