"""Whether the counts of a run hold: before a phase's report is published, and once more before the manifest."""

from collections.abc import Mapping, Sequence
from typing import Any

from refinery.loader.format.funnel import check_funnel
from refinery.loader.format.listed import shard_totals
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.format.removals import REASONS
from refinery.pipelines.run.funnel import CounterEntry, build_funnel
from refinery.transforms.write.shard_reports import KIND as SHARDS
from refinery.transforms.write.shard_reports import reported_shards


class CountsDisagree(RuntimeError):
    """Counts do not reconcile: no report and no manifest is written."""


def check_sums(report: Mapping[str, Any], before: Sequence[CounterEntry], stages: Sequence[str]) -> None:
    """Raises CountsDisagree, naming every disagreement, where a job's report does not account for every document.

    before: counters of the phases before. stages: of the lane, in the order of the funnel. A job of phase 3 must have
    in its shards what its last stage kept, and in removals/ what deduplication dropped.
    """
    counters = [*before, *report["counters"]]
    funnel = build_funnel(counters, stages, sorted({counter["source"] for counter in counters}))
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
