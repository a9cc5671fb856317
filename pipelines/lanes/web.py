"""The web lane: the three phases as compositions, each on one screen. What a stage does is in its own file.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Mapping
from typing import Any

import apache_beam as beam

from refinery.pipelines.run.phases import STAGES as STAGES
from refinery.pipelines.run.recipe import Recipe
from refinery.transforms.core.memory import with_memory
from refinery.transforms.core.report import WriteReport
from refinery.transforms.core.task_list import TaskList
from refinery.transforms.dedup.cut_lines import CutLines
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, PartLists, WriteVerdicts
from refinery.transforms.extract.extract import ExtractText
from refinery.transforms.filter.heuristics import FilterHeuristics
from refinery.transforms.filter.language import FilterLanguage
from refinery.transforms.filter.pii import RedactPii
from refinery.transforms.filter.quality import FilterQuality
from refinery.transforms.filter.toxicity import FilterToxicity
from refinery.transforms.filter.url import FilterUrl
from refinery.transforms.read.sources import ReadSources
from refinery.transforms.tokenize.encode import EncodeText
from refinery.transforms.write.documents import WriteDocuments
from refinery.transforms.write.kept_documents import ReadKeptDocuments
from refinery.transforms.write.removals import WriteRemovals
from refinery.transforms.write.shards import SHARD_MEMORY, WriteShards
from refinery.transforms.write.shuffle import ShuffleToShards


def clean_documents(pipeline: beam.Pipeline, recipe: Recipe, tasks: TaskList) -> beam.PCollection:
    """Phase 1 up to its cleaned documents. tasks: of `write_tasks`."""
    rejects = recipe.rejects
    docs = pipeline | ReadSources(tasks, recipe.limits, rejects)  # RawDocument
    docs = docs | ExtractText(recipe.extract, rejects)  # Document
    docs = optional(docs, FilterUrl, recipe.url, rejects)  # Document
    docs = optional(docs, FilterLanguage, recipe.language, rejects)  # Document, language in meta
    return optional(docs, FilterHeuristics, recipe.heuristics, rejects)  # Document


def clean(pipeline: beam.Pipeline, recipe: Recipe, tasks: TaskList, work: str, report: str, facts: Any) -> None:
    """Phase 1: inputs -> documents/ and signatures/ parts under `work`."""
    docs = clean_documents(pipeline, recipe, tasks)
    sources, lines = recipe.source_facts(), recipe.line_dup is not None
    docs | WriteDocuments(work, recipe.signature, recipe.rank, sources, recipe.run.part_bytes, lines)
    pipeline | WriteReport(work, report, facts)


def dedup(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    lists: PartLists,
    partitions: int,
    work: str,
    report: str,
    facts: Any,
) -> None:
    """Phase 2: signatures/ parts (of `list_parts`) -> verdicts/ parts under `work`; never touches text."""
    params = DedupParams(recipe.exact_dup, recipe.near_dup, recipe.near_dup_in_source, recipe.line_dup)
    sources = tuple(source.name for source in recipe.sources)
    method = None if recipe.run.components == "auto" else recipe.run.components
    decide = Deduplicate(params, recipe.signature, sources, lists, partitions, method)
    verdicts = pipeline | decide  # (part, packed verdicts)
    verdicts | WriteVerdicts(work, sources)  # names
    pipeline | WriteReport(work, report, facts)


def shards(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    pairs: TaskList,
    counts: Mapping[str, int],
    removals: int,
    dtype: str,
    work: str,
    prefix: str,
    report: str,
    facts: Any,
) -> None:
    """Phase 3: documents and verdicts (of `write_pairs`) -> shards under `prefix`."""
    rejects = recipe.rejects
    domains = {name: facts.domain for name, facts in recipe.source_facts().items()}
    docs = pipeline | ReadKeptDocuments(pairs)  # Document
    docs = optional(docs, CutLines, recipe.line_dup, rejects)  # Document
    docs = optional(docs, FilterQuality, recipe.quality, rejects)  # Document, score in meta
    docs = optional(docs, FilterToxicity, recipe.toxicity, rejects)  # Document, density in meta
    docs = optional(docs, RedactPii, recipe.pii, rejects)  # Document
    encoded = docs | EncodeText(recipe.tokenizer, rejects)  # EncodedDocument
    blocks = encoded | ShuffleToShards(recipe.shards, counts, domains)  # (shard key, packed blocks)
    blocks | with_memory(WriteShards(prefix, counts, dtype), SHARD_MEMORY * recipe.shards.target_bytes)
    pipeline | WriteRemovals(pairs, removals, prefix)  # of `removals` files
    pipeline | WriteReport(work, report, facts)


def optional(
    docs: beam.PCollection, stage: Callable[..., beam.PTransform], params: Any, rejects: Any
) -> beam.PCollection:
    """`docs | stage(params, rejects)`, or `docs` where the recipe leaves the stage out (params is None)."""
    return docs if params is None else docs | stage(params, rejects)
