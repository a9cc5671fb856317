"""What stages answer for a document, and readers for a record that is not a document. No Beam here: both are declared
without it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from refinery.transforms.core.document import Drop

NOT_SAMPLED = "not-sampled"  # the one reason that says nothing about a record, so it is not worth a reject
MAX_SUMMARY = 10  # findings that a summary names


class Answer(NamedTuple):
    """A stage's answer for a document, with what it found there. A stage that only keeps or drops returns the document
    or a Drop; `answer_of` makes an Answer of either.

    result: what the stage emits (a document, or an iterable of them where it splits), or a Drop. found: "group/name"
    each, no name twice; counted by document and source, and a Drop with one is always listed in rejects/, unless it has
    a detail. detail: what decided, where there are too many different ones to count. It is not counted; rejects/
    names it with the Drop, which is sampled like any other. series, value: a number that the stage gave the
    document, dropped or not, for the run's distributions, and what it is a number of ("en" for the perplexity of
    English; a stage has few of them); "" for none.
    """

    result: Any
    found: tuple[str, ...] = ()
    detail: str = ""
    series: str = ""
    value: float = 0.0

    @property
    def reason(self) -> str:
        """Why the document was dropped, "" if it was kept."""
        return self.result.reason if isinstance(self.result, Drop) else ""

    @property
    def is_listed(self) -> bool:
        """Whether rejects/ has the Drop whatever the rate."""
        return bool(self.found) and not self.detail

    @property
    def summary(self) -> str:
        """What rejects/ says: the detail, or the first names found and how many more there are, or what the Drop
        measured."""
        if self.detail:
            return self.detail
        more = len(self.found) - MAX_SUMMARY
        names = ", ".join(self.found[:MAX_SUMMARY]) + (f" and {more} more" if more > 0 else "")
        return names or (self.result.summary if isinstance(self.result, Drop) else "")


def answer_of(returned: Any) -> Answer:
    """What a stage returned, as an Answer."""
    return returned if isinstance(returned, Answer) else Answer(returned)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that a reader leaves out for a named reason: not content, not sampled, too large. `size` in bytes."""

    reason: str
    origin: str
    size: int
    url: str = ""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record, or the tail of a file, that a reader could not read. `data` (may be a part) is hashed, never kept."""

    error: str
    origin: str
    data: bytes = b""
    size: int = 0
