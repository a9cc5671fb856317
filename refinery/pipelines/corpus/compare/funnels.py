"""Two funnels side by side: stages in one order, what entered, what was kept, what each reason took."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.pipelines.corpus.compare.joining.overlap import Count
from refinery.pipelines.corpus.compare.joining.side import Side


@dataclass(frozen=True)
class StageRow:
    """A stage, over all sources or of one. None: it is not in that funnel. phase: of the side that has it."""

    stage: str
    phase: str
    source: str
    entered: tuple[Count | None, Count | None]
    kept: tuple[Count | None, Count | None]

    def retention(self, side: int) -> float | None:
        """Share of the documents that entered; None where none did."""
        entered, kept = self.entered[side], self.kept[side]
        return kept.documents / entered.documents if entered and kept and entered.documents else None

    @property
    def differs(self) -> bool:
        """Whether the sides have other counts here."""
        return self.entered[0] != self.entered[1] or self.kept[0] != self.kept[1]

    def effect(self) -> tuple[float, int]:
        """How much it matters: by how much the share of kept documents changed (1 where a side lacks the stage), then
        by how many documents."""
        one, other = self.retention(0), self.retention(1)
        kept = [each.documents if each else 0 for each in self.kept]
        return 1.0 if one is None or other is None else abs(other - one), abs(kept[1] - kept[0])


@dataclass(frozen=True)
class ReasonRow:
    """Documents of an outcome ("dropped", "dead", "found", "created") for a reason, over all sources or of one."""

    stage: str
    outcome: str
    reason: str
    source: str
    a: Count
    b: Count

    @property
    def difference(self) -> int:
        return self.b.documents - self.a.documents


def stage_order(a: Side, b: Side) -> list[str]:
    """The stages of both: those of A in order, and each that only B has behind the one before it there."""
    orders = [list(dict.fromkeys(_names(side))) for side in (a, b)]
    merged = list(orders[0])
    last = -1
    for name in orders[1]:
        if name in merged:
            last = merged.index(name)
        else:
            last += 1
            merged.insert(last, name)
    return merged


def _names(side: Side) -> Iterable[str]:
    yield from (stage.name for stage in side.manifest.stages)
    yield from (row["stage"] for row in side.manifest.funnel)


def stage_rows(a: Side, b: Side, by_source: bool = False) -> list[StageRow]:
    """Every stage of either funnel that a document entered, in order; by_source: of each source by itself."""
    phases = {s.name: s.phase for side in (b, a) for s in side.manifest.stages}
    entered, kept = (_sums((a, b), key, by_source) for key in ("in", "kept"))
    sources = _sources(entered)
    return [
        StageRow(stage, phases.get(stage, ""), source, entered[stage, source], kept[stage, source])
        for stage in stage_order(a, b)
        for source in sources
        if (stage, source) in entered
    ]


Pair = tuple[Count | None, Count | None]


def _sums(sides: Sequence[Side], key: str, by_source: bool) -> dict[tuple[str, str], Pair]:
    found: dict[tuple[str, str], list[Count | None]] = defaultdict(lambda: [None, None])
    for number, side in enumerate(sides):
        for row in side.manifest.funnel:
            entry = found[row["stage"], row["source"] if by_source else ""]
            entry[number] = (entry[number] or Count()).__iadd__(_count(row[key]))
    return {where: (one, other) for where, (one, other) in found.items()}


def _sources(found: Iterable[tuple[str, str]]) -> list[str]:
    return sorted({source for _, source in found})


def _count(entry: Any) -> Count:
    return Count(entry["documents"], entry["bytes"])


def reason_rows(a: Side, b: Side, by_source: bool = False) -> list[ReasonRow]:
    """Every reason of either funnel, what moved most first."""
    found: dict[tuple[str, str, str, str], tuple[Count, Count]] = defaultdict(lambda: (Count(), Count()))
    for number, side in enumerate((a, b)):
        for row in side.manifest.funnel:
            outcomes = {name: row.get(name, {}) for name in ("dropped", "dead", "found")}
            outcomes["created"] = {"": row["created"]} if "created" in row else {}
            for outcome, reasons in outcomes.items():
                for reason, entry in reasons.items():
                    key = row["stage"], outcome, reason, row["source"] if by_source else ""
                    total = found[key][number]
                    total += _count(entry)
    rows = [ReasonRow(*key, one, other) for key, (one, other) in found.items()]
    order = {stage: number for number, stage in enumerate(stage_order(a, b))}
    return sorted(
        rows,
        key=lambda r: (-abs(r.difference), -abs(r.b.bytes - r.a.bytes), order[r.stage], r.outcome, r.reason, r.source),
    )
