"""Where the new version of a corpus goes: whose it is, its jobs, and what attempts left behind."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refinery.loader.format.manifest import MANIFEST, SCHEMA_VERSION, Manifest, read_manifest, seal, unseal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageConflict, StorageError
from refinery.pipelines.progress.work import Work
from refinery.pipelines.recipe.recipe import FailureParams
from refinery.pipelines.run.at_work import at_work
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phase_jobs import PhaseJobs
from refinery.pipelines.run.prefix import location
from refinery.pipelines.runners.runner import Build, Runner

WORK = "work"  # folder below the prefix; empty at the end
CLAIM = "takedown.json"
PHASE = "takedown"


@dataclass
class Place:
    """The prefix of the new version. identity: what decides it; another one is refused."""

    output: str
    before: str  # the prefix of the version before
    identity: Mapping[str, Any]
    fingerprint: str
    runner: Runner
    name: str
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.root = location(self.output)
        self.work = f"{self.root}/{WORK}"
        self.store, self.work_store = open_store(self.root), open_store(self.work)
        both = [f"{place}/" for place in (self.root, location(self.before))]
        if both[0].startswith(both[1]) or both[1].startswith(both[0]):
            raise RefineError(f"--output {self.output}: it and the corpus {self.before} are one in the other; the new "
                              "version needs a prefix of its own")  # fmt: skip

    def finished(self) -> Manifest | None:
        """The manifest where this takedown is complete here, None where nothing is. Raises RefineError for a place that
        holds anything else."""
        advice = "choose another --output"
        if "://" not in self.root and Path(self.root).exists() and not Path(self.root).is_dir():
            raise RefineError(f"{self.output} is a file, not a folder; {advice}")
        if self.store.size(MANIFEST) is not None:
            manifest = read_manifest(self.store)
            if not manifest.takedowns or manifest.takedowns[-1].fingerprint != self.fingerprint:
                raise RefineError(f"{self.output} holds another corpus and stays as it is; {advice}")
            return manifest
        if self.work_store.size(CLAIM) is None:
            if not self.store.is_empty():
                raise RefineError(f"{self.output} holds {self.store.list()[0]}; {advice}")
            return None
        theirs = unseal(self.work_store.read(CLAIM), self.work_store.url(CLAIM))
        if theirs.get("fingerprint") != self.fingerprint:
            raise RefineError(f"{self.output} holds the beginning of another takedown and stays as it is; {advice}")
        return None

    def claim(self) -> None:
        """Make the place ours, before anything else is written. Raises RefineError where somebody else was faster."""
        payload = {"schema_version": SCHEMA_VERSION, "kind": "refinery-takedown-claim", **self.identity}
        try:
            self.work_store.create(CLAIM, seal({**payload, "fingerprint": self.fingerprint}))
        except StorageConflict:
            self.finished()

    def at_work(self) -> AbstractContextManager[None]:
        """A lease on the place: a second command on this machine is told of the first. Raises RefineError as that."""
        return at_work(self.work_store, self.runner.remote, self.say)

    def run_job(self, name: str, build: Build, number: int, work: Work) -> dict[str, Any]:
        """The report NAME/report.json of a job, run unless it is there. number: for its name on Dataflow."""
        jobs = PhaseJobs(
            name=self.name,
            prefix=self.root,
            work=self.work,
            runner=self.runner,
            fingerprints={PHASE: self.fingerprint},
            failures=FailureParams(),
            say=self.say,
        )
        return jobs.run(PHASE, f"{name}/report.json", name, build, number, work)

    def tidy(self) -> None:
        """Remove the work files and their folders: after the manifest, and by every later command."""
        for name in self.store.list(WORK):
            try:
                self.store.delete(name)
            except StorageError as error:
                if error.status != 403:  # who may not delete leaves it there: nothing reads it
                    raise
        self.store.sweep()
        self.store.prune(WORK)
