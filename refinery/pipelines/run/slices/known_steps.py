"""The steps of phases 2 and 3, known before their input is: their graphs are built for no input."""

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from refinery.loader.format.indexed import dtype_for
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.checks import kept_columns, packed_rows
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.slices.cut import Step
from refinery.pipelines.run.slices.names import CLEAN, CLEAN_END
from refinery.pipelines.run.slices.sliced_job import steps_of
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.names import PHASES
from refinery.transforms.dedup.deduplicate import PartLists
from refinery.transforms.dedup.reference_corpora import number_parts
from refinery.transforms.statistics.tally import measured_notes
from refinery.transforms.tokenize.encode import TokenizerInfo
from refinery.transforms.write.shards import ShardsJob, provenance_columns

BYTES_PER_DOCUMENT = (
    2_000  # of inputs, compressed: with fewer bytes a document, deduplication has more steps than these
)
DEDUP, SHARDS = PHASES[1:]  # names of steps, or what they begin with
NOTHING = TaskList("", "none", 0, "")


def known_steps(
    recipe: Recipe, inputs: Sequence[Mapping[str, Any]], tokenizer: TokenizerInfo | None, slices: int
) -> list[Step]:
    """The steps that come before the command which ends a run, in order. inputs: as described."""
    documents = sum(int(entry["size"]) for entry in inputs) // BYTES_PER_DOCUMENT
    found = [Step(CLEAN, slices)]
    if not recipe.removes_copies():
        found.append(Step(CLEAN_END, 1))
    elif documents < recipe.run.spread_documents:
        found.append(Step(DEDUP, 1))
    else:
        # The last of them does what is left, also where there are more documents, and so more steps, than estimated.
        found += [Step(CLEAN_END, 1), *_steps(DEDUP, dedup_steps(recipe, documents), slices), Step(DEDUP, 1)]
    return [*found, *_steps(SHARDS, shards_steps(recipe, tokenizer), slices)]


def _steps(phase: str, whole: Sequence[bool], slices: int) -> list[Step]:
    """The steps of a job, without the last ones that one task does: it is that of the next step, or of the end. A task
    that does all of a step does those behind it, too, as long as one task does them."""
    last = max(number for number, each in enumerate(whole) if not each)
    tasks = [1 if each else slices for each in whole[: last + 1]]
    return [Step(f"{phase}-{n}", count) for n, count in enumerate(tasks) if not (n and whole[n] and whole[n - 1])]


def dedup_steps(recipe: Recipe, documents: int) -> list[bool]:
    """The steps of phase 2, each with whether one task does all of it. documents: their number decides how components
    are found."""
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
        kept=kept_columns(recipe),
        borders=NOTHING if recipe.shards.order == "input" else None,
    )

    def build(pipeline: beam.Pipeline) -> None:
        graphs.shards(pipeline, recipe, NOTHING, job, 1, "", "", {})

    return steps_of(build)
