"""What the jobs of the three phases are to do, for the display of how far they are."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam

from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.names import PHASES
from refinery.transforms.dedup.deduplicate import PartLists
from refinery.transforms.dedup.records.map_record_batches import row_passes
from refinery.transforms.read.sources import ReadTask

WRITING = 0.1  # of phase 3's time goes into sorting and writing shards


def stage_names(recipe: Recipe, phase: str) -> tuple[str, ...]:
    """Stages of a phase that are on, in order."""
    return tuple(stage.name for stage, _ in recipe.active(phase))


def clean_work(
    recipe: Recipe,
    tasks: Sequence[ReadTask],
    waves: Sequence[Sequence[ReadTask]],
    number: int,
    reports: Sequence[Mapping[str, Any]],
) -> Work:
    """The first of `waves`, wave `number` (from 0) of phase 1: bytes of its files. tasks: of the whole phase. reports:
    of the waves that are done."""
    size, after = task_bytes(waves[0]), sum(map(task_bytes, waves[1:]))
    counted: Counter[str] = Counter()
    for report in reports:
        for counter in report["counters"]:
            counted[f"{counter['stage']} {counter['outcome']}"] += counter["documents"]
    return replace(
        wave_work(recipe, waves[0], number, number + len(waves), after),
        bytes_before=max(0, task_bytes(tasks) - size - after),
        counted=counted,
    )


def wave_work(recipe: Recipe, tasks: Sequence[ReadTask], place: int, waves: int, after: int) -> Work:
    """The wave at a place (from 0) among those that a command is to read. after: bytes of those behind it."""
    size = task_bytes(tasks)
    return Work(
        phase=PHASES[0],
        phases=PHASES,
        wave=place + 1,
        waves=waves,
        steps=[Step("bytes", size)],
        bytes=size,
        bytes_after=after,
        files=len(tasks),
        stages=stage_names(recipe, PHASES[0]),
    )


def task_bytes(tasks: Sequence[ReadTask]) -> int:
    """Bytes that tasks read."""
    return sum(task.share_bytes for task in tasks)


def dedup_work(recipe: Recipe) -> Work:
    """Phase 2: rows of signatures, as often as it goes through them, which is known when it is built."""
    return Work(phase=PHASES[1], phases=PHASES, documents="exact-duplicates in", stages=stage_names(recipe, PHASES[1]))


def dedup_step(pipeline: beam.Pipeline, lists: PartLists) -> Step:
    """The rows of all passes of the graph of phase 2, the one that writes verdicts included."""
    return Step("rows", lists.documents * (row_passes(pipeline) + 1))


def tokenize_work(stages: Sequence[str], documents: int, size: int, counts: Mapping[str, int]) -> Work:
    """Phase 3 over text shards: their documents, then shards of tokens. size: bytes of the text shards."""
    return Work(
        phase=PHASES[2],
        phases=PHASES[2:],
        steps=[Step("rows", documents, 1 - WRITING), Step("shards", sum(counts.values()), WRITING)],
        bytes=size,
        documents="texts read",
        stages=tuple(stages),
    )


def shards_work(recipe: Recipe, parts: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> Work:
    """Phase 3: rows of the parts of documents/, then shards. counts: of shards."""
    return Work(
        phase=PHASES[2],
        phases=PHASES,
        steps=[
            Step("rows", sum(part["rows"] for part in parts), 1 - WRITING),
            Step("shards", sum(counts.values()), WRITING),
        ],
        bytes=sum(part["size"] for part in parts),
        documents="kept-documents read",
        stages=stage_names(recipe, PHASES[2]),
    )
