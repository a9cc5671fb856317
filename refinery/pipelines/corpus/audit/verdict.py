"""What an audit says: a sealed JSON object and lines for people."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from refinery.loader.format.manifest import seal
from refinery.pipelines.corpus.audit.bound import CONFIDENCE, upper_bound
from refinery.pipelines.corpus.audit.outcome import MOST_FINDINGS, Finding, Outcome
from refinery.pipelines.corpus.audit.recorded import AuditedRun
from refinery.pipelines.corpus.audit.sample import Sample
from refinery.transforms.core.safe_text import safe

KIND = "refinery-audit"
SCHEMA_VERSION = 1
SHOWN = 20  # findings that people are told
# What no single record can show, whatever is sampled.
NOT_CHECKED = (
    "number of copies and their sources, in provenance",
    "whether a document that was kept is a copy of another one",
    "which of several copies comes first, beyond each pair of a removed document and the one kept instead",
)


@dataclass
class Verdict:
    """The sum of all that was found. files, of: input files that were read, and that the run has. read: source ->
    (outcome, reason) -> documents, bytes. believed: what was taken from the listings of takedowns. faults: findings
    about the whole, not about a unit."""

    corpus: dict[str, str]
    sample: Sample
    files: int
    of: int
    differs: tuple[str, ...]
    not_checked: tuple[str, ...]
    believed: tuple[str, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)
    read: dict[str, dict[tuple[str, str], list[int]]] = field(default_factory=dict)
    faults: list[Finding] = field(default_factory=list)

    @classmethod
    def begin(cls, run: AuditedRun, sample: Sample, files: int, lines: tuple[str, ...] = ()) -> "Verdict":
        """Of a run, before anything is found. lines: what is believed."""
        corpus = {"name": run.manifest.name, "fingerprint": run.manifest.fingerprint, "manifest": run.digest}
        return cls(corpus, sample, files, len(run.inputs), run.differs, NOT_CHECKED, lines)

    def add(self, outcome: Outcome) -> None:
        """Add what a part of the work found."""
        mine = self.outcome
        mine.agreed.update(outcome.agreed)
        mine.undecided.update(outcome.undecided)
        mine.notes.update(outcome.notes)
        mine.taken.update(outcome.taken)
        for lost, (documents, size) in outcome.lost.items():
            mine.lose(*lost, size, documents)
        mine.differing += outcome.differing
        mine.findings += outcome.findings[: max(0, MOST_FINDINGS - len(mine.findings))]
        counts = self.read.setdefault(outcome.source, {})
        for key, (documents, size) in outcome.read.items():
            entry = counts.setdefault(key, [0, 0])
            entry[0] += documents
            entry[1] += size

    @property
    def is_whole(self) -> bool:
        """Whether every record was looked at."""
        return self.sample.rate >= 1 and self.files == self.of

    @property
    def units(self) -> int:
        """Units that could be decided."""
        return self.outcome.agreed.total() + self.outcome.differing

    @property
    def is_sound(self) -> bool:
        """Whether something was compared, and all of it agrees."""
        return self.units > 0 and not self.outcome.differing and not self.faults

    @property
    def bound(self) -> float:
        """The largest share of units that may differ, at CONFIDENCE."""
        return upper_bound(self.units, self.outcome.differing)

    def statement(self) -> str:
        """What the sample says about the whole."""
        if not self.units:
            return "nothing was compared; use a larger --sample"
        if self.is_whole:
            return f"all {self.units:,} records that can be decided were compared: {self.outcome.differing:,} differ"
        whole = "" if self.files == self.of else f" of the {self.files:,} input files that were chosen"
        return (
            f"{self.units:,} records{whole} were compared and {self.outcome.differing:,} differ, so with "
            f"{CONFIDENCE:.0%} confidence fewer than {self.bound:.3%} of all do (Clopper-Pearson, one side)"
        )

    def plain(self) -> dict[str, Any]:
        """As data."""
        found = sorted([*self.faults, *self.outcome.findings])
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "corpus": self.corpus,
            "sample": {"rate": self.sample.rate, "seed": self.sample.seed, "files": self.files, "of": self.of},
            "units": {
                "compared": self.units,
                "agree": dict(sorted(self.outcome.agreed.items())),
                "differ": self.outcome.differing,
                "undecided": dict(sorted(self.outcome.undecided.items())),
            },
            "statement": {
                "confidence": CONFIDENCE,
                "upper_bound": self.bound if self.units else None,
                "text": self.statement(),
            },
            "findings": [finding.plain() for finding in found],
            "not_as_in_the_run": list(self.differs),
            "notes": dict(sorted(self.outcome.notes.items())),
            "not_checked": list(self.not_checked),
            "believed": list(self.believed),
            "sound": self.is_sound,
        }

    def sealed(self) -> bytes:
        """As a file: the same bytes each time."""
        return seal(self.plain())

    def lines(self) -> Iterator[str]:
        """For people."""
        yield (
            f"audit of {safe(self.corpus['name'])}: {self.files:,} of {self.of:,} input files, "
            f"{self.sample.rate:.3%} of their records (seed {self.sample.seed})"
        )
        agreed: Counter[str] = self.outcome.agreed
        for what, number in sorted(agreed.items()):
            yield f"  {number:>10,}  agree: {what}"
        for why, number in sorted(self.outcome.undecided.items()):
            yield f"  {number:>10,}  cannot be decided: {why}"
        yield f"  {self.outcome.differing:>10,}  differ"
        found = sorted([*self.faults, *self.outcome.findings])
        for finding in found[:SHOWN]:
            yield f"! {finding.what}: {safe(finding.source)} {safe(finding.origin)} {safe(finding.id)}".rstrip()
            yield f"    from the inputs: {safe(finding.expected[:300])}"
            yield f"    published:       {safe(finding.found[:300])}"
        if len(found) > SHOWN:
            more = self.outcome.differing + len(self.faults) - SHOWN
            yield f"and {more:,} more; --output FILE has up to {MOST_FINDINGS:,}"
        for each in self.differs:
            yield f"not as in the run: {safe(each)}"
        for each, number in sorted(self.outcome.notes.items()):
            yield f"note: {number:,} {each}"
        for each in self.not_checked:
            yield f"not checked: {each}"
        for each in self.believed:
            yield f"believed: {safe(each)}"
        yield self.statement()
