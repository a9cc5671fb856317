"""The funnel after a takedown: every document is still accounted for."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.takedown import STAGE
from refinery.pipelines.takedown.rows import Row
from refinery.transforms.dedup.stages import DEDUP

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

    def rename(self, row: Row, why: str) -> None:
        """A document that `row` of removals/ was about is counted as taken down. Its bytes, which removals/ does not
        have, stay with the old reason as long as that has other documents."""
        dropped: Counts = self.row(STAGE_OF[row["was"]], row["source"])["dropped"]
        entry, other = dropped[row["was"]], dropped.setdefault(why, {"documents": 0, "bytes": 0})
        entry["documents"] -= 1
        other["documents"] += 1
        if not entry["documents"]:
            other["bytes"] += entry["bytes"]
            del dropped[row["was"]]

    def move(self, was: str, now: str, source: str, size: int) -> None:
        """A duplicate of `size` bytes that was dropped for one reason of deduplication is dropped for another one, of
        the same stage or a later one."""
        before, after = STAGE_OF[was], STAGE_OF[now]
        if before != after:
            self.revive(was, source, size, [Step(after, size, dropped=now)])
        elif was != now:
            raise ValueError(f"{was}, {now}: two reasons of the stage {before}")

    def revive(self, was: str, source: str, size: int, steps: Iterable[Step]) -> None:
        """A duplicate of `size` bytes is kept where it was dropped, and goes on to the later stages of deduplication
        and through `steps`."""
        stage = STAGE_OF[was]
        row = self.row(stage, source)
        entry = row["dropped"][was]
        entry["documents"] -= 1
        entry["bytes"] = max(0, entry["bytes"] - size)
        if not entry["documents"]:
            del row["dropped"][was]
        _add(row["kept"], size)
        steps = list(steps)
        named = {step.stage for step in steps}
        between = self._used[self._used.index(stage) + 1 :]
        first = min((self.stages.index(step.stage) for step in steps), default=len(self.stages))
        for later in between:
            if later not in named and self.stages.index(later) < first:
                _add(self.row(later, source)["in"], size)
                _add(self.row(later, source)["kept"], size)
        for step in steps:
            row = self.row(step.stage, source)
            _add(row["in"], step.entered)
            if step.dropped:
                _add(row["dropped"].setdefault(step.dropped, {"documents": 0, "bytes": 0}), step.entered)
                return
            _add(row["kept"], step.left)

    def finish(self, gone: Iterable[Row]) -> list[dict[str, Any]]:
        """All rows in order, with those of the stage STAGE behind the last one of the lane."""
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


def _add(entry: dict[str, int], size: int, documents: int = 1) -> None:
    entry["documents"] += documents
    entry["bytes"] += size
