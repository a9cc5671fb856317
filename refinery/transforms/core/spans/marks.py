"""Which characters of a text are trained, and which of them are control tokens, as notes of its document.

The spans are of one text. A hash of it travels beside them, so spans are never taken for those of another text: a stage
that changes a text moves them (`edited`), or the encoder refuses the document as SpansOfAnotherText. An edit that
reaches over the border of a span has no right place for it, and costs the document as SpanCut. Either is a dead letter.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from refinery.transforms.core.document import Document, Scalar

Places = tuple[tuple[int, int], ...]

# Names of the notes: characters that are trained, those of control tokens, the hash of the text that they are of.
LOSS_SPANS, CONTROL_SPANS, SPANS_OF = "loss_spans", "control_spans", "spans_of"
NAMES = (LOSS_SPANS, CONTROL_SPANS, SPANS_OF)
HIDDEN = "\n"  # what stages that look for something see instead of each character of a control token


class SpanCut(ValueError):
    """An edit reaches over the border of a span."""


class SpansOfAnotherText(ValueError):
    """The spans of a document are not of its text: a stage has changed it without moving them."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Spans of characters, (start, end) with the end exclusive, ascending and apart. trained: those that are trained.
    controls: the control tokens that a template wrote, each in one trained span or in none."""

    trained: Places
    controls: Places = ()


def write_places(places: Iterable[tuple[int, int]]) -> str:
    """Spans as a text.

    >>> write_places([(12, 40), (61, 70)])
    '12-40 61-70'
    """
    return " ".join(f"{start}-{end}" for start, end in places)


def read_places(text: str, most: int) -> Places:
    """The spans that `write_places` wrote, which end at `most` or before. Raises ValueError for anything else."""
    ends = [int(number) for number in text.replace("-", " ").split()]
    places = tuple(zip(ends[::2], ends[1::2], strict=True))
    if write_places(places) != text or not are_places(places, most):
        raise ValueError(f"spans: {text!r:.80} given, START-END with ascending places up to {most} is allowed")
    return places


def are_places(places: Sequence[tuple[int, int]], most: int) -> bool:
    """Whether these are spans of a text of so many characters, none of them empty."""
    flat = list(chain.from_iterable(places))
    return (
        all(start < end for start, end in places)
        and all(one[1] <= other[0] for one, other in pairwise(places))
        and (not flat or (flat[0] >= 0 and flat[-1] <= most))
    )


def text_number(text: str) -> int:
    """The note `spans_of`: 62 bits of blake2b of the text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 2


def notes_of(text: str, marks: Marks) -> dict[str, Scalar]:
    """The notes that say so."""
    trained, controls = write_places(marks.trained), write_places(marks.controls)
    return {LOSS_SPANS: trained, CONTROL_SPANS: controls, SPANS_OF: text_number(text)}


def marks_of(doc: Document) -> Marks | None:
    """The spans of a document, None where it has none. Raises SpansOfAnotherText, and ValueError for unreadable
    notes."""
    if SPANS_OF not in doc.meta:
        return None
    if doc.meta[SPANS_OF] != text_number(doc.text):
        raise SpansOfAnotherText(doc.origin)
    size = len(doc.text)
    return Marks(*(read_places(str(doc.meta.get(name, "")), size) for name in (LOSS_SPANS, CONTROL_SPANS)))


def without_marks(meta: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The notes but those of spans."""
    return {name: value for name, value in meta.items() if name not in NAMES}


def shown(text: str, marks: Marks | None) -> str:
    """The text, of the same length, in which line feeds stand for control tokens: for stages that look for something,
    which would else find it across two turns."""
    if marks is None or not marks.controls:
        return text
    parts, at = [], 0
    for start, end in marks.controls:
        parts += [text[at:start], HIDDEN * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


def moved(marks: Marks, edits: Sequence[tuple[int, int, str]]) -> Marks:
    """The spans in the text that edits make: (start, end, text in its place), ascending and apart, of the old text.

    What is put into a span belongs to it; what is put in at its border does not. A span that an edit leaves empty goes.
    Raises SpanCut for an edit over a border, or inside a control token.
    """
    for start, end in marks.controls:
        for first, last, _ in edits:
            if max(first, start) < min(last, end) or start < first == last < end:
                raise SpanCut("an edit of a control token")
    found = []
    for places in (marks.trained, marks.controls):
        spans = ((_moved(start, edits, True), _moved(end, edits, False)) for start, end in places)
        found.append(tuple((start, end) for start, end in spans if start < end))
    return Marks(*found)


def _moved(place: int, edits: Sequence[tuple[int, int, str]], is_start: bool) -> int:
    """Where the border of a span is afterwards."""
    shift = 0
    for start, end, text in edits:
        if start < place < end:
            raise SpanCut("an edit over the border of a span")
        if end <= place and (is_start or start < end or end < place):
            shift += len(text) - (end - start)
    return place + shift


def replaced(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with each edit made."""
    parts, at = [], 0
    for start, end, new in edits:
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def edited(doc: Document, edits: Sequence[tuple[int, int, str]]) -> Document:
    """The document with these edits in its text, and its spans moved: (start, end, text in its place), ascending and
    apart. Raises what `marks_of` and `moved` raise."""
    marks, text = marks_of(doc), replaced(doc.text, edits)
    if marks is None:
        return replace(doc, text=text)
    return replace(doc, text=text, meta={**doc.meta, **notes_of(text, moved(marks, edits))})
