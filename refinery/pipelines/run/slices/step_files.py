"""What the tasks of a step leave for those of the next: a record of each slice, and a seal over all of them.

    exchange/STEP/slice-00003.json            what slice 3 received and sent; it is done once this is there
    exchange/STEP/slice-00003-1f2e3d4c.sections   what it sent (refinery.transforms.core.exchange.section_file)
    exchange/STEP/all.json                    in place of the slices', where one task did all of them
    exchange/STEP/sealed.json                 which of these count, written by whoever begins the next step

Records are created exclusively: of two tasks of one slice the first counts, and the files of the other are nobody's. A
step is sealed only where its slices together received exactly what was sent to them.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.errors import FormatError, written_by_a_run
from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import StorageConflict, Store
from refinery.pipelines.run.slices.cut import is_whole
from refinery.pipelines.run.slices.errors import SliceError
from refinery.pipelines.run.slices.names import FOLDER, RECORD, SECTIONS
from refinery.transforms.core.exchange.place import sum_of
from refinery.transforms.core.exchange.section_file import Sent
from refinery.transforms.core.exchange.tally import ExchangeError, Tally, difference

SUFFIX = ".sections"
RECORDED, SEALED = "refinery-step", "refinery-sealed-step"
EXCHANGE = re.compile(r"[0-9]{3,}-[0-9A-Za-z-]{1,200}")  # names of exchanges, which become folders
NAMED = 20  # missing slices that a message names


@dataclass(frozen=True)
class SectionFile:
    """What some slices sent: the name of the file, and where the table of each exchange is in it."""

    name: str
    tables: Mapping[str, int]


@dataclass(frozen=True)
class SealedStep:
    """A step that is done. steps: of the whole job, each with whether one task does it. to: exchange -> the step that
    receives it. sent, received: by exchange, of all slices together."""

    steps: tuple[bool, ...]
    files: tuple[SectionFile, ...]
    to: Mapping[str, int]
    sent: Mapping[str, Tally]
    received: Mapping[str, Tally]


@dataclass(frozen=True)
class StepFiles:
    """The files of a step in a work location. fingerprint: of its phase. of: slices."""

    store: Store
    phase: str
    number: int
    fingerprint: str
    of: int

    @property
    def name(self) -> str:
        """The step's."""
        return f"{self.phase}-{self.number}"

    @property
    def folder(self) -> str:
        """Where they are."""
        return f"{FOLDER}/{self.name}"

    def record_name(self, slices: tuple[int, ...]) -> str:
        """The record of one slice, or of all."""
        return f"{self.folder}/{self._who(slices)}.json"

    def sections_name(self, slices: tuple[int, ...], attempt: str) -> str:
        """The section file of one attempt. attempt: eight hexadecimal digits."""
        return f"{self.folder}/{self._who(slices)}-{attempt}{SUFFIX}"

    def _who(self, slices: tuple[int, ...]) -> str:
        if len(slices) == 1 and self.of > 1:
            return f"slice-{slices[0]:05d}"
        if len(slices) != self.of:
            raise ValueError(f"slices: {len(slices)} given, one or all {self.of} are allowed")
        return "all"

    def is_done(self, number: int) -> bool:
        """Whether a slice is done. Cost: three requests at most."""
        names = ("sealed", "all", f"slice-{number:05d}")
        return any(self.store.size(f"{self.folder}/{name}.json") is not None for name in names)

    def is_begun(self) -> bool:
        """Whether any slice is done. Cost: a listing."""
        return any(map(RECORD.fullmatch, self.store.list(self.folder)))

    def missing(self) -> list[int]:
        """The slices that are not done. A listing may be old, so those that it lacks are asked for by name."""
        if any(self.store.size(f"{self.folder}/{name}.json") is not None for name in ("sealed", "all")):
            return []
        listed = set(self.store.list(self.folder))
        names = {number: f"{self.folder}/slice-{number:05d}.json" for number in range(self.of)}
        return [k for k, name in names.items() if name not in listed and self.store.size(name) is None]

    def commit(
        self,
        slices: tuple[int, ...],
        sections: str,
        sent: Mapping[str, Sent],
        received: Mapping[str, Mapping[str, int]],
        steps: Iterable[bool],
    ) -> bool:
        """Publish the record of slices. False where another task was first: then what this one sent is nobody's."""
        payload = {
            **self._head(RECORDED),
            "slices": list(slices) if len(slices) < self.of else "all",
            "steps": list(steps),
            "file": sections if sent else "",
            "sent": {name: each.plain() for name, each in sorted(sent.items())},
            "received": dict(sorted(received.items())),
        }
        try:
            self.store.create(self.record_name(slices), seal(payload))
        except StorageConflict:
            return False
        return True

    def seal(self, before: Sequence[SealedStep] = ()) -> SealedStep:
        """The step, sealed now unless it is already. before: the steps before it.

        Raises SliceError, naming them, where slices are missing or what they sent is gone, and ExchangeError where they
        did not receive what was sent to them. Neither is sealed.
        """
        name = f"{self.folder}/sealed.json"
        if self.store.size(name) is None:
            if missing := self.missing():
                raise SliceError(f"{self.name}: {not_done(missing, self.of)}")
            whole = f"{self.folder}/all.json"
            names = [f"{self.folder}/slice-{number:05d}.json" for number in range(self.of)]
            counting = names if self.of > 1 and self.store.size(whole) is None else [whole]
            # Another task may have seen one task's record, and this one the slices': the first one counts.
            records = [self._read_record(each, k) for k, each in enumerate(counting)]
            payload = self._sealed(records)
            unsealed = self._load(payload)  # what cannot be read back is not sealed
            check_received(before, self.number, unsealed)
            self._check_sent(unsealed)
            with contextlib.suppress(StorageConflict):
                self.store.create(name, seal(payload))
        sealed = self._load(self._read(name, SEALED))
        check_received(before, self.number, sealed)
        return sealed

    def _check_sent(self, sealed: SealedStep) -> None:
        """Raises SliceError for a section file that is not there. Cost: a request for each."""
        for file in sealed.files:
            if self.store.size(file.name) is None:
                record = f"{file.name.removesuffix(SUFFIX).rpartition('-')[0]}.json"
                raise SliceError(
                    f"{self.store.url(file.name)} is gone; remove {self.store.url(record)}, and do that slice of "
                    f"{self.name} again"
                )

    def _sealed(self, records: list[dict[str, Any]]) -> dict[str, Any]:
        with written_by_a_run(f"{self.store.url(self.folder)}: records of slices are"):
            sent = _sums(record["sent"] for record in records)
            to = {(exchange, each["step"]) for r in records for exchange, each in r["sent"].items()}
            if len(to) > len(sent) or any(r["steps"] != records[0]["steps"] for r in records):
                raise TypeError("two slices do not agree")
            return {
                **self._head(SEALED),
                "steps": records[0]["steps"],
                "files": [
                    {"name": r["file"], "tables": {exchange: each["table"] for exchange, each in r["sent"].items()}}
                    for r in records
                    if r["file"]
                ],
                "to": dict(to),
                "sent": {exchange: tally.fields() for exchange, tally in sent.items()},
                "received": {e: t.fields() for e, t in _sums(r["received"] for r in records).items()},
            }

    def _load(self, payload: Mapping[str, Any]) -> SealedStep:
        where = f"{self.store.url(self.folder)}: records of slices are"
        with written_by_a_run(where):
            sealed = SealedStep(
                tuple(payload["steps"]),
                tuple(SectionFile(file["name"], dict(file["tables"])) for file in payload["files"]),
                dict(payload["to"]),
                _sums([payload["sent"]]),
                _sums([payload["received"]]),
            )
            wrong = next(self._wrong(sealed), "")
        if wrong:
            raise FormatError(f"{where} not as a run writes them: {wrong}. Choose another --output")
        return sealed

    def _wrong(self, sealed: SealedStep) -> Iterator[str]:
        """What no run says of a step: anyone can seal a file, and what it names is fetched into local folders."""
        if not all(isinstance(whole, bool) for whole in sealed.steps) or len(sealed.steps) <= self.number:
            yield f"steps: {sealed.steps!r:.80}"
        for exchange, step in sealed.to.items():
            if not EXCHANGE.fullmatch(exchange) or not is_whole(step, self.number + 1, len(sealed.steps) - 1):
                yield f"to: {exchange!r:.80}, {step!r:.80}"
        for file in sealed.files:
            name = file.name
            if not (SECTIONS.fullmatch(name) and name.startswith(f"{self.folder}/")) or not {*file.tables} <= {
                *sealed.to
            }:
                yield f"a file: {name!r:.200}"
            if not all(is_whole(table, 0) for table in file.tables.values()):
                yield f"the tables of {name}"
        if len({file.name for file in sealed.files}) < len(sealed.files):
            yield "a file twice"
        if {*sealed.sent} != {*sealed.to}:
            yield "sent"

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": kind,
            "fingerprint": self.fingerprint,
            "step": self.name,
            "of": self.of,
        }

    def _read_record(self, name: str, number: int) -> dict[str, Any]:
        """The record of one slice, or of all. A copy of another slice's would count that one twice."""
        payload = self._read(name, RECORDED)
        whole = name == self.record_name(tuple(range(self.of)))
        if payload.get("slices") != ("all" if whole else [number]):
            raise SliceError(f"{self.store.url(name)} is of another slice and does not belong here; remove it")
        return payload

    def _read(self, name: str, kind: str) -> dict[str, Any]:
        payload: dict[str, Any] = unseal(self.store.read(name), self.store.url(name))
        wanted = self._head(kind)
        if any(payload.get(key) != wanted[key] for key in ("kind", "fingerprint", "step", "of")):
            raise SliceError(f"{self.store.url(name)} is of another run and does not belong here; remove it")
        return payload


