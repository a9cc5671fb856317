"""Judgements: what was judged so far, and the file to tune on."""

from refinery.pipelines.corpus.browse.pages.document import find_one, measured_rows
from refinery.pipelines.corpus.browse.pages.frame import Frame, Run, link, note, page, section, shortened, words
from refinery.pipelines.corpus.browse.pages.outcome import outcome_of
from refinery.pipelines.corpus.browse.reading.find import doc_of
from refinery.pipelines.corpus.browse.reading.judgements import VERDICTS, Judgement, Judgements
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened
from refinery.pipelines.corpus.browse.reading.stages import LOST, judge_document
from refinery.pipelines.corpus.browse.reading.withheld import WITHDRAWN
from refinery.pipelines.corpus.trace.answers import Doc, Kept
from refinery.pipelines.reports.pages.markup import el

LISTED = 200


def judgements_page(frame: Frame, judgements: Judgements) -> str:
    """The page. Cost: the file."""
    found = judgements.latest()
    rows = [
        [
            _document(frame, each),
            VERDICTS[each.verdict],
            el("bdi", shortened(each.note)),
            el("bdi", shortened(each.outcome)),
            shortened(each.at, 40),
        ]
        for each in found[:LISTED]
    ]
    more = note(f"and {len(found) - LISTED:,} more, in the file") if len(found) > LISTED else None
    return page(
        frame,
        "Judgements",
        note("They are kept in ", el("bdi", el("code", str(judgements.path))), ", a line each; the last one counts."),
        note(link("Export as JSONL", frame.href("judgements.jsonl"), download="judgements.jsonl")) if rows else None,
        section(
            "So far",
            words(["document", "judgement", "note", "the run", "when"], rows) if rows else note("None yet."),
            more,
        ),
    )


def _document(frame: Frame, judgement: Judgement) -> object:
    """A link where the run is one of those that are looked at."""
    run = next((run for run in frame.runs if run.prefix == judgement.run and run.finished), None)
    doc = Doc(judgement.id, judgement.url, judgement.source, judgement.origin)
    named = shortened(doc.url or doc.origin or doc.id)
    return _at(frame, run).document(doc) if run else el("bdi", named)


def _at(frame: Frame, run: Run) -> Frame:
    return Frame(frame.base, frame.csrf, frame.runs, run)


def new_judgement(run: LookedAt, opened: Opened, form: dict[str, str]) -> Judgement:
    """The judgement that a form makes, with what rules measured. Raises ValueError for a document that is not there."""
    answers, _ = find_one(opened, form)
    if not answers:
        raise ValueError("no such document is to be judged")
    answer = answers[0]
    judged = judge_document(run, opened, doc_of(answer), answer if isinstance(answer, Kept) else None)
    doc, last = judged.doc, judged.last
    if last is not None and last.outcome == "dropped" and last.stage == WITHDRAWN:
        raise ValueError("no such document is to be judged")
    lost = last is not None and last.outcome in LOST and not isinstance(answer, Kept)
    again = f"{last.stage}: {last.reason.partition(':')[0]}" if last is not None and lost else ""
    return Judgement(
        form.get("verdict", ""),
        form.get("note", "").replace("\r\n", "\n").strip(),
        run.prefix,
        opened.corpus.sha256,
        doc.id,
        doc.url,
        doc.source,
        doc.origin,
        again or outcome_of(answer),
        [] if judged.withheld else list(measured_rows(judged)),
    )
