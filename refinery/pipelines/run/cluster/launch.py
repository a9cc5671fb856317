"""Scripts for what a run on a cluster still lacks: all of it at first, later the missing slices and what follows."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from refinery.loader.storage.store import Store
from refinery.pipelines.run.cluster.progress import Progress, ProgressReader
from refinery.pipelines.run.cluster.submission import (
    Submitted,
    all_jobs,
    last_submission,
    next_number,
    write_jobs,
    write_submission,
)
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.slices.cut import Cut, read_cut
from refinery.pipelines.run.slices.names import PUBLISH
from refinery.pipelines.runners.cluster.arrays import Array, arrays, ranges
from refinery.pipelines.runners.cluster.sbatch import StepScript, Submission, options, write_scripts
from refinery.pipelines.runners.cluster.slurm import (
    DEFAULT_MAX_ARRAY,
    SlurmTrouble,
    forget_jobs,
    max_array_size,
    queue,
    read_jobs,
    submit,
)
from refinery.pipelines.runners.cluster.task_resources import task_resources
from refinery.transforms.core.wording import many

Say = Callable[[str], None]
REFINE = (sys.executable, "-m", "refinery", "refine")


@dataclass(frozen=True)
class Launch:
    """The jobs of a run at `prefix`. submitted: its arguments. submit: run submit.sh, too."""

    reader: ProgressReader
    submitted: Submitted
    say: Say
    submit: bool = False

    @property
    def work(self) -> Store:
        return self.reader.work_store

    def first(self) -> None:
        """All that is missing, for a run that was not submitted yet. Raises RefineError where it was."""
        if any(all_jobs(self.work).values()):
            raise RefineError(
                f"{self.reader.prefix}: jobs of this run were submitted already; `refinery cluster resume "
                f"{self.reader.prefix}` submits what is missing"
            )
        self._go(self.reader.read())

    def again(self) -> None:
        """What is missing, once no job of the run is in the queue. Raises RefineError where one is."""
        found = self.reader.read()
        if found.is_complete:
            self.say(f"{found.prefix} is complete; nothing to do")
            return
        if waiting := queue(all_jobs(self.work)):
            tasks = sum(sum(states.values()) for states in waiting.values())
            raise RefineError(
                f"{found.prefix}: {many(tasks, 'task')} of {', '.join(waiting)} are still in the queue; wait for their "
                f"end, or `refinery cluster cancel {found.prefix}`"
            )
        self._go(found)

    def _go(self, found: Progress) -> None:
        if found.is_complete:
            self.say(f"{found.prefix} is complete; nothing to do")
            return
        cut = read_cut(self.work)
        assert cut is not None  # noqa: S101 - `found` was read from it
        missing = {step.name: step.missing for step in found.steps if step.missing}
        number = next_number(self.work)
        submission = make_submission(found, cut, self.submitted, self._max_array())
        paths = write_scripts(submission)
        if not number:
            forget_jobs(self.submitted.scripts)
        write_submission(self.work, number, replace(self.submitted, missing=missing))
        tasks = sum(len(slices) for slices in missing.values())
        self.say(f"{many(len(missing), 'step')}, {many(tasks, 'task')}; scripts in {near(self.submitted.scripts)}")
        if self.submit:
            self._submit(number, paths[-1])
        else:
            self.say(f"submit them:  {near(str(paths[-1]))}")
        self.say(f"follow them:  refinery cluster status {found.prefix}{self._more()}")

    def _max_array(self) -> int:
        try:
            return max_array_size()
        except SlurmTrouble as trouble:
            if self.submit:
                raise
            self.say(f"({trouble}; arrays of {DEFAULT_MAX_ARRAY:,} tasks at most are assumed)")
            return DEFAULT_MAX_ARRAY

    def _submit(self, number: int, script: Path) -> None:
        before = {id_ for ids in read_jobs(str(script.parent)).values() for id_ in ids}
        try:
            submit(script)
        finally:  # those that were submitted before something failed can be cancelled
            listed = read_jobs(str(script.parent))
            jobs = {step: new for step, ids in listed.items() if (new := [id_ for id_ in ids if id_ not in before])}
            if jobs:
                write_jobs(self.work, number, jobs)
                ids = sorted({int(id_) for each in jobs.values() for id_ in each})
                self.say(f"submitted: {many(len(ids), 'job')}, {ranges(ids)}")

    def _more(self) -> str:
        default = f"{self.reader.prefix.rstrip('/')}/work"
        return "" if self.reader.work == default else f" --work {self.reader.work}"


def near(path: str) -> str:
    """A path as people would type it here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def make_submission(found: Progress, cut: Cut, submitted: Submitted, max_array: int) -> Submission:
    """The scripts of the steps that lack something. Raises ValueError for arguments that a script cannot have."""
    slice_bytes = [sum(wave.bytes for wave in cut.waves_of(number)) for number in range(cut.slices)]
    steps: list[tuple[StepScript, Sequence[Array | None]]] = []
    for step in found.steps:
        if not step.missing:
            continue
        script = StepScript(
            step=step.name,
            slices=0 if step.name == PUBLISH else cut.slices,
            words=(*REFINE, *submitted.words, *(submitted.ending if step.name == PUBLISH else ())),
            folder=submitted.folder,
            scripts=submitted.scripts,
            resources=task_resources(slice_bytes, step.tasks, submitted.workers),
            scratch=submitted.scratch,
            extra=options(submitted.sbatch),
        )
        steps.append((script, [*arrays(step.missing, max_array)] if script.slices else [None]))
    return Submission(found.prefix, submitted.scripts, steps, submitted.throttle)


def resumed(store: Store, prefix: str, given: Mapping[str, Any]) -> Submitted:
    """The last submission's arguments, with what is given in place of theirs. Raises RefineError where nothing was
    submitted."""
    last = last_submission(store)
    if last is None:
        raise RefineError(f"{prefix}: nothing was submitted here; `refinery cluster slurm` begins a run")
    return replace(last, **{key: value for key, value in given.items() if value}, written=round(time.time()))