def not_done(missing: Sequence[int], of: int) -> str:
    """What a message says of slices that are missing."""
    some = ", ".join(map(str, missing[:NAMED])) + (", …" if len(missing) > NAMED else "")
    return f"{len(missing):,} of {of:,} slices are not done: {some}. They come first"


def _sums(records: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, Tally]:
    """Tallies by exchange, added up."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    for record in records:
        for exchange, fields in record.items():
            row = fields["elements"], fields["bytes"], fields["digest"]
            if not all(type(field) is int and 0 <= field < 1 << 64 for field in row):
                raise TypeError(f"{exchange!r:.80}: counts are {row!r:.200}")
            found.setdefault(exchange, []).append(row)
    return {exchange: sum_of(each) for exchange, each in sorted(found.items())}


def delivered_before(sealed: Iterable[SealedStep], step: int) -> dict[str, Tally]:
    """What was sent to a step, by exchange. sealed: the steps before it."""
    found: dict[str, Tally] = {}
    for each in sealed:
        for exchange, tally in each.sent.items():
            if each.to[exchange] == step:
                found.setdefault(exchange, Tally()).merge(tally)
    return found


def check_received(before: Iterable[SealedStep], step: int, sealed: SealedStep) -> None:
    """Raises ExchangeError where the slices of a step together did not receive what was sent to it."""
    sent = delivered_before(before, step)
    for exchange in sorted({*sent, *sealed.received}):
        wanted, got = sent.get(exchange, Tally()), sealed.received.get(exchange, Tally())
        if wanted != got:
            raise ExchangeError(f"{difference(exchange, wanted, got)}; nothing was published")
