"""Judgements: what was judged so far, and the file to tune on."""

import re
from collections.abc import Sequence
from pathlib import Path

from refinery.pipelines.corpus.browse.pages.document import find_one, measured_rows
from refinery.pipelines.corpus.browse.pages.frame import Frame, Run, link, note, page, section, shortened, words
from refinery.pipelines.corpus.browse.pages.outcome import outcome_of
from refinery.pipelines.corpus.browse.reading.find import doc_of
from refinery.pipelines.corpus.browse.reading.judgements import VERDICTS, Judgement, Judgements
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened
from refinery.pipelines.corpus.browse.reading.stages import LOST, judge_document
from refinery.pipelines.corpus.browse.reading.withheld import WITHDRAWN, taken_down
from refinery.pipelines.corpus.trace.answers import Doc, Kept
from refinery.pipelines.reports.pages.markup import el
from refinery.transforms.core.document import ID_BYTES

LISTED = 200
ID = re.compile(f"[0-9a-f]{{{2 * ID_BYTES}}}")


def judgements_page(frame: Frame, found: Sequence[Judgement], path: Path) -> str:
    """The page of these judgements, which are kept at `path`."""
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
        note(
            "They are kept in ",
            el("bdi", el("code", str(path))),
            ", one a line; the last one of each document counts.",
        ),
        note(link("Export as JSONL", frame.href("judgements.jsonl"), download="judgements.jsonl")) if rows else None,
        section(
            "So far",
            words(["document", "judgement", "note", "the run", "when"], rows) if rows else note("None yet."),
            more,
        ),
    )


def shown_judgements(judgements: Judgements, runs: Sequence[LookedAt]) -> list[Judgement]:
    """The last judgement of each document, the newest first, without documents that were taken out of one of the runs
    since. Cost: the file, and the listings of takedowns."""
    found = judgements.latest()
    docs = [Doc(id=each.id if ID.fullmatch(each.id) else "", origin=each.origin) for each in found]
    gone = [each.doc for run in runs if run.opened for each in taken_down(run.opened.corpus, docs)]
    names = {name for doc in gone for name in (doc.id, doc.origin) if name}
    return [each for each in found if not {each.id, each.origin} & names]


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
