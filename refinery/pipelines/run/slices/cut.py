"""The cut: which slice of an array reads which inputs, sealed once when a run on a cluster begins.

A run is a chain of steps. The first, "clean", reads the inputs: its slices are fixed here, each a number of waves, so
a slice that was killed goes on where it stopped. The further ones are what lies between the exchanges of phases 2
and 3 (refinery.transforms.core.exchange.sliced). N slices are N throughout. The cut decides nothing of the corpus, and
is not part of its fingerprint.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from refinery.loader.errors import FormatError, written_by_a_run
from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.run.slices.errors import SliceError
from refinery.pipelines.run.slices.names import CUT, STEP_NAME
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.read.sources import ReadTask, read_tasks, write_tasks

KIND = "refinery-cut"
MOST_SLICES = 100_000
MOST_WAVES = 100_000  # their names have five digits
MOST_NUMBER = 2**63 - 1
TASK_FIELDS = {"name": str, "items": int, "sha256": str}  # of `TaskList.plain`


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

    def tasks(self, work: str) -> list[ReadTask]:
        """All that is read, from the run's work location."""
        return [task for wave in self.waves for task in read_tasks(wave.task_list(work))]

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
    of the first wave. Raises SliceError for more waves than have names."""
    if first + sum(map(len, shares)) > MOST_WAVES:
        raise SliceError(f"--slices: {len(shares)} slices need more than {MOST_WAVES:,} waves; raise run.wave_bytes")
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
    with written_by_a_run(f"{store.url(CUT)}: its fields are"):
        steps = tuple(Step(**step) for step in payload["steps"])
        waves = tuple(Wave(**wave) for wave in payload["waves"])
        cut = Cut(payload["fingerprint"], payload["slices"], steps, waves)
        wrong = next(_wrong(payload["kind"], cut), "")
    if wrong:
        raise FormatError(f"{store.url(CUT)}: {wrong}; no run writes that. Choose another --output")
    return cut


def _wrong(kind: Any, cut: Cut) -> Iterator[str]:
    """What cannot be in a cut that `publish_cut` wrote: anyone can seal a file."""
    if kind != KIND:
        yield f"kind: {kind!r:.80}"
    if not isinstance(cut.fingerprint, str):
        yield f"fingerprint: {cut.fingerprint!r:.80}"
    if not is_whole(cut.slices, 1, MOST_SLICES):
        yield f"slices: {cut.slices!r:.80}"
    if not cut.steps:
        yield "steps: none"
    for step in cut.steps:
        if not isinstance(step.name, str) or not STEP_NAME.fullmatch(step.name) or step.tasks not in (1, cut.slices):
            yield f"a step: {step!r:.80}"
    before = -1
    for wave in cut.waves:
        numbers = is_whole(wave.number, before + 1) and is_whole(wave.slice, 0, cut.slices - 1)
        if not (numbers and is_whole(wave.bytes, 0) and is_whole(wave.files, 0)):
            yield f"a wave: {wave!r:.80}"
        if {key: type(value) for key, value in wave.tasks.items()} != TASK_FIELDS:
            yield f"tasks of wave {wave.number}"
        before = wave.number


def is_whole(value: Any, least: int, most: int = MOST_NUMBER) -> bool:
    """Whether a value out of JSON is a whole number in these bounds."""
    return type(value) is int and least <= value <= most


def check_slices(slices: int, option: str) -> None:
    """Raises ValueError for a number of slices that no run has."""
    if not 1 <= slices <= MOST_SLICES:
        raise ValueError(f"{option}: {slices} slices given, 1 to {MOST_SLICES:,} are allowed")
