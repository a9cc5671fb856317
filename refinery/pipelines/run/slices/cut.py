"""The cut: which slice of an array reads which inputs, sealed once when a run on a cluster begins.

A run is a chain of steps. The first, "clean", reads the inputs: its slices are fixed here, each a number of waves, so
a slice that was killed goes on where it stopped. The further ones are what lies between the exchanges of phases 2
and 3 (refinery.transforms.core.exchange.sliced). N slices are N throughout. The cut decides nothing of the corpus, and
is not part of its fingerprint.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from refinery.loader.errors import written_by_a_run
from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.run.slices.errors import SliceError
from refinery.pipelines.run.slices.names import CUT
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.read.sources import ReadTask, write_tasks

KIND = "refinery-cut"
MOST_SLICES = 100_000


@dataclass(frozen=True)
class Step:
    """A step of a run: as many tasks as slices, or one."""

    name: str
    tasks: int


@dataclass(frozen=True)
class Wave:
    """A wave of the inputs, and whose it is. tasks: of a `TaskList`, without its location."""

    number: int
    slice: int
    bytes: int
    files: int
    tasks: Mapping[str, Any]

    def task_list(self, work: str) -> TaskList:
        """Its tasks, in the run's work location."""
        return TaskList(work, **self.tasks)


@dataclass(frozen=True)
class Cut:
    """slices: N. steps: in order; those of phases 2 and 3 as far as they can be known before the documents are counted.
    waves: in order of their numbers. fingerprint: of the phase that reads them."""

    fingerprint: str
    slices: int
    steps: tuple[Step, ...]
    waves: tuple[Wave, ...]

    def waves_of(self, number: int) -> list[Wave]:
        """The waves of a slice."""
        return [wave for wave in self.waves if wave.slice == number]


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
    work: str, fingerprint: str, shares: Sequence[Sequence[Sequence[ReadTask]]], steps: Sequence[Step], first: int = 0
) -> Cut:
    """Publish the lists of the waves of each slice in the work location. shares: of each slice its waves. first: number
    of the first wave."""
    waves: list[Wave] = []
    for number, share in enumerate(shares):
        for wave in share:
            held = sum(task.share_bytes for task in wave)
            waves.append(Wave(first + len(waves), number, held, len(wave), write_tasks(work, wave).plain()))
    return Cut(fingerprint, len(shares), tuple(steps), tuple(waves))


def publish_cut(store: Store, cut: Cut) -> None:
    """Write the cut, exclusively. Raises StorageConflict where another one is there."""
    payload = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "fingerprint": cut.fingerprint,
        "slices": cut.slices,
        "steps": [asdict(step) for step in cut.steps],
        "waves": [asdict(wave) for wave in cut.waves],
    }
    store.create(CUT, seal(payload))


def read_cut(store: Store) -> Cut | None:
    """The cut of a work location, or None. Raises FormatError for one that is damaged or was not written by a run."""
    if store.size(CUT) is None:
        return None
    payload = unseal(store.read(CUT), store.url(CUT))
    with written_by_a_run(f"{store.url(CUT)}: the cut of a run is"):
        steps = tuple(Step(str(step["name"]), int(step["tasks"])) for step in payload["steps"])
        waves = tuple(Wave(**wave) for wave in payload["waves"])
        return Cut(str(payload["fingerprint"]), int(payload["slices"]), steps, waves)


def check_slices(slices: int, option: str) -> None:
    """Raises SliceError for a number of slices that no run has."""
    if not 1 <= slices <= MOST_SLICES:
        raise SliceError(f"{option}: {slices} slices given, 1 to {MOST_SLICES:,} are allowed")
