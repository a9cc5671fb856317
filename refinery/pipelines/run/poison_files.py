"""Records and files on which worker processes died: remembered from one command to the next, searched for, and left out
where the recipe says so.

A worker that runs out of memory or crashes ends the job on this machine. Files that were read then come first when it
goes on, in a wave of their own, and workers note the record that they have in hand (transforms/core/live.py). A
record on which two processes died is poison, and so is a file on which two died without a record in hand. (What another
machine's service does with a process that dies is its own matter: it tries again, and then fails the job.)
"""

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import DEATH
from refinery.pipelines.runners.local_runner import Death, WorkerDied
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.safe_text import printable
from refinery.transforms.core.wording import many
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.sources import ReadTask

T = TypeVar("T")

TWICE = 2
KIND = "refinery-worker-death"
SETTING = "failures.poison_files"
HINT = f"with --set {SETTING}=1 it finds the record at fault and leaves it out"


@dataclass
class Deaths:
    """What the notes in a work location say, all by names as they are printed. files: deaths on a file; without_record:
    those without a record in hand, although it was asked for; records: deaths on a record, by origin. stages: in
    which a record was in hand last."""

    files: Counter[str] = field(default_factory=Counter)
    without_record: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    stages: dict[str, str] = field(default_factory=dict)

    def add(self, note: dict[str, Any]) -> None:
        """A death. Notes of earlier versions have files alone."""
        files = {printable(path) for path in note.get("files", [])}
        if record := note.get("record"):
            self.records[record["origin"]] += 1
            self.stages[record["origin"]] = record["stage"]
            files.add(file_of(record["origin"]))
        elif note.get("names_records"):
            self.without_record.update(files)
        self.files.update(files)

    @property
    def poison_records(self) -> frozenset[str]:
        return frozenset(origin for origin, times in self.records.items() if times >= TWICE)

    @property
    def poison_files(self) -> frozenset[str]:
        return frozenset(path for path, times in self.without_record.items() if times >= TWICE)

    def unexplained(self) -> set[str]:
        """Files on which processes died twice, whatever they had in hand, and none of whose records is poison."""
        explained = {*map(file_of, self.poison_records), *self.poison_files}
        return {path for path, times in self.files.items() if times >= TWICE} - explained

    def named(self, name: str) -> str:
        """A record or file, for people."""
        return f"{name} (stage {self.stages[name]})" if name in self.stages else name


def file_of(origin: str) -> str:
    """The input file of an origin."""
    return origin.rpartition("@")[0]


@dataclass
class PoisonSearch:
    """The search of one phase 1. allowed: `failures.poison_files`."""

    store: Store
    runner: Runner
    allowed: int
    say: Callable[[str], None]
    restarts: int = 0
    left_out: set[str] = field(default_factory=set)  # what was already said

    def deaths(self) -> Deaths:
        """All that are recorded. Cost: a listing, and a small read each."""
        found = Deaths()
        for path in self.store.list("clean"):
            if DEATH.fullmatch(path):
                found.add(unseal(self.store.read(path), self.store.url(path)))
        return found

    def settle(self, tasks: Sequence[ReadTask]) -> tuple[list[ReadTask], list[ReadTask]]:
        """The tasks, which know what is poison: those of files on which processes died, and all others.

        Raises RefineError, which names what is poison among them, where that is more than allowed in the whole run.
        """
        deaths = self.deaths()
        if not deaths.files:
            return [], list(tasks)
        paths = {printable(task.path) for task in tasks}
        records, files = deaths.poison_records, deaths.poison_files
        marked = [_marked(task, records, files) for task in tasks]
        poison = {name for task in marked for name in (*task.poison_records, *_whole(task))}
        refused = deaths.unexplained() & paths if not self.allowed else set()
        count = len(records | files | refused)
        if (poison or refused) and count > self.allowed:
            raise RefineError(
                f"worker processes died twice while they read {', '.join(map(deaths.named, sorted(poison | refused)))}"
                ". Give them more memory (fewer --workers), lower `limits`, look at the file, or leave out what they "
                f"die of: --set {SETTING}={count} counts each such record as one dead letter"
            )
        if new := sorted(poison - self.left_out):
            self.say(f"clean: left out because worker processes died on them: {', '.join(map(deaths.named, new))}")
            self.left_out.update(new)
        suspect = [task for task in marked if printable(task.path) in deaths.files]
        return suspect, [task for task in marked if printable(task.path) not in deaths.files]

    def attempt(self, run: Callable[[], T], is_suspect: bool) -> T | None:
        """What `run` returns; None where a worker died and the work is to be tried again. is_suspect: whether files are
        read on which processes died.

        It records a death in the work location, and raises it where nothing may be left out, or where processes die
        more often than what is allowed explains.
        """
        names_records = bool(self.allowed) or is_suspect
        try:
            with self.runner.naming_records(names_records):
                return run()
        except WorkerDied as error:
            death = error.death
            if death.files or death.record:
                self.store.create(f"clean/death-{uuid.uuid4().hex}.json", seal(_note(death, names_records)))
            if not self.allowed:
                raise WorkerDied(replace(death, advice=f"{death.advice}; {HINT}")) from None
            if not (death.files or death.record) or self.restarts >= TWICE * (self.allowed + 1):
                raise
            self.restarts += 1
            self.say(f"clean: {death.what}; {many(self.restarts, 'restart')} so far")
            return None


def _note(death: Death, names_records: bool) -> dict[str, Any]:
    note = {"schema_version": SCHEMA_VERSION, "kind": KIND, "files": list(death.files), "names_records": names_records}
    if death.record:
        note["record"] = {"stage": death.record[0], "origin": printable(death.record[1])}
    return note


def _marked(task: ReadTask, records: frozenset[str], files: frozenset[str]) -> ReadTask:
    """The task, which knows what of its file is poison. Origins of documents of an earlier run name other files."""
    path = printable(task.path)
    if path in files:
        return replace(task, poison=True)
    keeps_origins = bool(records) and find_reader(task.format).keeps_origins
    own = tuple(sorted(origin for origin in records if keeps_origins or file_of(origin) == path))
    return replace(task, poison_records=own) if own else task


def _whole(task: ReadTask) -> list[str]:
    return [printable(task.path)] if task.poison else []
