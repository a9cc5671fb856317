"""A run on a cluster, looked at more than once: its rate; and what Slurm says of its jobs."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from refinery.loader.storage.store import Store
from refinery.pipelines.run.cluster.progress import Progress, ProgressReader, StepState
from refinery.pipelines.run.cluster.submission import all_jobs, last_submission
from refinery.pipelines.run.cluster.text import Asked
from refinery.pipelines.runners.cluster.sbatch import LOGS
from refinery.pipelines.runners.cluster.slurm import SlurmTrouble, queue


@dataclass
class Watched:
    """Readings of one run. Where a step's reports say nothing of its rate, what it did between two readings does."""

    reader: ProgressReader
    clock: Callable[[], float] = time.monotonic
    _first: dict[str, tuple[float, int]] = field(default_factory=dict, init=False)

    def read(self) -> Progress:
        """The state now."""
        found = self.reader.read()
        return replace(found, steps=tuple(self._with_rate(step) for step in found.steps))

    def _with_rate(self, step: StepState) -> StepState:
        now, done = self.clock(), len(step.done)
        began, before = self._first.setdefault(step.name, (now, done))
        if step.seconds_left is not None or done == before or not step.missing:
            return step
        return replace(step, seconds_left=len(step.missing) * (now - began) / (done - before))


def ask(work: Store, found: Progress) -> Asked:
    """What Slurm says of the jobs that were submitted; nothing where there are none, or no Slurm."""
    submitted = None if found.is_complete else last_submission(work)
    if submitted is None:
        return Asked({})
    logs = f"{submitted.scripts}/{LOGS}"
    if shutil.which("squeue") is None:
        return Asked({}, logs=logs)
    try:
        return Asked(queue(all_jobs(work)), logs=logs)
    except SlurmTrouble as trouble:
        return Asked({}, str(trouble), logs)
