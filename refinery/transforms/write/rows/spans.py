"""Labels with places in a text: what a stage would cut or replace there, in characters, and of which kind it is.

They never hold the text itself, so labels of personal data have none of it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.names import LABEL_SPANS
from refinery.transforms.dedup.cut_lines import CUT_LINES, LINE_CUTS, LINES, cut_text
from refinery.transforms.dedup.cut_substrings import AFTER, CUT_SUBSTRINGS, SUBSTRINGS, Spans, empty_spans, noted_spans
from refinery.transforms.filter.heuristics import HEURISTICS
from refinery.transforms.filter.pii import PII, find_pii
from refinery.transforms.filter.secrets_stage import SECRETS, file_of, find_secrets, repeated_places, repeated_values
from refinery.transforms.write.rows.text_places import cut_spans, gaps

CUT = "cut"  # the kind of spans of stages that know one kind alone


class Span(NamedTuple):
    """text[start:end], in characters."""

    start: int
    end: int
    kind: str = CUT


Finder = Callable[[Document, Document | Drop, Any], Iterable[Span]]


def spelt_spans(spans: Iterable[Span], has_kinds: bool) -> str:
    """The value of a label: "12-30:email 40-52:phone", without kinds "12-30 40-52"."""
    return " ".join(f"{start}-{end}:{kind}" if has_kinds else f"{start}-{end}" for start, end, kind in spans)


def read_spans(value: str) -> list[Span]:
    """Inverse of `spelt_spans`."""
    found = []
    for each in value.split():
        place, _, kind = each.partition(":")
        start, _, end = place.partition("-")
        found.append(Span(int(start), int(end), kind or CUT))
    return found


def moved_spans(value: str, move: Callable[[int, int], tuple[int, int]]) -> str:
    """The value of a label with other places."""
    found = [Span(*move(span.start, span.end), span.kind) for span in read_spans(value)]
    return spelt_spans(found, ":" in value)


@dataclass(frozen=True)
class SpanLabel:
    """A label with the places that a stage names. stage: its name. find: called with the document as it came, with what
    the stage made of it, a document or a Drop, and with its parameters. has_kinds: whether it finds several kinds."""

    name: str
    stage: str
    meaning: str
    find: Finder
    has_kinds: bool = False

    @property
    def note(self) -> str:
        """The note of documents that holds it."""
        return LABEL_SPANS + self.name

    def noted(self, doc: Document, result: Document | Drop, params: Any) -> Mapping[str, str]:
        """The note of a document; none where nothing is found."""
        found = spelt_spans(self.find(doc, result, params), self.has_kinds)
        return {self.note: found} if found else {}


def _as_cut(doc: Document, result: Document | Drop, params: Any) -> Iterable[Span]:
    return () if isinstance(result, Drop) else (Span(*span) for span in cut_spans(doc.text, result.text))


def _line_spans(doc: Document, result: Document | Drop, params: Any) -> Iterable[Span]:
    """The lines that too many documents have, and the blank lines that go with them."""
    if CUT_LINES in doc.meta:
        yield from (Span(*span) for span in line_cuts(doc.text, {number for (number,) in LINE_CUTS.read(doc.meta)}))


def line_cuts(text: str, gone: Collection[int]) -> list[tuple[int, int]]:
    """What `cut_text` cuts out with the lines of these numbers: whole lines, each with the line break behind it; of the
    last ones the line break before them goes."""
    left = cut_text(text, gone)
    if not left:
        return [(0, len(text))] if text else []
    wanted, at = left.split("\n")[::-1], 0
    spans: list[tuple[int, int]] = []
    for number, line in enumerate(text.split("\n")):
        end = min(at + len(line) + 1, len(text))
        if number not in gone and wanted and line == wanted[-1]:
            wanted.pop()
        else:
            start = spans.pop()[0] if spans and spans[-1][1] == at else at
            spans.append((start, end))
        at = end
    if spans and spans[-1][1] == len(text):
        spans[-1] = (spans[-1][0] - 1, len(text))
    return spans


def _substring_spans(doc: Document, result: Document | Drop, params: Any) -> Iterable[Span]:
    """Repeated passages, with the punctuation behind them, and the lines that they leave empty."""
    if CUT_SUBSTRINGS not in doc.meta:
        return
    spans = noted_spans(doc.meta, len(doc.text))
    if params.action == "cut":
        left, emptied = empty_spans(doc.text, spans)
        pieces = gaps(_without_breaks(doc.text, spans), len(doc.text))
        lines = [] if CUT_LINES in doc.meta else line_cuts(left, emptied)  # else they are cut with the others
        spans = gaps(_of_pieces(pieces, gaps(lines, len(left))), len(doc.text))
    yield from (Span(*span) for span in spans)


def _without_breaks(text: str, spans: Spans) -> Iterator[tuple[int, int]]:
    """What `empty_spans` takes out: everything but line breaks."""
    last = 0
    for start, end in spans:
        at = max(start, last)
        behind = AFTER.match(text, max(end, at))
        last = behind.end() if behind else end
        for line in text[at:last].split("\n"):
            if line:
                yield at, at + len(line)
            at += len(line) + 1


def _of_pieces(outer: Spans, inner: Spans) -> Iterator[tuple[int, int]]:
    """Spans of the text that pieces make up together, as spans of the text that they are pieces of."""
    at = 0  # in the text of the pieces
    pieces = iter(outer)
    first, last = next(pieces, (0, 0))
    for start, end in inner:
        while start < end:
            if start >= at + last - first:
                at += last - first
                first, last = next(pieces)
                continue
            begin = first + start - at
            size = min(end - start, last - begin)
            yield begin, begin + size
            start += size


def _pii_spans(doc: Document, result: Document | Drop, params: Any) -> Iterable[Span]:
    return (Span(*found) for found in find_pii(doc.text, params))


def _secret_spans(doc: Document, result: Document | Drop, params: Any) -> Iterable[Span]:
    """Credentials, and each further place of a value that was found."""
    found = [Span(*each) for each in find_secrets(doc.text, params, file_of(doc))]
    values = {doc.text[start:end]: rule for start, end, rule in found}
    for value in repeated_values(values):
        for at in repeated_places(doc.text, value, params):
            end = at + len(value)
            if all(end <= span.start or span.end <= at for span in found):
                found.append(Span(at, end, values[value]))
    return sorted(found)


SPAN_LABELS = (
    SpanLabel("line_spans", LINES.name, "lines that would be cut, with their line breaks", _line_spans),
    SpanLabel("substring_spans", SUBSTRINGS.name, "repeated passages that would be cut", _substring_spans),
    SpanLabel("rule_spans", HEURISTICS.name, "what C4's line rules would cut", _as_cut),
    SpanLabel("pii_spans", PII.name, "personal data that would be replaced, by type", _pii_spans, True),
    SpanLabel(
        "secret_spans", SECRETS.name, "credentials that would be replaced, each with its rule", _secret_spans, True
    ),
)
