"""The output of `refinery trace` as text and JSON. URLs are untrusted, so unprintable characters are escaped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from refinery.loader.format.removals import URL_DUPLICATE
from refinery.loader.format.takedown import COPY, REPLACED, UNREPRESENTED
from refinery.pipelines.corpus.remove.request import asked_words
from refinery.pipelines.corpus.replay.decision_text import decision_lines
from refinery.pipelines.corpus.trace.answers import (
    Answer,
    Around,
    CameBack,
    Cycle,
    Dead,
    Doc,
    Elsewhere,
    End,
    Kept,
    Missing,
    Passed,
    Query,
    Rejected,
    Removed,
    Replayed,
    Step,
    TakenDown,
    Trace,
)
from refinery.transforms.core.names import OVER_TARGET
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import many

NAMES = {
    Kept: "kept",
    Removed: "removed",
    TakenDown: "taken-down",
    Rejected: "rejected",
    Dead: "dead",
    Passed: "passed",
    Elsewhere: "elsewhere",
    Cycle: "cycle",
    Replayed: "replayed",
    Missing: "missing",
}
SHOWN_FILES = 5  # files listed per source
LOST = ("dropped", "dead")  # outcomes of a decision that ends it
LONGEST = 2000  # characters of a query that its line repeats


# --- JSON -----------------------------------------------------------------------------------------------------------


def json_lines(found: Trace) -> Iterator[str]:
    """One ASCII JSON object per query and answer."""
    for query, answer in found.answers:
        fields = {"query": {query.field: query.value}, **_plain(answer)}
        if isinstance(answer, Missing):
            fields["inputs"] = {source: len(files) for source, files in found.inputs.items()}
            fields["notes"] = list(found.notes)
        yield json.dumps(fields, default=str)


OPTIONAL = ("around", "came_back", "replay")  # fields that are left out where they are None


def _plain(answer: Answer | End) -> dict[str, Any]:
    """{"answer": …} with the fields of the answer and those of its document."""
    fields = {"answer": NAMES[type(answer)], **asdict(answer)}
    if "doc" in fields:
        fields |= fields.pop("doc")
    if isinstance(answer, Removed):
        fields["end"] = _plain(answer.end)
    return {name: value for name, value in fields.items() if value is not None or name not in OPTIONAL}


# --- words ----------------------------------------------------------------------------------------------------------


def text_lines(found: Trace) -> Iterator[str]:
    """Each query, flush left, with its answers below; at the end, if something is missing, what was searched."""
    last: Query | None = None
    for query, answer in found.answers:
        if query != last:
            yield query_line(query)
        last = query
        yield from (f"  {line}" for line in answer_lines(query, answer))
    if not found.complete:
        yield from _searched(found.inputs)
    yield from (f"note: {safe(note)}" for note in found.notes)


def query_line(query: Query) -> str:
    """What was asked."""
    return f"{query.field} {safe(_short(query.value))}"


def _short(value: str) -> str:
    """A value of a query as far as a line has room for it."""
    return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"


def answer_lines(query: Query, answer: Answer) -> Iterator[str]:
    """What became of it, in words."""
    if isinstance(answer, Missing):
        yield from _missing(query.field, answer)
        return
    if isinstance(answer, Removed):
        yield from _removed(answer)
        return
    yield _outcome(answer)
    yield f"  {_document(answer.doc)}"
    if isinstance(answer, Kept):
        yield f"  {_scores(answer)}"
        yield from (f"  {line}" for line in _came_back(answer.came_back))
        yield from (f"  {line}" for line in _around(answer.around))
    if isinstance(answer, TakenDown):
        yield f"  {_before(answer)}"
    if isinstance(answer, Replayed):
        yield from (f"  {line}" for line in _replayed(answer))
    elif isinstance(answer, Rejected | Dead | Passed) and answer.replay:
        yield from (f"  {line}" for line in _replay(answer, answer.replay))


def _removed(answer: Removed) -> Iterator[str]:
    step, *later = answer.steps
    yield f"removed: {_why(step)}"
    yield f"  {_document(answer.doc)}"
    yield f"  kept instead: {_document(step.kept)}"
    for step in later:
        yield f"    which was itself removed: {_why(step)}"
        yield f"    kept instead: {_document(step.kept)}"
    yield f"  {'the last of these' if later else 'that one'}: {_outcome(answer.end)}"
    if isinstance(answer.end, Rejected | Dead | Passed) and answer.end.replay:
        yield from (f"    {line}" for line in _replay(answer.end, answer.end.replay))


def _came_back(came_back: CameBack | None) -> Iterator[str]:
    """The takedown that a document is in the corpus by."""
    if came_back is not None:
        yield f"since takedown {came_back.takedown}, which removed what had stood for it:"
        yield f"  {_document(came_back.instead_of)}"


def _before(answer: TakenDown) -> str:
    """Where it was in the version before."""
    version = f"the version before (its manifest has sha256 {safe(answer.previous)})"
    if answer.shard:
        return f"it was in {safe(answer.shard)}, document {answer.document}, of {version}"
    return f"it was in no shard of {version}: deduplication had removed it ({safe(answer.was)})"


def _why_taken(answer: TakenDown) -> str:
    if answer.why == REPLACED:
        return "a better document was reinstated, and this one is now its duplicate"
    asked = safe(asked_words(answer.request, answer.rule))
    if answer.why == UNREPRESENTED:
        return f"the document kept instead was removed, and this one was not reinstated: {asked}"
    of = (
        "it has the text of a requested document, or was kept instead of one: "
        if answer.why == COPY
        else "asked for by "
    )
    return f"{of}{asked}"


def _around(around: Around | None) -> Iterator[str]:
    """The text before a token, its own, and that after it."""
    if around is not None:
        yield f"token {around.token}: {safe(around.before)}⟦{safe(around.text)}⟧{safe(around.after)}"


def _replay(answer: Rejected | Dead | Passed, replay: Replayed) -> Iterator[str]:
    """What judging it again says beside what the corpus does, and where they disagree."""
    if replay.problem:
        yield f"it cannot be judged again: {safe(replay.problem)}"
        return
    last = replay.decisions[-1]
    if isinstance(answer, Dead) and (last.stage, last.reason) == (answer.stage, answer.error):
        return  # nothing is measured where it failed
    yield "judged again:"
    yield from (f"  {line}" for line in _replayed(replay))
    recorded = (answer.stage, answer.reason) if isinstance(answer, Rejected) and answer.reason != OVER_TARGET else None
    if recorded and (last.stage, last.reason.partition(":")[0]) != recorded:
        yield "  the run recorded a different decision: what decides it has changed, or shared text was cut"


def _replayed(replay: Replayed) -> Iterator[str]:
    """The stages that kept it, in a line, and all about the one that did not."""
    *before, last = replay.decisions
    if last.outcome in LOST:
        if before:
            yield f"kept by {', '.join(safe(each.stage) for each in before if each.outcome == 'kept')}"
        yield from decision_lines([last], every=False)
    else:
        yield "kept by all stages that judge single documents; then deduplication and the target of its source decide"
    if replay.differs:
        yield f"not as in the run: {safe(replay.differs)}"


def _why(step: Step) -> str:
    where = {"source": "among the documents of its source", "corpus": "among all documents"}
    place = where.get(step.scope, safe(step.scope))
    alike = "the same address" if step.reason == URL_DUPLICATE else f"similarity {step.similarity:.3f}"
    return f"{safe(step.reason)}, {place}, {alike}"


def _outcome(answer: Answer | End) -> str:
    if isinstance(answer, Kept):
        end = answer.token_offset + answer.token_count
        tokens = f", tokens {answer.token_offset} to {end} ({answer.token_count})" if answer.token_count >= 0 else ""
        return f"in the corpus: {safe(answer.shard)}, document {answer.document}{tokens}"
    if isinstance(answer, TakenDown):
        return f"removed by takedown {answer.takedown}: {_why_taken(answer)}"
    if isinstance(answer, Rejected):
        found = f" ({safe(answer.found)})" if answer.found else ""
        return f"dropped by {safe(answer.stage)}: {safe(answer.reason)}{found}"
    if isinstance(answer, Dead):
        return (
            f"failed in {safe(answer.stage)}: {safe(answer.error)} ({answer.size} bytes, sha256 {safe(answer.sha256)})"
        )
    if isinstance(answer, Passed):
        return f"passed cleaning and deduplication, then dropped by a later stage{_unlisted(answer)}"
    if isinstance(answer, Elsewhere) and answer.is_withheld:
        return "dropped for its licence in this run, and so are its copies"
    if isinstance(answer, Elsewhere):
        return f"in the corpus {safe(answer.prefix)}; trace --id {answer.doc.id} there"
    if isinstance(answer, Replayed):
        last = answer.decisions[-1]
        kept = "not listed anywhere in the corpus; when judged again, all stages keep its record"
        lost = f"{last.outcome} by {safe(last.stage)} when it is judged again: {safe(last.reason)}"
        return lost if last.outcome in LOST else kept
    return "the documents kept instead form a cycle, so the corpus is damaged; run refinery verify"


def _unlisted(answer: Passed) -> str:
    facts = [] if answer.rate is None else [f"rejects.rate is {answer.rate:g}"]
    facts += [f"{OVER_TARGET}, what is beyond the target of its source, never is"] if answer.over_target else []
    return f"; which one is not listed ({'; '.join(facts)})" if facts else ""


def _scores(answer: Kept) -> str:
    facts = [
        f"{name.replace('_', ' ')} {safe(value) if isinstance(value, str) else f'{value:g}'}"
        for name, value in answer.columns.items()
        if value not in (None, "")
    ]
    facts.append(f"{answer.text_bytes} bytes of text")
    facts.append(f"represents {many(answer.copies, 'document')} of {safe(', '.join(answer.sources))}")
    return ", ".join(part for part in facts if part)


def _document(doc: Doc) -> str:
    parts = [f"id {doc.id}" if doc.id else "", safe(doc.url), f"source {safe(doc.source)}" if doc.source else ""]
    return ", ".join(part for part in (*parts, safe(doc.origin)) if part)


def _missing(field: str, answer: Missing) -> Iterator[str]:
    left_out = "a source's sample or cap left it out"
    if answer.file_read is False:
        reasons = ["it was never read: its file is not among the inputs"]
    elif answer.file_read:
        reasons = [f"its file was read, but has no record at this offset, or {left_out}"]
    elif field == "text":
        reasons = ["no document has exactly this text; an id is a hash of the whole cleaned text before phase 3"]
    else:
        reasons = [f"it was never read: no input has exactly this {field}, or {left_out}"]
    if field in ("id", "text"):
        reasons.append("it was dropped or failed; rejects/ and dead_letters/ list no ids, but work/documents/ does")
    else:
        if answer.rate is None or answer.rate < 1:
            rate = "unknown" if answer.rate is None else f"{answer.rate:g}"
            reasons.append(
                f"a rule dropped it, but it is not listed, because rejects.rate is {rate}; "
                "at 1 every dropped document is listed"
            )
        if answer.over_target:
            reasons.append(f"it was beyond the target of its source ({OVER_TARGET}), which is never listed")
        if field == "url" and answer.dead:
            reasons.append(f"it failed: {answer.dead} dead letters have no URL, only an origin")
        if field == "url":
            reasons.append("it was dropped while reading: not every format has a URL by then")
    yield "not found; this can mean:"
    yield from (f"- {reason}" for reason in reasons)
    yield from _next(field)
    if not answer.work:
        yield "work/ is missing or belongs to another corpus, so its documents were not searched"


def _next(field: str) -> Iterator[str]:
    """What else can be asked."""
    if field == "url":
        yield "if it was dropped: --search-inputs searches the run's inputs, --origin FILE@OFFSET reads one record"
    if field == "text":
        yield "it is a part of a document's text; --search-texts searches the documents"


def _searched(inputs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "the inputs were:"
    for source, files in inputs.items():
        yield f"  source {safe(source)}: {many(len(files), 'file')}"
        yield from (f"    {safe(path)}" for path in files[:SHOWN_FILES])
        if len(files) > SHOWN_FILES:
            yield f"    and {len(files) - SHOWN_FILES} more, listed in _run.json"
