"""The output of `refinery trace` as text and JSON. URLs are untrusted, so unprintable characters are escaped."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from refinery.loader.format.removals import URL_DUPLICATE
from refinery.pipelines.tracing.trace_documents import (
    Answer,
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
    Step,
    Trace,
)
from refinery.transforms.core.rejects import OVER_TARGET
from refinery.transforms.core.safe_text import safe

NAMES = {
    Kept: "kept",
    Removed: "removed",
    Rejected: "rejected",
    Dead: "dead",
    Passed: "passed",
    Elsewhere: "elsewhere",
    Cycle: "cycle",
    Missing: "missing",
}
SHOWN_FILES = 5  # files listed per source


# --- JSON -----------------------------------------------------------------------------------------------------------


def json_lines(found: Trace) -> Iterator[str]:
    """One ASCII JSON object per query and answer."""
    for query, answer in found.answers:
        fields = {"query": {query.field: query.value}, **_plain(answer)}
        if isinstance(answer, Missing):
            fields["inputs"] = {source: len(files) for source, files in found.inputs.items()}
            fields["notes"] = list(found.notes)
        yield json.dumps(fields)


def _plain(answer: Answer | End) -> dict[str, Any]:
    """{"answer": …} with the fields of the answer and those of its document."""
    fields = {"answer": NAMES[type(answer)], **asdict(answer)}
    if "doc" in fields:
        fields |= fields.pop("doc")
    if isinstance(answer, Removed):
        fields["end"] = _plain(answer.end)
    return fields


# --- words ----------------------------------------------------------------------------------------------------------


def text_lines(found: Trace) -> Iterator[str]:
    """Each query, flush left, with its answers below; at the end, if something is missing, what was searched."""
    last: Query | None = None
    for query, answer in found.answers:
        if query != last:
            yield f"{query.field} {safe(query.value)}"
        last = query
        yield from (f"  {line}" for line in _describe(query, answer))
    if not found.complete:
        yield from _searched(found.inputs)
    yield from (f"note: {safe(note)}" for note in found.notes)


def _describe(query: Query, answer: Answer) -> Iterator[str]:
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


def _removed(answer: Removed) -> Iterator[str]:
    step, *later = answer.steps
    yield f"removed: {_why(step)}"
    yield f"  {_document(answer.doc)}"
    yield f"  kept instead: {_document(step.kept)}"
    for step in later:
        yield f"    which was itself removed: {_why(step)}"
        yield f"    kept instead: {_document(step.kept)}"
    yield f"  {'the last of these' if later else 'that one'}: {_outcome(answer.end)}"


def _why(step: Step) -> str:
    where = {"source": "among the documents of its source", "corpus": "among all documents"}
    place = where.get(step.scope, safe(step.scope))
    alike = "the same address" if step.reason == URL_DUPLICATE else f"similarity {step.similarity:.3f}"
    return f"{safe(step.reason)}, {place}, {alike}"


def _outcome(answer: Answer | End) -> str:
    if isinstance(answer, Kept):
        end = answer.token_offset + answer.token_count
        return (
            f"in the corpus: {safe(answer.shard)}, document {answer.document}, "
            f"tokens {answer.token_offset} to {end} ({answer.token_count})"
        )
    if isinstance(answer, Rejected):
        found = f" ({safe(answer.found)})" if answer.found else ""
        return f"dropped by {safe(answer.stage)}: {safe(answer.reason)}{found}"
    if isinstance(answer, Dead):
        return (
            f"failed in {safe(answer.stage)}: {safe(answer.error)} ({answer.size} bytes, sha256 {safe(answer.sha256)})"
        )
    if isinstance(answer, Passed):
        return f"passed cleaning and deduplication, then dropped by a later stage{_unlisted(answer)}"
    if isinstance(answer, Elsewhere):
        return f"in the corpus {safe(answer.prefix)}; trace --id {answer.doc.id} there"
    return "the documents kept instead form a cycle: the corpus is damaged, see refinery verify"


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
    facts.append(f"represents {answer.copies} documents of {safe(', '.join(answer.sources))}")
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
    else:
        reasons = [f"it was never read: no input has exactly this {field}, or {left_out}"]
    if field == "id":
        reasons.append("it was dropped or failed: rejects/ and dead_letters/ list no ids, work/documents/ does")
    else:
        if answer.rate is None or answer.rate < 1:
            rate = "unknown" if answer.rate is None else f"{answer.rate:g}"
            reasons.append(
                f"a rule dropped it, but it is not listed: rejects.rate is {rate}; at 1 every dropped document is"
            )
        if answer.over_target:
            reasons.append(f"it was beyond the target of its source ({OVER_TARGET}), which is never listed")
        if field == "url" and answer.dead:
            reasons.append(f"it failed: {answer.dead} dead letters have no URL, only an origin")
        if field == "url":
            reasons.append("it was dropped while reading: not every format has a URL by then")
    yield "not found; this can mean:"
    yield from (f"- {reason}" for reason in reasons)
    if not answer.work:
        yield "work/ is not there, or belongs to another corpus: its documents were not searched"


def _searched(inputs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "the inputs were:"
    for source, files in inputs.items():
        yield f"  source {safe(source)}: {len(files)} files"
        yield from (f"    {safe(path)}" for path in files[:SHOWN_FILES])
        if len(files) > SHOWN_FILES:
            yield f"    and {len(files) - SHOWN_FILES} more, listed in _run.json"
