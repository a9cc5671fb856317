"""What an audit finds: units that agree, that differ and how, that cannot be decided and why."""

from collections import Counter
from dataclasses import asdict, dataclass, field

from refinery.pipelines.corpus.audit.sample import Row
from refinery.transforms.core.safe_text import printable

MOST_FINDINGS = 1_000  # that are told in full
SHOWN = 300  # characters of a value
MISSING, INVENTED, DECISION, FIELDS, TOKENS, TEXT, SURVIVOR, COUNTS = (
    "missing",
    "not of any record",
    "another decision",
    "another value",
    "other tokens",
    "another text",
    "removal does not hold",
    "another number of records",
)


@dataclass(frozen=True, order=True)
class Finding:
    """A difference. what: its kind. source, origin, id: of the document. expected: what the record gives. found: what
    is published."""

    what: str
    source: str
    origin: str
    id: str
    expected: str
    found: str

    def plain(self) -> dict[str, str]:
        return {name: printable(str(value))[:SHOWN] for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Later:
    """A document that deduplication keeps and a later stage loses: nothing that is published has its id."""

    id: str
    address: bytes
    source: str
    origin: str


@dataclass
class Outcome:
    """What was found in a part of the work. agreed, undecided: units by fate, by why. findings: of units that differ
    (`differing` of them), the first ones. claimed: numbers of published rows. removals: rows whose survivors are still
    to be looked at. later: documents that phase 3 loses, in whose favour others may have been removed. read: (outcome,
    reason) -> documents, bytes, of the reader. lost: (source, stage, reason or error) -> documents, bytes, of what
    stages drop or fail on. taken: (source, stage, why) -> documents that takedowns list."""

    source: str = ""
    agreed: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    differing: int = 0
    findings: list[Finding] = field(default_factory=list)
    claimed: list[int] = field(default_factory=list)
    removals: list[Row] = field(default_factory=list)
    later: list[Later] = field(default_factory=list)
    read: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    lost: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)
    taken: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def differ(self, finding: Finding) -> None:
        """One more unit that differs."""
        self.differing += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)

    def lose(self, source: str, stage: str, why: str, size: int, documents: int = 1) -> None:
        """A stage drops documents, or fails on them."""
        entry = self.lost.setdefault((source, stage, why), [0, 0])
        entry[0] += documents
        entry[1] += size

    def count(self, outcome: str, reason: str, size: int) -> None:
        for key in (("in", ""), (outcome, reason)):
            entry = self.read.setdefault(key, [0, 0])
            entry[0] += 1
            entry[1] += size
