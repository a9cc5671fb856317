"""A run on a cluster as text and JSON. Reasons come from files, so unprintable characters are escaped."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from refinery.pipelines.progress.words import duration
from refinery.pipelines.run.cluster.progress import Failure, Progress, StepState
from refinery.pipelines.run.slices.names import PUBLISH
from refinery.pipelines.runners.cluster.arrays import ranges
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import many

WIDE = 24
SHOWN = 20  # failures that are listed; --json has all
HEAD = f"{'step':<{WIDE}}{'tasks':>8}{'done':>8}{'running':>9}{'failed':>8}{'documents':>15}{'MB':>11}  time left"

Queue = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Asked:
    """What Slurm said of the recorded jobs: step -> state -> tasks. trouble: why there is no answer, "" if there is.
    logs: the folder with the jobs' logs, "" where nothing was submitted."""

    queue: Queue
    trouble: str = ""
    logs: str = ""


def json_line(found: Progress, asked: Asked) -> str:
    """One ASCII JSON object."""
    fields: dict[str, Any] = {
        "prefix": found.prefix,
        "work": found.work,
        "slices": found.slices,
        "complete": found.is_complete,
        "steps": [
            {
                "step": step.name,
                "tasks": step.tasks,
                "done": len(step.done),
                "running": sorted(step.running),
                "missing": step.missing,
                "failed": [vars(failure) for failure in step.failed],
                "documents": step.documents,
                "bytes": step.bytes,
                "seconds_left": step.seconds_left,
            }
            for step in found.steps
        ],
        "queue": asked.queue,
        "queue_trouble": asked.trouble,
    }
    return json.dumps(fields)


def text_lines(found: Progress, asked: Asked) -> Iterator[str]:
    """A table of the steps, then failures, the queue, and what to do."""
    yield f"{safe(found.prefix)}: {headline(found)}"
    yield HEAD
    yield from _rows(found.steps)
    for failure in found.failed[:SHOWN]:
        yield f"failed: {describe(failure)}"
    if len(found.failed) > SHOWN:
        yield f"({len(found.failed) - SHOWN:,} further failures; --json lists all)"
    for lease in found.others:
        yield f"a command without --slice is at work {safe(lease.words())}"
    if asked.queue:
        states: Counter[str] = Counter()
        for each in asked.queue.values():
            states.update(each)
        yield f"queue: {', '.join(f'{count:,} {state.lower()}' for state, count in sorted(states.items()))}"
    if asked.trouble:
        yield f"(the queue is not known: {safe(asked.trouble)})"
    yield from advice(found, asked)


def headline(found: Progress) -> str:
    """The state in a few words."""
    if found.is_complete:
        return "the corpus is complete"
    step = next(step for step in found.steps if step.missing)
    return f"step {step.name} ({found.steps.index(step) + 1} of {len(found.steps)}), {many(found.slices, 'slice')}"


def describe(failure: Failure) -> str:
    """A failure in one line."""
    when = f"{datetime.fromtimestamp(failure.ended).astimezone():%Y-%m-%d %H:%M}"
    which = failure.step if failure.step == PUBLISH else f"{failure.step}, slice {failure.slice}"
    return safe(f"{which}, on {failure.host} at {when}: {failure.reason}")[:500]


def _rows(steps: Sequence[StepState]) -> Iterator[str]:
    """A row for each step where something is going on; neighbours that are done, or not begun, are one row."""
    for kind, group in groupby(steps, _kind):
        members = list(group)
        if kind == GOING_ON or len(members) == 1:
            yield from (_row(step) for step in members)
        else:
            tasks, done = (
                sum(map(len, sets)) for sets in ((range(s.tasks) for s in members), (s.done for s in members))
            )
            yield f"{f'{members[0].name} … {members[-1].name}':<{WIDE}}{tasks:>8,}{done:>8,}{0:>9}{0:>8}"


GOING_ON = "going on"


def _kind(step: StepState) -> str:
    if step.documents or step.running or step.failed or (step.done and step.missing):
        return GOING_ON
    return "done" if step.done else "not begun"


def _row(step: StepState) -> str:
    counts = f"{step.documents:>15,}{step.bytes / 1e6:>11,.1f}" if step.documents else " " * 26
    left = "" if step.seconds_left is None else duration(step.seconds_left)
    row = f"{step.name:<{WIDE}}{step.tasks:>8,}{len(step.done):>8,}{len(step.running):>9,}{len(step.failed):>8,}"
    return f"{row}{counts}  {left}".rstrip()


def advice(found: Progress, asked: Asked) -> Iterator[str]:
    """What to do next."""
    work = "" if found.work == f"{found.prefix.rstrip('/')}/work" else f" --work {found.work}"
    if found.is_complete:
        yield f"next: refinery verify {safe(found.prefix)}"
    elif asked.queue:
        yield f"next: wait; `refinery cluster status {safe(found.prefix + work)} --watch` shows how it goes on"
    elif not asked.trouble and not any(step.running for step in found.steps):
        step = next(step for step in found.steps if step.missing)
        yield f"missing: {step.name} {ranges(step.missing)}"
        if asked.logs:
            yield f"logs: {safe(asked.logs)}"
            yield f"next: refinery cluster resume {safe(found.prefix + work)}"
        else:  # `resume` needs the arguments that a submission recorded
            yield "next: run the missing slices: by hand, or `refinery cluster slurm` or `refinery cluster kubernetes`"
