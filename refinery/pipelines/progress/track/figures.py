"""What leaves this machine: counts, seconds and rates, by names of phases, stages and reasons. Never a text, an
address, a path, a name of a source or anything else of a recipe."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from refinery.pipelines.progress.events import job_fields
from refinery.pipelines.progress.measure import Snapshot

FINAL = "final"
PHASE = re.compile(r"[a-z][a-z0-9-]{0,31}")  # of a run; other jobs have labels for people
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
LEFT_OUT = ("phase_number", "phases")  # constant


def of_snapshot(snapshot: Snapshot) -> dict[str, float]:
    """Figures of a job that runs, "clean/documents_per_second"; those that are unknown are left out."""
    phase = snapshot.work.phase if PHASE.fullmatch(snapshot.work.phase) else "job"
    found = {}
    for key, value in job_fields(snapshot).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and key not in LEFT_OUT:
            found[f"{phase}/{key}"] = float(value)
    for stage in snapshot.stages:
        counts = {key: value for key, value in stage.plain().items() if isinstance(value, int)}
        found |= {f"{phase}/stage/{name_of(stage.name)}/{key}": float(value) for key, value in counts.items()}
    return found


def of_corpus(totals: Mapping[str, int], funnel: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Figures of a manifest: its totals, and its funnel by stage, the sources together."""
    found = {f"{FINAL}/{name_of(name)}": float(value) for name, value in totals.items()}
    for row in funnel:
        for key, count in _of_row(row):
            found[key] = found.get(key, 0.0) + count
    return found


def _of_row(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    stage = f"{FINAL}/stage/{name_of(row['stage'])}"
    for outcome in ("in", "kept"):
        yield f"{stage}/{outcome}", float(row[outcome]["documents"])
    for outcome in ("dropped", "dead"):
        yield f"{stage}/{outcome}", float(sum(each["documents"] for each in row[outcome].values()))
        for reason, each in row[outcome].items():
            yield f"{stage}/{outcome}/{name_of(reason)}", float(each["documents"])


def name_of(text: str) -> str:
    """A name in the letters that every service takes, so that nothing else can pass as one."""
    return _NO_NAME.sub("_", text)[:64]
