"""A document stage by stage: what each decided, what its rules measured, and the texts that it was on its way.

Its record is read at its origin once more, and judged as `refinery trace` does. Every text of that is made fit to read
first: credentials are replaced whatever the recipe says, and personal data as the recipe says. The published text is
shown as it was published.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened
from refinery.pipelines.corpus.browse.reading.withheld import taken_down
from refinery.pipelines.corpus.replay.replay import NoReplay, fit_to_read, redacted, without_quotes
from refinery.pipelines.corpus.replay.try_document import Decision, Step, Trial
from refinery.pipelines.corpus.trace.answers import Doc, Kept
from refinery.transforms.core.document import Document, RawDocument
from refinery.transforms.filter.pii import PII
from refinery.transforms.read.sources import READ
from refinery.transforms.redaction.redact_address import redact_address

CHARACTERS = 20_000  # of a text that a page shows
MOST_RAW = 1 << 20  # characters of a record that are looked through for what must be replaced
TOKENS = 2_000  # of a document that a page shows one by one
LOST = ("dropped", "dead")
AS_READ, PUBLISHED = "as read", "as published"


@dataclass(frozen=True)
class View:
    """The document at one place of the funnel. after: the stage that left it so. cut: characters that are not here."""

    name: str
    text: str
    cut: int = 0


@dataclass(frozen=True)
class Judged:
    """What is known of a document. views: its texts, in order; none where nobody should read it: withheld says why.
    problem: why its record could not be judged again. differs: what is not as in the run."""

    doc: Doc
    decisions: Sequence[Decision] = ()
    views: Sequence[View] = ()
    pieces: Sequence[tuple[int, str]] = ()
    tokens: int = 0
    withheld: str = ""
    problem: str = ""
    differs: str = ""

    @property
    def last(self) -> Decision | None:
        """The decision that counts."""
        return self.decisions[-1] if self.decisions else None


def judge_document(run: LookedAt, opened: Opened, doc: Doc, kept: Kept | None) -> Judged:
    """The document at its origin, judged again. kept: where it is in the corpus, whose text and tokens are shown too.
    Raises Busy; OSError and ValueError for a corpus that cannot be read. Cost: that of a replay."""
    judged = Judged(doc, problem="nobody knows where its record is")
    if taken_down(opened.corpus, [doc]):
        judged = Judged(
            doc, withheld="" if kept else "it was taken down", problem="of its record a document was taken down"
        )
    elif doc.origin:
        with run.judging():
            judged = _replayed(opened, doc, kept)
    if kept is None:
        return judged
    text = opened.texts.kept(kept)
    view = cut_view(PUBLISHED, text.text)
    return replace(
        judged, views=(*judged.views, view), pieces=list(_pieces(opened, text.ids[:TOKENS])), tokens=len(text.ids)
    )


def _replayed(opened: Opened, doc: Doc, kept: Kept | None) -> Judged:
    recorded = opened.texts.run
    if recorded.problem:
        return Judged(doc, problem=recorded.problem)
    replayer = recorded.replayer
    try:
        record, source = replayer.record(doc.origin, doc.source)
        if not isinstance(record, RawDocument):
            decisions: Sequence[Decision] = replayer.judge(record, source).decisions
            return Judged(replace(doc, source=doc.source or source), decisions, differs=recorded.differs)
        steps = list(replayer.trial.steps(record))
    except NoReplay as error:
        return Judged(doc, problem=str(error))
    except (ValueError, OSError) as error:  # of models, lists and storage
        return Judged(doc, problem=f"{doc.origin:.300}: {error}")
    known = Doc(doc.id, doc.url or redact_address(record.url), doc.source or source, doc.origin)
    decisions = (Decision(READ.name, "kept"), *(_shown(step.decision, replayer.trial) for step in steps))
    lost = decisions[-1] if decisions[-1].outcome in LOST else None
    if kept is None and lost is not None and lost.stage in opened.withheld:
        bare = tuple(replace(each, notes=None) for each in decisions)
        return Judged(known, bare, withheld=f"{lost.stage} dropped it", differs=recorded.differs)
    views = tuple(_views(record, steps, replayer.trial))
    return Judged(known, decisions, views, differs=recorded.differs)


def _shown(decision: Decision, trial: Trial) -> Decision:
    """The decision, with the texts that it noted, a title say, made fit to read."""
    notes = {
        name: fit_to_read(Document(b"", value, "", "", "", 0), trial) if isinstance(value, str) else value
        for name, value in (decision.notes or {}).items()
    }
    return replace(without_quotes(decision), notes=notes)


def _views(record: RawDocument, steps: Sequence[Step], trial: Trial) -> Iterator[View]:
    """The record as it was read, then each text that a stage left otherwise than it was given it."""
    content = record.content if isinstance(record.content, str) else _decoded(record)
    raw = Document(b"", content[:MOST_RAW], record.url, record.source, record.origin, 0)
    yield cut_view(AS_READ, fit_to_read(raw, trial), len(content) - len(raw.text))
    last: str | None = None
    for step in steps:
        if isinstance(step.after, Document) and step.after.text != last:
            last = step.after.text
            shown = redacted(last) if step.stage == PII else fit_to_read(step.after, trial)
            yield cut_view(f"after {step.stage.name}", shown)


def _decoded(record: RawDocument) -> str:
    """The bytes of a page as text, as well as its declared charset can tell."""
    try:
        return record.content.decode(record.charset or "utf-8", "replace")  # type: ignore[union-attr]  # bytes
    except LookupError:
        return record.content.decode("utf-8", "replace")  # type: ignore[union-attr]  # bytes


def cut_view(name: str, text: str, left_out: int = 0) -> View:
    """The beginning of a text."""
    return View(name, text[:CHARACTERS], max(0, len(text) - CHARACTERS) + left_out)


def _pieces(opened: Opened, ids: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Tokens with the text of each."""
    if not ids:
        return
    special = opened.corpus.manifest.tokenizer
    names = {special.bos_id: "⟨BOS⟩", special.eos_id: "⟨EOS⟩"}
    for id_ in ids:
        yield id_, names[id_] if id_ in names else opened.corpus.tokenizer.decode([id_])
