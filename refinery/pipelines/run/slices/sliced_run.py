"""A run by slices: sealing its cut, and doing one slice of one step. A plain `refine` then does what is missing."""

import contextlib
from dataclasses import dataclass, replace

from refinery.loader.format.manifest import MANIFEST
from refinery.loader.storage.store import StorageConflict
from refinery.pipelines.recipe.writers import know_writer
from refinery.pipelines.run.at_work import at_work
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import CUT, Phase, read_phase, read_waves
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.slices.cut import Cut, Step, check_slices, make_cut, publish_cut, read_cut
from refinery.pipelines.run.slices.failures import noting_failure
from refinery.pipelines.run.slices.known_steps import dedup_steps, shards_steps
from refinery.pipelines.run.slices.sliced_job import StepDone, Task
from refinery.pipelines.run.slices.step_files import not_done
from refinery.pipelines.run.wall_clock import STARTED, note_time
from refinery.pipelines.run.waves import unread_tasks, wave_limits
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.sources import ReadTask

READ, END = "clean", "clean-end"  # the steps of phase 1: its slices, and the task that adds up their reports
FIRST = "cut"


@dataclass
class SlicedRun(Refinement):
    """One recipe on one prefix, of which this command does a part."""

    def seal_cut(self, slices: int) -> Cut:
        """The cut of the inputs into this many slices, sealed now unless it is already.

        Raises RefineError where it was cut into another number, and what `prepare` raises.
        """
        check_slices(slices, "--slices")
        self.prepare(probe=True)
        self._claim()
        note_time(self.work_store, STARTED)
        if self.cut is None:
            reports = read_waves(self.work_store, "clean")
            tasks = [_as_sealed(task) for task in unread_tasks(self.work, self.tasks, reports)]
            first = max((report["number"] for report in reports), default=-1) + 1
            steps = self._steps(slices)
            limits = wave_limits(self.recipe.run, 0)
            cut = make_cut(self.work, self.fingerprints["clean"], tasks, slices, steps, limits, first)
            with contextlib.suppress(StorageConflict):  # another command was faster
                publish_cut(self.work_store, cut)
        return self._cut_of(slices)

    def run_task(self, task: Task, of: int) -> str:
        """Do a slice of a step, where it is not done; a line that says what was done.

        Raises RefineError where the inputs are not cut into `of` slices, where steps before are not done, and where
        there is no such step; and whatever the step raises, after it left the reason in the work location.
        """
        check_slices(of, "--slice")
        if not 0 <= task.slice < of:
            raise RefineError(f"--slice: {task.slice}/{of} given, 0/{of} to {of - 1}/{of} are allowed")
        self.task = task
        self.prepare()
        cut = self._cut_of(of)
        known = [FIRST, *(step.name for step in cut.steps)]
        if task.step not in known and task.number_in("dedup") is None and task.number_in("shards") is None:
            raise RefineError(f"--until: {task.step!r:.80} given, one of {', '.join(known)} is allowed")
        if self._claim() or self.store.size(MANIFEST) is not None:
            return f"{self.prefix} is complete already; nothing to do"
        lease = at_work(self.work_store, True, self.say, task.step, task.slice)
        with lease, noting_failure(self.work_store, task.step, task.slice):
            try:
                return self._do(task)
            except StepDone as done:
                return str(done)

    def _do(self, task: Task) -> str:
        """Raises StepDone."""
        phase = self._clean_phase()
        if task.step == READ:
            phase.run_slice(task.slice)
            return f"{READ}, slice {task.slice} of {self.jobs.slices}: done"
        if task.slice and task.step == END:
            return f"{END}, slice {task.slice} of {self.jobs.slices}: nothing is left to do"
        if task.step == END and (missing := phase.missing()):
            slices = sorted({wave.slice for wave in missing})
            raise RefineError(f"{READ}: {not_done(slices, self.jobs.slices)}")
        clean = self._phase("clean", phase.finish) if task.step == END else self._earlier("clean", END)
        if task.step == END:
            self._check_sources(clean)
            if self._removes_nothing():
                self._phase("dedup", lambda: self._dedup(clean))
            return f"{END}: done"
        if task.number_in("dedup") is not None:
            self._check_sources(clean, self._phase("dedup", lambda: self._dedup(clean)))
            return "dedup: all steps are done"
        dedup = self._earlier("dedup", "the last step of dedup")
        self._phase("shards", lambda: self._shards(clean, dedup))
        return "shards: all steps are done"

    def _earlier(self, name: str, step: str) -> Phase:
        phase = read_phase(self.work, name, self.fingerprints[name])
        if phase is None:
            raise RefineError(f"{step} is not done; it comes first")
        return phase

    def _cut_of(self, slices: int) -> Cut:
        self.cut = read_cut(self.work_store)
        if self.cut is None:
            raise RefineError(
                f"{self.work_store.url(CUT)} is not there: the inputs are not cut into slices yet; run the same "
                f"command once with --slices {slices} --until {FIRST}"
            )
        if self.cut.fingerprint != self.fingerprints["clean"]:
            raise RefineError(f"{self.work_store.url(CUT)} is of another run and does not belong here; remove it")
        if self.cut.slices != slices:
            raise RefineError(
                f"{self.prefix} was cut into {self.cut.slices:,} slices, {slices:,} given. Give {self.cut.slices}, or "
                "choose another --output"
            )
        return self.cut

    def _steps(self, slices: int) -> list[Step]:
        """The steps of the run, as far as they can be known before the documents are counted."""
        know_writer(self.recipe.LANE.writer)
        found = [Step(READ, slices), Step(END, 1)]
        jobs = {} if self._removes_nothing() else {"dedup": dedup_steps(self.recipe, self.inputs)}
        jobs["shards"] = shards_steps(self.recipe, self.tokenizer)
        for phase, steps in jobs.items():
            found += [Step(f"{phase}-{n}", 1 if whole else slices) for n, whole in enumerate(steps)]
        return found

    def _removes_nothing(self) -> bool:
        recipe = self.recipe
        return not (recipe.exact_dup or recipe.near_dup or recipe.near_dup_in_source or recipe.comparing())


def _as_sealed(task: ReadTask) -> ReadTask:
    """A task for a slice that runs hours later: its bytes are compared with their checksum, so a file that was only
    copied or touched meanwhile is the same. Where readers jump, there is no checksum, and its time of change counts."""
    return replace(task, changed=0) if task.crc32c and not find_reader(task.format).in_pieces else task
