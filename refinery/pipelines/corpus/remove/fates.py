"""What becomes of documents of a family once some of it are gone."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from refinery.pipelines.corpus.remove.funnel import Step
from refinery.pipelines.corpus.remove.rows import Row
from refinery.transforms.tokenize.encode import EncodedDocument


@dataclass(frozen=True)
class Unrepresented:
    """A duplicate that is none any more, and does not come back. why: a sentence."""

    row: Row
    why: str


@dataclass(frozen=True)
class Moved:
    """It is a duplicate of another document. row: its new row of removals/; was: its old row. size: of its
    text in bytes."""

    row: Row
    was: Row
    size: int


@dataclass(frozen=True)
class Lost:
    """It is not a duplicate any more, and a later stage dropped it. steps: what the stages of phase 3 made of it.
    reject: its row of rejects/, None where the sample does not take it."""

    row: Row
    size: int
    steps: tuple[Step, ...]
    reject: Row | None


@dataclass(frozen=True)
class Reinstated:
    """It is in the corpus again. instead_of: id of the document that had stood for it."""

    row: Row
    size: int
    steps: tuple[Step, ...]
    document: EncodedDocument
    instead_of: bytes


@dataclass(frozen=True)
class Demoted:
    """It was kept, and is a duplicate of a document that came back and comes before it in rank. row: of removals/ from
    now on. place: where it was in the shards, None where a later stage had dropped it; steps: of these."""

    row: Row
    size: int
    steps: tuple[Step, ...]
    place: Row | None


Fate = Unrepresented | Moved | Lost | Reinstated | Demoted


@dataclass(frozen=True)
class Recount:
    """A document that stays in the shards and stands for another number of documents now. place: of `locate`."""

    place: Row
    copies: int
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What becomes of the families. counted: columns of the recipe that are 0 where a document has no such note.
    recounts: None where nothing was compared, and only what goes is known. sizes: bytes of texts of removals/ that go,
    as far as they are known."""

    fates: list[Fate] = field(default_factory=list)
    counted: frozenset[str] = frozenset()
    recounts: list[Recount] | None = None
    sizes: dict[Any, int] = field(default_factory=dict)

    def of(self, kind: type) -> list[Any]:
        """The fates of a kind."""
        return [fate for fate in self.fates if isinstance(fate, kind)]

    @property
    def demoted(self) -> list[Row]:
        """Documents of the shards that go as duplicates of what came back."""
        return [fate.place for fate in self.of(Demoted) if fate.place is not None]


def none_of(rows: Iterable[Row], why: str) -> Outcome:
    """None of these duplicates comes back."""
    return Outcome([Unrepresented(row, why) for row in rows])
