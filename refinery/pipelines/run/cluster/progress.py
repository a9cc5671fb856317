"""How far a run on a cluster is, by its files alone: slices that are done, at work, failed, and what they have read."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, unseal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.run.at_work import FOLDER as AT_WORK
from refinery.pipelines.run.at_work import Lease, is_moment, others_at_work
from refinery.pipelines.run.cluster.submission import last_submission
from refinery.pipelines.run.slices.cut import Cut, read_cut
from refinery.pipelines.run.slices.names import CLEAN, FAILED, PUBLISH, wave_name
from refinery.pipelines.run.slices.names import FOLDER as EXCHANGE

READ = "read"  # the stage whose counters say what came in
SLICE = re.compile(r"slice-([0-9]{5})\.json")
READERS = 16  # reads of small files at once


class NoCut(ValueError):
    """There is no run on a cluster at a prefix."""


@dataclass(frozen=True)
class Failure:
    """Why a slice ended. ended: UNIX seconds."""

    step: str
    slice: int
    reason: str
    host: str
    ended: float


@dataclass(frozen=True)
class StepState:
    """A step. tasks: of it. done: slices. running: slices with a command at work. failed: of those that are neither,
    the last end of each. documents, bytes: that were read so far, of step clean. seconds_left: by the rate so far, None
    where that is not known."""

    name: str
    tasks: int
    done: frozenset[int]
    running: frozenset[int] = frozenset()
    failed: tuple[Failure, ...] = ()
    documents: int = 0
    bytes: int = 0
    seconds_left: float | None = None

    @property
    def missing(self) -> list[int]:
        """Slices that are not done."""
        return [number for number in range(self.tasks) if number not in self.done]


@dataclass(frozen=True)
class Progress:
    """A run. slices: of its cut. steps: in order, PUBLISH the last one. others: commands for all that is missing."""

    prefix: str
    work: str
    slices: int
    steps: tuple[StepState, ...]
    others: tuple[Lease, ...] = ()

    @property
    def is_complete(self) -> bool:
        return not self.steps[-1].missing

    @property
    def failed(self) -> list[Failure]:
        return [failure for step in self.steps for failure in step.failed]


@dataclass(frozen=True)
class _WaveRead:
    documents: int
    bytes: int
    seconds: float


@dataclass
class ProgressReader:
    """Reads the state of a run, again and again: what cannot change is read once.

    Cost of a reading: some listings, a read for each lease and failure, and one for each new report of a wave.
    """

    prefix: str
    work: str = ""
    _waves: dict[str, _WaveRead] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.work = self.work or f"{self.prefix.rstrip('/')}/work"
        self.store, self.work_store = open_store(self.prefix), open_store(self.work)

    def read(self) -> Progress:
        """The state now. Raises NoCut where no run on a cluster has begun, FormatError for damaged files."""
        cut, complete = read_cut(self.work_store), self.store.size(MANIFEST) is not None
        if cut is None and complete:  # and its work was discarded
            return Progress(self.prefix, self.work, 0, (StepState(PUBLISH, 1, frozenset({0})),))
        if cut is None:
            raise NoCut(f"{self.work}: no run on a cluster has begun here; `refinery cluster slurm` begins one")
        # Of other machines, those that look abandoned by the clock: this is shown, and decides nothing.
        leases = [] if complete else [lease for lease in others_at_work(self.work_store) if not lease.is_overdue]
        failures = {} if complete else read_failures(self.work_store)
        steps = []
        for name, tasks, done in self._done(cut, complete):
            running = frozenset(lease.slice for lease in leases if lease.step == name) - done
            failed = tuple(f for f in failures.values() if f.step == name and f.slice not in (done | running))
            state = StepState(name, tasks, done, running, tuple(sorted(failed, key=lambda f: f.slice)))
            steps.append(self._with_counts(cut, state) if name == CLEAN else state)
        known = {step.name for step in steps}
        others = tuple(lease for lease in leases if lease.step not in known)
        if others:  # a plain command does whatever is missing, and publishes
            steps[-1] = replace(steps[-1], running=frozenset({0}))
        return Progress(self.prefix, self.work, cut.slices, tuple(steps), others)

    def _done(self, cut: Cut, complete: bool) -> Iterator[tuple[str, int, frozenset[int]]]:
        """(step, tasks, slices that are done). A step is looked at only where the one before has begun."""
        begun = True
        for step in cut.steps:
            all_ = frozenset(range(step.tasks))
            if complete or (begun and self._phase_is_done(step.name)):
                done = all_
            elif not begun:
                done = frozenset()
            elif step.name == CLEAN:
                done = self._clean_done(cut)
            else:
                done = self._slices_done(step.name, all_)
            begun = bool(done)
            yield step.name, step.tasks, done
        yield PUBLISH, 1, frozenset({0} if complete else ())

    def _phase_is_done(self, step: str) -> bool:
        phase = step.partition("-")[0]
        reports = () if step == CLEAN else (f"{phase}/report.json",)
        return any(self.work_store.size(name) is not None for name in (f"{phase}.json", *reports))

    def _clean_done(self, cut: Cut) -> frozenset[int]:
        """A slice is done when all of its waves are."""
        there = {*self.work_store.list(CLEAN)}
        left = {wave.slice for wave in cut.waves if wave_name(wave.number) not in there}
        return frozenset(range(cut.slices)) - left

    def _slices_done(self, step: str, all_: frozenset[int]) -> frozenset[int]:
        folder = f"{EXCHANGE}/{step}"
        if any(self.work_store.size(f"{folder}/{name}.json") is not None for name in ("all", "sealed")):
            return all_
        names = (name.removeprefix(f"{folder}/") for name in self.work_store.list(folder))
        return frozenset(int(found[1]) for name in names if (found := SLICE.fullmatch(name))) & all_

    # --- what was read --------------------------------------------------------------------------------------------

    def _with_counts(self, cut: Cut, state: StepState) -> StepState:
        there = {*self.work_store.list(CLEAN)}
        names = {wave_name(wave.number): wave.bytes for wave in cut.waves}
        found = [name for name in names if name in there]
        with ThreadPoolExecutor(READERS) as pool:
            for name, counts in pool.map(self._wave, [name for name in found if name not in self._waves]):
                self._waves[name] = counts
        read = [self._waves[name] for name in found]
        done, left = sum(names[name] for name in found), sum(size for name, size in names.items() if name not in there)
        seconds = sum(wave.seconds for wave in read)
        cores = len(state.running) * self._workers() if state.running and left else 0
        return replace(
            state,
            documents=sum(wave.documents for wave in read),
            bytes=sum(wave.bytes for wave in read),
            seconds_left=left * seconds / done / cores if done and cores else None,
        )

    def _wave(self, name: str) -> tuple[str, _WaveRead]:
        report = unseal(self.work_store.read(name), self.work_store.url(name))
        try:
            read = [row for row in report["counters"] if (row["stage"], row["outcome"]) == (READ, "in")]
            counts = _WaveRead(
                sum(int(row["documents"]) for row in read),
                sum(int(row["bytes"]) for row in read),
                sum(float(seconds) for seconds in report["seconds"].values()),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"{self.work_store.url(name)}: not as a run writes it ({error})") from None
        return name, counts

    def _workers(self) -> int:
        submitted = last_submission(self.work_store)
        return submitted.workers if submitted else 1


def read_failures(store: Store) -> dict[tuple[str, int], Failure]:
    """(step, slice) -> its last failure. Those that cannot be read are left out: they only say why."""
    names = [name for name in store.list(AT_WORK) if FAILED.fullmatch(name)]

    def read(name: str) -> Mapping[str, Any]:
        with contextlib.suppress(OSError, FormatError):  # removed meanwhile, or not ours
            return unseal(store.read(name), store.url(name))
        return {}

    with ThreadPoolExecutor(READERS) as pool:
        payloads: Sequence[Mapping[str, Any]] = list(pool.map(read, names))
    found: dict[tuple[str, int], Failure] = {}
    for payload in payloads:
        with contextlib.suppress(LookupError, TypeError, ValueError, OverflowError):
            failure = Failure(
                str(payload["step"]),
                int(payload["slice"]),
                " ".join(str(payload["reason"]).split()),
                str(payload["host"]),
                float(payload["ended"]),
            )
            key = failure.step, failure.slice
            if not is_moment(failure.ended):
                continue
            if key not in found or found[key].ended < failure.ended:
                found[key] = failure
    return found
