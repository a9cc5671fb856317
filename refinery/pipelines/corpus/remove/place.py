"""Where the new version of a corpus goes: whose it is, its jobs, and what attempts left behind."""

from dataclasses import dataclass
from typing import Any

from refinery.loader.format.manifest import MANIFEST, SCHEMA_VERSION, Manifest, seal, unseal
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import StorageConflict
from refinery.pipelines.corpus.export.work_place import WorkPlace
from refinery.pipelines.progress.work import Work
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.prefix import location
from refinery.pipelines.runners.runner import Build

CLAIM = "takedown.json"


@dataclass
class Place(WorkPlace):
    """The prefix of the new version; one of another identity is refused. before: the prefix of the version before."""

    WORK = "work"
    PHASE = "takedown"

    before: str

    def __post_init__(self) -> None:
        super().__post_init__()
        both = [f"{place}/" for place in (self.root, location(self.before))]
        if both[0].startswith(both[1]) or both[1].startswith(both[0]):
            raise RefineError(
                f"--output {self.output}: one of it and the corpus {self.before} contains the other; the new version "
                "needs its own prefix"
            )

    def finished(self) -> Manifest | None:
        """The manifest where this takedown is complete here, None where nothing is. Raises RefineError for a place that
        holds anything else."""
        advice = "choose another --output"
        self.refuse_file()
        if self.store.size(MANIFEST) is not None:
            manifest = Corpus(self.store).manifest
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

    def run_job(self, name: str, build: Build, number: int, work: Work) -> dict[str, Any]:
        """The report NAME/report.json of a job, run unless it is there. number: for its name on Dataflow."""
        return self.jobs(self.fingerprint).run(self.PHASE, f"{name}/report.json", name, build, number, work)

    def tidy(self) -> None:
        """Remove the work files and their folders: after the manifest, and by every later command."""
        names = (name for page in self.store.pages(self.WORK) for name in page)
        self.store.delete_many(names)  # what may not be deleted stays: nothing reads it
        self.store.sweep()
        self.store.prune(self.WORK)
