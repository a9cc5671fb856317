"""Two runs: documents whose fate differs, by what became of them on the other side."""

from refinery.pipelines.corpus.browse.pages.frame import Frame, count, note, page, section, words
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt
from refinery.pipelines.corpus.browse.reading.two_runs import Fate, two_runs
from refinery.pipelines.reports.pages.markup import Html, el, prose


def differences_page(frame: Frame, a: LookedAt, b: LookedAt, sample: int) -> str:
    """The page. Raises Busy, and as `two_runs`."""
    found = two_runs(a, b, sample)
    looked = "All documents of both were compared."
    if found.sample:
        one, other = found.sample
        looked = f"Of A {one:,} documents, drawn by hash, were looked up in B, and {other:,} of B in A."
    rows = [[f"only in {fate.label}", el("bdi", fate.what), count(fate.documents)] for fate in found.fates]
    changed = f" {found.changed:,} pages have another text." if found.changed else ""
    return page(
        frame,
        "Differences",
        note(
            looked,
            prose(" `refinery compare` joins all.") if found.sample else None,
            f" {found.same:,} documents are in both.{changed}",
        ),
        section("Fates", words(["which", "on the other side", "documents"], rows) if rows else note("None differs.")),
        [_listed(frame, fate) for fate in found.fates],
    )


def _listed(frame: Frame, fate: Fate) -> Html | None:
    if not fate.listed:
        return None
    here = next(run for run in frame.runs if run.label == fate.label.lower())
    there = next(run for run in frame.runs if run.label != here.label)
    rows = [
        [
            Frame(frame.base, frame.csrf, frame.runs, here).document(doc),
            doc.source,
            Frame(frame.base, frame.csrf, frame.runs, there).document(doc, f"in {there.label.upper()}"),
        ]
        for doc in fate.listed
    ]
    title = f"Only in {fate.label}: {fate.what}"
    return section(title, words(["document", "source", "the other run"], rows))
