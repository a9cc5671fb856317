"""What stages answer for a document, and readers for a record that is not a document. No Beam here: both are declared
without it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from refinery.transforms.core.document import ID_BYTES, Document, Drop, FailClosed, is_writable
from refinery.transforms.core.wording import given

NOT_SAMPLED = "not-sampled"  # the one reason that says nothing about a record, so it is not worth a reject
MAX_SUMMARY = 10  # findings that a summary names
MAX_NOTES = 1 << 20  # characters of address and notes that a stage from elsewhere may give a document


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


class BadDocument(FailClosed):
    """A stage of the recipe's own returned what no stage may. It ends the run: its code is wrong, not a document."""


class BadValue(ValueError):
    """A text, an address or a note that cannot be written: a lone surrogate, NaN, an integer beyond 64 bits."""


class NotesTooLong(ValueError):
    """Address and notes of a document exceed MAX_NOTES."""


def check_returned(stage: str, doc: Any, notes: Mapping[str, Any], returned: Any) -> None:
    """Hold what a stage from elsewhere returned to what built-in ones do, before its next stage stumbles over it.

    doc: what it was given, with `notes` in its meta at that time. Raises BadDocument for what its code always does
    wrong, BadValue and NotesTooLong, which cost that document. Cost: some microseconds.
    """

    def check(name: str, is_right: bool, value: Any, allowed: str) -> None:
        if not is_right:
            raise BadDocument(f"stage {stage}: {name}: {given(value)} given, {allowed} is allowed")

    if dict(doc.meta) != notes:
        raise BadDocument(f"stage {stage}: it changes the document that it is given; use `dataclasses.replace`")
    for name in ("source", "origin", "position"):
        value, own = getattr(returned, name), getattr(doc, name)
        check(name, type(value) is type(own) and value == own, value, f"the document's own ({given(own)})")
    check("url", isinstance(returned.url, str), returned.url, "text")
    texts = [returned.url]
    if isinstance(returned, Document):
        check("id", isinstance(returned.id, bytes) and len(returned.id) == ID_BYTES, returned.id, f"{ID_BYTES} bytes")
        check("text", isinstance(returned.text, str), returned.text, "text")
        texts.append(returned.text)
    check("meta", isinstance(returned.meta, Mapping), returned.meta, "a mapping")
    for key, value in returned.meta.items():
        check("meta", isinstance(key, str), key, "a name")
        check(f"meta[{key!r}]", isinstance(value, str | int | float), value, "text or a number")
    if not all(map(is_writable, (*texts, *returned.meta, *returned.meta.values()))):
        raise BadValue(stage)
    if len(returned.url) + sum(len(key) + len(str(value)) for key, value in returned.meta.items()) > MAX_NOTES:
        raise NotesTooLong(stage)


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
