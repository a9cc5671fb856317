"""A job of phase 2 or 3, step by step: each step for one slice, or for all that are missing."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import apache_beam as beam

from refinery.loader.storage.store import Store
from refinery.pipelines.progress.work import Work
from refinery.pipelines.run.slices.names import FOLDER
from refinery.pipelines.run.slices.step_files import SealedStep, StepFiles, delivered_before
from refinery.pipelines.runners.runner import Build, Runner
from refinery.transforms.core.exchange.exchange import check_dealt
from refinery.transforms.core.exchange.on_disk import exchange_on_disk, settled_exchanges
from refinery.transforms.core.exchange.place import Place
from refinery.transforms.core.exchange.section_file import fetch_section, write_sections
from refinery.transforms.core.exchange.sliced import NO_STEP, SlicedExchanges


class StepDone(Exception):
    """The slice of a step is done, and other commands do what is left of the job."""


@dataclass(frozen=True)
class Task:
    """What one command does of a run: a slice of a step. step: its name."""

    step: str
    slice: int

    def is_step_of(self, phase: str) -> bool:
        """Whether its step is one of those into which a phase's job is cut."""
        name, _, number = self.step.rpartition("-")
        return name == phase and number.isdecimal()

    @property
    def number(self) -> int:
        """The number of its step in the phase's job."""
        return int(self.step.rpartition("-")[2])

    def done(self, of: int) -> StepDone:
        """What says that it is done."""
        return StepDone(f"{self.step}, slice {self.slice} of {of}: done")

    def nothing_left(self, of: int) -> StepDone:
        """What says that others have done it."""
        return StepDone(f"{self.step}, slice {self.slice} of {of}: nothing is left to do")


@dataclass
class SlicedJob:
    """The steps of one job in a work location. is_done: whether the job's report is there."""

    store: Store
    phase: str
    fingerprint: str
    of: int
    runner: Runner
    is_done: Callable[[], bool]
    say: Callable[[str], None]
    sealed: list[SealedStep] = field(default_factory=list)

    def is_begun(self) -> bool:
        """Whether a slice of it is done."""
        return self.files(0).is_begun()

    def files(self, number: int) -> StepFiles:
        """Those of a step."""
        return StepFiles(self.store, self.phase, number, self.fingerprint, self.of)

    def run_slice(self, task: Task, label: str, build: Build, work: Work | None) -> None:
        """Do a slice of a step, where it is not done. Of a step that one task does, slice 0 does all, and the steps
        behind it as long as one task does them.

        Raises StepDone when the job goes on in other commands, SliceError, which names them, for slices of the step
        before that are missing, and whatever the step raises.
        """
        self._seal_before(min(task.number, 1))
        steps = self.sealed[-1].steps if self.sealed else (False,)
        if self.sealed and task.number >= len(steps):
            raise StepDone(f"{self.phase} ends with step {len(steps) - 1}; there is no {task.step} to do")
        self._seal_before(task.number)
        is_whole = steps[task.number]
        if (is_whole and task.slice) or self.files(task.number).is_done(task.slice):
            raise task.nothing_left(self.of)
        self._run(task.number, self._all if is_whole else (task.slice,), label, build, work)
        for number in range(task.number + 1, len(steps)):
            if is_whole and steps[number] and not self.is_done():
                self._seal_before(number)
                self._run(number, self._all, label, build, work)
            else:
                break
        if not self.is_done():
            raise task.done(self.of)

    def run_missing(self, label: str, build: Build, work: Work | None) -> None:
        """Do all that is missing, until the job is done."""
        number = 0
        while not self.is_done():
            missing = self.files(number).missing()
            whole = len(missing) == self.of
            for mine in [self._all] if whole else [(each,) for each in missing]:
                self._run(number, mine, label, build, work)
            number += 1
            if not self.is_done():
                self._seal_before(number)

    @property
    def _all(self) -> tuple[int, ...]:
        return tuple(range(self.of))

    def _seal_before(self, number: int) -> None:
        for each in range(len(self.sealed), number):
            self.sealed.append(self.files(each).seal(self.sealed))

    def _run(self, number: int, mine: tuple[int, ...], label: str, build: Build, work: Work | None) -> None:
        exchanges = _Exchanges(self, number, mine)
        which = "" if len(mine) == self.of else f", slice {mine[0]} of {self.of}"
        self.runner.run(f"{label}: {self.files(number).name}{which}", build, work, exchanges=exchanges)


@dataclass
class _Exchanges:
    """The exchanges of some slices, for the runner: filled before the graph is built, committed when it has run."""

    job: SlicedJob
    number: int
    slices: tuple[int, ...]

    def begin(self, folder: Path, slots: int, repeats: bool) -> SlicedExchanges:
        """Fetch what the slices receive into a local folder."""
        folder.mkdir()
        before = self.job.sealed[: self.number]
        for sealed in before:
            for file in sealed.files:
                for exchange, table in file.tables.items():
                    if sealed.to[exchange] == self.number:
                        for each in self.slices:
                            fetch_section(self.job.store, file.name, table, each, Place(folder / exchange))
        delivered: dict[str, Mapping[str, int]] = {}
        for step in range(1, self.number):
            found = delivered_before(before, step)
            delivered |= {name: tally.fields() for name, tally in found.items()}
        return SlicedExchanges(
            str(folder), slots, repeats, step=self.number, slices=self.slices, of=self.job.of, delivered=delivered
        )

    def end(self, pipeline: beam.Pipeline, disk: SlicedExchanges) -> None:
        """Publish what the slices sent, and their record. Raises ExchangeError where something was not read, or was
        not dealt out, to its end."""
        found = settled_exchanges(disk.folder)
        if disk.is_first:
            check_dealt(pipeline, found)
        files = self.job.files(self.number)
        path = Path(f"{disk.out}.sections")
        sent = write_sections(Path(disk.out), path, disk.crossings, disk.of)
        name = files.sections_name(self.slices, secrets.token_hex(4))
        if sent:
            self.job.store.create(name, path)
        path.unlink()
        received = {name: fields for name, fields in found.items() if name in disk.crossings}
        if not files.commit(self.slices, name, sent, received, disk.steps()):
            self.job.store.delete(name)
            self.job.say(f"{files.name}: another command was faster; what it did counts")


def steps_of(build: Build) -> list[bool]:
    """The steps of the job that `build` builds, each with whether one task does all of it. Nothing runs."""
    pipeline = beam.Pipeline()
    disk = SlicedExchanges("", step=NO_STEP)
    exchange_on_disk(pipeline, disk)
    build(pipeline)
    return disk.steps()


def remove_exchanges(store: Store, phase: str) -> None:
    """Remove what the steps of a phase left for each other: the phase is done."""
    names = (name for page in store.pages(FOLDER) for name in page if name.startswith(f"{FOLDER}/{phase}-"))
    store.delete_many(names)
    store.prune(FOLDER)
