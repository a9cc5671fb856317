"""A document: what became of it and why, each rule's value beside its threshold, its texts side by side, its tokens."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from refinery.pipelines.corpus.browse.pages.frame import (
    Frame,
    alert,
    choice,
    field,
    note,
    page,
    section,
    shortened,
    table,
    words,
)
from refinery.pipelines.corpus.browse.pages.outcome import outcome_of
from refinery.pipelines.corpus.browse.pages.texts import NOT_ALIGNED, side_by_side
from refinery.pipelines.corpus.browse.pages.visit import Visit
from refinery.pipelines.corpus.browse.reading.differences import differences
from refinery.pipelines.corpus.browse.reading.find import doc_of, end_of, find
from refinery.pipelines.corpus.browse.reading.judgements import MOST_NOTE, VERDICTS
from refinery.pipelines.corpus.browse.reading.looked_at import Opened
from refinery.pipelines.corpus.browse.reading.stages import LOST, Judged, judge_document
from refinery.pipelines.corpus.browse.reading.withheld import WITHDRAWN
from refinery.pipelines.corpus.trace.answers import Answer, Doc, Kept, Missing, Query, Rejected, Removed, Replayed
from refinery.pipelines.reports.pages.markup import Html, el, join, prose
from refinery.transforms.core.measured_rules import Reading

LISTED = 20  # documents of one query

NOT_SHOWN = "It is not shown: its owner took it out."


def named_query(query: Mapping[str, str]) -> tuple[Query, str]:
    """The document that an address names, and its source. Raises ValueError."""
    for name in ("id", "origin", "url"):
        if query.get(name):
            return Query(name, query[name]), query.get("source", "")
    raise ValueError("a document is named by id, origin or url")


def find_one(opened: Opened, query: Mapping[str, str]) -> tuple[list[Answer], int]:
    """What became of the named document, and how many are not shown."""
    asked, source = named_query(query)
    found = find(opened, asked, source, query.get("origin", ""))
    answers: list[Answer] = [each for each in found.answers if not isinstance(each, Missing)]
    if not answers and not found.withheld and asked.field == "origin":  # listed nowhere: its record may still be read
        answers = [Replayed(Doc(origin=asked.value, source=source))]
    return answers, found.withheld


def document_page(visit: Visit) -> str:
    """The page: of one document, or a list where several are named so."""
    frame = visit.frame
    answers, withheld = find_one(visit.opened, visit.query)
    if not answers:
        said = NOT_SHOWN if withheld else "Nothing was found under this name."
        return page(frame, "Document", note(said))
    if len(answers) > 1 and not isinstance(answers[0], Kept):
        return page(frame, "Documents of this name", _several(frame, answers))
    others = _several(frame, answers[1:]) if len(answers) > 1 else None
    return _one(visit, answers[0], others)


def _several(frame: Frame, answers: Sequence[Answer]) -> Html:
    rows = [[frame.document(doc_of(each)), doc_of(each).source, outcome_of(each)] for each in answers[:LISTED]]
    return section("Documents of the same name", words(["document", "source", "what became of it"], rows))


def _one(visit: Visit, answer: Answer, others: Html | None) -> str:
    frame, kept = visit.frame, answer if isinstance(answer, Kept) else None
    judged = judge_document(visit.run, visit.opened, doc_of(answer), kept)
    lost = judged.last.stage if judged.last and judged.last.outcome == "dropped" else ""
    if kept is None and WITHDRAWN in (lost, getattr(answer, "stage", "")):
        return page(frame, "Document", note(NOT_SHOWN))
    return page(
        frame,
        "Document",
        section("What became of it", _facts(frame, answer, judged), _why(frame, answer, judged)),
        others,
        _judge(frame, answer, judged),
        _texts(judged),
        _rules(frame, judged),
        _tokens(judged),
    )


def _facts(frame: Frame, answer: Answer, judged: Judged) -> Html:
    doc = judged.doc
    pairs: list[tuple[str, object]] = [
        ("address", el("bdi", el("code", shortened(doc.url, 2000))) if doc.url else "none"),
        ("id", el("code", doc.id) if doc.id else "not known"),
        ("source", el("bdi", doc.source)),
        ("origin", el("bdi", el("code", doc.origin)) if doc.origin else "not known"),
    ]
    if isinstance(answer, Kept):
        pairs.append(("copies", f"{answer.copies:,}, of {', '.join(answer.sources)}"))
        pairs.append(("length", f"{answer.text_bytes:,} bytes, {answer.token_count:,} tokens"))
        notes = {name: value for name, value in answer.columns.items() if value not in (None, "")}
        pairs += [(name.replace("_", " "), el("bdi", shortened(str(value)))) for name, value in notes.items()]
    if isinstance(answer, Removed):
        kept = end_of(answer)
        pairs.append(("kept instead", frame.document(doc_of(kept))))
        step = answer.steps[0]
        linked = frame.link("the cluster, with what differs", "cluster", id=step.kept.id, removed=doc.origin)
        pairs.append(("cluster", linked))
    return el("dl", [[el("dt", name), el("dd", value)] for name, value in pairs])


def _why(frame: Frame, answer: Answer, judged: Judged) -> list[object]:
    """Why it was dropped or kept."""
    said: list[object] = []
    said.append(note(el("b", el("bdi", outcome_of(answer)))))
    if isinstance(answer, Rejected) and answer.found and not judged.withheld:
        said.append(note("The stage found: ", el("bdi", answer.found)))
    last = judged.last
    if last is not None and last.outcome in LOST:
        advice = "" if last.advice == "nothing" else f"If that is too much: {last.advice}." if last.advice else ""
        said.append(note(f"Judged again, {last.stage} loses it: ", prose(last.reason), ". ", prose(advice)))
        said += [note(f"{name} = {value}") for name, value in (last.limits or {}).items()]
    elif last is not None:
        said.append(
            note(
                "Judged again, every stage for single documents keeps it. Duplicates, lines that others have, and "
                "targets of sources need the other documents."
            )
        )
    if judged.withheld:
        said.append(alert(f"No text is shown: {judged.withheld}."))
    if judged.problem:
        said.append(alert("It was not judged again: ", judged.problem))
    if judged.differs:
        said.append(alert("Not as in the run: ", judged.differs))
    return said


def _judge(frame: Frame, answer: Answer, judged: Judged) -> Html:
    doc = judged.doc
    by_origin = {"origin": doc.origin, "source": doc.source}
    named = {"id": doc.id} if isinstance(answer, Kept) or not doc.origin else by_origin
    return section(
        "Your judgement",
        frame.form(
            "judge",
            [el("input", type="hidden", name=name, value=value) for name, value in named.items()],
            field("this document is", "verdict", choice("verdict", list(VERDICTS.items()), _likely(answer))),
            field(
                "note",
                "note",
                Html(f'<textarea name="note" id="note" rows="2" maxlength="{MOST_NOTE}"></textarea>'),
            ),
            el("button", "Keep this judgement", type="submit"),
            post=True,
            class_="fields",
        ),
    )


def _likely(answer: Answer) -> str:
    return "wrongly-kept" if isinstance(answer, Kept) else "wrongly-dropped"


def _rules(frame: Frame, judged: Judged) -> Html | None:
    rows = [
        [
            el("span", reading.rule.reason, el("small", f" {decision.stage}.{reading.rule.key}")),
            number(reading.value),
            f"{'≥' if reading.rule.is_least else '≤'} {number(reading.rule.threshold)}",
            "drops it" if reading.drops else "keeps it",
            frame.link(
                el("span", "move", el("span", f" the threshold of {reading.rule.key}", class_="unseen")),
                "threshold",
                stage=decision.stage,
                reason=reading.rule.reason,
                key=reading.rule.key,
                value=reading.value,
            ),
        ]
        for decision in judged.decisions
        for reading in decision.readings
        if reading.value is not None
    ]
    noted = [
        [el("span", name, el("small", f" {decision.stage}")), shortened(str(value))]
        for decision in judged.decisions
        for name, value in (decision.notes or {}).items()
    ]
    if not rows and not noted:
        return None
    return section(
        "What rules measured",
        table(["rule", "measured", "allowed", "so it", "what if"], rows) if rows else None,
        el("details", el("summary", "What stages noted"), table(["name", "value"], noted)) if noted else None,
        id="rules",
    )


def measured_rows(judged: Judged) -> Iterator[dict[str, Any]]:
    """The same for a file of judgements."""
    for decision in judged.decisions:
        for reading in decision.readings:
            if reading.value is not None:
                yield reading_row(decision.stage, reading)


def reading_row(stage: str, reading: Reading) -> dict[str, Any]:
    """A rule that measured something."""
    rule = reading.rule
    facts = {"stage": stage, "reason": rule.reason, "rule": rule.key, "value": reading.value}
    return {**facts, "threshold": rule.threshold, "drops": reading.drops}


def number(value: float | None) -> str:
    """A number that a rule measured, or its threshold."""
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _texts(judged: Judged) -> Html | None:
    views = [view for view in judged.views if view.text]
    hidden = [view.name for view in judged.views if not view.text]
    if not views:
        return None
    said = note(
        "Each text beside the one before it. What differs is marked. In what was read again credentials are replaced, "
        "and personal data as the recipe says.",
        f" Not fit to be shown: {', '.join(hidden)}." if hidden else None,
    )
    if len(views) == 1:
        return section("Text", said, side_by_side([(views[0].name, [(False, views[0].text)])]))
    parts = []
    for one, other in pairwise(views):
        found = differences(one.text, other.text)
        cut = sum(view.cut for view in (one, other))
        parts += [
            el("h3", f"{one.name} → {other.name}"),
            note(
                "They are equal." if one.text == other.text else None,
                None if found.aligned else NOT_ALIGNED,
                f" {cut:,} characters are not shown." if cut else None,
            ),
            side_by_side([(one.name, found.before), (other.name, found.after)]),
        ]
    return section("Texts", said, parts, id="texts")


def _tokens(judged: Judged) -> Html | None:
    if not judged.pieces:
        return None
    more = f" The first {len(judged.pieces):,} are shown." if judged.tokens > len(judged.pieces) else ""
    shown = join(el("span", piece, title=str(id_), class_="piece") for id_, piece in judged.pieces)
    ids = " ".join(str(id_) for id_, _ in judged.pieces)
    return section(
        "Tokens",
        note(f"{judged.tokens:,} tokens, BOS and EOS among them.{more}"),
        el("div", shown, class_="text", dir="auto", tabindex="0", role="region", aria_label="pieces of tokens"),
        el("details", el("summary", "Ids"), el("p", el("code", ids))),
        id="tokens",
    )
