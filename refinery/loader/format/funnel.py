"""The counts of a manifest's funnel: whether every document is accounted for."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from refinery.loader.format.fields import Fields


def check_funnel(funnel: Sequence[Mapping[str, Any]]) -> list[str]:
    """Messages about documents that are missing from or extra in the counts; empty if every count reconciles.

    Per stage and source: in + created = kept + sum(dropped) + sum(dead); only a stage that splits documents creates
    any, and none gives more numbers of a series than it has documents. Per source: what a stage kept enters that
    source's next stage, and only the last stage of the funnel may keep documents that enter none. Stages are ordered by
    their first appearance; a stage is absent for a source that never reached it.
    """
    problems = []
    order: dict[str, int] = {}
    by_source: dict[str, dict[str, Mapping[str, Any]]] = {}
    for entry in funnel:
        stage, source = entry["stage"], entry["source"]
        order.setdefault(stage, len(order))
        if stage in by_source.setdefault(source, {}):
            problems.append(f"stage {stage!r}, source {source!r}: listed twice")
            continue
        by_source[source][stage] = entry
        dropped, dead = (sum(outcome["documents"] for outcome in entry[key].values()) for key in ("dropped", "dead"))
        entered, kept = entry["in"]["documents"], entry["kept"]["documents"]
        created = entry["created"]["documents"] if "created" in entry else 0
        if entered + created != kept + dropped + dead:
            entries = f"{entered} documents entered" + (f" and {created} were created" if created else "")
            problems.append(
                f"stage {stage!r}, source {source!r}: {entries}, "
                f"but {kept} kept + {dropped} dropped + {dead} dead = {kept + dropped + dead}"
            )
        for series, bins in entry.get("scored", {}).items():
            scored = sum(documents for _, documents in bins)
            if scored > entered:
                problems.append(
                    f"stage {stage!r}, source {source!r}: {scored} numbers of {series!r} for {entered} documents"
                )
    for source, stages in by_source.items():
        path = sorted(stages, key=order.__getitem__)
        for before, after in pairwise(path):
            kept, entered = stages[before]["kept"]["documents"], stages[after]["in"]["documents"]
            if kept != entered:
                problems.append(f"source {source!r}: {before!r} kept {kept} documents, {entered} entered {after!r}")
        kept = stages[path[-1]]["kept"]["documents"]
        if kept and order[path[-1]] != len(order) - 1:
            problems.append(f"source {source!r}: {path[-1]!r} kept {kept} documents, which entered no later stage")
    return problems


def check_bytes(funnel: Sequence[Mapping[str, Any]]) -> list[str]:
    """Messages about bytes that a source's stage kept and that did not enter its next one, and about a stage that
    dropped, or saw die, more than entered it. What a stage keeps may be more or less than that: texts change."""
    problems = []
    order = {stage: number for number, stage in enumerate(dict.fromkeys(entry["stage"] for entry in funnel))}
    by_source: dict[str, list[Mapping[str, Any]]] = {}
    for entry in sorted(funnel, key=lambda entry: order[entry["stage"]]):
        by_source.setdefault(entry["source"], []).append(entry)
        lost = sum(outcome["bytes"] for key in ("dropped", "dead") for outcome in entry[key].values())
        if lost > entry["in"]["bytes"]:
            problems.append(
                f"stage {entry['stage']!r}, source {entry['source']!r}: {lost} bytes dropped or dead, "
                f"{entry['in']['bytes']} entered"
            )
    for source, entries in by_source.items():
        for before, after in pairwise(entries):
            kept, entered = before["kept"]["bytes"], after["in"]["bytes"]
            if kept != entered:
                names = before["stage"], after["stage"]
                problems.append(f"source {source!r}: {names[0]!r} kept {kept} bytes, {entered} entered {names[1]!r}")
    return problems


def funnel_entry(entry: Fields) -> dict[str, Any]:
    """A row of a manifest's funnel. Raises FormatError for a count that is missing or of another kind."""
    outcomes = [entry.inner(key) for key in ("in", "kept", "created") if key != "created" or key in entry.value]
    for group in (entry.inner("dropped"), entry.inner("dead")):
        outcomes += [group.inner(reason) for reason in group.value]
    if "found" in entry.value:
        groups = [entry.inner("found").inner(group) for group in entry.inner("found").value]
        outcomes += groups
        for found in groups:
            found.count("items")
    if "scored" in entry.value:
        for series in entry.inner("scored").value:
            entry.inner("scored").bins(series)
    for outcome in outcomes:
        outcome.count("documents")
        outcome.count("bytes")
    entry.text("stage")
    entry.text("source")
    return dict(entry.value)
