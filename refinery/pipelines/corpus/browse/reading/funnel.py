"""The funnel of a run, finished or in progress, summed over sources: what entered each stage, and why it ended."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class StageSums:
    """Documents of a stage. dropped, dead: reason -> documents, most first."""

    name: str
    entered: int = 0
    created: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)

    @property
    def lost(self) -> int:
        """Documents that ended here."""
        return self.entered + self.created - self.kept


def stage_sums(funnel: Iterable[Mapping[str, Any]]) -> list[StageSums]:
    """The stages in their order."""
    stages: dict[str, StageSums] = {}
    for row in funnel:
        sums = stages.setdefault(row["stage"], StageSums(row["stage"]))
        sums.entered += row["in"]["documents"]
        sums.created += row["created"]["documents"] if "created" in row else 0
        sums.kept += row["kept"]["documents"]
        for outcome, counted in (("dropped", sums.dropped), ("dead", sums.dead)):
            for reason, entry in row.get(outcome, {}).items():
                counted[reason] += entry["documents"]
    return list(stages.values())
