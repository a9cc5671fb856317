"""The funnel: what entered each stage, what left it and why, as data for the manifest and as a table for people; and
whether its counts hold, before a phase's report is published and once more before the manifest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from refinery.loader.format.funnel import check_funnel
from refinery.loader.format.listed import shard_totals
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.format.removals import REASONS
from refinery.pipelines.progress.words import human_bytes
from refinery.transforms.core.histogram import lower_edge, quantile
from refinery.transforms.write.shard_reports import KIND as SHARDS
from refinery.transforms.write.shard_reports import reported_shards

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the quantiles that the table shows

# {"stage", "source", "outcome": in|kept|created|dropped|dead|found|scored, "reason", "documents", "bytes"}
CounterEntry = Mapping[str, Any]


def build_funnel(
    counters: Iterable[CounterEntry], stages: Sequence[str], sources: Sequence[str]
) -> list[dict[str, Any]]:
    """One entry per stage and source, in the order of the funnel and of the recipe. Only where a stage made several
    documents of one does an entry have "created": how many there were beyond the first of each; only where it found
    something "found": per group the documents with a finding, and how many different names were found (`items`);
    only where it gave numbers "scored": per series [lower edge, documents] of each bin, ascending."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    nothing = {"stage": stages[0], "outcome": "in", "reason": "", "documents": 0, "bytes": 0}
    counters = [*counters, *({**nothing, "source": source} for source in sources)]  # an empty source is reported, too
    for counter in sorted(counters, key=lambda t: (t["outcome"], t["reason"])):
        row = rows.setdefault(
            (counter["stage"], counter["source"]),
            {
                "stage": counter["stage"],
                "source": counter["source"],
                "in": {"documents": 0, "bytes": 0},
                "kept": {"documents": 0, "bytes": 0},
                "dropped": {},
                "dead": {},
            },
        )
        if counter["outcome"] == "created":
            if not counter["documents"]:
                continue
            entry = row.setdefault("created", {"documents": 0, "bytes": 0})
        elif counter["outcome"] == "found":
            group, _, name = counter["reason"].partition("/")
            groups = row.setdefault("found", {})
            entry = groups.setdefault(group, {"documents": 0, "bytes": 0, "items": 0})
            if name:
                entry["items"] += 1
                continue
        elif counter["outcome"] == "scored":
            series, _, place = counter["reason"].rpartition("/")
            row.setdefault("scored", {}).setdefault(series, []).append([lower_edge(int(place)), counter["documents"]])
            row["scored"][series].sort()
            continue
        elif counter["outcome"] in ("in", "kept"):
            entry = row[counter["outcome"]]
        else:
            entry = row[counter["outcome"]].setdefault(counter["reason"], {"documents": 0, "bytes": 0})
        entry["documents"] += counter["documents"]
        entry["bytes"] += counter["bytes"]
    order = {(stage, source): i for i, (stage, source) in enumerate((t, s) for t in stages for s in sources)}
    return [rows[key] for key in sorted(rows, key=lambda key: order[key])]


def found_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a stage found, a line a group. An item that was found in two sources counts in both."""
    groups: dict[str, list[int]] = {}
    for row in rows:
        for group, entry in row.get("found", {}).items():
            total = groups.setdefault(group, [0, 0])
            total[0] += entry["items"]
            total[1] += entry["documents"]
    return [f"  = {group}: {items:,} items in {documents:,} documents" for group, (items, documents) in groups.items()]


def scored_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The distribution of a stage's numbers, a line a series: quantiles over all sources."""
    series: dict[str, Counter[float]] = {}
    for row in rows:
        for name, bins in row.get("scored", {}).items():
            counts = series.setdefault(name, Counter())
            for edge, documents in bins:
                counts[edge] += documents
    return [
        f"  ~ {name}: {', '.join(f'{share:.0%} {quantile(counts, share):,.4g}' for share in SHARES)} "
        f"of {counts.total():,} documents"
        for name, counts in sorted(series.items())
    ]


def check_budget(counters: Iterable[CounterEntry], max_ratio: float, grace: int) -> list[str]:
    """A sentence for every stage whose dead letters exceed the budget, naming the commonest errors."""
    entered: dict[str, int] = {}
    dead: dict[str, dict[str, int]] = {}
    for counter in counters:
        if counter["outcome"] == "in":
            entered[counter["stage"]] = entered.get(counter["stage"], 0) + counter["documents"]
        elif counter["outcome"] == "dead":
            errors = dead.setdefault(counter["stage"], {})
            errors[counter["reason"]] = errors.get(counter["reason"], 0) + counter["documents"]
    problems = []
    for stage, errors in sorted(dead.items()):
        total = sum(errors.values())
        if total > max(grace, max_ratio * entered.get(stage, 0)):
            common = ", ".join(f"{error} {n}" for error, n in sorted(errors.items(), key=lambda e: (-e[1], e[0]))[:3])
            problems.append(
                f"{stage}: {total} of {entered.get(stage, 0)} documents are dead letters ({common}); "
                f"allowed are {max_ratio:.2%} (failures.max_ratio), and always {grace} (failures.grace)"
            )
    return problems


