"""`refinery inspect`: the status of a run, from the small sealed files that it writes. Reads no data, writes nothing.

A pure core: `inspect` returns data; pipelines/run/inspection/text.py formats it. (Not named inspect.py, like a
module of the standard library.)
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import MOST
from refinery.loader.format.manifest import MANIFEST, RUN, Manifest, unseal
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.run.at_work import Lease, others_at_work
from refinery.pipelines.run.differences import TOKENIZED_FROM
from refinery.pipelines.run.funnel import build_funnel
from refinery.pipelines.run.phases import each_wave, merge_reports, read_phase
from refinery.pipelines.runners.dataflow.job_records import JobRecord, read_jobs
from refinery.pipelines.runners.dataflow.jobs import ENDED, JobState, ServiceRefusal, ServiceTrouble

PHASES = ("clean", "dedup", "shards")
OWN = PHASES[-1]  # the only phase of `refinery tokenize`
ASK_LIVE = "launched"  # state of a job whose end is not recorded
# FormatError is a ValueError.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, OSError)

T = TypeVar("T")
Ask = Callable[[JobRecord], JobState | None]


@dataclass(frozen=True)
class PhaseState:
    """A phase. state: "done", "in progress" (some of its jobs are done), "to do". root: where its parts are, if
    elsewhere.

    waves, waves_left: of clean, until it is done. parts: folder -> {"files", "rows", "bytes"}. waves_from: work
    locations of other runs that hold some of the parts, after --reuse.
    """

    name: str
    state: str
    root: str = ""
    waves: int = 0
    waves_left: int | None = None
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    waves_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """The status of a run.

    state: "empty"; "foreign": not of Refinery; "damaged": see `problems`; "started"; "running": a job was launched on
    Dataflow and its end is not recorded; "complete". jobs: with their states as last recorded, or live. funnel: as in
    the manifest, for what is done so far; seconds: of work per stage. manifest: None until the corpus is complete.
    notes: what could not be read, and why, where that does not affect the run. at_work: commands that are at it now.
    texts: what `refinery tokenize` makes it of, "" for a run over sources.
    """

    prefix: str
    work: str
    state: str
    name: str = ""
    fingerprint: str = ""
    inputs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    phases: tuple[PhaseState, ...] = ()
    jobs: tuple[JobRecord, ...] = ()
    funnel: tuple[Mapping[str, Any], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    manifest: Manifest | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    at_work: tuple[Lease, ...] = ()
    texts: str = ""

    @property
    def dead(self) -> dict[str, dict[str, int]]:
        """Stage -> error -> dead letters."""
        found: dict[str, Counter[str]] = {}
        for row in self.funnel:
            for error, count in row["dead"].items():
                found.setdefault(row["stage"], Counter())[error] += count["documents"]
        return {stage: dict(sorted(errors.items(), key=lambda e: (-e[1], e[0]))) for stage, errors in found.items()}


def inspect(prefix: str, work: str = "", ask: Ask | None = None) -> Inspection:
    """The status of the run at `prefix` (a local folder, gs://…, s3://…, https://…).

    work: the work location (default: PREFIX/work). ask: returns the live state of a job. Raises ValueError for an
    unsupported kind of address, and as the store does where the storage cannot be reached; damage is reported in the
    result. Cost: a read for each of the run's reports and job records, and a listing of the latter.
    """
    return _Inspector(prefix, work or f"{prefix.rstrip('/')}/work", ask).inspect()


@dataclass(frozen=True)
class _Told:
    """What is kept of a phase's or a wave's report: not the parts that it lists, of which there may be a million.

    counts: the report without them. root: where they are, of a phase. roots: that they name themselves.
    """

    counts: Mapping[str, Any]
    parts: Mapping[str, Mapping[str, int]]
    roots: tuple[str, ...]
    root: str = ""
    number: int = 0
    waves_left: Any = None


def _told(report: Mapping[str, Any], root: str = "") -> _Told:
    counts = {"counters": report["counters"], "seconds": report["seconds"], "parts": {}}
    return _Told(counts, _parts(report), _roots(report), root, report.get("number", 0), report.get("waves_left"))


class _Inspector:
    def __init__(self, prefix: str, work: str, ask: Ask | None) -> None:
        self.prefix, self.work, self.ask = prefix, work, ask
        self.store, self.work_store = open_store(prefix), open_store(work)
        self.problems: list[str] = []
        self.notes: list[str] = []

    def inspect(self) -> Inspection:
        if self.store.size(RUN) is None and self.store.size(MANIFEST) is None:
            return Inspection(self.prefix, self.work, "empty" if is_empty(self.store) else "foreign")
        if self.store.size(RUN) is None and (adopted := self._adopted()) is not None:
            return adopted
        run = self._look(RUN, self._read_run) or {}
        manifest = None
        if self.store.size(MANIFEST) is not None:
            manifest = self._look(MANIFEST, lambda: Corpus(self.store).load().manifest)
            if manifest and run and manifest.fingerprint != run["fingerprint"]:
                self.problems.append(f"{self.store.url(MANIFEST)} is of another run; {RUN} has another fingerprint")
        at_work = () if manifest is not None else tuple(self._look("at_work", self._at_work) or ())
        self.notes += [f"a command is at work here {lease.words()}" for lease in at_work]
        texts = run.get("texts", "")
        done, waves = self._phases(run.get("phases", {}), complete=manifest is not None, texts=texts)
        jobs = self._jobs(set(done), {wave.number for wave in waves})
        reports = [told.counts for told in (*done.values(), *waves)]
        merged = self._look("the counts", lambda: _merged(reports)) or merge_reports([])
        funnel: Sequence[Mapping[str, Any]] = manifest.funnel if manifest is not None else ()
        if manifest is None and (sources := run.get("sources")):
            funnel = self._look("the counts", lambda: build_funnel(merged["counters"], run["stages"], sources)) or ()
        return Inspection(
            self.prefix,
            self.work,
            self._state(manifest, jobs),
            run.get("name", manifest.name if manifest else ""),
            run.get("fingerprint", manifest.fingerprint if manifest else ""),
            run.get("inputs", {}),
            tuple(self._phase(name, done, waves, texts) for name in PHASES) if run else (),
            tuple(jobs),
            tuple(funnel),
            merged["seconds"],
            manifest,
            tuple(dict.fromkeys(self.problems)),
            tuple(self.notes),
            at_work,
            texts,
        )

    def _adopted(self) -> Inspection | None:
        """A corpus that no run has made."""
        try:
            found = Corpus(self.store).load().manifest
        except FormatError:
            return None
        if found.lane != ADOPTED:
            return None
        notes = ("adopted from another tool's files: there was no run, and the origin of documents is not known",)
        name, fingerprint = found.name, found.fingerprint
        return Inspection(self.prefix, self.work, "complete", name, fingerprint, manifest=found, notes=notes)

    def _look(self, what: str, look: Callable[[], T]) -> T | None:
        """What `look` returns; None, and a problem, for what is damaged."""
        try:
            return look()
        except UNREADABLE as error:
            message = (
                str(error)
                if isinstance(error, FormatError) or what in str(error)
                else f"{what}: {type(error).__name__}: {error}"
            )
            self.problems.append(message)
            return None

    def _read_run(self) -> dict[str, Any]:
        """The fields of _run.json that are shown, each checked for its type."""
        payload = unseal(self.store.read(RUN), self.store.url(RUN))
        inputs: dict[str, Counter[str]] = {}
        for entry in payload["inputs"]:
            inputs.setdefault(_text(entry["source"]), Counter()).update(files=1, bytes=_count(entry["size"]))
        return {
            "name": _text(payload["name"]),
            "fingerprint": _text(payload["fingerprint"]),
            "phases": {name: _text(payload["phases"][name]) for name in PHASES},
            "sources": [_text(source["name"]) for source in payload["recipe"]["sources"]],
            "stages": [_text(stage["name"]) for name in PHASES for stage in payload["stages"][name]],
            "inputs": {source: dict(count) for source, count in inputs.items()},
            "texts": _made_of(payload.get(TOKENIZED_FROM)),
        }

    # --- phases and jobs ----------------------------------------------------------------------------------------

    def _phases(
        self, fingerprints: Mapping[str, str], complete: bool, texts: str
    ) -> tuple["dict[str, _Told]", "list[_Told]"]:
        """The finished phases by name, and the reports of finished waves while clean is not finished."""
        fingerprints = {name: fingerprint for name, fingerprint in fingerprints.items() if not texts or name == OWN}
        found = {n: self._look(f"{n}.json", partial(self._finished, n, f)) for n, f in fingerprints.items()}
        done = {name: told for name, told in found.items() if told is not None}
        waves: list[_Told] = []
        if fingerprints and "clean" not in done and not complete and not texts:
            waves = self._look("clean", partial(self._waves, fingerprints["clean"])) or []
            if not waves and not self._claimed():
                self.notes.append(
                    f"there is nothing of this run in {self.work}; if it has another --work, give it here, too"
                )
        return done, waves

    def _finished(self, name: str, fingerprint: str) -> "_Told | None":
        phase = read_phase(self.work, name, fingerprint)
        if phase is not None:
            return _told(phase.report, phase.root)
        if self.work_store.size(f"{name}.json") is not None:
            raise FormatError(f"{self.work_store.url(f'{name}.json')} is of another run")
        return None

    def _waves(self, fingerprint: str) -> "list[_Told]":
        waves = []
        for wave in each_wave(self.work_store, "clean"):
            if wave.get("fingerprint") != fingerprint:
                place = self.work_store.url(f"clean/wave-{wave['number']:05d}.json")
                raise FormatError(f"{place} is of another run")
            waves.append(_told(wave))
        return waves

    def _at_work(self) -> list[Lease]:
        if self.work.startswith(("http://", "https://")):
            return []  # HTTP locations cannot be listed
        return others_at_work(self.work_store)

    def _claimed(self) -> bool:
        inside = self.work.startswith(f"{self.prefix.rstrip('/')}/")
        return inside or self.work_store.size(RUN) is not None

    def _phase(self, name: str, done: "Mapping[str, _Told]", waves: "Sequence[_Told]", texts: str) -> PhaseState:
        if texts and name != OWN:
            return PhaseState(name, "done", texts)
        if told := done.get(name):
            root = "" if told.root == self.work else told.root
            return PhaseState(name, "done", root, parts=told.parts, waves_from=told.roots)
        if name == "clean" and waves:
            left = waves[-1].waves_left
            return PhaseState(
                name,
                "in progress",
                waves=len(waves),
                waves_left=left if isinstance(left, int) else None,
                parts=_sum_parts(wave.parts for wave in waves),
                waves_from=tuple(sorted({root for wave in waves for root in wave.roots})),
            )
        return PhaseState(name, "to do")

    def _jobs(self, phases: set[str], waves: set[int]) -> list[JobRecord]:
        """Records with the best known state of each job."""
        if self.work.startswith(("http://", "https://")):
            return []  # HTTP locations cannot be listed
        jobs = []
        for job in self._look("jobs", lambda: read_jobs(self.work_store)) or []:
            phase, _, wave = job.key.partition("-")
            if not job.state and self.ask is not None:
                job = replace(job, state=self._ask(job, self.ask))
            if not job.state and (phase in phases or (wave.isdecimal() and int(wave) in waves)):
                job = replace(job, state="DONE")  # its end is not recorded, but its work is done
            jobs.append(replace(job, state=job.state or ASK_LIVE))
        return jobs

    def _ask(self, job: JobRecord, ask: Ask) -> str:
        try:
            found = ask(job)
            return found.state if found else "UNKNOWN"
        except (ServiceTrouble, ServiceRefusal) as error:
            self.notes.append(f"job {job.id}: no answer from Dataflow: {error}")
            return ""

    def _state(self, manifest: Manifest | None, jobs: Sequence[JobRecord]) -> str:
        if self.problems:
            return "damaged"
        if manifest is not None:
            return "complete"
        return "running" if any(job.state not in (*ENDED, "UNKNOWN") for job in jobs) else "started"


def is_empty(store: Store) -> bool:
    """Whether there is nothing at a location. A local folder is not walked."""
    if "://" in store.root:
        return store.is_empty()
    path = Path(store.root)
    if not path.is_dir():
        return not path.exists()
    with os.scandir(path) as entries:
        return next(entries, None) is None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} found, a text expected")
    return value


def _made_of(texts: Any) -> str:
    """Which texts a corpus was made of; "" where none."""
    if texts is None:
        return ""
    return f"version {_count(texts['version'])} of the texts {_text(texts['name'])}"


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= MOST:
        raise TypeError(f"{value!r:.80} found, a count expected")
    return value


def _merged(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Their sum. Raises TypeError for counts that cannot be shown."""
    merged = merge_reports(reports)
    for counter in merged["counters"]:
        _count(counter["documents"]), _count(counter["bytes"])
    return merged


def _roots(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Locations that parts name as their own."""
    parts = (part for entries in report["parts"].values() for part in entries)
    return tuple(sorted({str(part["root"]) for part in parts if "root" in part}))


def _parts(report: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Files, rows and bytes of each folder of a report."""
    found: dict[str, dict[str, int]] = {}
    for folder, entries in report["parts"].items():
        rows, size = (sum(_count(entry[name]) for entry in entries) for name in ("rows", "size"))
        if entries:
            found[_text(folder)] = {"files": len(entries), "rows": rows, "bytes": size}
    return found


def _sum_parts(every: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for folder, count in (item for parts in every for item in parts.items()):
        found.setdefault(folder, Counter()).update(count)
    return {folder: dict(count) for folder, count in found.items()}
