"""`refinery refine --dry-run`: what is there, what would be reused and what would run, as text."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.manifest import MANIFEST
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.recipe.quantities.disk import DISK_PER_TEXT, SCRATCH_PER_TEXT, text_bytes
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.at_work import others_at_work
from refinery.pipelines.run.phases import read_phase, read_waves
from refinery.pipelines.run.reuse import describe_waves, reusable_phases, reusable_waves, task_key
from refinery.pipelines.run.waves import cut_waves, unread_tasks, wave_limits
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.plan import SPLIT_BYTES
from refinery.transforms.read.sources import ReadTask

NAMED = 3  # files of a source that are too large for one worker


@dataclass(frozen=True)
class DryRun:
    """A run before it begins. vcpus: of its jobs, 0 on this machine. identity: what its `_run.json` says.

    scratch: where its temporary files go, "" for TMPDIR.
    """

    recipe: Recipe
    prefix: str
    work: str
    reuse: str
    vcpus: int
    tasks: Sequence[ReadTask]
    identity: Mapping[str, Any]
    scratch: str = ""


def dry_run_lines(run: DryRun) -> Iterator[str]:
    """Lines about a run that is prepared: a line a source, then the phases. Reads only reports, writes nothing."""
    for source in run.recipe.sources:
        tasks = [task for task in run.tasks if task.source == source.name]
        yield _source_line(source.name, tasks)
        yield from whole_files(source.name, tasks)
    for lease in others_at_work(open_store(run.work)):
        yield f"a command is at work there {lease.words()}"
    if open_store(run.prefix).size(MANIFEST) is not None:
        yield f"{run.prefix} is complete already; nothing to do"
        return
    done = [name for name in PHASES if read_phase(run.work, name, run.identity["phases"][name]) is not None]
    taken, words = _reused(run, done)
    for name in PHASES:
        if name in done:
            yield f"{name}: complete already"
        elif name in taken:
            yield f"{name}: will be reused from {run.reuse}"
        elif name == "clean":
            yield from _clean_lines(run)
        else:
            yield f"{name}: to run{words.get(name, '')}"
    if not run.vcpus:
        text = text_bytes(run.tasks)
        yield (
            f"disk: up to {human_bytes(DISK_PER_TEXT * text)} for the corpus and its work files, and "
            f"{human_bytes(SCRATCH_PER_TEXT * text)} of temporary files in {run.scratch or tempfile.gettempdir()}, if "
            "all text is kept"
        )
    yield "dry run: everything was checked, nothing was written"


def _source_line(name: str, tasks: Sequence[ReadTask]) -> str:
    sizes = {task.path: task.size for task in tasks}
    formats = ", ".join(sorted({task.format for task in tasks}))
    files = f"{len(sizes):,} file{'s' * (len(sizes) != 1)}"
    parts = f"{len(tasks):,} task{'s' * (len(tasks) != 1)}"
    return f"source {name}: {files}, {human_bytes(sum(sizes.values()))}, {formats}, {parts}"


def whole_files(name: str, tasks: Sequence[ReadTask]) -> Iterator[str]:
    """A line about large files that are not cut into parts: they decide how long phase 1 takes at least."""
    whole = [task for task in tasks if task.parts == 1 and task.cap is None and task.size > SPLIT_BYTES]
    if whole:
        files = len({task.path for task in tasks})
        are = f"file{'s' * (files != 1)} {'is' if len(whole) == 1 else 'are'}"
        largest = sorted(whole, key=lambda task: (-task.size, task.path))
        named = [f"{printable(task.path)} ({human_bytes(task.size)})" for task in largest[:NAMED]]
        more = [f"{len(whole) - NAMED:,} more"] if len(whole) > NAMED else []
        yield (
            f"source {name}: {len(whole):,} of {files:,} {are} over {human_bytes(SPLIT_BYTES)} and "
            f"cannot be read in parts, so one worker reads each: {', '.join(named + more)}"
        )


def _reused(run: DryRun, done: Sequence[str]) -> tuple[set[str], dict[str, str]]:
    """Phases that --reuse gives, and why another one differs."""
    taken: set[str] = set()
    words: dict[str, str] = {}
    if run.reuse and "clean" not in done:
        for name, phase, why in reusable_phases(run.reuse, run.recipe, run.identity):
            if phase is not None:
                taken.add(name)
            else:
                words[name] = f" ({run.reuse}: it {why})"
    return taken, words


def _clean_lines(run: DryRun) -> Iterator[str]:
    reports = read_waves(open_store(run.work), "clean")
    left = unread_tasks(run.work, run.tasks, reports)
    if reports:
        yield f"clean: {len(reports):,} wave{'s are' if len(reports) != 1 else ' is'} done"
    if run.reuse:
        for name, phase, why in reusable_phases(run.reuse, run.recipe, run.identity):
            if name == "clean" and phase is None:
                yield f"clean: {run.reuse}: it {why}"
        waves = list(reusable_waves(run.reuse, run.recipe, run.identity, left))
        yield f"clean: {describe_waves(run.reuse, waves, left)}"
        taken = {task_key(task) for wave in waves for task in wave.tasks}
        left = [task for task in left if task_key(task) not in taken]
    todo = cut_waves(left, *wave_limits(run.recipe.run, run.vcpus))
    size = human_bytes(sum(task.share_bytes for task in left))
    yield f"clean: {len(todo):,} wave{'s' * (len(todo) != 1)} to run, {size} to read"
