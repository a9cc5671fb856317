"""Which shards of a token export begin in which region of the corpus."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from refinery.pipelines.corpus.export.checkpoint import SplitPlan


def cut_shards(
    plan: SplitPlan, size: int, regions: Sequence[dict[str, Any]], left: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """A task for each region: the shards that begin in it, the leftover if that does, and the regions to read for them.

    Shard k is tokens [k * size, (k + 1) * size) of the split. What was left over before belongs to the first region.
    """
    base = plan.shards * size
    stops = [base + plan.leftover + stop for stop in accumulate(plan.tokens)]
    end = stops[-1]
    tasks = []
    for number, (stop, tokens) in enumerate(zip(stops, plan.tokens, strict=True)):
        start = stop - tokens
        begin = base if number == 0 else start
        first = -(-begin // size)
        complete = range(first, min(-(-stop // size), end // size))
        rest = end // size * size
        leftover = [rest, end] if begin <= rest < stop and rest < end else None
        last = end if leftover else (complete[-1] + 1) * size if complete else stop
        following = sum(other < last for other in stops[number:-1])
        tasks.append(
            {
                "split": plan.split,
                "start": start,
                "tokens": tokens,
                "shards": list(complete),
                "leftover": leftover,
                "before": dict(left) if left and number == 0 else None,
                "regions": list(regions[number : number + following + 1]),
            }
        )
    return tasks
