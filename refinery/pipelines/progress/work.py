"""What a job is to do, as far as that is known before it runs, and how far it is: pure arithmetic."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from refinery.transforms.core.live import WORK

OUTCOMES = ("kept", "dropped", "dead", "created")  # of a stage, in the totals of a job


@dataclass(frozen=True)
class Step:
    """A countable part of a job. unit: as `work_done` counts it. total: of this job. weight: its share of the time,
    relative to other steps."""

    unit: str
    total: int
    weight: float = 1.0


@dataclass
class Work:
    """What a job is to do. All defaults mean: nothing is known of it.

    phase: its name; phases: those of the whole run, in order, or none. wave, waves: number of the job in its phase,
    from 1. steps: may be filled in while the job is built; the first one counts input. bytes: size of this job's
    input. bytes_before, bytes_after: those of earlier and later jobs of the phase. files: number of input files.
    documents: key of the totals that counts the documents that went in. stages: names in order. counted: what earlier
    jobs of the phase counted.
    """

    phase: str = ""
    phases: tuple[str, ...] = ()
    wave: int = 0
    waves: int = 0
    steps: list[Step] = field(default_factory=list)
    bytes: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    files: int = 0
    documents: str = "read kept"
    stages: tuple[str, ...] = ()
    counted: Mapping[str, int] = field(default_factory=dict)

    def expect(self, size: int) -> None:
        """So many bytes are to be read."""
        self.bytes = size
        self.steps = [Step("bytes", size)]

    @property
    def bytes_total(self) -> int:
        """Input bytes of the whole phase; 0 where nothing is known."""
        return self.bytes_before + self.bytes + self.bytes_after

    @property
    def number(self) -> int:
        """Of the phase in the run, from 1; 0 for a job on its own."""
        return self.phases.index(self.phase) + 1 if self.phase in self.phases else 0

    @property
    def title(self) -> str:
        """ "1/3 clean"."""
        return f"{self.number}/{len(self.phases)} {self.phase}" if self.number else self.phase

    @property
    def ends_phase(self) -> bool:
        """Whether no other job of the phase follows."""
        return self.wave >= self.waves

    def done(self, totals: Mapping[str, int]) -> float | None:
        """How much of this job is done, 0 to 1; None where no step has a total."""
        known = [step for step in self.steps if step.total > 0]
        weight = sum(step.weight for step in known)
        if not weight:
            return None
        return sum(step.weight * ratio(totals.get(f"{WORK} {step.unit}", 0), step.total) for step in known) / weight

    def phase_done(self, job: float | None) -> float | None:
        """How much of the phase is done where this job is done so far."""
        if job is None or not self.bytes_before + self.bytes_after:
            return job
        return (self.bytes_before + job * self.bytes) / self.bytes_total

    def bytes_done(self, totals: Mapping[str, int]) -> int:
        """Input bytes of the phase that are read: by the first step."""
        if not self.steps or self.steps[0].total <= 0:
            return self.bytes_before
        first = self.steps[0]
        return self.bytes_before + round(self.bytes * ratio(totals.get(f"{WORK} {first.unit}", 0), first.total))


def ratio(done: int, total: int) -> float:
    """`done` of `total`, from 0 to 1 whatever was counted twice."""
    return min(1.0, max(0.0, done / total))


@dataclass(frozen=True)
class StageCounts:
    """Documents of a stage so far."""

    name: str
    kept: int
    dropped: int
    dead: int
    created: int = 0

    @property
    def entered(self) -> int:
        """Documents that came in."""
        return self.kept - self.created + self.dropped + self.dead

    def plain(self) -> dict[str, int]:
        """The counts as in JSON events."""
        return {"in": self.entered, "kept": self.kept, "dropped": self.dropped, "dead": self.dead}


def stage_counts(totals: Mapping[str, int], names: Iterable[str] = ()) -> tuple[StageCounts, ...]:
    """Counts of every stage that has any: the named ones first, in order.

    >>> stage_counts({"url kept": 2, "url dropped": 1, "work bytes": 9})
    (StageCounts(name='url', kept=2, dropped=1, dead=0, created=0),)
    """
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    for key, count in totals.items():
        stage, _, outcome = key.rpartition(" ")
        if outcome in OUTCOMES:
            found.setdefault(stage, Counter())[outcome] += count
    made = (StageCounts(name, *(counts[outcome] for outcome in OUTCOMES)) for name, counts in found.items())
    return tuple(stage for stage in made if stage.entered > 0)