def funnel_table(funnel: Sequence[Mapping[str, Any]], seconds: Mapping[str, float], tokens: int | None) -> list[str]:
    """The funnel summed over sources, a line a stage and a line a reason. Retention is kept over all that was read.
    tokens: of the corpus; None where it has none, or nobody knows yet."""
    lines = [f"{'stage':<28}{'in':>12}{'kept':>12}{'lost':>10}{'kept text':>12}{'of read':>9}{'docs/s/core':>13}"]
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for row in funnel:
        stages.setdefault(row["stage"], []).append(row)
    read = sum(row["in"]["documents"] for row in next(iter(stages.values()), []))
    for stage, rows in stages.items():
        entered = sum(row["in"]["documents"] for row in rows)
        kept = sum(row["kept"]["documents"] for row in rows)
        created = sum(row["created"]["documents"] for row in rows if "created" in row)
        lost = entered + created - kept
        size = sum(row["kept"]["bytes"] for row in rows)
        rate = f"{entered / seconds[stage]:,.0f}" if seconds.get(stage) else ""
        share = f"{kept / read:.1%}" if read else ""
        lines.append(f"{stage:<28}{entered:>12,}{kept:>12,}{lost:>10,}{human_bytes(size):>12}{share:>9}{rate:>13}")
        if created:
            lines.append(f"  + {'created':<24}{created:>12,}")
        for outcome, sign in (("dropped", "-"), ("dead", "!")):
            reasons: dict[str, int] = {}
            for row in rows:
                for reason, entry in row[outcome].items():
                    reasons[reason] = reasons.get(reason, 0) + entry["documents"]
            for reason, count in sorted(reasons.items(), key=lambda e: (-e[1], e[0])):
                lines.append(f"  {sign} {reason:<48}{count:>10,}")
        lines += found_lines(rows) + scored_lines(rows)
    if tokens is not None:
        lines.append(f"{'tokens':<28}{'':>12}{tokens:>12,}")
    parts = "+ made by splitting documents, " if any("created" in row for row in funnel) else ""
    found = "= what a stage found; " if any("found" in row for row in funnel) else ""
    found += "~ quantiles of the numbers that a stage measured; " if any("scored" in row for row in funnel) else ""
    lines.append(f"({parts}- dropped for a reason, ! dead letters; {found}by source and stage in manifest.json)")
    return lines


class CountsDisagree(RuntimeError):
    """Counts do not reconcile: no report and no manifest is written."""


def check_sums(
    report: Mapping[str, Any],
    before: Sequence[CounterEntry],
    stages: Sequence[str],
    carried: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Raises CountsDisagree, naming every disagreement, where a job's report does not account for every document.

    before: counters of the phases before. stages: of the lane, in the order of the funnel. carried: rows of the funnel
    before them. A job of phase 3 must have in its shards what its last stage kept, and in removals/ what deduplication
    dropped.
    """
    counters = [*before, *report["counters"]]
    funnel = [*carried, *build_funnel(counters, stages, sorted({counter["source"] for counter in counters}))]
    problems = check_funnel(funnel)
    if SHARDS in report:
        problems += check_shards(funnel, shard_totals(reported_shards(report))["documents"], stages[-1])
        problems += check_removals(funnel, report["removals"])
    if problems:
        raise CountsDisagree(
            "the counts do not reconcile, so nothing was published; run the same command again:\n  "
            + "\n  ".join(problems)
        )


def check_shards(funnel: Sequence[Mapping[str, Any]], written: int, last: str) -> list[str]:
    """What the last stage kept must be what was written. written: documents in the shards."""
    encoded = sum(row["kept"]["documents"] for row in funnel if row["stage"] == last)
    return [] if encoded == written else [f"{last}: {encoded} documents were kept, {written} are in the shards"]


def check_removals(funnel: Sequence[Mapping[str, Any]], removals: Sequence[Mapping[str, Any]]) -> list[str]:
    """What deduplication dropped must be what is listed as removed."""
    dropped = sum(row["dropped"].get(reason, {"documents": 0})["documents"] for row in funnel for reason in REASONS)
    listed = sum(file["rows"] for file in removals)
    return [] if dropped == listed else [f"deduplication dropped {dropped} documents, {listed} are in {REMOVALS}/"]
