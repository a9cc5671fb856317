"""Which documents two corpora share, and what became of the others: three joins on disk, exact for any size.

1. By id, over all documents. Equal ids: the same text after cleaning.
2. By origin, over what is left: the same record of the same file, whose text is another one now.
3. By origin, then by id: what the other run recorded of the rest (removals, rejects, dead letters, work files).

Every document of each side has exactly one answer. Memory: a range of rows (partitions.py). Disk, in TMPDIR: 64 bytes
for each document of either side, and about as much again for each that is in one corpus alone or lost by a run.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.pipelines.corpus.compare.joining.documents import ROW, Shared
from refinery.pipelines.corpus.compare.joining.evidence import DTYPE, evidence_rows
from refinery.pipelines.corpus.compare.joining.fates import ASIDE, NAMED, Fate, Kind
from refinery.pipelines.corpus.compare.joining.names import Names
from refinery.pipelines.corpus.compare.joining.partitions import (
    I64,
    Partitions,
    Rows,
    first_of_key,
    joined,
    match,
    ranges_of,
    without,
)
from refinery.pipelines.corpus.compare.joining.side import Side

ByFate = Callable[[Side, Rows, I64, Rows], None]  # of whom, ROW [n], fates [n], other ids [n]


@dataclass
class Join:
    """The join of the documents of `a` and `b` in a folder of its own.

    pairs: is called with both rows [n] of documents with one id. changed: with those of one record with two ids. lost:
    with documents that one side alone has, and their fates on the other one.
    """

    a: Side
    b: Side
    shared: Shared
    folder: Path
    pairs: Callable[[Rows, Rows], None]
    changed: Callable[[Rows, Rows], None]
    lost: ByFate
    fates: Names[Fate] = field(default_factory=Names)

    def __post_init__(self) -> None:
        total = sum(side.manifest.totals["documents"] for side in (self.a, self.b))
        self.ranges = ranges_of(total)
        self.splits = any("created" in row for side in (self.a, self.b) for row in side.manifest.funnel)
        self.by_id = {side.label: self._partitions(f"{side.label} by id", "id") for side in (self.a, self.b)}

    def _partitions(self, name: str, key: str, dtype: np.dtype[Any] = ROW) -> Partitions:
        return Partitions(self.folder / name, dtype, key, self.ranges)

    def add(self, side: Side, rows: Rows) -> None:
        """Documents of a side, all of which must be added before `run`."""
        self.by_id[side.label].add(rows)

    def run(self) -> None:
        """All three joins."""
        rest = {label: self._partitions(f"{label} by origin", "origin") for label in "AB"}
        aside = {label: self._partitions(f"{label} aside", "origin", np.dtype(ASIDE)) for label in "AB"}
        for a, b in zip(self.by_id["A"], self.by_id["B"], strict=True):
            a, b = _ordered(a), _ordered(b)
            in_a, in_b = match(joined(a["id"], a["origin"]), joined(b["id"], b["origin"]))
            self.pairs(a[in_a], b[in_b])
            if self.splits:
                aside["A"].add(_aside(a[in_a], True))
            a, b = without(a, in_a), without(b, in_b)
            in_a, in_b = match(a["id"], b["id"])
            self.pairs(a[in_a], b[in_b])
            aside["A"].add(_aside(a[in_a], False))
            aside["B"].add(_aside(b[in_b], False))
            rest["A"].add(without(a, in_a))
            rest["B"].add(without(b, in_b))
        lost = {label: self._partitions(f"{label} lost", "origin") for label in "AB"}
        for number in range(self.ranges):
            rows = {label: _ordered(rest[label].read(number)) for label in "AB"}
            in_a, in_b = match(rows["A"]["origin"], rows["B"]["origin"])
            self.changed(rows["A"][in_a], rows["B"][in_b])
            known = {label: aside[label].read(number) for label in "AB"}
            if self.splits:  # these have the same origins on both sides
                known["B"] = np.concatenate([known["B"], known["A"][known["A"]["split"]]])
            for side, other, pairs in ((self.a, "B", in_a), (self.b, "A", in_b)):
                there = np.concatenate([known[other], _aside(rows[other], True)])
                lost[side.label].add(self._known(side, without(rows[side.label], pairs), there))
        self._explain(self.a, self.b, lost["A"])
        self._explain(self.b, self.a, lost["B"])

    def _known(self, side: Side, rows: Rows, there: Rows) -> Rows:
        """Tell of the documents whose record the other corpus has, if with other text; returns the others."""
        there = there[np.argsort(joined(there["origin"], there["id"]), kind="stable")]
        found = first_of_key(there["origin"], rows["origin"])
        here = found >= 0
        kinds = [self.fates.number(Fate(kind)) for kind in (Kind.SAME_TEXT_ELSEWHERE, Kind.SPLIT)]
        fates = np.array(kinds, np.int64)[there["split"][found[here]].astype(np.int64)]
        self.lost(side, rows[here], fates, there["id"][found[here]])
        return rows[~here]

    def _explain(self, side: Side, other: Side, lost: Partitions) -> None:
        """Give every lost document of `side` its fate at `other`."""
        if not lost.rows:
            return
        evidence = self._partitions(f"{other.label} evidence", "origin", DTYPE)
        for rows in evidence_rows(other, self.shared, self.fates):
            evidence.add(rows)
        unread = self._partitions(f"{side.label} unread", "id")
        read = self._read_by(other)
        rest = self.fates.number(Fate(Kind.UNLISTED if other.phases else Kind.UNKNOWN))
        for rows, said in zip(lost, evidence, strict=True):
            rows, said = _ordered(rows), self._ranked(said)
            best = _best(rows, said, self._kinds()[said["fate"]])
            here = best >= 0
            self.lost(side, rows[here], said["fate"][best[here]].astype(np.int64), said["other"][best[here]])
            rows = rows[~here]
            known = read[rows["path"]] if other.knows_inputs else np.zeros(len(rows), np.bool_)
            self.lost(side, rows[known], np.full(known.sum(), rest), _nothing(known.sum()))
            unread.add(rows[~known])
        if unread.rows:
            self._explain_unread(side, other, unread)

    def _explain_unread(self, side: Side, other: Side, unread: Partitions) -> None:
        """Documents whose records the other run did not read: it may have removed the same text of other records."""
        evidence = self._partitions(f"{other.label} evidence by id", "id", DTYPE)
        for rows in evidence_rows(other, self.shared, self.fates, with_ids=True):
            evidence.add(rows)
        none = self.fates.number(Fate(Kind.NOT_READ if other.knows_inputs else Kind.UNKNOWN))
        for rows, said in zip(unread, evidence, strict=True):
            rows = _ordered(rows)
            said = self._ranked(said[self._kinds()[said["fate"]] == Kind.REMOVED], "id")
            found = first_of_key(said["id"], rows["id"])
            here = found >= 0
            numbers = [self._elsewhere(int(number)) for number in said["fate"][found[here]]]
            self.lost(side, rows[here], np.array(numbers, np.int64), said["other"][found[here]])
            rows = rows[~here]
            self.lost(side, rows, np.full(len(rows), none), _nothing(len(rows)))

    def _kinds(self) -> I64:
        return np.array([fate.kind for fate in self.fates.values], np.int64)

    def _ranked(self, said: Rows, key: str = "origin") -> Rows:
        """Evidence in order of the key, and of one key by kind, stage and reason: whatever order it was read in."""
        order = sorted(range(len(self.fates)), key=lambda n: astuple(self.fates[n]))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return said[np.lexsort((said["other"], said["id"], said["origin"], rank[said["fate"]], said[key]))]

    def _elsewhere(self, number: int) -> int:
        fate = self.fates[number]
        return self.fates.number(Fate(Kind.REMOVED_ELSEWHERE, fate.stage, fate.reason, fate.scope))

    def _read_by(self, side: Side) -> npt.NDArray[np.bool_]:
        """Whether a path, by its number, is among the inputs of a side."""
        moved = self.shared.moved if side.label == "B" else {}
        paths = {moved.get(path, path) for _, path in side.inputs}
        return np.array([path in paths for path in self.shared.paths.values], np.bool_)


def _ordered(rows: Rows, first: str = "id", then: str = "origin") -> Rows:
    return rows[np.argsort(joined(rows[first], rows[then]), kind="stable")]


def _aside(rows: Rows, split: bool) -> Rows:
    found = np.zeros(len(rows), ASIDE)
    found["id"], found["origin"], found["split"] = rows["id"], rows["origin"], split
    return found


def _nothing(count: int) -> Rows:
    return np.zeros(count, "S16")


def _best(rows: Rows, said: Rows, kinds: I64) -> I64:
    """The place of what says most about each row, -1 for nothing. said: ordered by origin, with their kinds.

    First what took this very document out; then a reject or dead letter of its record; then what else is known of this
    document; then of its record, whose text was another one.
    """
    named = np.flatnonzero(said["id"] != b"")
    bare = np.flatnonzero(said["id"] == b"")
    keys = joined(said["origin"][named], said["id"][named])
    order = np.argsort(keys, kind="stable")
    exact = _at(named[order], first_of_key(keys[order], joined(rows["origin"], rows["id"])))
    record = _at(bare, first_of_key(said["origin"][bare], rows["origin"]))
    other = _at(named, first_of_key(said["origin"][named], rows["origin"]))
    removed = (exact >= 0) & np.isin(kinds[exact], NAMED) if len(said) else exact >= 0
    best = other
    for found, where in ((exact, exact >= 0), (record, record >= 0), (exact, removed)):
        best = np.where(where, found, best)
    return best


def _at(places: I64, found: I64) -> I64:
    """`places[found]`, and -1 where `found` is."""
    return np.where(found >= 0, places[found], -1) if len(places) else found
