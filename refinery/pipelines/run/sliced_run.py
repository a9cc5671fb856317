"""A run by slices: sealing its cut, and doing one slice of one step. A plain `refine` then does what is missing."""

import contextlib
from dataclasses import dataclass, replace

from refinery.loader.format.manifest import MANIFEST, Manifest
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageConflict
from refinery.pipelines.run.at_work import at_work
from refinery.pipelines.run.clean_phase import CleanPhase
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import Phase, read_phase, read_waves
from refinery.pipelines.run.prefix import owned
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.slices.cut import Cut, Step, check_slices, deal_tasks, make_cut, publish_cut, read_cut
from refinery.pipelines.run.slices.errors import SliceError
from refinery.pipelines.run.slices.failures import noting_failure
from refinery.pipelines.run.slices.known_steps import DEDUP, SHARDS, known_steps
from refinery.pipelines.run.slices.names import CLEAN, CLEAN_END, CUT, CUT_STEP
from refinery.pipelines.run.slices.sliced_job import StepDone, Task
from refinery.pipelines.run.slices.step_files import StepFiles, not_done
from refinery.pipelines.run.wall_clock import STARTED, note_time
from refinery.pipelines.run.waves import cut_waves, unread_tasks, wave_limits
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.sources import ReadTask


@dataclass
class SlicedRun(Refinement):
    """One recipe on one prefix, of which this command does a part."""

    def seal_cut(self, slices: int) -> Cut | None:
        """The cut of the inputs into this many slices, sealed now unless it is already; None where the corpus is
        complete.

        Raises RefineError where it was cut into another number, and what `prepare` raises.
        """
        check_slices(slices, "--slices")
        self.prepare(probe=True)
        if self._claim():
            return None
        note_time(self.work_store, STARTED)
        if self.cut is None:
            reports = read_waves(self.work_store, CLEAN)
            tasks = [_as_sealed(task) for task in unread_tasks(self.work, self.tasks, reports)]
            first = max((report["number"] for report in reports), default=-1) + 1
            steps = known_steps(self.recipe, self.inputs, self.tokenizer, slices)
            limits = wave_limits(self.recipe.run, 0)
            shares = [cut_waves(share, *limits) for share in deal_tasks(tasks, slices)]
            cut = make_cut(self.work, self.fingerprints[CLEAN], shares, steps, first)
            with contextlib.suppress(StorageConflict):  # another command was faster
                publish_cut(self.work_store, cut)
        return self._cut_of(slices)

    def publish(self) -> Manifest:
        """What `run` does, once every slice of every step is done. Raises SliceError, which names them, where some are
        missing, and where the inputs were not cut."""
        self.prepare()
        if self.cut is None and not self._is_published():
            raise SliceError(f"{self.work_store.url(CUT)} is not there: the inputs are not cut into slices yet")
        for step in self.cut.steps if self.cut else ():
            if missing := self._missing(step, self.jobs.slices):
                raise SliceError(f"{step.name}: {not_done(missing, step.tasks)}")
        return self.complete()

    def _is_published(self) -> bool:
        """Whether this run's corpus is complete, also where its work files were removed since (`--discard-work`).
        Raises RefineError for a prefix that belongs to another run."""
        store, advice = self._places()[0]
        return store.size(MANIFEST) is not None and owned(store, self.identity, advice)

    def _missing(self, step: Step, of: int) -> list[int]:
        """The slices of a step that are not done."""
        phase, _, number = step.name.partition("-")
        if read_phase(self.work, phase, self.fingerprints[phase]) is not None:
            return []
        if step.name == CLEAN:
            return sorted({wave.slice for wave in self._clean_phase().missing()})
        if step.name in (CLEAN_END, DEDUP) or self.work_store.size(f"{phase}/report.json") is not None:
            return [0] if step.name in (CLEAN_END, DEDUP) else []
        return StepFiles(self.work_store, phase, int(number), self.fingerprints[phase], of).missing()[: step.tasks]

    def run_task(self, task: Task, of: int) -> str:
        """Do a slice of a step, where it is not done; a line that says what was done.

        Raises RefineError where the inputs are not cut into `of` slices, and where steps before are not done;
        ValueError where there is no such step or slice; and whatever the step raises. All leave their reason in the
        work location of a run that is cut.
        """
        check_slices(of, "--slice")
        if not 0 <= task.slice < of:
            raise ValueError(f"--slice: {task.slice}/{of} given, 0/{of} to {of - 1}/{of} are allowed")
        self.task = task
        place = open_store(self.work)
        is_cut = place.size(CUT) is not None  # else it may be anybody's folder
        with noting_failure(place, task.step, task.slice) if is_cut else contextlib.nullcontext():
            try:
                return self._run_task(task, of)
            except StepDone as done:
                return str(done)

    def _run_task(self, task: Task, of: int) -> str:
        """Raises StepDone."""
        self.prepare()
        if self._claim() if self.cut else self._is_published():
            return f"{self.prefix} is complete already; nothing to do"
        cut = self._cut_of(of)
        if task.step not in (CLEAN, CLEAN_END, DEDUP) and not any(map(task.is_step_of, (DEDUP, SHARDS))):
            known = [step.name for step in cut.steps]
            raise ValueError(f"--until: {task.step!r:.80} given, one of {', '.join(known)} is allowed")
        with at_work(self.work_store, True, self.say, task.step, task.slice):
            return self._do(task)

    def _do(self, task: Task) -> str:
        """Raises StepDone."""
        phase = self._clean_phase()
        if task.step == CLEAN:
            phase.run_slice(task.slice)
            raise task.done(self.jobs.slices)
        if task.slice and task.step in (CLEAN_END, DEDUP):
            raise task.nothing_left(self.jobs.slices)
        clean = self._end(phase) if task.step in (CLEAN_END, DEDUP) else self._earlier(CLEAN)
        if task.step == CLEAN_END:
            raise task.done(self.jobs.slices)
        if not task.is_step_of(SHARDS):
            self._check_sources(clean, self._phase(DEDUP, lambda: self._dedup(clean)))
            return f"{DEDUP}: done"
        dedup = self._earlier(DEDUP)
        self._phase(SHARDS, lambda: self._shards(clean, dedup))
        return f"{SHARDS}: done"

    def _end(self, phase: CleanPhase) -> Phase:
        """Phase 1, which is complete once the reports of all slices are added up; and phase 2 where it is nothing."""
        if read_phase(self.work, CLEAN, self.fingerprints[CLEAN]) is None and (missing := phase.missing()):
            slices = sorted({wave.slice for wave in missing})
            raise RefineError(f"{CLEAN}: {not_done(slices, self.jobs.slices)}")
        clean = self._phase(CLEAN, phase.finish)
        self._check_sources(clean)
        if not self.recipe.removes_copies():
            self._phase(DEDUP, lambda: self._dedup(clean))
        return clean

    def _earlier(self, name: str) -> Phase:
        phase = read_phase(self.work, name, self.fingerprints[name])
        if phase is None:
            raise RefineError(f"{name} is not complete; it comes first")
        return phase

    def _cut_of(self, slices: int) -> Cut:
        self.cut = read_cut(self.work_store)
        if self.cut is None:
            raise RefineError(
                f"{self.work_store.url(CUT)} is not there: the inputs are not cut into slices yet; run the same "
                f"command once with --slices {slices} --until {CUT_STEP}"
            )
        self._check_cut(self.cut)
        if self.cut.slices != slices:
            raise RefineError(
                f"{self.prefix} was cut into {self.cut.slices:,} slices, {slices:,} given. Give {self.cut.slices}, or "
                "choose another --output"
            )
        return self.cut


def _as_sealed(task: ReadTask) -> ReadTask:
    """A task for a slice that runs hours later: its bytes are compared with their checksum, so a file that was only
    copied or touched meanwhile is the same. Where readers jump, there is no checksum, and its time of change counts."""
    return replace(task, changed=0) if task.crc32c and not find_reader(task.format).in_pieces else task
