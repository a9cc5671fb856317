"""The web lane: the three phases as compositions, each on one screen. What a stage does is in its own file.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam

from pipelines.recipe import Recipe
from transforms.cut_lines import CutLines
from transforms.deduplicate import Deduplicate, DedupParams, WriteVerdicts
from transforms.encode import EncodeText
from transforms.extract import ExtractText
from transforms.heuristics import FilterHeuristics
from transforms.language import FilterLanguage
from transforms.pii import RedactPii
from transforms.published import PublishedCorpus
from transforms.quality import FilterQuality
from transforms.read import ReadSources, ReadTask
from transforms.read_survivors import PartPair, ReadSurvivors
from transforms.report import WriteReport
from transforms.shuffle import ShuffleToShards
from transforms.toxicity import FilterToxicity
from transforms.url import FilterUrl
from transforms.write_documents import WriteDocuments
from transforms.write_removals import WriteRemovals
from transforms.write_shards import WriteShards

# The funnel, in order, as the tallies and the manifest name its stages.
STAGES: tuple[str, ...] = (
    *("read", "extract", "url", "language", "heuristics"),
    *("exact-duplicates", "near-duplicates-in-source", "near-duplicates"),
    *("lines", "quality", "toxicity", "pii", "encode"),
)


def clean_documents(pipeline: beam.Pipeline, recipe: Recipe, tasks: Sequence[ReadTask]) -> beam.PCollection:
    """Phase 1 up to its cleaned documents."""
    rejects = recipe.rejects
    docs = pipeline | ReadSources(tuple(tasks), recipe.limits, rejects)  # RawDocument
    docs = docs | ExtractText(recipe.extract, rejects)  # Document
    docs = docs | Optional(FilterUrl, recipe.url, rejects)  # Document
    docs = docs | Optional(FilterLanguage, recipe.language, rejects)  # Document, language in meta
    return docs | Optional(FilterHeuristics, recipe.heuristics, rejects)  # Document


def clean(
    pipeline: beam.Pipeline, recipe: Recipe, tasks: Sequence[ReadTask], work: str, report: str, facts: Any
) -> None:
    """Phase 1: inputs -> documents/ and signatures/ parts under `work`."""
    docs = clean_documents(pipeline, recipe, tasks)
    sources, lines = recipe.source_facts(), recipe.line_dup is not None
    docs | WriteDocuments(work, recipe.signature, recipe.rank, sources, recipe.run.part_bytes, lines)
    pipeline | WriteReport(work, report, facts)


def dedup(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    parts: Sequence[tuple[str, int]],
    against: tuple[PublishedCorpus, ...],
    partitions: int,
    work: str,
    report: str,
    facts: Any,
) -> None:
    """Phase 2: signatures/ parts [(url, rows)] -> verdicts/ parts under `work`; never touches text."""
    params = DedupParams(recipe.exact_dup, recipe.near_dup, recipe.near_dup_in_source, recipe.line_dup)
    sources = tuple(source.name for source in recipe.sources)
    method = None if recipe.run.components == "auto" else recipe.run.components
    decide = Deduplicate(params, recipe.signature, sources, parts, partitions, against, method)
    verdicts = pipeline | decide  # (part, packed verdicts)
    verdicts | WriteVerdicts(work, sources, parts)  # names
    pipeline | WriteReport(work, report, facts)


def shards(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    pairs: list[PartPair],
    counts: Mapping[str, int],
    removals: int,
    dtype: str,
    work: str,
    prefix: str,
    report: str,
    facts: Any,
) -> None:
    """Phase 3: documents and verdicts -> shards under `prefix`."""
    rejects = recipe.rejects
    domains = {name: facts.domain for name, facts in recipe.source_facts().items()}
    docs = pipeline | ReadSurvivors(pairs)  # Document
    docs = docs | Optional(CutLines, recipe.line_dup, rejects)  # Document
    docs = docs | Optional(FilterQuality, recipe.quality, rejects)  # Document, score in meta
    docs = docs | Optional(FilterToxicity, recipe.toxicity, rejects)  # Document, density in meta
    docs = docs | Optional(RedactPii, recipe.pii, rejects)  # Document
    encoded = docs | EncodeText(recipe.tokenizer, rejects)  # EncodedDocument
    blocks = encoded | ShuffleToShards(recipe.shards, counts, domains)  # (shard key, packed blocks)
    blocks | WriteShards(prefix, counts, dtype)
    pipeline | WriteRemovals(pairs, removals, prefix)  # of `removals` files
    pipeline | WriteReport(work, report, facts)


class Optional(beam.PTransform):
    """`stage(params, rejects)`, or nothing at all where the recipe leaves the stage out (params is None)."""

    def __init__(self, stage: Callable[..., beam.PTransform], params: Any, rejects: Any) -> None:
        super().__init__(stage.__name__)
        self.stage = stage(params, rejects) if params is not None else None

    def expand(self, docs: beam.PCollection) -> beam.PCollection:
        return docs | self.stage if self.stage else docs
