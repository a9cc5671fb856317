"""JSON events of `--log-json`: one object a line, always with the same keys: docs/commands/progress.md lists them."""

import datetime
import json
from collections.abc import Mapping
from typing import Any

from refinery.pipelines.progress.measure import Snapshot
from refinery.pipelines.progress.words import line

SCHEMA = 1  # raised when a key goes away or changes its meaning, never for one more
LEVELS = {"message": "info", "result": "info", "started": "info", "progress": "info", "ended": "info"}
LEVELS |= {"warning": "warning", "error": "error"}

# What every event has, and what those about a job have on top: key -> type, meaning.
COMMON: Mapping[str, tuple[str, str]] = {
    "schema": ("integer", f"version of this schema: {SCHEMA}"),
    "time": ("string", "UTC, RFC 3339, milliseconds"),
    "level": ("string", "`info`, `warning` or `error`"),
    "event": ("string", "`started`, `progress`, `ended` of a job; `message`, `warning`, `error`, `result`"),
    "command": ("string", "such as `refine`"),
    "message": ("string", "what a person would have read"),
}
OF_JOBS: Mapping[str, tuple[str, str]] = {
    "phase": ("string", "`clean`, `dedup`, `shards`, or what the job is"),
    "phase_number": ("integer", "of `phases`, from 1; 0 for a job on its own"),
    "phases": ("integer", "how many there are"),
    "wave": ("integer", "of the phase, from 1; 0 without waves"),
    "waves": ("integer", "how many there are, as far as is known"),
    "state": ("string", "of a job on another machine"),
    "elapsed_seconds": ("number", "since the phase began in this command"),
    "fraction": ("number or null", "of the phase that is done, 0 to 1; null where unknown"),
    "bytes_done": ("integer", "input of the phase that is read, waves of earlier commands included"),
    "bytes_total": ("integer or null", "input of the phase"),
    "bytes_per_second": ("number or null", "lately"),
    "documents": ("integer", "that went into the phase in this command"),
    "documents_per_second": ("number or null", "lately"),
    "eta_seconds": ("number or null", "until the phase is done, at the speed of its last half"),
    "memory_bytes": ("integer or null", "of this command and its workers on this machine"),
    "files_done": ("integer", "of the job's input"),
    "files_total": ("integer", "of the job's input; 0 where files do not count"),
    "stages": ("object", "name -> `in`, `kept`, `dropped`, `dead`: documents of the phase so far"),
}


def event(kind: str, message: str, command: str, now: datetime.datetime, **more: Any) -> str:
    """One line without its end."""
    time = now.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {"schema": SCHEMA, "time": time, "level": LEVELS[kind], "event": kind, "command": command}
    return json.dumps({**fields, "message": message, **more})  # ASCII: no surrogate, no line separator


def job_fields(snapshot: Snapshot) -> dict[str, Any]:
    """The keys of OF_JOBS."""
    work = snapshot.work
    return {
        "phase": work.phase or snapshot.label,
        "phase_number": work.number,
        "phases": len(work.phases),
        "wave": work.wave,
        "waves": work.waves,
        "state": snapshot.state,
        "elapsed_seconds": round(snapshot.seconds, 3),
        "fraction": _rounded(snapshot.fraction, 6),
        "bytes_done": snapshot.bytes_done,
        "bytes_total": work.bytes_total or None,
        "bytes_per_second": _rounded(snapshot.bytes_per_second, 1),
        "documents": snapshot.documents,
        "documents_per_second": _rounded(snapshot.documents_per_second, 1),
        "eta_seconds": _rounded(snapshot.eta_seconds, 1),
        "memory_bytes": snapshot.memory_bytes,
        "files_done": snapshot.files_done,
        "files_total": work.files,
        "stages": {stage.name: stage.plain() for stage in snapshot.stages},
    }


def job_event(kind: str, snapshot: Snapshot, command: str, now: datetime.datetime) -> str:
    """An event about a job: started, progress or ended."""
    return event(kind, line(snapshot), command, now, **job_fields(snapshot))


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)
