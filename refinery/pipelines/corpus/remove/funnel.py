"""The funnel after a takedown: every document is still accounted for."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.takedown import STAGE
from refinery.pipelines.corpus.remove.rows import Row
from refinery.transforms.dedup.stages import DEDUP

DEDUP_STAGES = frozenset(stage.name for stage in DEDUP)
STAGE_OF = {reason.name: stage.name for stage in DEDUP for reason in stage.reasons}
Counts = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Step:
    """What a stage made of a document that came back. entered, left: bytes. dropped: the reason, or ""."""

    stage: str
    entered: int
    left: int = 0
    dropped: str = ""


class Funnel:
    """The rows of a manifest's funnel, changed in place. stages: all of the lane, in order."""

    def __init__(self, funnel: Sequence[Mapping[str, Any]], stages: Sequence[str]) -> None:
        self.stages = [stage for stage in stages if stage != STAGE]
        self.rows: dict[tuple[str, str], dict[str, Any]] = {
            (row["stage"], row["source"]): deepcopy(dict(row)) for row in funnel
        }

    @property
    def _used(self) -> list[str]:
        """Stages that any document came to, in order."""
        found = {stage for stage, _ in self.rows}
        return [stage for stage in self.stages if stage in found]

    def row(self, stage: str, source: str) -> dict[str, Any]:
        """The row of a stage and source, made where the source never came so far."""
        empty = {"in": {"documents": 0, "bytes": 0}, "kept": {"documents": 0, "bytes": 0}, "dropped": {}, "dead": {}}
        return self.rows.setdefault((stage, source), {"stage": stage, "source": source, **empty})

    def rename(self, row: Row, why: str, size: int | None = None) -> None:
        """A document that `row` of removals/ was about is counted as taken down. size: of its text; where that is not
        known, the bytes stay with the old reason as long as that has other documents."""
        dropped: Counts = self.row(STAGE_OF[row["was"]], row["source"])["dropped"]
        entry, other = dropped[row["was"]], dropped.setdefault(why, {"documents": 0, "bytes": 0})
        moved = 0 if size is None else min(size, entry["bytes"])
        _add(entry, -moved, -1)
        _add(other, moved)
        if not entry["documents"]:
            other["bytes"] += entry["bytes"]
            del dropped[row["was"]]

    def forget(self, source: str, size: int, reason: str, steps: Iterable[Step] = ()) -> None:
        """A document is counted no more where it was: dropped by deduplication for a reason, or with reason "" kept by
        it, and then what `steps` say."""
        self._count(source, size, reason, steps, -1)

    def count(self, source: str, size: int, reason: str, steps: Iterable[Step] = ()) -> None:
        """The inverse of `forget`."""
        self._count(source, size, reason, steps, 1)

    def _count(self, source: str, size: int, reason: str, steps: Iterable[Step], sign: int) -> None:
        for stage in (stage for stage in self._used if stage in DEDUP_STAGES):
            row = self.row(stage, source)
            _add(row["in"], sign * size, sign)
            if reason and stage == STAGE_OF[reason]:
                _drop(row, reason, size, sign)
                return
            _add(row["kept"], sign * size, sign)
        stage, left = "", 0
        for step in steps:
            row, stage, left = self.row(step.stage, source), step.stage, step.left
            _add(row["in"], sign * step.entered, sign)
            if step.dropped:
                _drop(row, step.dropped, step.entered, sign)
                return
            _add(row["kept"], sign * left, sign)
        # Stages of the writer judge no document by itself, such as the one of targets, which it passes.
        for later in self._used[self._used.index(stage) + 1 :] if stage else ():
            for count in ("in", "kept"):
                _add(self.row(later, source)[count], sign * left, sign)

    def finish(self, gone: Iterable[Row]) -> list[dict[str, Any]]:
        """All rows in order, with those of the stage STAGE after the last one of the lane."""
        last = self._used[-1]
        for stage, source in list(self.rows):
            if stage == last:
                before, row = self.rows[last, source]["kept"], self.row(STAGE, source)
                lost = [*row["dropped"].values()]
                row["in"] = dict(before)
                row["kept"] = {unit: before[unit] - sum(entry[unit] for entry in lost) for unit in before}
        for doc in gone:
            row = self.row(STAGE, doc["source"])
            _add(row["dropped"].setdefault(doc["why"], {"documents": 0, "bytes": 0}), doc["text_bytes"])
            _add(row["kept"], -doc["text_bytes"], -1)
        order = {stage: place for place, stage in enumerate([*self.stages, STAGE])}
        return [self.rows[key] for key in sorted(self.rows, key=lambda key: order[key[0]])]


def _drop(row: Mapping[str, Any], reason: str, size: int, sign: int) -> None:
    """Count a document as dropped for a reason, or (sign -1) no more. A size that is not known any more is made up by
    what the reason still has."""
    entry = row["dropped"].setdefault(reason, {"documents": 0, "bytes": 0})
    _add(entry, sign * size, sign)
    if not entry["documents"] and not entry["bytes"]:
        del row["dropped"][reason]


def _add(entry: dict[str, int], size: int, documents: int = 1) -> None:
    entry["documents"] += documents
    entry["bytes"] += size
