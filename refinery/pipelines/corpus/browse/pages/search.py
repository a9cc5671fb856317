"""The search: named documents, a passage letter by letter, or words in a stated sample. Others are lists (lists.py)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from refinery.loader.format.removals import REASONS
from refinery.pipelines.corpus.browse.pages.frame import (
    Frame,
    choice,
    entry,
    field,
    note,
    page,
    section,
    shortened,
    words,
)
from refinery.pipelines.corpus.browse.pages.lists import documents_page
from refinery.pipelines.corpus.browse.pages.outcome import outcome_of
from refinery.pipelines.corpus.browse.pages.visit import Visit
from refinery.pipelines.corpus.browse.reading.find import Found, doc_of, find, find_passage, has_index
from refinery.pipelines.corpus.browse.reading.listing import DEAD, DROPPED, KEPT, REMOVED
from refinery.pipelines.corpus.browse.reading.looked_at import Opened
from refinery.pipelines.corpus.browse.reading.samples import search_words
from refinery.pipelines.corpus.browse.reading.withheld import WITHDRAWN
from refinery.pipelines.corpus.trace.answers import Answer, Missing, Query, Rejected
from refinery.pipelines.reports.pages.markup import Html, el

NAMED = ("url", "id", "origin", "token")
LISTS = ("host", "source", "reason", "rule")
WAYS = (
    ("", "whatever it looks like"),
    ("url", "address"),
    ("id", "id"),
    ("origin", "origin: file@offset"),
    ("token", "token: shard:offset"),
    ("passage", "exact passage"),
    ("words", "words, in a sample"),
    ("host", "host"),
    ("source", "source"),
    ("reason", "reason"),
    ("rule", "rule over columns"),
)
MOST_QUERY = 4_000  # characters


def search_page(visit: Visit) -> str:
    """The page. query: `q`, and `by` of WAYS. Raises ValueError."""
    frame, opened, query = visit.frame, visit.opened, visit.query
    text, by = query.get("q", "").strip(), query.get("by", "")
    if len(text) > MOST_QUERY:
        raise ValueError(f"a query of {len(text):,} characters given, up to {MOST_QUERY:,} are allowed")
    if by not in dict(WAYS):
        raise ValueError(f"by: {by!r:.40} given, one of {', '.join(name for name, _ in WAYS if name)} is allowed")
    if (by or guess(text)) == "url" and not has_index(opened.corpus):
        return documents_page(replace(visit, query={"url": text}))
    if by in LISTS and text:
        return documents_page(replace(visit, query={by: text, "in": _kind(opened, text) if by == "reason" else KEPT}))
    return page(frame, "Search", _form(frame, text, by), _found(frame, opened, text, by or guess(text), visit.sample))


def guess(text: str) -> str:
    """What a query looks like.

    >>> guess("https://e.org/"), guess("0" * 32), guess("in/a.warc.gz@17"), guess("two words"), guess("train/a/s-0:1")
    ('url', 'id', 'origin', 'words', 'token')
    """
    if re.fullmatch(r"[0-9a-fA-F]{32}", text):
        return "id"
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^@]*$", text):
        return "url"
    if re.search(r"\S@[0-9]{1,19}$", text):
        return "origin"
    return "token" if re.search(r"/\S+:[0-9]{1,18}$", text) and " " not in text else "words"


def _kind(opened: Opened, reason: str) -> str:
    """Where documents with that reason are listed."""
    if reason in REASONS:
        return REMOVED
    return DEAD if any(reason in row["dead"] for row in opened.corpus.manifest.funnel) else DROPPED


def _form(frame: Frame, text: str, by: str) -> Html:
    return section(
        "Look for",
        frame.form(
            "search",
            field("what", "q", entry("q", text, type="search", maxlength=str(MOST_QUERY), spellcheck="false")),
            field("as", "by", choice("by", WAYS, by)),
            el("button", "Search", type="submit"),
            class_="fields",
        ),
    )


def _found(frame: Frame, opened: Opened, text: str, by: str, number: int) -> Html | None:
    if not text:
        return None
    if by == "words":
        matches = search_words(opened, text, number)
        drawn = f"drawn by hash from {matches.documents:,} kept ones"
        said = f"{len(matches.kept):,} of {matches.sample:,} documents, {drawn}."
        hint = " Search for an exact passage to look beyond the sample."
        rows = _table(frame, matches.kept) if matches.kept else note("None of them has all of these words.")
        return section("Found in a sample", note(said, hint), rows)
    found: Found = find_passage(opened, text) if by == "passage" else find(opened, Query(by, text))
    withheld = f"{found.withheld} more are not shown: taken down." if found.withheld else None
    return section(
        "Found",
        note(found.searched) if found.searched else None,
        note(withheld) if withheld else None,
        _table(frame, found.answers),
    )


def _table(frame: Frame, answers: Sequence[Answer]) -> Html:
    rows: list[list[object]] = []
    for answer in answers:
        if isinstance(answer, Missing):
            continue
        if isinstance(answer, Rejected) and answer.stage == WITHDRAWN:
            rows.append([el("span", "not shown: opted out", class_="withheld"), answer.doc.source, outcome_of(answer)])
            continue
        doc = doc_of(answer)
        rows.append([frame.document(doc), shortened(doc.source), el("bdi", outcome_of(answer))])
    if not rows:
        return note("Nothing was found. It was never read, or what lost it is listed nowhere.")
    return words(["document", "source", "what became of it"], rows)
