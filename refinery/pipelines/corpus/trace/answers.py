"""What is asked of a corpus about its documents, and what became of them, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refinery.loader.format.removals import ID_BYTES, REFERENCE, WITHHELD
from refinery.transforms.core.document import document_id
from refinery.transforms.extract.clean_text import clean_text

if TYPE_CHECKING:
    from refinery.pipelines.corpus.replay.try_document import Decision

SHOWN = 80  # characters of a wrong value that a message repeats
MOST_DIGITS = 19  # of an offset: 2**63 has as many
EXAMPLE = "train/web/shard-00000-of-00016:1234"


FIELDS = ("url", "id", "origin", "token", "text")


@dataclass(frozen=True)
class Query:
    """A query: field is "url", "id" (32 hexadecimal digits), "origin" (file@offset), "token" (shard:offset) or "text"
    (all of a document's)."""

    field: str
    value: str

    def __post_init__(self) -> None:
        if self.field not in FIELDS:
            raise ValueError(f"field: {self.field!r} given, one of {', '.join(FIELDS)} is allowed")
        if not self.value:  # many documents have no URL: '' would match them all
            raise ValueError(f"--{self.field}: '' given, one or more characters are allowed")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"--{self.field} {self.value[:SHOWN]!a}: valid UTF-8 is allowed") from None
        if self.field == "id":
            digits = self.value.lower()
            if len(digits) != 2 * ID_BYTES or set(digits) - set("0123456789abcdef"):
                raise ValueError(
                    f"--id {self.value[:SHOWN]!a}: {2 * ID_BYTES} hexadecimal digits are allowed, the id that "
                    "`refinery sample` prints; --url and --origin take what the input says"
                )
            object.__setattr__(self, "value", digits)
        if self.field == "token":
            self.place()

    def place(self) -> tuple[str, int]:
        """Of a token: the shard, as it was written, and the offset in it."""
        shard, _, digits = self.value.rpartition(":")
        if not (shard and digits.isascii() and digits.isdigit() and len(digits) < MOST_DIGITS):
            raise ValueError(f"--token {self.value[:SHOWN]!a}: SHARD:OFFSET is allowed, such as {EXAMPLE}")
        return shard, int(digits)

    @property
    def key(self) -> tuple[str, str]:
        """The field and the value by which answers are found: a text by its id."""
        return ("id", text_id(self.value).hex()) if self.field == "text" else (self.field, self.value)


def text_id(text: str) -> bytes:
    """The id of a document with that text, once it is cleaned as every text is."""
    return document_id(clean_text(text, False))


@dataclass(frozen=True)
class Doc:
    """A document. id in hexadecimal; id and url are "" where the files read do not have them."""

    id: str = ""
    url: str = ""
    source: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Around:
    """The text around a token: of those before it in the document, its own, of those after it."""

    token: int
    before: str
    text: str
    after: str


@dataclass(frozen=True)
class Replayed:
    """What the stages say of the record at its origin when they judge it again, up to the one that loses it.

    problem: why the record cannot be judged again, else "". differs: what is not as it was when the run was made.
    """

    doc: Doc
    decisions: "tuple[Decision, ...]" = ()
    problem: str = ""
    differs: str = ""


@dataclass(frozen=True)
class CameBack:
    """A duplicate that is in the corpus since that takedown (from 1), since the document that had stood for it went."""

    takedown: int
    instead_of: Doc


@dataclass(frozen=True)
class Kept:
    """In the corpus. Its tokens are token_offset to token_offset + token_count of the shard, both -1 in a corpus of
    texts; copies counts the document itself. around: of the token that was asked for. came_back: whether a takedown
    brought it.
    """

    doc: Doc
    shard: str
    document: int
    token_offset: int
    token_count: int
    text_bytes: int
    copies: int
    sources: tuple[str, ...]
    columns: Mapping[str, Any]  # what stages noted: language, scores, …
    around: Around | None = None
    came_back: CameBack | None = None


@dataclass(frozen=True)
class TakenDown:
    """Taken out of the corpus by that takedown (from 1), which made it of the version whose manifest has the sha256
    `previous`. why: of WHY (loader/format/takedown.py). request: what asked for it, or why it does not represent its
    copies. rule: of --where, if that did. was: "kept", or the reason for which deduplication had removed it before.
    shard, document: its place in the version before, "" and -1 where it was in no shard."""

    doc: Doc
    takedown: int
    previous: str
    why: str
    request: str
    rule: str
    was: str
    shard: str
    document: int


@dataclass(frozen=True)
class Rejected:
    """Dropped by a rule, and in the sample of rejects; or cut at the target of its source. found: what the stage says
    that it found, or ""."""

    doc: Doc
    stage: str
    reason: str
    found: str = ""
    replay: Replayed | None = None


@dataclass(frozen=True)
class Dead:
    """Failed: a dead letter. sha256 and size: of the record, or of the part that could be read."""

    doc: Doc
    stage: str
    error: str
    sha256: str
    size: int
    replay: Replayed | None = None


@dataclass(frozen=True)
class Passed:
    """Kept by deduplication, dropped by a later stage, not listed: rejects/ has this share (rate) of the dropped.

    over_target: whether documents of its source were cut at the source's target, which rejects/ never lists.
    """

    doc: Doc
    rate: float | None
    over_target: bool = False
    replay: Replayed | None = None


@dataclass(frozen=True)
class Elsewhere:
    """The document at the end of a chain is in a reference corpus, or in none: dropped with its copies."""

    doc: Doc
    prefix: str

    @property
    def is_withheld(self) -> bool:
        """Whether it was dropped with its copies."""
        return f"{REFERENCE}{self.prefix}" == WITHHELD


@dataclass(frozen=True)
class Cycle:
    """The chain of kept documents is a cycle: the corpus is damaged."""

    doc: Doc


@dataclass(frozen=True)
class Step:
    """One removal of a chain: why, and which document was kept instead."""

    reason: str
    scope: str
    similarity: float
    kept: Doc


Record = Rejected | Dead | Passed
End = Kept | Rejected | Dead | Passed | Elsewhere | Cycle


@dataclass(frozen=True)
class Removed:
    """Removed by deduplication. steps: its own removal, that of the document kept instead, …; end: what became of the
    last one.
    """

    doc: Doc
    steps: tuple[Step, ...]
    end: End


@dataclass(frozen=True)
class Missing:
    """Not found, and facts that may explain it.

    rate: share of dropped documents that rejects/ lists (None: unknown). dead: number of dead letters, which have no
    URL. file_read: for an origin, whether its file was among the inputs. work: whether cleaned documents were searched,
    too. over_target: as of Passed, of any source.
    """

    rate: float | None
    dead: int
    file_read: bool | None
    work: bool
    over_target: bool = False


Answer = Kept | Removed | TakenDown | Rejected | Dead | Passed | Replayed | Missing


@dataclass(frozen=True)
class Trace:
    """(query, answer) in the order of the queries. inputs: source -> files. notes: what was not searched, and why."""

    answers: tuple[tuple[Query, Answer], ...]
    inputs: Mapping[str, Sequence[str]]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every query was answered."""
        return not any(isinstance(answer, Missing) for _, answer in self.answers)
