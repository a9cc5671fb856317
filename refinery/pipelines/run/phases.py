"""Phase manifests, wave reports and their bookkeeping in the work location: what is done, and what may be reused.

A phase is complete when its sealed manifest (clean.json, dedup.json, shards.json) is there with the right fingerprint.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refinery.loader.errors import FormatError, written_by_a_run
from refinery.loader.format.manifest import RUN, SCHEMA_VERSION, SPLITS, seal, unseal
from refinery.loader.format.packed import FOLDER as PACKED
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.run.at_work import LEASE
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.funnel import CountsDisagree
from refinery.pipelines.run.slices.names import CUT, FAILED, RECORD, SECTIONS
from refinery.pipelines.run.slices.names import FOLDER as EXCHANGE
from refinery.pipelines.run.wall_clock import ENDED, STARTED
from refinery.pipelines.runners.cluster.record_names import RECORD as SUBMISSION
from refinery.pipelines.runners.dataflow.job_records import JOB
from refinery.transforms.core.names import PHASES

if TYPE_CHECKING:
    from refinery.transforms.write.kept_documents import PartPair

ORDER = "order"  # the job that counts what is kept of each input, for shards in input order
ORDER_REPORT = "shards/order.json"
RECORDS = "records"  # the job that publishes many rejects and dead letters
WAVE = re.compile(r"wave-[0-9]{5}\.json")


@dataclass(frozen=True)
class Phase:
    """A finished phase. `root` is the work location that holds its parts (another prefix's after --reuse), except
    those that name another root (parts of reused waves).
    """

    name: str
    fingerprint: str
    root: str
    report: Mapping[str, Any]

    def parts(self, folder: str) -> list[dict[str, Any]]:
        """Parts of a folder: {"path", "rows", "size", "crc32c"} and perhaps "root", sorted by path."""
        return list(self.report["parts"].get(folder, []))

    def root_of(self, part: Mapping[str, Any]) -> str:
        """The work location that holds a part. Raises FormatError for one that no run writes: never a web server."""
        return part_root(part, self.root)

    def url(self, part: Mapping[str, Any]) -> str:
        """Where a part is."""
        return open_store(self.root_of(part)).url(part["path"])


def part_root(part: Mapping[str, Any], work: str) -> str:
    """The work location that holds a part which a report in `work` lists. Raises FormatError as `Phase.root_of`."""
    root = part.get("root", work)
    if root != work and (not isinstance(root, str) or not root or root.startswith(("http://", "https://"))):
        raise FormatError(f"{work}: the root of a part is {root!r:.80}: no run writes that here")
    return str(root)


def read_phase(work: str, name: str, fingerprint: str, taken_over: bool = False) -> Phase | None:
    """The phase if it is complete under `work` for this fingerprint, else None. Follows a reuse to where the parts are:
    one step, since `reuse_phase` names the end, and never to a web server. taken_over: this is that end.

    Raises FormatError when the manifest is damaged, or says anything else.
    """
    store = open_store(work)
    path = f"{name}.json"
    if store.size(path) is None:
        return None
    payload = unseal(store.read(path), store.url(path))
    if payload["fingerprint"] != fingerprint:
        return None
    if payload["reused_from"]:
        if taken_over or str(payload["reused_from"]).startswith(("http://", "https://")):
            raise FormatError(f"{store.url(path)}: reused_from is {payload['reused_from']!r}: no run writes that here")
        phase = read_phase(payload["reused_from"], name, fingerprint, taken_over=True)
        if phase is None:
            raise FormatError(
                f"{store.url(path)}: the phase was reused from {payload['reused_from']}, which no longer holds it; "
                "put it back, or choose another --output"
            )
        return phase
    return Phase(name, fingerprint, work, payload)


def finish_phase(work: str, name: str, fingerprint: str, report: Mapping[str, Any]) -> Phase:
    """Write the phase's manifest, exclusively."""
    payload = {
        "schema_version": SCHEMA_VERSION,
        "kind": "refinery-phase",
        "phase": name,
        "fingerprint": fingerprint,
        "reused_from": "",
        **report,
    }
    open_store(work).create(f"{name}.json", seal(payload))
    return Phase(name, fingerprint, work, payload)


def reuse_phase(work: str, phase: Phase) -> None:
    """Note in this work location that the phase's parts are in another one."""
    payload = {
        "schema_version": SCHEMA_VERSION,
        "kind": "refinery-phase",
        "phase": phase.name,
        "fingerprint": phase.fingerprint,
        "reused_from": phase.root,
    }
    open_store(work).create(f"{phase.name}.json", seal(payload))


def pair_parts(clean: Phase, dedup: Phase) -> "list[PartPair]":
    """A pair for every part with documents. Raises RefineError for a part that lacks its verdicts."""
    from refinery.transforms.dedup.verdicts import part_name
    from refinery.transforms.write.kept_documents import PartPair

    verdicts = {part_name(part["path"]): part["path"] for part in dedup.parts("verdicts")}
    pairs = []
    for part in clean.parts("documents"):
        if part["groups"]:
            judged = verdicts.get(part_name(part["path"]), "")
            pairs.append(PartPair(clean.root_of(part), part["path"], dedup.root, judged, part["groups"]))
    if verdicts and any(not pair.verdicts for pair in pairs):
        raise RefineError(f"{dedup.root}: a part of documents/ has no verdicts; remove dedup.json and run again")
    return pairs


def read_waves(store: Store, phase: str) -> list[dict[str, Any]]:
    """Reports of the waves that are done, in order, each with its "number"."""
    return list(each_wave(store, phase))


def each_wave(store: Store, phase: str) -> Iterator[dict[str, Any]]:
    """`read_waves` one after the other: a report lists every part of its wave."""
    for path in store.list(phase):
        if WAVE.fullmatch(path.removeprefix(f"{phase}/")):
            yield {**unseal(store.read(path), store.url(path)), "number": int(path[-10:-5])}


def read_seconds(work: str, fingerprints: Mapping[str, str]) -> dict[str, float] | None:
    """Part of the work -> seconds of it, summed over the phases whose manifests are there; None if the first is not."""
    phases = [read_phase(work, name, fingerprints[name]) for name in PHASES if name in fingerprints]
    if not phases or phases[0] is None:
        return None
    seconds: dict[str, float] = merge_reports([phase.report for phase in phases if phase is not None])["seconds"]
    return seconds


def seconds_of_work(store: Store, work: str = "") -> dict[str, float] | None:
    """`read_seconds` of the run whose outputs `store` holds; None where its work location is gone."""
    try:
        run = unseal(store.read(RUN), store.url(RUN))
        return read_seconds(work or store.url("work"), run["phases"])
    except (FormatError, OSError, KeyError):  # whoever asks says that they are not known
        return None


def merge_reports(reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of several jobs' reports (refinery.transforms.core.job.report.merge_records), in the same form."""
    counters: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    seconds: dict[str, float] = defaultdict(float)
    parts: dict[str, list[Any]] = defaultdict(list)
    names = ("stage", "source", "outcome", "reason")
    with written_by_a_run("work/: reports of its jobs are"):
        for report in reports:
            for counter in report["counters"]:
                entry = counters[tuple(counter[name] for name in names)]
                entry[0] += counter["documents"]
                entry[1] += counter["bytes"]
            for stage, value in report["seconds"].items():
                seconds[stage] += value
            for folder, entries in report["parts"].items():
                parts[folder] += entries
        return {
            "counters": [
                dict(zip(names, key, strict=True), documents=documents, bytes=size)
                for key, (documents, size) in sorted(counters.items())
            ],
            "seconds": {stage: round(value, 3) for stage, value in sorted(seconds.items())},
            "parts": {folder: sorted(entries, key=lambda e: e["path"]) for folder, entries in sorted(parts.items())},
        }


# Every name that a run writes into a work location. Nothing else there is ever removed.
FOLDERS = "documents|signatures|withheld|verdicts|dead_letters|rejects"
PART = re.compile(rf"({FOLDERS})/part-[0-9a-f]{{32}}(\.[0-9a-f]{{8}})?\.parquet")
LIST = re.compile(r"(clean|dedup|shards|records)/list-[0-9a-f]{32}\.jsonl")  # what a job is to read
DEATH = re.compile(r"clean/death-[0-9a-f]{32}\.json")  # what a worker read that died
OWN = re.compile(
    rf"{PART.pattern}|{RUN}|(clean|dedup|shards)\.json|clean/{WAVE.pattern}|(dedup|shards|records)/report\.json"
    rf"|{ORDER_REPORT}|{STARTED}|{ENDED}|{LIST.pattern}|{JOB.pattern}|{LEASE.pattern}|{DEATH.pattern}|{CUT}|{RECORD.pattern}"
    rf"|{SECTIONS.pattern}|{FAILED.pattern}|{SUBMISSION.pattern}"
)


# What makes a phase, a wave or a job count: gone before the parts that it names.
CLAIMS = re.compile(rf"clean/{WAVE.pattern}|{CUT}|{ORDER_REPORT}|(dedup|shards|records)/report\.json|{RECORD.pattern}")
TOLD_EVERY = 50_000  # files


def remove_work(store: Store, say: Callable[[str], None] = lambda line: None) -> None:
    """Delete what a run wrote into its work location, and nothing else. say: receives lines about progress if it takes
    long.

    May be killed anywhere, and continues when it is called again. Manifests of phases are deleted first, then reports
    of waves and jobs, then everything else, so what is left never looks finished. `_run.json` is deleted last, and
    reserves the place for this run until it is empty. Memory: some pages of names.
    """
    for phase in reversed(PHASES):
        store.delete(f"{phase}.json")
    for folder in (*PHASES, RECORDS, EXCHANGE):
        _delete_all(store, filter(CLAIMS.fullmatch, _names(store, folder)))
    names = (name for name in _names(store) if OWN.fullmatch(name) and name != RUN)
    _delete_all(store, _told(names, store, say))
    store.delete(RUN)


def remove_orphans(store: Store, report: Mapping[str, Any], folders: Iterable[str]) -> int:
    """Delete the parts in `folders` that no committed bundle claims; returns how many. Foreign files stay, and so does
    what this process may not delete (403): nothing reads it.
    """
    claimed = {part["path"] for entries in report["parts"].values() for part in entries}
    found = 0

    def orphans() -> Iterator[str]:
        nonlocal found
        for path in (path for folder in folders for path in _names(store, folder)):
            if PART.fullmatch(path) and path not in claimed:
                found += 1
                yield path

    refused = store.delete_many(orphans())
    return found - len(refused)


def _names(store: Store, folder: str = "") -> Iterator[str]:
    for page in store.pages(folder):
        yield from page


def _told(names: Iterable[str], store: Store, say: Callable[[str], None]) -> Iterator[str]:
    for number, name in enumerate(names, 1):
        yield name
        if number % TOLD_EVERY == 0:
            say(f"{store.root}: {number:,} files removed")


def _delete_all(store: Store, names: Iterable[str]) -> None:
    """Raises StorageError where one may not be deleted."""
    for name in store.delete_many(names)[:1]:
        store.delete(name)  # raises what is wrong


SHARDS_REPORT = "shards/report.json"
PUBLISHED_FOLDERS = (*SPLITS, PACKED, REMOVALS)  # what phase 3 writes, at a prefix


def discard_short_shards(
    store: Store, work: Store, check: Callable[[Mapping[str, Any]], None], say: Callable[[str], None]
) -> None:
    """Remove the shards at a prefix and the report that claims them, where `check` says that their counts do not hold.

    No attempt of this version publishes such; earlier ones wrote their report and then stopped at the manifest, with
    every later command. store: of a prefix without a manifest. May be killed anywhere, and goes on where it is called
    again: the report goes last. Raises RefineError where files may not be deleted.
    """
    if work.size(SHARDS_REPORT) is None:
        return
    try:
        check(unseal(work.read(SHARDS_REPORT), work.url(SHARDS_REPORT)))
    except CountsDisagree as error:
        problem = str(error).splitlines()[-1].strip()
    else:
        return
    say(f"shards: an earlier attempt lost documents ({problem}); its files are removed and written again")
    pages = (page for folder in PUBLISHED_FOLDERS for page in store.pages(folder))
    if refused := store.delete_many(path for page in pages for path in page):
        raise RefineError(
            f"{store.url(refused[0])} is of an attempt that lost documents and may not be deleted from here; remove "
            f"{', '.join(PUBLISHED_FOLDERS)} below {store.root}, or choose another --output"
        )
    for path in ("shards.json", SHARDS_REPORT):
        work.delete(path)
