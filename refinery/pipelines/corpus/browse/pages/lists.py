"""Documents that are known by what a file lists of them: a page of the kept, dropped, removed or failed ones."""

from collections.abc import Mapping
from typing import Any

from refinery.pipelines.corpus.browse.pages.frame import (
    Frame,
    choice,
    entry,
    field,
    link,
    note,
    page,
    section,
    share,
    table,
    words,
)
from refinery.pipelines.corpus.browse.pages.visit import Visit
from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.corpus.browse.reading.listing import (
    DEAD,
    DROPPED,
    KEPT,
    KINDS,
    REASONS,
    REMOVED,
    Asked,
    Listed,
    Position,
    list_documents,
)
from refinery.pipelines.corpus.browse.reading.looked_at import Opened
from refinery.pipelines.corpus.browse.reading.withheld import WITHDRAWN
from refinery.pipelines.corpus.trace.answers import Doc
from refinery.pipelines.reports.pages.markup import Html, el

WORDS = {KEPT: "kept", DROPPED: "dropped by a rule", REMOVED: "removed as duplicates", DEAD: "failed"}
FILES = {KEPT: "shards", DROPPED: "files of rejects/", REMOVED: "files of removals/", DEAD: "files of dead_letters/"}
COLUMNS = 6  # that are shown beside a document
NO_COLUMNS = ("id", "url", "source", "origin", "token_offset", "sources", "split", "domain", "shard", "document")


def documents_page(visit: Visit) -> str:
    """The page. query: `in`, `host`, `source`, `stage`, `reason`, `rule`, and where it begins, `from`. Raises
    ValueError for what cannot be."""
    frame, opened, query = visit.frame, visit.opened, visit.query
    names = ("url", "host", "source", "stage", "reason", "rule")
    asked = Asked(query.get("in") or KEPT, **{name: query.get(name, "").strip() for name in names})
    found = list_documents(opened.corpus, asked, Position.parse(query.get("from", "")), Deadline())
    said = f"{len(found.rows)} documents, from {found.looked:,} of {found.files:,} {FILES[asked.kind]}"
    given = {name: getattr(asked, name) for name in names}
    onward = frame.here("documents", in_=asked.kind, from_=found.next, **given)
    stopped = "" if found.next is None else "; the time for a page was up" if len(found.rows) < 50 else ""
    return page(
        frame,
        f"Documents {WORDS[asked.kind]}",
        _form(frame, asked),
        section(
            "Found",
            note(f"{said}{stopped}.", _listed_share(opened, asked.kind)),
            _table(frame, found),
            el("p", link("Next page", onward, rel="next")) if found.next else note("That is all."),
        ),
    )


def _form(frame: Frame, asked: Asked) -> Html:
    return section(
        "Choose",
        frame.form(
            "documents",
            field("among", "in", choice("in", [(kind, WORDS[kind]) for kind in KINDS], asked.kind)),
            field("address", "url", entry("url", asked.url, maxlength="4000", spellcheck="false")),
            field("host", "host", entry("host", asked.host, maxlength="253")),
            field("source", "source", entry("source", asked.source, maxlength="200")),
            field("stage", "stage", entry("stage", asked.stage, maxlength="200")),
            field("reason", "reason", entry("reason", asked.reason, maxlength="200")),
            field(
                "rule over columns (kept ones)",
                "rule",
                entry("rule", asked.rule, maxlength="4000", spellcheck="false", placeholder="quality > 0.5"),
            ),
            el("button", "Show", type="submit"),
            class_="fields",
        ),
    )


def _listed_share(opened: Opened, kind: str) -> str:
    rejects = opened.corpus.manifest.recipe.get("rejects") or {}
    rate = rejects.get("rate") if isinstance(rejects, dict) else None
    return f" rejects/ lists {share(rate)} of the dropped documents." if kind == DROPPED and rate is not None else ""


def _table(frame: Frame, found: Listed) -> Html:
    if not found.rows:
        return note("No document here.")
    named = [name for name in found.rows[0] if name not in NO_COLUMNS]
    filled = [name for name in named if any(row[name] not in (None, "") for row in found.rows)]
    columns = filled[:COLUMNS] if found.kind == KEPT else []
    head = ["document", "source", *(["why"] if found.kind != KEPT else []), *columns]
    make = table if found.kind == KEPT else words
    return make(head, [_row(frame, found.kind, row, columns) for row in found.rows])


def _row(frame: Frame, kind: str, row: Mapping[str, Any], columns: list[str]) -> list[object]:
    if row.get("stage") == WITHDRAWN:  # its owner took it out
        return [
            el("span", "not shown: opted out", class_="withheld"),
            row["source"],
            f"{row['stage']}: {row['reason']}",
        ]
    id_ = row["id"].hex() if "id" in row else ""
    doc = Doc(id_, row.get("url") or "", row["source"], row["origin"])
    cells: list[object] = [frame.document(doc), doc.source]
    if kind == REMOVED:
        linked = frame.link(f"{row['reason']}, {row['similarity']:.3f}", "cluster", id=row["kept_id"].hex())
        cells.append(linked)
    elif kind != KEPT:
        stage = row["stage"]
        cells.append(el("bdi", f"{stage}: {row[REASONS[kind]]}"))
    return [*cells, *(_value(row[name]) for name in columns)]


def _value(value: Any) -> str:
    return "–" if value in (None, "") else f"{value:.4g}" if isinstance(value, float) else str(value)[:80]
