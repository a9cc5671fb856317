"""The steps of phases 2 and 3, known before their input is: their graphs are built for no input."""

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from refinery.loader.format.indexed import dtype_for
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.checks import packed_rows
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.slices.sliced_job import steps_of
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.dedup.deduplicate import PartLists
from refinery.transforms.dedup.reference_corpora import number_parts
from refinery.transforms.statistics.tally import measured_notes
from refinery.transforms.tokenize.encode import TokenizerInfo
from refinery.transforms.write.shards import ShardsJob, provenance_columns

BYTES_PER_DOCUMENT = (
    2_000  # of inputs, compressed: with fewer bytes a document, deduplication has more steps than these
)
NOTHING = TaskList("", "none", 0, "")


def dedup_steps(recipe: Recipe, inputs: Sequence[Mapping[str, Any]]) -> list[bool]:
    """The steps of phase 2, each with whether one task does all of it. inputs: as described; how many documents there
    are decides how components are found."""
    documents = sum(int(entry["size"]) for entry in inputs) // BYTES_PER_DOCUMENT
    names = tuple(corpus.prefix for corpus in recipe.reference_corpora)
    lists = PartLists(NOTHING, NOTHING if names else None, number_parts(0, ()), documents, names)

    def build(pipeline: beam.Pipeline) -> None:
        graphs.dedup(pipeline, recipe, lists, 1, "", "", {})

    return steps_of(build)


def shards_steps(recipe: Recipe, tokenizer: TokenizerInfo | None) -> list[bool]:
    """The steps of phase 3, each with whether one task does all of it."""
    job = ShardsJob(
        params=recipe.shards,
        counts={"train/main": 1},
        domains={name: facts.domain for name, facts in recipe.source_facts().items()},
        dtype="" if tokenizer is None else dtype_for(tokenizer.vocab_size).name,
        columns=provenance_columns(recipe.provenance()),
        prefix="",
        targets=recipe.targets(),
        packed=packed_rows(recipe, tokenizer),
        notes=measured_notes(recipe.notes()),
        counted=recipe.counted(),
        writer=recipe.LANE.writer,
    )

    def build(pipeline: beam.Pipeline) -> None:
        graphs.shards(pipeline, recipe, NOTHING, job, 1, "", "", {})

    return steps_of(build)
