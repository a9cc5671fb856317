"""A place that a command writes to: its stores, its lease, its jobs, and the work files that go in the end."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import orjson

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.recipe.recipe import FailureParams
from refinery.pipelines.run.at_work import at_work
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phase_jobs import PhaseJobs
from refinery.pipelines.run.prefix import location
from refinery.pipelines.runners.runner import Runner


def digest(payload: Mapping[str, Any]) -> str:
    """sha256 of plain data."""
    return hashlib.sha256(orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass
class WorkPlace:
    """A location and a folder of work files below it. identity: what decides it, as plain data; its digest is the
    place's `fingerprint`."""

    WORK: ClassVar[str]
    """folder below the location, gone in the end"""
    PHASE: ClassVar[str]
    """what its jobs are called"""

    output: str
    identity: Mapping[str, Any]
    runner: Runner
    name: str
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.root = location(self.output)
        self.work = f"{self.root}/{self.WORK}"
        self.store = open_store(self.root)
        self.work_store = open_store(self.work)
        self.fingerprint = digest(self.identity)

    def refuse_file(self) -> None:
        """Raises RefineError where a file is."""
        if "://" not in self.root and Path(self.root).exists() and not Path(self.root).is_dir():
            raise RefineError(f"{self.output} is a file, not a folder; choose another --output")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """A lease on the place, and a heartbeat: a second command on this machine learns of the first and raises
        RefineError."""
        with at_work(self.work_store, self.runner.remote, self.say), self.runner.heartbeat(self.root):
            yield

    def jobs(self, fingerprint: str) -> PhaseJobs:
        """What runs the jobs of a fingerprint: launched once, found again, believed only if the report is theirs."""
        return PhaseJobs(
            name=self.name,
            prefix=self.root,
            work=self.work,
            runner=self.runner,
            fingerprints={self.PHASE: fingerprint},
            failures=FailureParams(),
            say=self.say,
        )
