"""A comparison as one JSON object: everything that text and page show, in full."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from refinery.pipelines.corpus.compare.compare import Comparison, Documents, FateCount
from refinery.pipelines.corpus.compare.distributions import Distribution
from refinery.pipelines.corpus.compare.funnels import ReasonRow, StageRow
from refinery.pipelines.corpus.compare.joining.listing import Entry
from refinery.pipelines.corpus.compare.joining.side import Side


def comparison_json(found: Comparison) -> str:
    """One line of ASCII."""
    return json.dumps(as_plain(found), allow_nan=False)


def as_plain(found: Comparison) -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "relation": None if found.relation is None else asdict(found.relation),
        "identical": found.identical,
        "differ": found.differ,
        "notes": list(found.notes),
        "settings": [asdict(each) for each in found.settings],
        "inputs": [asdict(each) for each in found.inputs],
        "funnel": [_stage(row) for row in found.stages],
        "funnel_by_source": [_stage(row) for row in found.stages_by_source],
        "reasons": [_reason(row) for row in found.reasons],
        "reasons_by_source": [_reason(row) for row in found.reasons_by_source],
        "distributions": [_distribution(each) for each in found.distributions],
        "documents": _documents(found.documents) if found.documents else None,
        "tokens_differ": list(found.tokens_differ),
    }


def _side(side: Side) -> dict[str, Any]:
    manifest = side.manifest
    return {
        "prefix": side.prefix,
        "name": manifest.name,
        "lane": manifest.lane,
        "fingerprint": manifest.fingerprint,
        **manifest.totals,
    }


def _stage(row: StageRow) -> dict[str, Any]:
    pairs = zip("ab", row.entered, row.kept, strict=True)
    return {
        "stage": row.stage,
        "phase": row.phase,
        "source": row.source,
        **{
            side: None if entered is None or kept is None else {"in": _plain(entered), "kept": _plain(kept)}
            for side, entered, kept in pairs
        },
        "retention": [row.retention(0), row.retention(1)],
    }


def _plain(count: Any) -> dict[str, int]:
    """Of a funnel: it knows no tokens."""
    return {"documents": count.documents, "bytes": count.bytes}


def _reason(row: ReasonRow) -> dict[str, Any]:
    names = {name: getattr(row, name) for name in ("stage", "outcome", "reason", "source")}
    return {**names, "a": _plain(row.a), "b": _plain(row.b), "difference": row.difference}


def _distribution(each: Distribution) -> dict[str, Any]:
    return {
        "where": each.where,
        "name": each.name,
        "unit": each.unit,
        "total_variation": each.total_variation,
        "kolmogorov_smirnov": each.kolmogorov_smirnov,
        "medians": list(each.medians()),
        "documents": [sum(each.a.values()), sum(each.b.values())],
    }


def _documents(found: Documents) -> dict[str, Any]:
    def both(pair: tuple[Any, Any]) -> dict[str, Any]:
        return {"a": asdict(pair[0]), "b": asdict(pair[1])}

    return {
        "same": both(found.same),
        "cut": both(found.cut) | {"examples": _entries(found.entries["cut"])},
        "changed": both(found.changed) | {"examples": _entries(found.entries["changed"])},
        "only_a": [_fate(each) for each in found.only["A"]],
        "only_b": [_fate(each) for each in found.only["B"]],
        "moves": [
            {"of": which, "before": before, "after": after, "documents": count}
            for which, before, after, count in found.moves
        ],
        "moved_examples": _entries(found.entries["moved"]),
        "other_record": found.other_record,
        "moved_inputs": found.moved_inputs,
        "by_source": [
            {"what": what, "side": side, "source": source, **asdict(count)}
            for (what, side, source), count in found.by_source.items()
        ],
    }


def _fate(each: FateCount) -> dict[str, Any]:
    fate: Mapping[str, Any] = {"fate": each.fate.kind.word, "stage": each.fate.stage}
    return {
        **fate,
        "reason": each.fate.reason,
        "scope": each.fate.scope,
        **asdict(each.count),
        "examples": _entries(each.entries),
        "replayed": asdict(each.replays) if each.replays else None,
    }


def _entries(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
    return [asdict(entry) for entry in entries]
