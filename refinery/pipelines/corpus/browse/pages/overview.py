"""The first page of a run: funnel, reasons with links to what was dropped, sources, shards, progress."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.format.shard_list import as_shards
from refinery.pipelines.corpus.browse.pages.frame import Frame, alert, count, note, page, section, share, table
from refinery.pipelines.corpus.browse.reading.funnel import StageSums, stage_sums
from refinery.pipelines.corpus.browse.reading.listing import DEAD, DROPPED, KEPT, REMOVED
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened
from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.run.source_table import source_rows, tokens_by_source
from refinery.transforms.core.safe_text import safe

REASONS = 200  # lines of the table of reasons
LINES = 100  # of the other tables
Funnel = Sequence[Mapping[str, Any]]


def overview(frame: Frame, run: LookedAt) -> str:
    """The page. Cost: the manifest; of a run in progress its reports."""
    opened = run.opened
    if opened is None:
        return _in_progress(frame, run)
    manifest = opened.corpus.manifest
    totals = manifest.totals
    tokens = f"{totals['tokens']:,} tokens, " if "tokens" in totals else ""
    said = f"{totals['documents']:,} documents, {tokens}{show(totals['bytes'], 'bytes')} of text."
    stages = stage_sums(manifest.funnel)
    return page(
        frame,
        manifest.name,
        note(el("bdi", el("code", run.prefix)), " – ", said),
        _funnel(stages),
        _reasons(frame, opened, stages),
        _sources(frame, manifest.funnel, tokens_by_source(manifest), True, manifest.has_tokens),
        _shards(frame, opened),
    )


def _in_progress(frame: Frame, run: LookedAt) -> str:
    from refinery.pipelines.run.inspection.text import describe, headline  # jobs of all runners

    found = run.inspection
    phases = [
        [f"{number}. {phase.name}", describe(phase), sum(part["rows"] for part in phase.parts.values())]
        for number, phase in enumerate(found.phases, 1)
    ]
    inputs = [[name, count(each["files"]), show(each["bytes"], "bytes")] for name, each in found.inputs.items()]
    return page(
        frame,
        found.name or run.prefix,
        note(el("bdi", el("code", run.prefix)), " – ", headline(found), "."),
        [alert(safe(problem)) for problem in found.problems],
        note(f"{len(found.at_work) or 'No'} commands are at work on it now."),
        note(frame.link("Look again", "")),
        section("Progress", table(["phase", "state", "rows written"], phases)) if phases else None,
        section("Inputs", table(["source", "files", "size"], inputs[:LINES])) if inputs else None,
        _funnel(stage_sums(found.funnel)) if found.funnel else None,
        _sources(frame, found.funnel, {}, False) if found.funnel else None,
    )


def _funnel(stages: Sequence[StageSums]) -> Html:
    first = stages[0].entered if stages else 0
    rows = [
        [
            stage.name,
            count(stage.entered),
            count(stage.kept),
            count(stage.lost),
            share(stage.kept, first),
            _bar(stage, first),
        ]
        for stage in stages
    ]
    return section("Funnel", table(["stage", "entered", "kept", "lost", "of all read", "as a bar"], rows), id="funnel")


def _bar(stage: StageSums, first: int) -> Html:
    """Kept and lost as lengths; the numbers are beside it."""
    kept, entered = (100 * min(1.0, each / first) if first else 0.0 for each in (stage.kept, stage.entered))
    parts = [
        el("rect", width=f"{entered:.2f}", height="8", class_="lost"),
        el("rect", width=f"{kept:.2f}", height="8", class_="left"),
    ]
    return el("svg", parts, viewBox="0 0 100 8", preserveAspectRatio="none", class_="bar", aria_hidden="true")


def _reasons(frame: Frame, opened: Opened, stages: Sequence[StageSums]) -> Html:
    rows = list(_reason_rows(frame, opened, stages))
    rate = (opened.corpus.manifest.recipe.get("rejects") or {}).get("rate")
    listed = f"rejects/ lists {share(rate)} of the dropped documents." if isinstance(rate, float | int) else ""
    more = note(f"and {len(rows) - REASONS:,} more, in manifest.json") if len(rows) > REASONS else None
    head = ["reason", "stage", "documents", "of those that entered"]
    return section("Reasons", note(listed) if listed else None, table(head, rows[:REASONS]), more, id="reasons")


def _reason_rows(frame: Frame, opened: Opened, stages: Sequence[StageSums]) -> Iterator[list[object]]:
    dedup = {stage.name for stage in opened.corpus.manifest.stages if stage.phase == "dedup"}
    for stage in stages:
        for lost, kind in ((stage.dropped, REMOVED if stage.name in dedup else DROPPED), (stage.dead, DEAD)):
            for reason, documents in lost.most_common():
                named = f"{reason} (failed)" if kind == DEAD else reason
                query = {"in_": kind, "reason": reason, "stage": "" if kind == REMOVED else stage.name}
                linked = frame.link(named, "documents", **query)
                yield [linked, stage.name, count(documents), share(documents, stage.entered)]


def _sources(frame: Frame, funnel: Funnel, tokens: Mapping[str, int], linked: bool, has_tokens: bool = True) -> Html:
    rows: list[list[object]] = []
    for each in source_rows(funnel, tokens):
        name: object = each["source"]
        named = frame.link(name, "documents", in_=KEPT, source=name) if linked else name
        known = ["–" if each["tokens"] is None else count(each["tokens"])] if has_tokens else []
        rows.append([named, count(each["read"]), count(each["kept"]), share(each["kept"], each["read"]), *known])
    more = note(f"and {len(rows) - LINES:,} more") if len(rows) > LINES else None
    head = ["source", "read", "kept", "share", *(["tokens"] if has_tokens else [])]
    return section("Sources", table(head, rows[:LINES]), more, id="sources")


def _shards(frame: Frame, opened: Opened) -> Html:
    """The shards of each split and domain. What is read of each is its listing's summary in the manifest."""
    rows: list[list[object]] = []
    first = 0
    has_tokens, places = opened.corpus.manifest.has_tokens, dict[tuple[str, str], list[int]]()
    for run in as_shards(opened.corpus.manifest.shards).runs:
        sums = places.setdefault((run.split, run.domain), [first, 0, 0, 0])
        first += run.shards
        sums[1] += run.shards
        sums[2] += run.documents
        sums[3] += run.tokens if has_tokens else 0
    for (split, domain), (begin, shards, documents, tokens) in places.items():
        named = f"{split}/{domain}"
        linked = named if opened.corpus.is_adopted else frame.link(named, "documents", in_=KEPT, from_=f"{begin}.0")
        rows.append([linked, count(shards), count(documents), *([count(tokens)] if has_tokens else [])])
    more = note(f"and {len(rows) - LINES:,} more") if len(rows) > LINES else None
    head = ["split and domain", "shards", "documents", *(["tokens"] if has_tokens else [])]
    return section("Shards", table(head, rows[:LINES]), more, id="shards")
