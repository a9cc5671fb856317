"""Where an export goes: whose it is, its jobs, its manifest at the end, and what attempts left behind."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.manifest import RUN, SCHEMA_VERSION, seal, unseal
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import WRITABLE
from refinery.loader.storage.store import StorageConflict, checksums
from refinery.pipelines.corpus.export.export_format import RUN_KIND
from refinery.pipelines.corpus.export.export_manifest import manifest_name, read_export
from refinery.pipelines.corpus.export.options import WORK
from refinery.pipelines.corpus.export.work_place import WorkPlace
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.prefix import location
from refinery.pipelines.runners.runner import Build


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """What differs in the sections of two identities, a line for each fact.

    >>> differences({"options": {"dtype": "int64"}}, {"options": {"dtype": "int32"}})
    ["dtype of options is 'int64' there, 'int32' here"]
    """
    found = []
    for section in sorted(ours):
        there, here = theirs.get(section) or {}, ours[section]
        names = [name for name in sorted({*there, *here}) if there.get(name) != here.get(name)]
        names = ["format"] if "format" in names else names  # others follow from it
        found += [f"{name} of {section} is {there.get(name)!r} there, {here.get(name)!r} here" for name in names]
    return found


class SourceCorpus(Corpus):
    """The corpus that is exported."""

    def tokenizer_file(self) -> tuple[str, bytes]:
        """Path and bytes of its tokenizer. Raises the same errors as `read_file`."""
        path = self.manifest.tokenizer.path
        return path, self.read(path)

    def to_do(self) -> Work:
        """What a job is to do that goes through all documents once."""
        manifest = self.manifest
        documents, size = manifest.totals["documents"], sum(shard.bin.size for shard in manifest.shards)
        steps = [Step("documents", documents)]
        return Work("export", steps=steps, bytes=size, documents="work documents")

    def plain(self) -> dict[str, Any]:
        """What an export's manifest says of it: nothing of where it is."""
        return {"name": self.manifest.name, "fingerprint": self.manifest.fingerprint, "manifest_sha256": self.sha256}


def open_corpus(prefix: str) -> SourceCorpus:
    """The corpus at a local folder or gs:// prefix. Raises FormatError for anything else, ValueError for the web."""
    if prefix.startswith(("http://", "https://")):
        raise ValueError(f"{prefix}: a web server given, {WRITABLE}")
    corpus = SourceCorpus(location(prefix)).load_with_run()
    if corpus.is_adopted:
        raise ValueError(
            f"{prefix}: an adopted corpus: where its documents come from, an export's fields, is not known"
        )
    return corpus


@dataclass
class Place(WorkPlace):
    """The location of an export; one of another identity is refused."""

    WORK = WORK
    PHASE = "export"

    def claim(self) -> None:
        """Write `_run.json`, or see that it is ours. Raises RefineError for anything else that is there."""
        self.refuse_file()
        payload = {"schema_version": SCHEMA_VERSION, "kind": RUN_KIND, **self.identity, "fingerprint": self.fingerprint}
        if self.store.size(RUN) is None:
            if not self.store.is_empty():
                raise RefineError(f"{self.output} holds {self.store.list()[0]}, no export; choose another --output")
            try:
                self.store.create(RUN, seal(payload))
                return
            except StorageConflict:
                pass  # somebody else was faster: compare with what they wrote
        theirs = unseal(self.store.read(RUN), self.store.url(RUN))
        if theirs.get("kind") != RUN_KIND:
            raise RefineError(f"{self.output} holds a corpus, no export; choose another --output")
        if theirs["fingerprint"] != self.fingerprint:
            both = "; ".join(differences(theirs, self.identity))
            raise RefineError(f"{self.output} holds another export and stays as it is: {both}. Choose another --output")

    def run_job(
        self, fingerprint: str, report: str, label: str, build: Build, number: int, work: Work
    ) -> dict[str, Any]:
        """The report of a job, run unless it is there. number: of the job in this export, for its name on Dataflow."""
        return self.jobs(fingerprint).run(self.PHASE, report, label, build, number, work)

    def manifest(self) -> dict[str, Any] | None:
        """The finished manifest, None if there is none. Raises FormatError for a damaged one."""
        if self.store.size(manifest_name(self.store)) is None:
            return None
        return read_export(self.store)[0]

    def add_file(self, name: str, data: bytes) -> dict[str, Any]:
        """Publish a small file; its entry for the manifest."""
        self.store.create(name, data)
        size, crc32c, sha256 = checksums(data)
        return {"path": name, "size": size, "crc32c": crc32c, "sha256": sha256}

    def tidy(self, listed: Iterable[str], superseded: Collection[str] = ()) -> None:
        """Remove what attempts left: the work files and their folders, temporary ones, and `superseded` files of this
        export's own.

        After the manifest, and by every later command. Raises RefineError for a file of somebody else, which stays: an
        export that is uploaded or synchronised as a folder must hold nothing but itself.
        """
        others = set(self.store.list()) - {*listed, manifest_name(self.store), RUN}
        own = sorted(name for name in others if name.startswith(f"{WORK}/") or name in superseded)
        self.store.delete_many(own)  # what may not be deleted stays: nothing reads it
        if foreign := sorted(others.difference(own)):
            raise RefineError(f"{self.store.url(foreign[0])} was not written by this export; remove it")
        self.store.sweep()
        for folder in sorted({WORK, *(name.partition("/")[0] for name in superseded if "/" in name)}):
            self.store.prune(folder)
