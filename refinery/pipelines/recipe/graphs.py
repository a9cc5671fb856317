"""The three phases as Beam graphs, the same for every lane: what a lane declares, put in order.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import apache_beam as beam

from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.withheld import take_withheld
from refinery.transforms.core.input_sums.file_read import KIND as READS
from refinery.transforms.core.input_sums.file_read import MergeReads
from refinery.transforms.core.job.report import Check, Mergers, no_check
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, PartLists, WriteVerdicts
from refinery.transforms.dedup.stages import (
    COPIES_OF_DENIED,
    NEAR_DUPLICATES,
    NEAR_DUPLICATES_IN_SOURCE,
    URL_DUPLICATES,
)
from refinery.transforms.extract.extract import EXTRACT
from refinery.transforms.read.read_sources import ReadSources
from refinery.transforms.statistics.dropped import KIND as DROPPED
from refinery.transforms.statistics.dropped import DropRecorder, MergeDropped
from refinery.transforms.statistics.measure import KIND as STATISTICS
from refinery.transforms.statistics.measure import MergeStatistics
from refinery.transforms.statistics.measure_texts import MeasureTexts
from refinery.transforms.statistics.points import Point, points_of
from refinery.transforms.statistics.tally import measured_notes
from refinery.transforms.write.count_kept import KIND as SIZES
from refinery.transforms.write.count_kept import CountKept, MergeSizes
from refinery.transforms.write.deal_kept_documents import ReadKeptDocuments
from refinery.transforms.write.lookup.write_lookup import WriteLookup
from refinery.transforms.write.records import KIND as RECORDS
from refinery.transforms.write.records import PublishedFiles, WriteRecords
from refinery.transforms.write.removals import WriteRemovals
from refinery.transforms.write.rows.files_job import FilesJob
from refinery.transforms.write.rows.labels import labelling, noting_changes
from refinery.transforms.write.rows.write_files import KIND as OUTPUTS
from refinery.transforms.write.rows.write_files import MergeOutputs, write_rows_back
from refinery.transforms.write.rows.writer import LAYOUT
from refinery.transforms.write.shard_reports import KIND as SHARDS
from refinery.transforms.write.shard_reports import MergeShards
from refinery.transforms.write.shards import ShardsJob
from refinery.transforms.write.write_documents import WriteDocuments
from refinery.transforms.write.write_shards import write_corpus

MERGERS: Mergers = {STATISTICS: MergeStatistics, DROPPED: MergeDropped}  # of what the jobs measure


NO_DIGESTS: Mapping[str, str] = MappingProxyType({})


def apply_stages(
    docs: beam.PCollection,
    recipe: Recipe,
    phase: str,
    measure: bool = False,
    digests: Mapping[str, str] = NO_DIGESTS,
    last: Collection[AnyStage] = (),
) -> beam.PCollection:
    """`docs` through the stages of a phase that the recipe has on, in the lane's order. measure: at its points, too.
    digests: path -> sha256 of the recipe's files, which workers hold them to. last: those alone, where others ran
    before; the points before them were measured then."""
    active = [found for found in recipe.active(phase) if not last or found[0] in last]
    points = list(points_of(phase, [stage for stage, _ in active])) if measure else []
    measure_here(docs, recipe, () if last else points, "")
    for stage, params in active:
        if stage.judge is not None:
            recorder = DropRecorder(stage, params, categories_of(recipe)) if measure else None
            judging = stage
            if recipe.layout == LAYOUT and stage.output is Document and stage is not EXTRACT:
                judging = labelling(stage, recipe.annotate) if recipe.annotate else noting_changes(stage)
            docs = docs | judging(params, recipe.rejects, digests, recorder)
            measure_here(docs, recipe, points, stage.name)
    return docs


def categories_of(recipe: Recipe) -> tuple[str, ...]:
    """The notes of a recipe by which documents are counted."""
    return measured_notes(recipe.notes()).categories


def removing_stages(recipe: Recipe) -> dict[str, tuple[str, float | None]]:
    """Reason -> the stage of phase 2 that removes documents for it, and its threshold where it has one."""
    near = {NEAR_DUPLICATES.name: recipe.near_dup, NEAR_DUPLICATES_IN_SOURCE.name: recipe.near_dup_in_source}
    return {
        reason.name: (stage.name, getattr(near.get(stage.name), "threshold", None))
        for stage in recipe.LANE.phase("dedup")
        for reason in stage.reasons
    }


def measure_here(docs: beam.PCollection, recipe: Recipe, points: Iterable[tuple[str, Point]], behind: str) -> None:
    """Measure `docs` for the points behind a stage."""
    for name, point in points:
        if name == behind:
            docs | MeasureTexts(point, measured_notes(recipe.notes()))


def clean_documents(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    tasks: TaskList,
    measure: bool = False,
    digests: Mapping[str, str] = NO_DIGESTS,
) -> beam.PCollection:
    """Phase 1 up to its cleaned documents. tasks: of `write_tasks`. digests: as of `apply_stages`."""
    recorder = DropRecorder() if measure else None
    docs = pipeline | ReadSources(tasks, recipe.limits, recipe.rejects, measure, recorder)  # RawDocument
    return apply_stages(docs, recipe, "clean", measure, digests)  # Document


def clean(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    tasks: TaskList,
    work: str,
    report: str,
    facts: Any,
    check: Check = no_check,
    digests: Mapping[str, str] = NO_DIGESTS,
) -> None:
    """Phase 1: inputs -> documents/, signatures/ and withheld/ parts under `work`. digests: as of `apply_stages`."""
    docs = clean_documents(pipeline, recipe, tasks, True, digests)  # Document
    hashed = tuple(stage.hashed for stage, _ in recipe.comparing())
    facts_of_parts = work, recipe.signature, recipe.rank, recipe.source_facts(), recipe.run.part_bytes
    docs | WriteDocuments(*facts_of_parts, hashed)
    if withheld := take_withheld(pipeline):
        dropped = tuple(withheld) | "withheld" >> beam.Flatten()  # Document
        dropped | WriteDocuments(*facts_of_parts, withheld=True)
    pipeline | WriteReport(work, report, facts, {**MERGERS, READS: MergeReads}, check)


def dedup(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    lists: PartLists,
    partitions: int,
    work: str,
    report: str,
    facts: Any,
    salt: str = "",
    check: Check = no_check,
) -> None:
    """Phase 2: signatures/ parts (of `list_parts`) -> verdicts/ parts under `work`; reads text only where a
    section asks for it. salt: of `Deduplicate`."""
    urls = recipe.params_of(URL_DUPLICATES)
    near = recipe.near_dup, recipe.near_dup_in_source
    params = DedupParams(recipe.exact_dup, *near, urls, recipe.cutting(), labels=bool(recipe.annotate))
    params = replace(params, withheld=COPIES_OF_DENIED in recipe.LANE.phase("dedup"))
    sources = tuple(source.name for source in recipe.sources)
    method = None if recipe.run.components == "auto" else recipe.run.components
    decide = Deduplicate(params, recipe.signature, sources, lists, partitions, method, salt)
    verdicts = pipeline | decide  # (part, serialized verdicts)
    verdicts | WriteVerdicts(work, sources)  # names
    pipeline | WriteReport(work, report, facts, check=check)


def order(pipeline: beam.Pipeline, pairs: TaskList, bits: int, grain: int, work: str, report: str, facts: Any) -> None:
    """Between phases 2 and 3 of a corpus in input order: the kept bytes of each input file. pairs: of `write_pairs`.
    bits, grain: of `CountKept`."""
    pipeline | CountKept(pairs, bits, grain)
    pipeline | WriteReport(work, report, facts, {SIZES: MergeSizes})


def shards(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    pairs: TaskList,
    job: ShardsJob | FilesJob,
    removals: int,
    work: str,
    report: str,
    facts: Any,
    check: Check = no_check,
    digests: Mapping[str, str] = NO_DIGESTS,
) -> None:
    """Phase 3: documents and verdicts (of `write_pairs`) -> the lane's files under the job's prefix. digests: as of
    `apply_stages`."""
    docs = pipeline | ReadKeptDocuments(pairs, recipe.cuts(), bool(recipe.annotate))  # Document
    encoded = apply_stages(docs, recipe, "shards", True, digests)  # EncodedDocument
    mergers: Mergers = {**MERGERS, SHARDS: MergeShards}
    if isinstance(job, FilesJob):
        write_rows_back(encoded, job)
        mergers = {**mergers, OUTPUTS: MergeOutputs}
    else:
        write_corpus(encoded, job)
    if not recipe.annotate:
        pipeline | WriteRemovals(pairs, removals, job.prefix, removing_stages(recipe))  # of `removals` files
    pipeline | WriteReport(work, report, facts, mergers, check)


def records(
    pipeline: beam.Pipeline,
    folders: Mapping[str, tuple[TaskList, int]],
    lookup: tuple[TaskList, int],
    prefix: str,
    work: str,
    report: str,
    facts: Any,
) -> None:
    """The rejects and dead letters that the phases left in parts -> their files under the prefix, and the index of all
    rows. folders: parts and number of files of each; lookup: the same of the index."""
    for folder, (parts, files) in sorted(folders.items()):
        pipeline | WriteRecords(folder, parts, files, prefix)
    pipeline | WriteLookup(*lookup, prefix)
    pipeline | WriteReport(work, report, facts, {RECORDS: PublishedFiles})
