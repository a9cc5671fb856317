"""Snapshots for tests: a run of three phases in the middle of its first one."""

from typing import Any

from refinery.pipelines.progress.measure import Phase, Snapshot
from refinery.pipelines.progress.work import Step, Work

PHASES = ("clean", "dedup", "shards")


def clean_work(**more: Any) -> Work:
    """Wave 2 of 3, 100 MB each."""
    facts: dict[str, Any] = {"bytes_before": 100_000_000, "bytes_after": 100_000_000, "files": 4}
    facts |= {"stages": ("read", "extract"), "counted": {"read kept": 1000, "read dropped": 200}}
    facts |= {"steps": [Step("bytes", 100_000_000)], "bytes": 100_000_000, "wave": 2, "waves": 3}
    return Work("clean", PHASES, **facts | more)


def clean_snapshot(**more: Any) -> Snapshot:
    """Half of that wave is done after 20 seconds."""
    phase = Phase(began=0.0, bytes_before=100_000_000)
    work = clean_work()
    phase.snapshot("1/3 clean, wave 2 of 3", work, {}, 10.0)
    totals = {"work bytes": 50_000_000, "read kept": 700, "read dropped": 50, "read dead": 2, "extract kept": 690}
    return phase.snapshot("1/3 clean, wave 2 of 3", work, totals | {"work files": 1}, 20.0, 1_500_000_000, **more)
